"""``discreet methods``: what is available, one line each."""

from __future__ import annotations

import typer

from discreet.cli import options
from discreet.cli.printing import say


def methods(json: options.AsJson = False) -> None:
    """List every measure, with the question it answers."""
    from discreet.workflow.catalog import catalog

    entries = catalog()
    if json:
        options.print_json([entry.to_dict() for entry in entries])
        return
    width = max(len(entry.name) for entry in entries)
    room = ""
    for entry in entries:
        if entry.room != room:
            room = entry.room
            typer.secho(f"\n{entry.about}", bold=True)
        say(f"  {entry.name:<{width}}  {entry.question}")
