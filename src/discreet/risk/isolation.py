"""Does this release let somebody single out a person any better than blind guessing would?

Isolation, population uniqueness and identification are three things. A description *isolates* when one record
of the file fits it. It is *unique in the population* when nobody outside the file fits it either. Only both
together point at a person, unless it is known that the person is in the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfFile, measure, pictured
from discreet.core.charts import Frame, Point, Points, columns_of, finite, gathered
from discreet.core.citations import COHEN_NISSIM_2020
from discreet.core.constraints import Above, AtLeast, ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.verdicts import Figure as FigureValue
from discreet.core.wording import percent, shown
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk import singling_out
from discreet.risk.equivalence_classes import EquivalenceClasses, Partition
from discreet.risk.k_anonymity import key_caveats

IDENTIFYING = "may enable identification"
ISOLATING = "isolation only"
UNDECIDED = "isolation, population unknown"
NONE = "none"
_VERDICTS = {
    IDENTIFYING: "The release singles out one record, and hardly anybody else can fit the description.",
    ISOLATING: "The release singles out one record far better than guessing, but others may fit the description.",
    UNDECIDED: "The release singles out one record far better than guessing; who else fits it is not known.",
    NONE: "The release helps little beyond guessing.",
}


@dataclass(frozen=True)
class _Counts:
    """A release: a count and a probability for each cell, and how many people are behind them."""

    counts: Floats
    probabilities: Floats
    records: int
    population_size: int | None

    def check(self, *, exact: bool) -> None:
        m, chance, records = self.counts, self.probabilities, self.records
        if m.shape != chance.shape or m.ndim != 1:
            raise ParameterError(
                f"There are {m.size:,} counts and {chance.size:,} probabilities: one each a cell."
            )
        if self.population_size is not None and self.population_size < records:
            raise ParameterError(
                f"The population ({self.population_size:,} people) is smaller than the file ({records:,} records). "
                "Give the size of the population the file was drawn from."
            )
        if not ((chance >= 0) & (chance <= 1)).all():
            raise ParameterError("A probability must lie between 0 and 1.")
        if ((chance == 0) & (m > 0)).any():
            raise ParameterError(
                "Impossible cell: a count above zero has probability 0. Mend the probabilities, or give a population "
                "file that contains the cell."
            )
        if exact and ((m < 0) | (m != np.floor(m)) | (m > records)).any():
            raise ParameterError(
                "Exact counts must be whole numbers between 0 and records. If they carry noise, say which: noise=…"
            )


@dataclass(frozen=True)
class _Limits:
    """From where on a cell is flagged."""

    specificity: float
    factor: float
    membership_known: bool
    likely: float

    def flags(self, chance: Floats, gain: Floats, inside: Floats, population: int | None) -> Any:
        if self.membership_known:
            return np.where(chance >= self.likely, IDENTIFYING, NONE)
        large = (gain >= self.factor) & (chance > 0)
        if population is None:
            return np.where(large, UNDECIDED, NONE)
        specific = inside <= 1 / (self.specificity * population)
        return np.where(large & specific, IDENTIFYING, np.where(large, ISOLATING, NONE))


_HIGHEST_GAIN = 1e6
_LOWEST_CHANCE = 1e-9
_FLAGGED = "may enable identification"


def _pictures(found: Measure, show_values: bool) -> Iterator[Points]:
    """Gather the groups of a release on a grid by tens, in the engine: there can be millions of them."""
    if "cells" not in found.detail or not {"P_A", "gain"} <= set(columns_of(found.detail["cells"])):
        return
    flagged = "flag" in columns_of(found.detail["cells"])
    frame: Frame = nw.from_native(found.detail["cells"])
    frame = frame.select(
        nw.col("P_A").clip(_LOWEST_CHANCE, 1.0).alias("across"),
        nw.col("gain").clip(1 / _HIGHEST_GAIN, _HIGHEST_GAIN).alias("up"),
        (nw.col("flag") == _FLAGGED if flagged else nw.lit(value=False)).alias("risky"),
    ).filter(~nw.col("up").is_null() & ~nw.col("up").is_nan() & ~nw.col("across").is_null())
    held = gathered(
        frame.with_columns(
            (nw.col("across").log(10) * 4).round(0).alias("across"),
            (nw.col("up").log(10) * 2).round(0).alias("up"),
        )
        .group_by("across", "up", "risky")
        .agg(nw.len().alias("count"))
    )
    counts = Counter[tuple[float, float, bool]]()
    for row in held.iter_rows(named=True):
        # On some engines minus zero is a group of its own.
        counts[10 ** (row["across"] / 4), 10 ** (row["up"] / 2), bool(row["risky"])] += int(row["count"])
    if not counts:
        return
    records = found.figures.get("records")
    yield Points(
        title="What the release adds to a blind guess",
        points=tuple(
            Point(across, up, counts[across, up, risky], risky) for across, up, risky in sorted(counts)
        ),
        across="chance of the key values in the population",
        up="gain",
        axis=(
            "Each dot stands for groups, a large one for many; up: how much likelier the release makes it to single "
            f"someone out (drawn up to {shown(int(_HIGHEST_GAIN))} times); red: may enable identification"
        ),
        mark=1 / records if finite(records) and records else None,
        mark_name="1 / records",
    )


@measure(
    room="risk",
    work="class-wise",
    question="How much better than a blind guess does the file single people out?",
    headline="times the blind guess, at most",
    chapter="population",
    place=5,
    references=(
        COHEN_NISSIM_2020,
        "D'Acquisto, G., Cohen, A., Naldi, M. and Nissim, K. (2024). From isolation to identification. "
        "Privacy in Statistical Databases, Lecture Notes in Computer Science 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "flagged_share": Figure(unit="share"),
        "max_gain": Figure("Largest gain of a group"),
        "cells_of_one": Figure("Groups of one record"),
        "flagged_cells": Figure("Groups that may enable identification"),
        "flagged_records": Figure("Records in groups that may enable identification"),
        "isolation_only_cells": Figure("Groups that single out, but others may fit"),
        "expected_isolations": Figure("Records singled out, one guess a group"),
        "expected_isolations_blind": Figure("Records singled out by blind guesses"),
        "best_blind_chance": Figure("Best chance of a blind guess", unit="share"),
        "max_gain_at_half": Figure("The same, if the population were half as large"),
        "max_gain_at_double": Figure("The same, if the population were twice as large"),
        "flagged_cells_at_half": Figure("The same, if the population were half as large"),
        "flagged_cells_at_double": Figure("The same, if the population were twice as large"),
    },
    columns={
        "P_A": Figure("Chance of the key values in the population", unit="share"),
        "P_B": Figure("Chance that a blind guess hits the record", unit="share"),
        "pr_isolate_baseline": Figure("Chance to single out without the release", unit="share"),
        "pr_isolate_given_release": Figure("Chance to single out with the release", unit="share"),
        "pr_population_unique": Figure("Chance that nobody else fits", unit="share"),
        "pr_population_unique_at_least": Figure("The same, at the least", unit="share"),
        "flag": Figure("Flag"),
    },
    assess=OfFile(10, population_size=True),
    pictures=_pictures,
)
def isolation(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    population: Microdata | None = None,
    population_size: int | None = None,
    probability: ColumnName | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    specificity: Annotated[float, Above(0)] = 100.0,
    factor: Annotated[float, Above(0)] = 10.0,
    membership_known: bool = False,
    likely: Annotated[float, Share(above=True)] = 0.5,
    missing: Partition = "category",
) -> Measure:
    """Does this file let somebody single out a person any better than blind guessing would?

    Each combination of key values is a cell A with m records. Somebody who sees the file describes one of them:
    the cell itself when m = 1, else a part B of it with probability P(A)/m, which isolates with chance
    (1-1/m)^(m-1). Without the file, the same description isolates with chance n P(B) (1-P(B))^(n-1). The ratio
    is the *isolation gain*: far above 1 where P(A) is much smaller than 1/n, about 1 where it is much larger.

    A cell is flagged ``may enable identification`` when the gain is at least ``factor`` and the description is so
    specific that P(B) <= 1/(specificity N), N the population; ``isolation only`` when the gain is as large but
    others in the population may fit. When the target is known to be in the file, isolation in the file is all
    that is needed, and a cell is flagged when it isolates with a chance of at least ``likely``.

    Also known as: predicate singling out; PSO; isolation gain; baseline isolation probability.

    Parameters
    ----------
    data
        The file, as it is to be released.
    keys
        Key columns; those of the data unless named.
    population
        A reference file from which the probabilities of the cells are estimated, with its weights where it has
        the role. A cell that it does not contain gets (0 + 1/2)/(size + 1).
    population_size
        Number of people N in the population; that of the population file (or the sum of its weights) unless
        given. Without it, nothing can be said on population uniqueness.
    probability
        Column with the probability of each record's cell, e.g. from a model. Without it and without a population
        file, the probabilities come from the margins of the file, as if the keys were independent.
    recoding
        ``{key: {population value: file value}}`` where the two are coded differently.
    specificity, factor
        The two limits of a flag.
    membership_known
        Whether the person sought is known to be in the file.
    likely
        The chance to isolate from which a cell is flagged when membership is known.
    missing
        ``category`` or ``drop``; see `k_anonymity`.

    Returns
    -------
    Measure
        ``value`` is ``flagged_share``, the share of the records in cells that may enable identification.
        ``figures``: ``flagged_share``, ``max_gain``, ``cells``, ``records``, ``cells_of_one``,
        ``flagged_cells``, ``flagged_records``, ``isolation_only_cells``, ``expected_isolations`` (one guess a
        cell), ``expected_isolations_blind`` (as many blind guesses), ``best_blind_chance`` (one guess),
        ``population_size``, and the sensitivity to the probabilities: ``max_gain_at_half``,
        ``max_gain_at_double``, ``flagged_cells_at_half``, ``flagged_cells_at_double``.
        ``detail``: ``cells`` (``m``, ``P_A``, ``P_B``, ``pr_isolate_given_release``, ``pr_isolate_baseline``,
        ``gain``, ``pr_population_unique`` given that it isolates, ``pr_population_unique_at_least``, ``flag``,
        ``verdict``) and ``records``.

    How to read it
    --------------
    A gain of 1 means that the release helps nobody: a blind guess would single out a person just as well. A
    gain of 100 means that it helps a hundredfold. Look at ``flagged_cells`` first: cells in which the gain is
    large *and* hardly anybody else in the population can fit the description. ``isolation only`` means that a
    record is singled out, but others in the population may fit, so that the intruder cannot be sure.
    ``expected_isolations`` against ``expected_isolations_blind`` is the fair comparison for the file as a
    whole.

    When not to trust it
    --------------------
    Everything rests on the chances of the key values in the population; without a population file or column
    of probabilities they come from the file itself and are rough just where it matters, in the rare cells.
    The largest gain can be astronomically high for a cell that is much rarer in the file than expected; it is
    no measure of harm by itself. ``flagged_cells_at_half`` and ``_at_double`` show how sensitive the flags
    are. If an intruder knows who is in the file, set ``membership_known``.

    Examples
    --------
    >>> town = Microdata(pl.DataFrame({"age": [30] * 9_990 + [99] * 10}))
    >>> file = Microdata(pl.DataFrame({"age": [30] * 99 + [99]}), keys="age")
    >>> found = isolation(file, population=town)
    >>> round(found.figures["max_gain"], 3), found.figures["flagged_cells"], found.figures["isolation_only_cells"]
    (11.041, 0, 1)
    """
    keys = engine.resolve_keys(data, keys)
    # Weights are used here, so what the others say of them does not hold.
    caveats = key_caveats(data.with_roles(weight=None) if data.roles.weight else data, keys)
    classes = engine.class_table(data, keys, missing).select(pl.exclude("class_size"))
    if probability is not None:
        classes = singling_out.given_probabilities(classes, keys, missing, data, probability)
        caveats.append(f"The probabilities of the cells are those of column '{probability}'.")
    elif population is not None:
        classes, size, unseen = singling_out.population_probabilities(
            classes, keys, missing, population, recoding
        )
        population_size = population_size if population_size is not None else size
        caveats.append("The probabilities of the cells are shares of the population file.")
        if unseen:
            caveats.append(
                f"{unseen:,} cells do not occur in the population file; half a person was assumed there."
            )
    else:
        classes = singling_out.independent_probabilities(classes, keys, missing, data)
        caveats.append(
            "The probabilities of the cells come from the margins of the file as if its keys were independent, which "
            "makes usual combinations look rarer than they are. A population file gives better ones."
        )
    named = [column for column in classes.columns if column not in ("records", "P_A")]
    measure = isolation_of_counts(
        classes["records"].to_numpy(),
        classes["P_A"].to_numpy(),
        records=int(classes["records"].sum()),
        population_size=population_size,
        data_dependent=True,
        specificity=specificity,
        factor=factor,
        membership_known=membership_known,
        likely=likely,
    )
    found: pl.DataFrame = pl.concat([classes.select(named), measure.detail["cells"]], how="horizontal")
    return replace(
        measure,
        name="isolation",
        caveats=[*caveats, *measure.caveats],
        parameters={
            "keys": list(keys),
            "missing": missing,
            "population_file": population is not None,
            "probability": probability,
            **{name: value for name, value in measure.parameters.items() if name != "data_dependent"},
        },
        detail=engine.tables_like(
            data,
            cells=lambda: EquivalenceClasses(data, keys, missing).rows(found, by="gain"),
            records=lambda: engine.carry_back(data, keys, missing, found.drop("verdict")),
        ),
    )


@pictured(_pictures)
@checked
def isolation_of_counts(
    counts: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    *,
    records: Annotated[int, AtLeast(1)],
    population_size: int | None = None,
    noise: Any = None,
    data_dependent: bool = False,
    specificity: Annotated[float, Above(0)] = 100.0,
    factor: Annotated[float, Above(0)] = 10.0,
    membership_known: bool = False,
    likely: Annotated[float, Share(above=True)] = 0.5,
) -> Measure:
    """Do these published counts let somebody single out a person any better than blind guessing would?

    The gain of `isolation`, for counts of cells that were fixed before the data were seen, exact or with noise.

    Parameters
    ----------
    counts
        The published count of each cell.
    probabilities
        The probability of each cell.
    records
        Number n of records behind the counts.
    population_size
        Number of people N in the population.
    noise
        The noise added to the counts: a frozen SciPy distribution, e.g. ``scipy.stats.dlaplace(1)``, or a
        function that gives the probability of an array of noise values; None for exact counts.
    data_dependent
        Whether the cells were chosen from the data, which makes the chances approximate.
    specificity, factor, membership_known, likely
        As in `isolation`.

    Returns
    -------
    Measure
        As `isolation`; ``detail["cells"]`` follows the order of the counts.

    Examples
    --------
    >>> found = isolation_of_counts([2, 8], [1e-4, 1e-4], records=10_000)
    >>> found.detail["cells"]["gain"].round(6).to_list()
    [1.648659, 3.55982]
    """
    m = np.asarray(counts, dtype=np.float64)
    release = _Counts(m, np.asarray(probabilities, dtype=np.float64), records, population_size)
    release.check(exact=noise is None)
    limits = _Limits(specificity, factor, membership_known, likely)
    cells, half, double = (_gains(release, limits, noise, scale) for scale in (1.0, 0.5, 2.0))
    isolated = float(cells["pr_isolate_given_release"].sum())
    flagged = cells["flag"] == IDENTIFYING
    hit = float(m[flagged.to_numpy()].sum())
    guesses = int((m > 0).sum())
    blind = singling_out.blind_isolations(records, guesses) if guesses else 0.0
    figures: dict[str, FigureValue] = {
        "flagged_share": min(hit / records, 1.0),
        "max_gain": _top(cells),
        "cells": cells.height,
        "records": records,
        "cells_of_one": int((m == 1).sum()),
        "flagged_cells": int(flagged.sum()),
        "flagged_records": hit if noise is not None else round(hit),
        "isolation_only_cells": int(cells["flag"].is_in([ISOLATING, UNDECIDED]).sum()),
        "expected_isolations": isolated,
        "expected_isolations_blind": blind,
        "best_blind_chance": singling_out.blind_isolations(records),
        "population_size": population_size,
        "max_gain_at_half": _top(half),
        "max_gain_at_double": _top(double),
        "flagged_cells_at_half": int((half["flag"] == IDENTIFYING).sum()),
        "flagged_cells_at_double": int((double["flag"] == IDENTIFYING).sum()),
    }
    caveats = [
        "Gains hold cell by cell; those of overlapping cells do not add up.",
        f"The gain hangs on the probabilities: with half of each the largest is {shown(figures['max_gain_at_half'])}, "
        f"with twice each {shown(figures['max_gain_at_double'])}.",
    ]
    if data_dependent:
        caveats.append("The chances to isolate are approximate: the cells were formed from the data.")
    if population_size is None and not membership_known:
        caveats.append(
            "Without a population size it cannot be said whether a description is unique in the population. "
            "Give population_size, or a population file."
        )
    return Measure(
        name="isolation_of_counts",
        value=figures["flagged_share"],  # type: ignore[arg-type]
        figures=figures,
        meaning=(
            f"One guess in each of {guesses:,} cells singles out {shown(isolated)} records; as many blind guesses, "
            f"without the release, at best {shown(blind)}. The largest gain of a single cell is "
            f"{shown(figures['max_gain'])}, and {shown(figures['flagged_cells'])} cells "
            f"({percent(int(flagged.sum()) / max(cells.height, 1))}) may enable identification."
        ),
        caveats=caveats,
        parameters={
            "population_size": population_size,
            "specificity": specificity,
            "factor": factor,
            "membership_known": membership_known,
            "likely": likely,
            "noise": noise is not None,
            "data_dependent": data_dependent,
        },
        detail=Detail(cells=lambda: cells),
    )


def _gains(release: _Counts, limits: _Limits, noise: Any, scale: float) -> pl.DataFrame:
    """Compute every column of the cells table, with the probabilities multiplied by a scale."""
    m, given = release.counts, release.probabilities
    # A probability below 1 stays below 1: a count that is possible must not become impossible.
    chance = np.minimum(given * scale, (1 + given) / 2)
    n, population = release.records, release.population_size
    weight, with_release = (
        singling_out.best_guess(m) if noise is None else singling_out.best_noisy_guess(m, chance, n, noise)
    )
    inside = chance * weight
    baseline = singling_out.isolation_chance(inside, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(with_release > 0, with_release / baseline, 0.0)
    alone = at_least = np.full(len(m), np.nan)
    if population is not None and not limits.membership_known:
        alone, at_least = (
            singling_out.population_unique(inside, population - n),
            singling_out.population_unique(inside, population - 1),
        )
    return pl.DataFrame(
        {
            "m": m if noise is not None else m.astype(np.int64),
            "P_A": chance,
            "P_B": inside,
            "pr_isolate_given_release": with_release,
            "pr_isolate_baseline": baseline,
            "gain": gain,
            "pr_population_unique": alone,
            "pr_population_unique_at_least": at_least,
            "flag": limits.flags(with_release, gain, inside, population),
        },
        nan_to_null=True,
    ).with_columns(verdict=pl.col("flag").replace_strict(_VERDICTS, return_dtype=pl.String))


def _top(cells: pl.DataFrame) -> float:
    return float(cells["gain"].max() or 0.0)  # type: ignore[arg-type]
