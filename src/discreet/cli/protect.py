"""``discreet protect FILE``: apply a plan and write the release with its log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli import options
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.results import Release


def protect(
    file: options.File,
    plan: Annotated[str, typer.Option("--plan", help="A plan file (TOML).")],
    out: Annotated[str | None, typer.Option("--out", "-o", help="Where the release is written.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change and write nothing.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", help="For the same bytes again; keep it secret.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Write the public log (JSON).")] = None,
    internal_log: Annotated[
        Path | None,
        typer.Option("--internal-log", help="Write the log with seeds; it must stay in the house."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    keys: options.Keys = None,
    sensitive: options.Sensitive = None,
    identifiers: options.Identifiers = None,
    weight: options.Weight = None,
    household: options.Household = None,
    location: options.Location = None,
    roles: options.RolesFile = None,
    json: options.AsJson = False,
    query: options.Query = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    missing_token: options.MissingTokens = None,
    sheet: options.Sheet = None,
) -> None:
    """Protect a file by a plan, with a log of every change."""
    from discreet.io import write
    from discreet.protect import Plan

    if out is None and not dry_run:
        raise ParameterError("Say where the release goes with --out FILE, or use --dry-run.")
    steps = Plan.load(plan)
    data = options.read_file(
        file,
        roles=roles,
        keys=options.columns(keys),
        sensitive=options.columns(sensitive),
        identifiers=options.columns(identifiers),
        weight=weight,
        household=household,
        location=options.columns(location),
        query=query,
        separator=separator,
        decimal=decimal,
        encoding=encoding,
        missing=missing_token,
        sheet=sheet,
    )
    if dry_run:
        release = steps.dry_run(data, seed=seed)
    else:
        release = steps.apply(data, seed=seed, progress=not json)
        write(release.data, str(out), overwrite=overwrite)
    for path, internal in ((log, False), (internal_log, True)):
        if path is not None:
            _write_json(release.to_dict(internal=internal), path, overwrite=overwrite)
    if json:
        typer.echo(_text(release.to_dict()))
    else:
        _show(release, None if dry_run else out)


def _show(release: Release, out: str | None) -> None:
    for number, step in enumerate(release.log, start=1):
        changed = ", ".join(f"{name} {count:,}" for name, count in step.changed_cells.items() if count)
        typer.echo(
            f"{number}. {step.treatment}: {f'changed cells: {changed}' if changed else 'no cell changed'}"
        )
        if step.removed_records:
            typer.echo(f"   removed records: {step.removed_records:,}")
        for note in step.notes:
            typer.echo(f"   {note}")
    typer.echo(f"Wrote {out}" if out else "Nothing was written (dry run).")


def _write_json(document: dict[str, Any], path: Path, *, overwrite: bool) -> None:
    from discreet.io.sidecar import save_text

    save_text(_text(document) + "\n", path, overwrite=overwrite)


def _text(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
