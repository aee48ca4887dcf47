"""``discreet methods``: what is available, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli import options
from discreet.cli.printing import say

if TYPE_CHECKING:
    from discreet.core.index import Entry

WORK_IN_WORDS = (
    "row-wise: a record by itself, a query stays a query. class-wise: only the table of classes is collected. "
    "whole-file: records are looked at together and collected, or sampled where that is said."
)


def methods(
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="What is wanted: a name, a published name, an author, a figure, a word of the question."
        ),
    ] = None,
    *,
    json: options.AsJson = False,
) -> None:
    """List every measure, treatment and generator, or those that answer to a name: TCAP, PrivBayes, SUDA, copula.

    The list says what must be in memory for each.
    """
    from discreet.workflow.catalog import catalog, methods_called

    entries = methods_called(" ".join(name)) if name else catalog()
    if json:
        options.print_json([entry.to_dict() for entry in entries])
    elif name:
        for entry in entries:
            typer.secho(f"{entry.name}", bold=True)
            for line in _described(entry):
                say(f"  {line}")
    else:
        _list(entries)


def _described(entry: Entry) -> list[str]:
    """Say of one method what it is for, what others call it, where it comes from and how it is used."""
    from discreet.core.cards import card_of
    from discreet.core.method_cards import kebab

    lines = [entry.question]
    if entry.also_known_as:
        lines.append(f"Also known as: {'; '.join(entry.also_known_as)}")
    lines += [f"From: {text}" for text in entry.references]
    room, _, name = entry.name.partition(".")
    name = name.partition(",")[0]
    python = f"discreet.{room}.{name} in Python"
    card = card_of(name) if entry.kind == "measure" else None
    if card is not None and room in ("risk", "attack") and "original" in card.takes.files:
        lines.append(f"Use: discreet {room} {name} FILE, or {python}")
    elif entry.kind == "treatment":
        lines.append(f'Use: treatment = "{kebab(name)}" in a plan, or {python}')
    else:
        lines.append(f"Use: {python}")
    return lines


def _list(entries: list[Entry]) -> None:
    width = max(len(entry.name) for entry in entries)
    works = max(len(entry.work) for entry in entries)
    room = ""
    for entry in entries:
        if entry.room != room:
            room = entry.room
            typer.secho(f"\n{entry.about}", bold=True)
        say(f"  {entry.name:<{width}}  {entry.work:<{works}}  {entry.question}")
    say(f"\n{WORK_IN_WORDS}")
