"""The HTML report of a comparison: what went wrong first, what it cost, what is left of the risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.core.cards import KeyNumber
from discreet.core.charts import Chart, Grid, Lines, Map, Place
from discreet.core.results import Assessment, Scenario
from discreet.core.wording import is_percentage, label_of, shown, title_of, worded
from discreet.report import page_words
from discreet.report.assessment_report import Finding, Part, Section, parts_of
from discreet.report.excerpts import Excerpt
from discreet.report.page_words import GLOSSARY, Answer, answer_of, citations
from discreet.report.templating import rendered, written_page
from discreet.workflow.comparison_results import Axis, ComparedRelease, Comparison

_NEEDED_WORDS = (
    "Hold-out",
    "Intruder",
    "Key (quasi-identifier)",
    "Policy",
    "Propensity, pMSE",
    "S_pMSE",
    "Sensitive column",
    "Synthetic file",
    "Unique record",
)


def render_comparison(comparison: Comparison) -> str:
    """Return the report of a comparison as HTML text.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> from discreet.workflow.comparison import compare
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 20, "ill": ["yes", "no", "no", "no"] * 10})
    >>> page = render_comparison(compare(Microdata(people, keys="sex"), Microdata(people), measures="margins"))
    >>> "What went wrong first" in page
    True
    """
    releases = releases_of(comparison)
    shown_as = as_assessment(comparison)
    measures = [name for release in comparison.releases.values() for name in release.measures]
    return rendered(
        "comparison.html",
        about=comparison.about,
        best=best_of(comparison),
        citations={title_of(name): texts for name, texts in citations(measures).items()},
        facts=file_facts(comparison),
        not_judged=comparison.not_judged,
        glossary={word: GLOSSARY[word] for word in _NEEDED_WORDS},
        map=map_of(comparison),
        parameters=page_words.parameter_rows(shown_as),
        policy=page_words.policy_rows(shown_as),
        provenance=_provenance(comparison),
        releases=releases,
        show_values=comparison.show_values,
        side_by_side=side_by_side(comparison),
        source=comparison.about.get("source") or "the original",
    )


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the report of a comparison and return its path; an older report there is replaced.

    Raises
    ------
    InputError
        When the folder is missing or cannot be written to. Nothing half-written is left behind.
    """
    from discreet.core.files.atomic import check_target

    check_target(Path(path), overwrite=True)
    return written_page(path, render_comparison(comparison))


def _provenance(comparison: Comparison) -> list[tuple[str, str]]:
    (_, first), *rest = page_words.provenance(comparison.about)
    released = [
        (
            f"SHA-256 of “{release.name}”",
            str(release.about.get("checksum") or "not available: the data did not come from a file"),
        )
        for release in comparison.releases.values()
    ]
    return [("SHA-256 of the original", first), *released, *rest]


# The parts of the report, worked out before any HTML is written.


_PICTURES_A_KIND = 2
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class ReleaseView:
    """One release, ready to be shown."""

    anchor: str
    name: str
    answer: Answer
    cards: tuple[KeyNumber, ...]
    worst: tuple[str, ...]
    clear: str
    tables: tuple[tuple[str, Excerpt], ...]
    alignment: tuple[str, ...]
    linked: bool
    sections: tuple[Section, ...]
    skipped: tuple[tuple[str, str], ...]


def releases_of(comparison: Comparison) -> list[ReleaseView]:
    """Lay out every release in turn."""
    shown_as = as_assessment(comparison)
    return [
        _release(comparison, release, part, place)
        for place, (release, part) in enumerate(
            zip(comparison.releases.values(), parts_of(shown_as), strict=True), start=1
        )
    ]


def as_assessment(comparison: Comparison) -> Assessment:
    """Give the comparison the form in which measures are laid out: a scenario a release."""
    return Assessment(
        comparison.about,
        {
            name: Scenario(
                name,
                tuple((comparison.about.get("roles") or {}).get("keys") or ()),
                release.measures,
                release.skipped,
            )
            for name, release in comparison.releases.items()
        },
        policy=comparison.policy,
        show_values=comparison.show_values,
    )


def side_by_side(comparison: Comparison) -> Excerpt:
    """Put the releases side by side, or one below the other where there are too many for the width of a page."""
    releases = list(comparison.releases.values())
    rows = [
        (label, *(_figure(release, measure, figure) for release in releases))
        for measure, figure, label in comparison.shared_figures
    ]
    if comparison.policy is not None:
        stands = {True: "yes", False: "no", None: "not all judged"}
        met = [stands[release.verdict.meets] if release.verdict else "no verdict" for release in releases]
        rows.insert(0, ("Meets the policy", *met))
    names = tuple(release.name for release in releases)
    if len(names) > _MOST_COLUMNS:
        labels, *columns = zip(*[("Release", *names), *rows], strict=True)
        return Excerpt(labels, (False, *(True,) * len(rows)), tuple(columns), len(columns))
    return Excerpt(("Figure", *names), (False, *(True,) * len(names)), tuple(rows), len(rows))


def best_of(comparison: Comparison) -> list[str]:
    """Say which release does best in each respect; there is no total score on purpose."""
    told = []
    for card in comparison.cards:
        if card.releases is None or card.releases.best_at is None:
            continue
        figure, words = card.releases.best_at
        held = {
            name: value
            for name, release in comparison.releases.items()
            if (value := release.figure(card.name, figure)) is not None
        }
        if len(held) > 1:
            wanted = card.figures.get(figure)
            best = (max if wanted and wanted.better == "higher" else min)(held, key=lambda name: held[name])
            told.append(f"Best at {words}: {best} ({worded(figure, held[best], measure=card.name)}).")
    return told


def file_facts(comparison: Comparison) -> list[tuple[str, str]]:
    """Say which files were compared."""
    about = comparison.about
    facts = [("Original", f"{about.get('source') or 'not from a file'}, {_size(about)}")]
    for release in comparison.releases.values():
        copies = int(release.about.get("copies") or 1)
        several = f", {copies} copies" if copies > 1 else ""
        facts.append((f"Release “{release.name}”", f"{_size(release.about)}{several}"))
    held = comparison.main.about.get("holdout")
    if held:
        facts.append(("Hold-out", f"{held:,} records"))
    roles = about.get("roles") or {}
    for label, role in (("Keys", "keys"), ("Sensitive columns", "sensitive"), ("Weight", "weight")):
        if roles.get(role):
            facts.append((label, roles[role] if isinstance(roles[role], str) else ", ".join(roles[role])))
    return facts


def _release(comparison: Comparison, release: ComparedRelease, part: Part, place: int) -> ReleaseView:
    worst = release.worst
    tables = (
        ("Columns that moved most", _table(worst.variables)),
        ("Pairs of columns that came out worst", _table(worst.pairs)),
        ("Cells that are farthest off", _table(worst.cells)),
    )
    return ReleaseView(
        anchor=f"release-{place}",
        name=release.name,
        answer=_answer(release),
        cards=tuple(_headlines(comparison, release)),
        worst=worst.sentences,
        clear=worst.clear,
        tables=tuple((caption, table) for caption, table in tables if table.rows),
        alignment=tuple(release.alignment.sentences),
        linked=release.alignment.linked,
        sections=tuple(
            replace(section, findings=tuple(map(_fewer_pictures, section.findings)))
            for section in part.sections
        ),
        skipped=tuple((title_of(name), reason) for name, reason in release.skipped.items()),
    )


def _answer(release: ComparedRelease) -> Answer:
    if release.verdict is None:
        return Answer(
            "none",
            "–",
            "No verdict: no policy was named",
            "The report shows cost and risk. To get a verdict, compare again and name a policy.",
            (),
            (),
        )
    answer = answer_of(Assessment({}, {}, verdict=release.verdict))
    return replace(answer, rows=tuple(replace(row, scenario="") for row in answer.rows))


def _headlines(comparison: Comparison, release: ComparedRelease) -> Iterator[KeyNumber]:
    for card in comparison.cards:
        shown_large = card.releases.headline if card.releases else None
        value = release.figure(card.name, shown_large.figure) if shown_large else None
        if shown_large and value is not None:
            said = shown_large.sentence
            yield KeyNumber(
                worded(shown_large.figure, _short(value), measure=card.name),
                shown_large.label,
                said if isinstance(said, str) else said(release.measures[card.name]),
            )


def _fewer_pictures(finding: Finding) -> Finding:
    """Keep the first pictures of each kind: a file of many columns has dozens."""
    seen: dict[str, int] = {}
    kept: list[Chart] = []
    for chart in finding.charts:
        if isinstance(chart, Lines | Grid) and chart.extra:
            continue
        kind = (chart.kind if isinstance(chart, Lines) else "") or chart.title
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= _PICTURES_A_KIND:
            kept.append(chart)
    return replace(finding, charts=tuple(kept))


def _table(rows: Sequence[Mapping[str, Any]]) -> Excerpt:
    if not rows:
        return Excerpt((), (), (), 0)
    names = list(rows[0])
    text = {name for name in names if any(isinstance(row[name], str) for row in rows)}
    cells = tuple(
        tuple(
            str(row[name]) if name in text else "–" if row[name] is None else worded(name, _short(row[name]))
            for name in names
        )
        for row in rows
    )
    return Excerpt(
        tuple(_HEADINGS.get(name, label_of(name)) for name in names),
        tuple(name not in text for name in names),
        cells,
        len(cells),
    )


def _short(value: Any) -> Any:
    return float(f"{value:.3g}") if isinstance(value, float) and abs(value) < 1000 else value


def _figure(release: ComparedRelease, measure: str, figure: str) -> str:
    value = release.figure(measure, figure)
    return "–" if value is None else worded(figure, _short(value), measure=measure)


def _size(about: Mapping[str, Any]) -> str:
    return f"{shown(about.get('rows'))} records, {shown(about.get('columns'))} columns"


_HEADINGS = {
    "original": "Records before",
    "released": "Records after",
    "z": "Off by (z)",
    "distance": "Distance",
    "lost_share": "In lost levels",
    "mean_S_pMSE": "Mean S_pMSE of its tables",
    "S_pMSE": "S_pMSE",
}


# The pictures of a comparison as a whole: the risk-utility map, and releases side by side.


def map_of(comparison: Comparison) -> Map | None:
    """Draw what each release costs and what it gives away; None where there is no risk to draw."""
    axes = comparison.map_axes
    if axes is None:
        return None
    cost, risk = axes
    (measure, axis), first = risk, comparison.main
    places = [_place(release, cost, risk) for release in comparison.releases.values()]
    held = first.figure(measure, axis.original) if axis.original else None
    if held is not None:
        places.append(
            Place("the original itself", 0.0, _scaled(held, measure, axis.original), reference=True)
        )
    return Map(
        title="What each release costs, and what it gives away"
        if len(comparison.releases) > 1
        else "What the release costs, and what it gives away",
        places=tuple(places),
        across=f"Cost: {cost[1].words}",
        up=f"Risk: {axis.words}",
        axis=(
            "Down and to the left is better; the original costs nothing and gives everything away"
            + ("" if comparison.policy is None else "; red is what does not meet the policy")
        ),
        mark=first.figure(measure, axis.guessing) if axis.guessing else None,
        mark_name="guessing without the release",
    )


def _place(release: ComparedRelease, *axes: Axis) -> Place:
    cost, risk = (
        _scaled(release.figure(measure, axis.figure) or 0.0, measure, axis.figure) for measure, axis in axes
    )
    return Place(release.name, cost, risk, None if release.verdict is None else release.verdict.meets)


def _scaled(value: float, measure: str, figure: str) -> float:
    return value / 100 if is_percentage(figure, measure=measure) else value
