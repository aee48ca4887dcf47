"""Can differences between groups still be measured after protection? Odds ratios by fairness group.

The utility check that goes with `RobinHood`: masking is meant to keep small groups apart, so what must survive is
the odds ratio of an outcome in each group against a reference group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.microdata import Microdata


@checked
def disparity(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    outcome: ColumnName,
    fairness: ColumnName,
    keys: ColumnNames | None = None,
    reference: Annotated[str | int, HoldsValues()] | None = None,
    mask_value: Annotated[str | int, HoldsValues()] = "?",
) -> Measure:
    """How far are the odds ratios of the groups off after protection?

    A logistic regression of the outcome on the keys gives each group of the fairness attribute an odds ratio
    against the reference group. In a released file only records whose fairness attribute is neither masked nor
    missing count; records with a missing key are left out of both. A group that was merged with others gets the
    odds ratio of the merged group; a group that is gone, or for which nothing can be estimated (all of its
    records have the same outcome), gets 1: no difference seen.

    Also known as: odds ratio; disparate impact; fairness.

    Parameters
    ----------
    original
        The file as it was.
    released
        The protected file, record by record in the same order; or several, made with different seeds.
    outcome
        A column with two values; the odds are those of the larger one.
    fairness
        The column of the groups, one of the keys.
    keys
        What the regression controls for; the keys of the original unless named. Numbers enter as they are, other
        columns as categories.
    reference
        The group that others are compared with; the largest unless named.
    mask_value
        What stands for a masked value.

    Returns
    -------
    Measure
        ``value`` is ``largest_gap``, the largest absolute difference of a log odds ratio (mean over files) from that
        of the original. ``figures``: ``largest_gap``, ``mean_gap``, ``groups``, ``groups_lost``, ``files``.
        ``detail``: ``groups`` with ``group``, ``original``, ``released`` (mean), ``low`` and ``high`` (the middle
        95 % of the files), ``difference``.

    Examples
    --------
    >>> people = pl.DataFrame({"race": ["M"] * 10 + ["m"] * 10, "ill": [1] + [0] * 9 + [1] * 2 + [0] * 8})
    >>> data = Microdata(people, keys=["race"])
    >>> disparity(data, data, outcome="ill", fairness="race").detail["groups"]["original"].round(4).to_list()
    [1.0, 2.25]
    """
    keys = engine.resolve_keys(original, keys)
    need_known([fairness], keys, "The fairness attribute must be a key.", what="key")
    files = [released] if isinstance(released, Microdata) else list(released)
    if not files:
        raise ParameterError("released must be a file or a list of files, and the list is empty.")
    before = _columns(original, [*keys, outcome])
    yes = _outcome(before[outcome])
    groups = before[fairness].cast(pl.String)
    base = _reference(groups, reference)
    names = [base, *sorted(set(groups.drop_nulls().unique().to_list()) - {base})]
    control = [key for key in keys if key != fairness]
    raw = _odds_ratios(before, yes, groups, base, control)
    estimates = np.array(
        [
            _released(file, yes=yes, groups=groups, names=names, control=control, mask_value=mask_value)
            for file in files
        ]
    )
    mean = estimates.mean(axis=0)
    truth = np.array([raw.get(name, 1.0) for name in names])
    low, high = np.quantile(estimates, [0.025, 0.975], axis=0)
    gap = np.abs(np.log(mean) - np.log(truth))
    table = pl.DataFrame(
        {
            "group": names,
            "original": truth,
            "released": mean,
            "low": low,
            "high": high,
            "difference": mean - truth,
        }
    )
    others = gap[1:] if len(names) > 1 else gap
    lost = int(((mean[1:] == 1.0) & (truth[1:] != 1.0)).sum())
    return Measure(
        name="disparity",
        value=float(others.max()),
        figures={
            "largest_gap": float(others.max()),
            "mean_gap": float(others.mean()),
            "groups": len(names),
            "groups_lost": lost,
            "files": len(files),
        },
        meaning=(
            f"Against the reference group of '{fairness}', the odds ratio of '{outcome}' in a group is off by a factor "
            f"of up to {shown(float(np.exp(others.max())))} after protection; for {lost} of {len(names) - 1} groups no "
            "difference can be seen any more."
        ),
        caveats=[
            "Original and released records are the same people: the difference is the cost of protection, not a test."
        ],
        parameters={"keys": list(keys), "outcome": outcome, "fairness": fairness},
        detail=engine.tables_like(original, groups=table),
    )


def _columns(data: Microdata, names: Sequence[str]) -> pl.DataFrame:
    need_known(names, data.schema)
    return engine.collect(data, list(names))


def _outcome(column: pl.Series) -> Flags:
    values = column.unique().drop_nulls().sort()
    if len(values) != 2 or column.null_count():
        raise ColumnError(
            f"The outcome '{column.name}' must have exactly two values and no missing ones; it has {len(values)} "
            f"values and {column.null_count()} missing. Recode it first."
        )
    return np.asarray((column == values[1]).to_numpy(), dtype=np.bool_)


def _reference(groups: pl.Series, reference: str | int | None) -> str:
    known = (
        groups.drop_nulls()
        .rename("group")
        .value_counts(sort=True, name="records")
        .sort("records", "group", descending=[True, False])
    )
    if reference is None:
        return str(known["group"][0])
    if str(reference) not in known["group"].to_list():
        raise ParameterError("reference must be one of the groups of the original file.")
    return str(reference)


def _released(
    file: Microdata,
    *,
    yes: Flags,
    groups: pl.Series,
    names: Sequence[str],
    control: Sequence[str],
    mask_value: str | int,
) -> list[float]:
    """Estimate from a released file and hand the odds ratio of each released label to the groups it covers."""
    after = _columns(file, [*control, groups.name])
    if after.height != len(groups):
        raise ParameterError("original and released must have the same records in the same order.")
    label = after[groups.name].cast(pl.String)
    label = pl.select(pl.when(label != str(mask_value)).then(label)).to_series()
    pairs = pl.DataFrame({"group": groups, "label": label}).drop_nulls()
    covered = dict(pairs.group_by("group").agg(pl.col("label").mode().sort().first()).rows())
    if names[0] not in covered:
        return [1.0] * len(names)
    ratios = _odds_ratios(after, yes, label, covered[names[0]], control)
    return [ratios.get(covered.get(name, ""), 1.0) for name in names]


def _odds_ratios(
    table: pl.DataFrame,
    yes: Flags,
    groups: pl.Series,
    reference: str,
    control: Sequence[str],
) -> dict[str, float]:
    """Fit the regression on counts of distinct records; groups with one outcome only are left out."""
    from sklearn.linear_model import LogisticRegression

    own = [groups.alias("·group"), pl.Series("·yes", yes)]
    frame = pl.DataFrame([*(table[name] for name in control), *own]).drop_nulls()
    both = frame.group_by("·group").agg(pl.col("·yes").n_unique().alias("outcomes"))
    usable = both.filter(pl.col("outcomes") == 2)["·group"].to_list()
    if reference not in usable:
        return {}
    counts = (
        frame.filter(pl.col("·group").is_in(usable)).group_by(frame.columns).agg(pl.len().alias("·count"))
    )
    counts = counts.sort(frame.columns)
    others = sorted(set(usable) - {reference})
    columns: list[Any] = [(counts["·group"] == name).to_numpy().astype(np.float64) for name in others]
    for name in control:
        columns += _design(counts[name])
    if not others:
        return {reference: 1.0}
    fit = LogisticRegression(C=np.inf, max_iter=2000, tol=1e-8, solver="newton-cholesky")
    fit.fit(np.column_stack(columns), counts["·yes"].to_numpy(), sample_weight=counts["·count"].to_numpy())
    return {reference: 1.0} | {name: float(np.exp(fit.coef_[0, i])) for i, name in enumerate(others)}


def _design(column: pl.Series) -> list[Floats]:
    if column.dtype.is_numeric():
        values = column.cast(pl.Float64).to_numpy()
        spread = float(values.std())
        return [(values - values.mean()) / spread] if spread else []
    text = column.cast(pl.String)
    levels = text.unique().sort().to_list()
    return [(text == level).to_numpy().astype(np.float64) for level in levels[1:]]
