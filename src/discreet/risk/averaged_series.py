"""Do consumption series averaged over groups still give away a household?

Suppliers publish load curves averaged over groups of at least k meters. Where one or two members make up most of
a group at some time, the second largest can estimate the largest; and a customer who finds his own group can
subtract his own reading. The measure works for any averaged numeric series, not only for meters.

References
----------
Navarro-Arribas and Torra, Attribute disclosure risk in smart meter data. The dominance columns of its table are
counts of cells that are *not* flagged; here the rules count as they are defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.charts import Bars, Chart, Grid, Line, Lines, finite, number, rows_of
from discreet.core.constraints import AtLeast, ColumnName, Entries, Public, Share
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator, some_rows
from discreet.core.results import Measure
from discreet.core.verdicts import Figure as FigureValue
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.numerics.dominance import Negative
from discreet.numerics.mdav import groups_of_at_least
from discreet.risk.series_publication import (
    Curves,
    Insiders,
    Publication,
    Rules,
    find_groups,
    what_insiders_learn,
)

Grouping = Literal["mdav", "random"]


_MOST_MOMENTS = 96
_BY_K = {
    "share_p": "Second largest can estimate the largest",
    "share_dominance_1": "One dominates",
    "insider_success": "Insider finds the own group",
    "insider_chance": "Insider by guessing",
}


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    rows = rows_of(found, "by_k", "k", "share_p")
    present = [name for name in _BY_K if rows and any(finite(row.get(name)) for row in rows)]
    if len(rows) > 1 and present:
        yield Lines(
            title="What larger groups change",
            places=tuple(float(row["k"]) for row in rows),
            lines=tuple(Line(_BY_K[name], tuple(number(row[name]) for row in rows)) for name in present),
            axis="Share of the published averages, or of the insiders; size of the groups along the bottom",
        )
    elif present:
        yield Bars(
            title="What the published averages give away",
            labels=tuple(_BY_K[name] for name in present),
            values=tuple(number(rows[0][name]) or 0.0 for name in present),
            axis="Share of the published averages, or of the insiders",
            at_risk=(False,) * len(present),
            horizontal=True,
        )
    moments = rows_of(found, "times", "time", "p")
    shares = [number(row["p"]) for row in moments]
    if len(shares) > 1:
        step = math.ceil(len(shares) / _MOST_MOMENTS)
        pieces = [shares[place : place + step] for place in range(0, len(shares), step)]
        yield Grid(
            title="When the largest can be estimated",
            row_labels=("",),
            column_labels=tuple(str(place * step + 1) for place in range(len(pieces))),
            values=(tuple(_mean(piece) for piece in pieces),),
            axis="Moments from the first to the last; the stronger the color, the more averages give the largest away",
        )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@measure(
    room="risk",
    work="whole-file",
    question="What do averaged curves give away about one contributor?",
    headline="of the averages give the largest away",
    chapter="learned",
    place=10,
    leading=True,
    references=("Navarro-Arribas, G. and Torra, V. Attribute disclosure risk in smart meter data.",),
    figures={
        "value": Figure(unit="share", better="lower"),
        "share_p": Figure("Share of averages that give the largest away", unit="share"),
        "cells_dominance_1": Figure("Averages that one contributor dominates"),
        "cells_dominance_2": Figure("Averages that two contributors dominate"),
        "cells_p": Figure("Averages that give the largest away (p %)"),
        "share_dominance_1": Figure("Share of averages that one dominates", unit="share"),
        "share_dominance_2": Figure("Share of averages that two dominate", unit="share"),
        "small_cells": Figure("Averages of too few"),
        "groups": Figure("Groups"),
        "smallest_group": Figure("Smallest group"),
        "contributors": Figure("Contributors"),
        "times": Figure("Moments"),
        "insider_success": Figure("Insider finds the own group", unit="share"),
        "insider_chance": Figure("Insider finds the own group by guessing", unit="share"),
        "exact_readings": Figure("Readings an insider learns exactly"),
        "readings_within_p": Figure("Readings an insider can estimate within p %"),
        "peak_median": Figure("Median peak needed"),
        "peak_max": Figure("Highest peak needed"),
        "information_loss": Figure("Information lost by averaging"),
    },
    columns={
        "dominance_1": Figure("Dominated by one", unit="share"),
        "dominance_2": Figure("Dominated by two", unit="share"),
        "p": Figure("Largest can be estimated", unit="share"),
        "members": Figure("Members"),
    },
    assess=OfFile(20, partition=False, roles=("contributor", "time"), counts_company=False),
    pictures=_pictures,
)
def series(
    data: Microdata,
    *,
    reading: Annotated[str, Public()] | None = None,
    contributor: ColumnName | None = None,
    time: ColumnName | None = None,
    group: ColumnName | None = None,
    k: Annotated[int, AtLeast(2)] | Annotated[Sequence[Annotated[int, AtLeast(2)]], Public(), Entries()] = 3,
    grouping: Grouping = "mdav",
    share: Annotated[float, Share(above=True, below=True)] = 0.6,
    p: Annotated[float, Share(above=True)] | None = None,
    attackers: Annotated[int, AtLeast(1)] | None = None,
    peak: Any = None,
    negative: Negative = "refuse",
    standardize: bool = False,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Do consumption series averaged over groups still give away a household?

    The file is long: one row a reading, with who, when and how much. A *cell* is one group at one time; what is
    published is its mean and the size of the group. A cell is flagged by

    - ``dominance_1``, ``dominance_2``: the largest, or the two largest, make up more than ``share`` of it;
    - ``p``: without the two largest, less than p times the largest remains, so that the second largest estimates
      the largest within p.

    The *insider* looks for the published group nearest to his own series (Euclidean, over the times he has a
    reading for). In the right group of size r, what he subtracts leaves the sum S of the others, and any of them
    used at most S: exactly S where the group has two members. The *peak attacker* adds a peak to his own series
    first, which lifts the mean of his group by peak/r; the smallest peak that makes sure he finds it tells how
    cheap the attack is.

    Also known as: smart-meter attribute disclosure; consumption series.

    Parameters
    ----------
    data
        The readings.
    reading
        Column with the amounts; the sensitive column of the data unless named.
    contributor
        Column with the meter or household; the contributor (or person) of the data unless named.
    time
        Column with the time slot; that of the data unless named.
    group
        Column with the groups as they are to be published (street, transformer). Without it groups are formed.
    k
        Smallest group size, where groups are formed. Of several, the first gives the figures and all are
        compared in ``detail["by_k"]``.
    grouping
        How groups are formed: ``mdav`` (similar curves together) or ``random``.
    share, p
        The limits of the rules; p is (1 - share)/share unless given, which makes the rules comparable.
    attackers
        How many insiders to draw at random; all of them, exactly, unless given.
    peak
        The time of the peak, or several times for a signature that repeats; unless given, the quietest time
        among those with the most readings.
    negative
        ``refuse`` negative readings, or take them ``absolute`` (net metering).
    standardize
        Measure distances in standard deviations of each time slot; the published means stay as they are.
    progress
        Show a progress bar on a terminal, where several k are compared.
    seed
        For random groups and drawn attackers.

    Returns
    -------
    Measure
        ``value`` is ``share_p``. ``figures``: ``share_p``, ``cells``, ``cells_dominance_1``,
        ``cells_dominance_2``, ``cells_p``, ``share_dominance_1``, ``share_dominance_2``, ``small_cells`` (fewer
        readings than k, or than 3 for given groups), ``groups``, ``smallest_group``, ``contributors``, ``times``,
        ``insider_success`` (share of insiders who find their group), ``insider_chance`` (by guessing),
        ``exact_readings`` (another's reading is known exactly), ``readings_within_p`` (an insider's bound on the
        largest other is within p; both count pairs of insider and time), ``peak_median``, ``peak_max`` (undefined
        for who has no reading at the peak), ``information_loss`` (SSE/SST of the published means).
        ``detail``: ``cells``, ``groups``, ``times``, ``attackers``, ``by_k``, ``protected`` (the file with each
        reading replaced by its group's mean).

    How to read it
    --------------
    ``share_p`` is the share of published averages from which the second largest household can estimate the
    largest too closely. ``insider_success`` is how often a household finds its own group by comparing curves:
    near 1 is normal for groups of similar curves and means that averaging does not hide membership. Give
    several ``k`` and read ``detail["by_k"]``: choose the smallest size at which the flags nearly vanish.
    ``detail["times"]`` shows the hours that are worst, often at night when few use anything.

    When not to trust it
    --------------------
    Dominance and p% are rules for non-negative readings; feeding in (solar panels) breaks them, and the
    measure refuses or does what ``negative`` says. An insider who knows several households, or other facts
    such as holidays, learns more. The groups made here are for the attack on similar curves; if yours are
    fixed by street, give them as ``group``. Missing readings make some cells smaller than the group: see
    ``small_cells``.

    Examples
    --------
    >>> readings = pl.DataFrame({
    ...     "meter": ["a", "b", "c"] * 2,
    ...     "hour": [1, 1, 1, 2, 2, 2],
    ...     "kwh": [60, 20, 20, 30, 35, 35],
    ... })
    >>> found = series(Microdata(readings, sensitive="kwh", contributor="meter", time="hour"))
    >>> found.figures["cells"], found.figures["cells_dominance_1"], found.figures["cells_dominance_2"]
    (2, 0, 2)
    """
    sizes = tuple(dict.fromkeys([k] if isinstance(k, int) else k))
    rules = Rules.of(share, p)
    named = {
        "contributor": contributor or data.roles.contributor or data.roles.person,
        "time": time or data.roles.time,
        "reading": reading or _only_sensitive(data),
        **({"group": group} if group else {}),
    }
    curves, caveats = _curves(data, named, negative)
    if group is not None:
        sizes = sizes[:1]
    publications = {
        size: Publication(curves, _labels(curves, size, grouping, standardize, seed), size, rules)
        for size in track(sizes, len(sizes), "Forming groups", progress=progress)
    }
    found = publications[sizes[0]]
    signature = curves.slots(peak)

    def attack(publication: Publication) -> Insiders:
        who = _drawn(curves.contributors, attackers, seed)
        return find_groups(publication, who, signature, standardize=standardize)

    insiders = attack(found)
    learned = what_insiders_learn(found, insiders)
    small = found.small_cells
    figures: dict[str, FigureValue] = {
        "share_p": found.flagged_share("p"),
        "cells": found.cells,
        **{f"cells_{rule}": found.flagged(rule) for rule in ("dominance_1", "dominance_2", "p")},
        **{f"share_{rule}": found.flagged_share(rule) for rule in ("dominance_1", "dominance_2")},
        "small_cells": small,
        "groups": found.groups,
        "smallest_group": int(found.sizes.min()),
        "contributors": curves.contributors,
        "times": curves.times,
        "insider_success": insiders.success,
        "insider_chance": 1 / found.groups,
        "exact_readings": int(learned["exact_times"].sum()),
        "readings_within_p": int(learned["times_within_p"].sum()),
        "peak_median": _quantile(insiders.peaks, 0.5),
        "peak_max": _quantile(insiders.peaks, 1.0),
        "information_loss": found.information_loss,
    }
    if small:
        caveats.append(
            f"{small:,} cells rest on fewer readings than a group should have, because readings are missing."
        )
    caveats += [
        "The peak attack takes the groups as given; groups formed from the curves could change with the peak.",
        "Insiders know the exact readings of their own meter and use each time by itself; several insiders of one "
        "group together learn more.",
    ]
    return Measure(
        name="series",
        value=figures["share_p"],  # type: ignore[arg-type]
        figures=figures,
        meaning=_meaning(found, rules, insiders),
        caveats=caveats,
        parameters={
            "reading": curves.names[2],
            "contributor": curves.names[0],
            "time": curves.names[1],
            "group": group,
            "k": list(sizes) if group is None else None,
            "grouping": "labels" if group is not None else grouping,
            "share": rules.share,
            "p": rules.p,
            "attackers": attackers,
            "peak_times": len(signature),
            "negative": negative,
            "standardize": standardize,
        },
        detail=engine.tables_like(
            data,
            cells=found.cell_table,
            groups=found.group_table,
            times=found.time_table,
            attackers=learned,
            by_k=lambda: _by_k(publications, attack),
            protected=found.protected,
        ),
    )


def _curves(data: Microdata, named: Mapping[str, str | None], negative: Negative) -> tuple[Curves, list[str]]:
    for role, column in named.items():
        if column is None:
            raise ParameterError(
                f"No column was named as '{role}'. Name it with {role}='column', or give the data that role."
            )
        need_known([column], data.schema, f"It was named under '{role}'.")
    columns = [str(column) for column in named.values()]
    if len(set(columns)) < len(columns):
        raise ParameterError("contributor, time, reading and group must be different columns.")
    if not data.schema[columns[2]].is_numeric():
        raise ColumnError(f"The reading '{columns[2]}' is not numeric. Convert it to numbers first.")
    engine.overview(data, columns)
    return Curves.of(engine.collect(data, columns), columns, negative)


def _only_sensitive(data: Microdata) -> str:
    if len(data.roles.sensitive) != 1:
        raise ParameterError(
            f"The data has {len(data.roles.sensitive)} sensitive columns; say which holds the amounts with "
            "reading='column'."
        )
    return data.roles.sensitive[0]


def _labels(curves: Curves, k: int, grouping: Grouping, standardize: bool, seed: Seed) -> Any:
    if curves.labels is not None:
        return curves.labels
    n = curves.contributors
    if k > n:
        raise ParameterError(f"k ({k}) is larger than the number of contributors ({n:,}).")
    if grouping == "mdav":
        return groups_of_at_least(curves.for_distance(standardize), k)
    ranks = generator(seed, "series", f"groups of {k}").permutation(n)
    return np.minimum(ranks // k, max(n // k, 1) - 1)


def _drawn(n: int, attackers: int | None, seed: Seed) -> Any:
    return (
        np.arange(n) if attackers is None else some_rows(n, attackers, generator(seed, "series", "attackers"))
    )


def _by_k(publications: dict[int, Publication], attack: Callable[[Publication], Insiders]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "k": size,
                "groups": found.groups,
                "cells": found.cells,
                **{f"cells_{rule}": found.flagged(rule) for rule in found.flags},
                **{f"share_{rule}": found.flagged_share(rule) for rule in found.flags},
                "insider_success": attack(found).success,
                "insider_chance": 1 / found.groups,
                "information_loss": found.information_loss,
            }
            for size, found in publications.items()
        ]
    )


def _meaning(found: Publication, rules: Rules, insiders: Insiders) -> str:
    return (
        f"In {found.flagged('p'):,} of {found.cells:,} published averages ({percent(found.flagged_share('p'))}) the "
        f"second largest household can estimate the largest within {percent(rules.p)}; in "
        f"{percent(found.flagged_share('dominance_1'))} one household makes up more than {percent(rules.share)}. "
        f"An insider finds the own group in {percent(insiders.success)} of the cases "
        f"(by guessing: {percent(1 / found.groups)}), out of {shown(found.groups)} groups."
    )


def _quantile(heights: Any, q: float) -> float | None:
    known = heights[~np.isnan(heights)]
    return float(np.quantile(known, q)) if known.size else None
