"""How results look on a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table

from discreet.cli.printing import plain
from discreet.core.results import Assessment, Measure, Scenario
from discreet.core.verdicts import Verdict
from discreet.core.wording import shown, title_of, worded
from discreet.workflow.comparison_results import ComparedRelease, Comparison


def show_assessment(found: Assessment, console: Console | None = None) -> None:
    """Print the verdict, the findings of each scenario, and what to do next."""
    console = console or Console(highlight=False)
    console.print(_verdict(found, is_unicode=console.encoding.lower().startswith("utf")))
    about = found.about
    console.print(
        plain(
            f"{about.get('source') or 'The data'}: {_counted(about['rows'], 'record')}, "
            f"{_counted(about['columns'], 'column')}."
        )
    )
    if found.not_judged:
        console.print(plain(found.not_judged))
    for scenario in found.scenarios.values():
        console.print(_findings(scenario))
    console.print(plain(_left_out(found), style="dim"))
    if found.show_values and found.main.riskiest:
        console.print(_riskiest(found.main))
    if found.advice:
        console.print("\n[bold]What to do next[/bold]")
        for number, step in enumerate(found.advice, start=1):
            console.print(plain(f"{number}. {step}"))


def _counted(number: int, thing: str) -> str:
    return f"{shown(number)} {thing}{'' if number == 1 else 's'}"


def _verdict(found: Assessment, *, is_unicode: bool) -> RenderableType:
    if found.verdict is None:
        return Panel(plain(found.line), title="No verdict", border_style="blue")
    return verdict_panel(found.verdict, is_unicode=is_unicode)


def verdict_panel(verdict: Verdict, *, name: str = "", is_unicode: bool) -> Panel:
    """Show a verdict rule by rule: what holds, what does not, and what was not judged here."""
    kept, broken = "✓✗" if is_unicode else "+-"
    lines = [
        plain(f"{kept if check.passed else broken if check.passed is False else '?'} {check.reason}")
        for check in verdict.checks
    ]
    lines += [plain(f"? {line}") for line in verdict.left_lines]
    color = {True: "green", False: "red", None: "yellow"}[verdict.meets]
    return Panel(Group(*lines), title=plain(f"{name}{verdict.heading}"), border_style=color)


def _findings(scenario: Scenario) -> Table:
    # Names are the user's own and may look like markup: they go in as plain text.
    title = plain(f"Scenario '{scenario.name}': knows {', '.join(scenario.keys)}", style="table.title")
    table = Table(title=title, title_justify="left")
    table.add_column("Measure", no_wrap=True)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("What it means", ratio=1)
    for measure in scenario.measures.values():
        value = worded("value", measure.value, measure=measure.name)
        table.add_row(measure.title, value, plain(measure.meaning))
    return table


def _left_out(found: Assessment) -> str:
    """Say what was left out, the measures with one reason together."""
    together: dict[str, list[str]] = {}
    for scenario in found.scenarios.values():
        for name, reason in scenario.skipped.items():
            names = together.setdefault(reason, [])
            if title_of(name) not in names:
                names.append(title_of(name))
    parts = [f"{', '.join(names)} ({reason})" for reason, names in together.items()]
    return f"Left out: {'; '.join(parts)}." if parts else "Nothing was left out."


def _riskiest(scenario: Scenario) -> Table:
    table = Table(title="The smallest classes", title_justify="left")
    table.add_column("Records", justify="right")
    for key in scenario.keys:
        table.add_column(plain(key))
    for row in scenario.riskiest:
        values = row.get("values", {}).values()
        table.add_row(shown(row["class_size"]), *(plain("missing" if v is None else str(v)) for v in values))
    return table


# How a comparison looks on a terminal.


_MOST_NAMES = 3


def show_comparison(found: Comparison, console: Console | None = None) -> None:
    """Print the verdict, what went wrong first, the findings, and releases side by side."""
    console = console or Console(highlight=False)
    is_unicode = console.encoding.lower().startswith("utf")
    several = len(found.releases) > 1
    for release in found.releases.values():
        console.print(_comparison_verdict(found, release, several=several, is_unicode=is_unicode))
        console.print(plain("What went wrong first", style="bold"))
        for number, sentence in enumerate(release.worst.sentences, start=1):
            console.print(plain(f"{number}. {sentence}"))
        if release.worst.clear:
            console.print(plain(release.worst.clear))
        console.print(_comparison_findings("What it costs", release.utility))
        console.print(_comparison_findings("What it gives away", release.risk))
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


def _comparison_verdict(
    found: Comparison, release: ComparedRelease, *, several: bool, is_unicode: bool
) -> RenderableType:
    name = f"{release.name}: " if several else ""
    if release.verdict is None:
        text = "No policy was named, so there is no verdict; see what went wrong first."
        return Panel(plain(text), title=plain(f"{name}No verdict"), border_style="blue")
    return verdict_panel(release.verdict, name=name, is_unicode=is_unicode)


def _comparison_findings(title: str, measures: Mapping[str, Measure]) -> RenderableType:
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
