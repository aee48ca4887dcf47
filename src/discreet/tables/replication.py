"""Does a generator of populations reproduce rare real people run after run?

A rare combination of keys may turn up in one synthetic population by chance. Where it turns up in most runs, and with
the true sensitive value, the generator has learned a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata
from discreet.tables.table_counting import plain_texts


@checked
def replication_audit(
    original: Any,
    runs: Iterable[Any],
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnNames | ColumnName | None = None,
    area: ColumnName | None = None,
    min_class: Annotated[int, AtLeast(2)] = 3,
    alpha: float = 0.05,
    systematic_share: float = 0.5,
) -> Measure:
    """Are rare real combinations reproduced run after run?

    Also known as: MikroSim; dynamic microsimulation; replication of rare cells.

    Parameters
    ----------
    original
        The confidential file.
    runs
        The synthetic populations, one frame a run; they are taken one after the other and not kept.
    keys
        The key columns; those of the data unless named. Columns of states over periods make it longitudinal, see
        `trajectories`.
    sensitive
        The sensitive columns; without any, a combination counts as reproduced when it occurs.
    area
        The column of the area; a combination is looked for in its own area.
    min_class
        Combinations of fewer records are rare.
    alpha
        The level of the Clopper-Pearson limit.
    systematic_share
        A combination is systematic when the limit exceeds this share and the share that chance explains.

    Returns
    -------
    Measure
        ``value`` is the share of rare combinations that are systematic. ``detail["combinations"]`` has one row a rare
        combination (codes masked): ``occurs`` (share of runs), ``with_sensitive``, ``chance``, ``limit``,
        ``systematic``; the worst first.

    References
    ----------
    Brenzel, H., Palm, M., Weymeirsch, J. and Münnich, R. (2024). Privacy and disclosure risks in spatial dynamic
    microsimulations. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915.
    doi:10.1007/978-3-031-69651-0

    Examples
    --------
    >>> real = pl.DataFrame({"age": [30, 30, 30, 91], "ill": ["n", "n", "y", "y"]})
    >>> runs = [real] * 12
    >>> found = replication_audit(real, runs, keys=["age"], sensitive="ill")
    >>> found.figures["rare"], found.figures["systematic"]
    (1, 1)
    """
    data = original if isinstance(original, Microdata) else Microdata(original)
    names = list(keys if keys is not None else data.roles.keys)
    given = sensitive if sensitive is not None else data.roles.sensitive
    wanted = [given] if isinstance(given, str) else list(given)
    if not names:
        raise ParameterError("replication_audit needs keys=, the columns whose combinations are looked for.")
    whole = ([area] if area else []) + names
    need_known([*whole, *wanted], data.columns)
    real = _texts(engine.collect(data, list(dict.fromkeys([*whole, *wanted]))), [*whole, *wanted])
    rare = (
        real.group_by(whole, maintain_order=True)
        .agg(pl.len().alias("·size"))
        .filter(pl.col("·size") < min_class)
    )
    pairs = real.join(rare.select(whole), on=whole, how="semi").unique([*whole, *wanted], maintain_order=True)
    occurs = np.zeros(rare.height)
    learned = np.zeros(rare.height)
    chance = np.zeros(rare.height)
    many = 0
    for run in runs:
        made = _run(run, [*whole, *wanted], many)
        many += 1
        occurs += _present(rare, made, whole)
        hit = pairs.join(made.select(*whole, *wanted).unique(), on=[*whole, *wanted], how="semi")
        learned += _present(rare, hit, whole)
        chance += _by_chance(rare, made, names, area)
    if not many:
        raise ParameterError("There are no runs to audit.")
    limit = _lower_limit(learned, many, alpha)
    expected = chance / many
    flagged = limit > np.maximum(expected, systematic_share)
    number = int(flagged.sum())
    table = pl.DataFrame(
        {
            "size": rare["·size"],
            "occurs": occurs / many,
            "with_sensitive": learned / many,
            "chance": expected,
            "limit": limit,
            "systematic": flagged,
        }
    )
    table = table.sort(pl.col("with_sensitive") - pl.col("chance"), descending=True)
    few = ["With few runs the limits are wide and little can be called systematic."] if many < 10 else []
    return Measure(
        "replication_audit",
        number / rare.height if rare.height else None,
        {"rare": rare.height, "systematic": number, "runs": many},
        f"Of {rare.height:,} rare combinations {number:,} are reproduced systematically over {many} runs.",
        caveats=few,
        parameters={"keys": names, "sensitive": wanted},
        detail=Detail(combinations=lambda: table),
    )


@checked
def trajectories(frame: Any, *, unit: str, period: str, states: Sequence[str]) -> pl.DataFrame:
    """Put the states of every unit over the periods side by side, ready to be keys of `replication_audit`.

    Examples
    --------
    >>> long = pl.DataFrame({"id": [1, 1, 2], "year": [2020, 2021, 2020], "job": ["a", "b", "a"]})
    >>> trajectories(long, unit="id", period="year", states=["job"]).rows()
    [(1, 'a', 'b'), (2, 'a', None)]
    """
    given = nw.from_native(frame, eager_only=True).to_polars()
    need_known((unit, period, *states), given.columns)
    wide: pl.DataFrame = given.sort(period).pivot(
        period, index=unit, values=list(states), maintain_order=True
    )
    return wide.sort(unit)


@checked
def unit_concentration(
    runs: Iterable[Any],
    *,
    unit: ColumnName,
    event: ColumnName,
    classes: ColumnNames,
    min_class: int = 3,
) -> Measure:
    """Is it the same unit that makes a transition in every run?

    Parameters
    ----------
    runs
        One frame a run, with unit ids that persist over runs.
    unit
        The column of the unit.
    event
        A column of flags: whether the unit makes the transition.
    classes
        The columns of the equivalence classes.
    min_class
        Classes of fewer units are looked at.

    Returns
    -------
    Measure
        ``value`` is the largest share of runs in which the same unit of a small class makes the transition;
        ``figures["always"]`` counts the units that do so in every run.

    Examples
    --------
    >>> run = pl.DataFrame({"id": [1, 2], "age": [91, 30], "dies": [True, False]})
    >>> unit_concentration([run] * 10, unit="id", event="dies", classes=["age"]).figures["always"]
    1
    """
    hits: pl.DataFrame | None = None
    many = 0
    for run in runs:
        frame = nw.from_native(run, eager_only=True).to_polars()
        need_known((unit, event, *classes), frame.columns)
        many += 1
        small = frame.filter(pl.len().over(list(classes)) < min_class)
        here = small.select(unit, hit=pl.col(event).cast(pl.Int64).fill_null(0))
        hits = here if hits is None else pl.concat([hits, here], how="vertical_relaxed")
        hits = hits.group_by(unit, maintain_order=True).agg(pl.col("hit").sum())
    if hits is None:
        raise ParameterError("There are no runs to audit.")
    shares = (hits["hit"] / many).to_numpy()
    always = int((shares >= 1).sum())
    top = float(shares.max(initial=0.0))
    return Measure(
        "unit_concentration",
        top,
        {"runs": many, "units": hits.height, "always": always},
        f"Of {hits.height:,} units in small classes {always:,} make the transition in all {many} runs.",
        parameters={"classes": list(classes), "min_class": min_class},
        detail=Detail(shares=lambda: pl.DataFrame({"share": np.sort(shares)[::-1]})),
    )


def _texts(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(
        [plain_texts(frame[name]).fill_null("\0missing").alias(name) for name in dict.fromkeys(names)]
    )


def _run(run: Any, names: Sequence[str], number: int) -> pl.DataFrame:
    data = run if isinstance(run, Microdata) else Microdata(run)
    need_known(names, data.columns, after=f" Run {number + 1} lacks it.")
    return _texts(engine.collect(data, list(dict.fromkeys(names))), names)


def _present(rare: pl.DataFrame, made: pl.DataFrame, whole: Sequence[str]) -> Any:
    there = made.select(whole).unique().with_columns(there=pl.lit(1.0))
    return (
        rare.join(there, on=list(whole), how="left", maintain_order="left")["there"].fill_null(0.0).to_numpy()
    )


def _by_chance(rare: pl.DataFrame, made: pl.DataFrame, names: Sequence[str], area: str | None) -> Any:
    """The chance that a combination occurs where the keys are drawn independently, each by its share in the area."""
    home, many = [area] if area else [], pl.len().alias("·n")
    sizes = made.group_by(home).agg(many) if home else made.select(many)
    found = (
        rare.join(sizes, on=home, how="left", maintain_order="left")
        if home
        else rare.join(sizes, how="cross")
    )
    found = found.with_columns(pl.col("·n").fill_null(0), pl.lit(1.0).alias("·p"))
    for name in names:
        shares = made.group_by([*home, name]).agg(pl.len().alias("·m"))
        found = found.join(shares, on=[*home, name], how="left", maintain_order="left").with_columns(
            pl.col("·p") * pl.col("·m").fill_null(0) / pl.col("·n").clip(lower_bound=1)
        )
        found = found.drop("·m")
    p, n = found["·p"].to_numpy(), found["·n"].to_numpy()
    return -np.expm1(n * np.log1p(-np.minimum(p, 1 - 1e-16)))


def _lower_limit(hits: Any, many: int, alpha: float) -> Any:
    """The one-sided lower Clopper-Pearson limit."""
    from scipy.special import betaincinv

    safe = np.maximum(hits, 1)
    return np.where(hits > 0, betaincinv(safe, many - safe + 1, alpha), 0.0)
