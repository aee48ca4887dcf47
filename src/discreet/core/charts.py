"""The kinds of picture: bars, dots, lines, points, grids, contours and maps.

A chart is data, not ink: labels, lengths and the words that replace the picture for whoever cannot see it. Measures
make charts beside their own code, and `discreet.report` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import narwhals as nw

from discreet.core.wording import percent, shown

if TYPE_CHECKING:
    from discreet.core.results import Measure


_MOST_WORDS = 40


@dataclass(frozen=True)
class Bars:
    """The bars of one picture.

    ``at_risk`` marks the bars that stand for people at risk; they are drawn darker *and* named in the text. With
    ``by_tens`` a step along the axis is ten times the last, so that the few at risk can be seen beside the many.
    """

    title: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    axis: str
    at_risk: tuple[bool, ...]
    horizontal: bool = False
    as_share: bool = True
    by_tens: bool = False

    @property
    def value_labels(self) -> tuple[str, ...]:
        """The length of each bar in words."""
        return tuple(written(value, self.as_share) for value in self.values)

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it."""
        bars = "; ".join(
            f"{label}: {value}" for label, value in zip(self.labels, self.value_labels, strict=True)
        )
        return f"{self.title}. {self.axis}. {bars}."


@dataclass(frozen=True)
class Row:
    """One line of dots: a value for each series, and where one series has an interval, its ends."""

    label: str
    values: tuple[float | None, ...]
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Dots:
    """Several figures for each of several things, side by side on one scale.

    The first series is the one to look at; ``mark`` is a line to hold them against.
    """

    title: str
    series: tuple[str, ...]
    rows: tuple[Row, ...]
    axis: str
    as_share: bool = True
    mark: float | None = None

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it."""
        return f"{self.title}. {self.axis}. {'; '.join(self._said(row) for row in self.rows)}."

    def _said(self, row: Row) -> str:
        said = [
            f"{name} {written(value, self.as_share)}"
            for name, value in zip(self.series, row.values, strict=True)
            if value is not None
        ]
        if row.interval is not None:
            low, high = (written(end, self.as_share) for end in row.interval)
            said.append(f"between {low} and {high}")
        return f"{row.label}: {', '.join(said) or 'undefined'}"


@dataclass(frozen=True)
class Line:
    """One line of a picture: its name and its height at each place."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Lines:
    """How figures change along an axis.

    With ``ends`` only the two ends of the axis are named; with ``stepped`` a height holds until the next place.
    ``kind`` is shared by pictures of several columns, of which a page with many measures shows the first; one that is
    ``extra`` is left out there.
    """

    title: str
    places: tuple[float, ...]
    lines: tuple[Line, ...]
    axis: str
    as_share: bool = True
    places_as_share: bool = False
    ends: tuple[str, str] | None = None
    stepped: bool = False
    kind: str = ""
    extra: bool = False

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it; long lines by a few of their places."""
        every = max(1, -(-len(self.places) // 8))
        chosen = sorted({*range(0, len(self.places), every), len(self.places) - 1})
        said = [
            f"{line.name}: "
            + ", ".join(
                f"{written(height, self.as_share)} at {written(self.places[place], self.places_as_share)}"
                for place in chosen
                if (height := line.values[place]) is not None
            )
            for line in self.lines
        ]
        return f"{self.title}. {self.axis}. {'; '.join(said)}."


@dataclass(frozen=True)
class Point:
    """Cells that lie close together: where, how many, and whether they are the risky ones."""

    across: float
    up: float
    count: int
    risky: bool


@dataclass(frozen=True)
class Points:
    """Two figures of many things against each other, both by tens; things that lie close together are one dot."""

    title: str
    points: tuple[Point, ...]
    across: str
    up: str
    axis: str
    mark: float | None = None
    mark_name: str = ""

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it."""
        total, risky = (sum(p.count for p in self.points if p.risky or every) for every in (True, False))
        ends = [
            f"{name} from {min(places):.3g} to {max(places):.3g}"
            for name, places in (
                (self.across, [p.across for p in self.points]),
                (self.up, [p.up for p in self.points]),
            )
        ]
        return f"{self.title}. {self.axis}. {total:,} groups, {risky:,} of them flagged; {'; '.join(ends)}."


@dataclass(frozen=True)
class Grid:
    """A figure for each pair of two scales (or, with one row, along one); the stronger the color, the larger.

    With ``by_tens`` a step of color is ten times the last. One that is ``extra`` is left out of a page with many
    measures.
    """

    title: str
    row_labels: tuple[str, ...]
    column_labels: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    axis: str
    as_share: bool = True
    across: str = ""
    up: str = ""
    by_tens: bool = False
    extra: bool = False

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it; a large one by its ends."""
        cells = [
            (value, f"{row} {column}".strip())
            for row, values in zip(self.row_labels, self.values, strict=True)
            for column, value in zip(self.column_labels, values, strict=True)
            if value is not None
        ]
        if not cells:
            return f"{self.title}. {self.axis}."
        if len(cells) <= _MOST_WORDS:
            said = "; ".join(f"{place}: {written(value, self.as_share)}" for value, place in cells)
        else:
            low, high = (written(end([value for value, _ in cells]), self.as_share) for end in (min, max))
            said = f"{len(cells)} cells from {low} to {high}"
        return f"{self.title}. {self.axis}. {said}."


@dataclass(frozen=True)
class Layer:
    """One density on a grid (a row a step to the right), and the heights of its contours, the innermost first."""

    name: str
    heights: tuple[tuple[float, ...], ...]
    levels: tuple[float, ...]


@dataclass(frozen=True)
class Contours:
    """The regions where most people are, of several files laid over each other.

    ``shares`` says which share of the people each contour holds, the innermost first.
    """

    title: str
    layers: tuple[Layer, ...]
    shares: tuple[float, ...]
    across: str
    up: str
    axis: str

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it: how large the regions are."""
        said = [
            f"{layer.name}: "
            + ", ".join(
                f"{percent(share)} of the people on {percent(self._area(layer, height))} of the picture"
                for share, height in zip(self.shares, layer.levels, strict=True)
            )
            for layer in self.layers
        ]
        return f"{self.title}. {self.axis}. {'; '.join(said)}."

    @staticmethod
    def _area(layer: Layer, height: float) -> float:
        cells = [cell for row in layer.heights for cell in row]
        return sum(cell >= height for cell in cells) / len(cells)


@dataclass(frozen=True)
class Place:
    """One named place on a map; ``kept`` says whether it keeps the rules, None where there are none."""

    name: str
    across: float
    up: float
    kept: bool | None = None
    reference: bool = False


@dataclass(frozen=True)
class Map:
    """What each of several things costs, to the right, and what it leaves of the risk, upwards.

    Places that are a ``reference`` (the original itself) are hollow; ``mark`` is a height to hold all of them against.
    """

    title: str
    places: tuple[Place, ...]
    across: str
    up: str
    axis: str
    mark: float | None = None
    mark_name: str = ""

    @property
    def text(self) -> str:
        """The picture in words, for whoever cannot see it."""
        told = [
            f"{place.name}: cost {written(place.across, True)}, risk {written(place.up, True)}"
            + (
                ""
                if place.kept is None
                else ", meets the policy"
                if place.kept
                else ", does not meet the policy"
            )
            for place in self.places
        ]
        mark = [f"{self.mark_name}: {written(self.mark, True)}"] if self.mark is not None else []
        return f"{self.title}. {self.axis}. {'; '.join([*told, *mark])}."


def written(value: float, as_share: bool) -> str:
    """Write a figure of a picture as a person reads it."""
    return percent(value) if as_share and 0 <= value <= 1 else shown(value)


Chart = Bars | Dots | Lines | Points | Grid | Contours | Map

Pictures = Callable[["Measure", bool], Iterable[Chart]]
"""What draws an answer; the flag says whether the reader may see data values."""


def figure_bars(
    found: Measure,
    words: Mapping[str, str],
    title: str,
    axis: str,
    *,
    risky: Sequence[str] = (),
    percent: bool = False,
) -> Iterator[Bars]:
    """Draw some figures as bars, where there are two at least; ``percent`` says that they are held so."""
    names = [name for name in words if finite(found.figures.get(name))]
    if len(names) < 2:
        return
    values = [number(found.figures[name]) or 0.0 for name in names]
    yield Bars(
        title=title,
        labels=tuple(words[name] for name in names),
        values=tuple(value / 100 if percent else value for value in values),
        axis=axis,
        at_risk=tuple(name in risky for name in names),
        horizontal=True,
    )


def row_bars(
    title: str, rows: Sequence[Mapping[str, Any]], label: str, value: str, axis: str, *, as_share: bool = True
) -> Bars:
    """Draw one value of each row as a bar from left to right, none of them at risk."""
    return Bars(
        title=title,
        labels=tuple(str(row[label]) for row in rows),
        values=tuple(float(row[value]) for row in rows),
        axis=axis,
        at_risk=(False,) * len(rows),
        horizontal=True,
        as_share=as_share,
    )


def part_shown(kept: Sequence[object], rows: Sequence[object]) -> str:
    """Say how many of the rows are drawn, where it is not all.

    Examples
    --------
    >>> part_shown("ab", "abc"), part_shown("abc", "abc")
    (' (2 of 3)', '')
    """
    return f" ({len(kept)} of {len(rows)})" if len(kept) < len(rows) else ""


# Rows of detail tables, as findings and pictures need them


Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def rows_of(measure: Measure | None, table: str, *needed: str) -> list[dict[str, Any]]:
    """Return the rows of a (small) detail table; none where it is missing or lacks a needed column."""
    if measure is None or table not in measure.detail:
        return []
    held = measure.detail[table]
    if not set(needed) <= set(columns_of(held)):
        return []
    return list(gathered(nw.from_native(held)).iter_rows(named=True))


def columns_of(table: Any) -> list[str]:
    """Return the column names of a table of any engine."""
    return list(nw.from_native(table).collect_schema())


def gathered(frame: Frame) -> nw.DataFrame[Any]:
    """Bring a (small) frame into memory."""
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def finite(value: Any) -> TypeGuard[int | float]:
    """Say whether a value is a number that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any) -> float | None:
    """Return a number that can be drawn, else None."""
    return float(value) if finite(value) else None
