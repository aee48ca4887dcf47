"""``discreet methods``: what is available, one line each."""

from __future__ import annotations

import typer

from discreet.cli import options
from discreet.cli.printing import say

WORK_IN_WORDS = (
    "row-wise: a record by itself, a query stays a query. class-wise: only the table of classes is collected. "
    "whole-file: records are looked at together and collected, or sampled where that is said."
)


def methods(json: options.AsJson = False) -> None:
    """List every measure, treatment and generator: the question it answers, and what must be in memory for it."""
    from discreet.workflow.catalog import catalog

    entries = catalog()
    if json:
        options.print_json([entry.to_dict() for entry in entries])
        return
    width = max(len(entry.name) for entry in entries)
    works = max(len(entry.work) for entry in entries)
    room = ""
    for entry in entries:
        if entry.room != room:
            room = entry.room
            typer.secho(f"\n{entry.about}", bold=True)
        say(f"  {entry.name:<{width}}  {entry.work:<{works}}  {entry.question}")
    say(f"\n{WORK_IN_WORDS}")
