"""How a comparison looks on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table

from discreet.cli.printing import plain
from discreet.cli.terminal import verdict_panel
from discreet.core.figure_words import title_of, worded
from discreet.core.results import Measure
from discreet.workflow.comparison_results import ComparedRelease, Comparison

_MOST_NAMES = 3


def show_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print the verdict, what went wrong first, the findings, and releases side by side."""
    console = console or Console(highlight=False)
    is_unicode = console.encoding.lower().startswith("utf")
    several = len(found.releases) > 1
    for release in found.releases.values():
        console.print(_verdict(found, release, several=several, is_unicode=is_unicode))
        console.print(plain("What went wrong first", style="bold"))
        for number, sentence in enumerate(release.worst.sentences, start=1):
            console.print(plain(f"{number}. {sentence}"))
        console.print(_findings("What it costs", release.utility))
        console.print(_findings("What it gives away", release.risk))
        for sentence in release.alignment.sentences:
            console.print(plain(sentence, style="dim"))
        if release.skipped:
            left = "; ".join(f"{title_of(name)} ({reason})" for name, reason in release.skipped.items())
            console.print(plain(f"Left out: {left}.", style="dim"))
        console.print()
    if found.not_judged:
        console.print(plain(found.not_judged))
    if several:
        console.print(_side_by_side(found))
        if len(found.releases) > _MOST_NAMES:
            names = (f"{number} {name}" for number, name in enumerate(found.releases, start=1))
            console.print(plain("; ".join(names), style="dim"))


def _verdict(
    found: Comparison, release: ComparedRelease, *, several: bool, is_unicode: bool
) -> RenderableType:
    name = f"{release.name}: " if several else ""
    if release.verdict is None:
        text = "No policy was named, so there is no verdict; see what went wrong first."
        return Panel(plain(text), title=plain(f"{name}No verdict"), border_style="blue")
    return verdict_panel(release.verdict, name=name, is_unicode=is_unicode)


def _findings(title: str, measures: Mapping[str, Measure]) -> RenderableType:
    if not measures:
        return plain(f"{title}: nothing could be measured.")
    table = Table(title=plain(title, style="table.title"), title_justify="left")
    table.add_column("Measure", no_wrap=True)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("What it means", ratio=1)
    for name, measure in measures.items():
        table.add_row(title_of(name), worded("value", measure.value, measure=name), plain(measure.meaning))
    return table


def _side_by_side(found: Comparison) -> Table:
    table = Table(title=plain("Side by side", style="table.title"), title_justify="left")
    table.add_column("Figure")
    numbered = len(found.releases) > _MOST_NAMES
    for number, release in enumerate(found.releases.values(), start=1):
        # Names are the user's own and may look like markup: they go in as plain text.
        table.add_column(plain(str(number) if numbered else release.name), justify="right", no_wrap=numbered)
    for measure, figure, label in found.shared_figures:
        values = [release.figure(measure, figure) for release in found.releases.values()]
        table.add_row(
            label, *("–" if value is None else worded(figure, value, measure=measure) for value in values)
        )
    return table
