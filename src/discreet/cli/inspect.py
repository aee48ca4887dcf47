"""``discreet inspect``: which columns identify people, which are keys, which are sensitive?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source


@takes_source(roles=False)
def inspect(
    source: Source,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the roles file here instead of beside the data.")
    ] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Write the proposed roles file.")] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a roles file that is there.")
    ] = False,
    json: options.AsJson = False,
) -> None:
    """Propose a role for every column, with the reason, and write them to a roles file to check."""
    from discreet.core.errors import InputError
    from discreet.io import sidecar_path
    from discreet.io.naming import is_address
    from discreet.workflow import inspect as inspect_data

    file, query = source.file, source.reading["query"]
    place = out or (None if is_address(file) else sidecar_path(Path(file)))
    if out is not None and write and out.exists() and not overwrite:
        raise InputError(f"'{out.name}' is there already. Use --overwrite to replace it, or another --out.")
    data = source.read(roles={})
    found = inspect_data(data)
    if json:
        options.print_json(found.to_dict())
    else:
        say(str(found))
    if place is None or not write:
        return
    if place.exists() and not overwrite:
        if not json:
            say(f"\n'{place.name}' is there already and was left as it is; --overwrite replaces it.")
        return
    found.save(place, overwrite=overwrite)
    if not json:
        found_there = place == sidecar_path(Path(file)) if not is_address(file) else False
        roles = "" if found_there else f" --roles {shlex.quote(str(place))}"
        say(
            f"\nWrote {place}. Check every line, then run: discreet assess {shlex.quote(file)}{roles}"
            + (f" --query {shlex.quote(query)}" if query else "")
        )
