"""Do two samples look alike? Kolmogorov-Smirnov distances, rank sums, permutations, and when a test is honest.

An original and its protected version are dependent: the usual two-sample critical values do not hold for them. They
are given only where the caller says that the samples are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from discreet.core.arrays import Floats, called, need_pairs, numbers_of, rows_of
from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import shown

_Level = Annotated[float, Share(above=True, below=True)]


@checked
def ks_one_sample(
    values: npt.ArrayLike, cdf: Callable[[Floats], npt.ArrayLike], *, level: float = 0.95
) -> dict[str, float | bool]:
    """How far is a sample from a given distribution?

    Run it on the original and on the release with the same ``cdf``, and report where the two answers differ.

    Parameters
    ----------
    values
        The sample; missing values are left out.
    cdf
        The distribution function.
    level
        The test rejects when √n D exceeds this quantile of the Kolmogorov distribution (the limit, exact for large
        samples only).

    Returns
    -------
    dict
        ``ks``, ``statistic`` (√n D), ``critical``, ``p_value``, ``rejected``.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> found = ks_one_sample([0.1, 0.4, 0.7], uniform.cdf)
    >>> round(found["ks"], 4), round(found["critical"], 5), found["rejected"]
    (0.3, 1.3581, False)
    """
    sample = np.sort(_known(values, "values"))
    n = len(sample)
    expected = numbers_of(called(cdf, "cdf", sample), "what cdf gives", least=0.0)
    if expected.shape != sample.shape or (expected > 1).any():
        raise ParameterError("cdf must give a share from 0 to 1 for every number it is called with.")
    above = float((np.arange(1, n + 1) / n - expected).max())
    below = float((expected - np.arange(n) / n).max())
    distance = max(above, below)
    statistic = float(np.sqrt(n)) * distance
    critical = float(scipy.special.kolmogi(1 - level))
    return {
        "ks": distance,
        "statistic": statistic,
        "critical": critical,
        "p_value": float(scipy.special.kolmogorov(statistic)),
        "rejected": statistic > critical,
    }


@checked
def ks_two_sample(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    *,
    weights: tuple[npt.ArrayLike | None, npt.ArrayLike | None] = (None, None),
    alpha: _Level = 0.05,
    assume_independent: bool = False,
) -> dict[str, float | bool | None]:
    """How far apart are two samples, at most, in cumulative shares?

    Also known as: Kolmogorov-Smirnov; KS test.

    Parameters
    ----------
    original, released
        The samples; missing values are left out, and their sizes may differ.
    weights
        Survey weights of the two samples.
    alpha
        The level of the test.
    assume_independent
        Say that the samples are independent of each other. An original and its release never are.

    Returns
    -------
    dict
        ``ks``; with ``assume_independent`` also ``critical`` and ``rejected``, else None.

    Examples
    --------
    >>> ks_two_sample([1, 2, 3], [1, 2, 3])["ks"]
    0.0
    >>> found = ks_two_sample(range(10), range(5, 15), assume_independent=True)
    >>> found["ks"], round(found["critical"], 6), found["rejected"]
    (0.5, 0.607361, False)
    """
    (x, w), (y, v) = (
        _with_weights(values, weight, what, number)
        for number, (values, weight, what) in enumerate(
            zip((original, released), weights, ("original", "released"), strict=True)
        )
    )
    order_x, order_y = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
    x, y = x[order_x], y[order_y]
    below_x, below_y = (np.append(0.0, np.cumsum(part) / part.sum()) for part in (w[order_x], v[order_y]))
    apart = max(
        float(
            np.abs(below_x[np.searchsorted(x, at, "right")] - below_y[np.searchsorted(y, at, "right")]).max()
        )
        for at in (x, y)
    )
    critical = None
    if assume_independent:
        if any(weight is not None for weight in weights):
            raise ParameterError(
                "There is no critical value for weighted samples. Leave assume_independent out."
            )
        critical = critical_ks(len(x), len(y), alpha)
    return {"ks": apart, "critical": critical, "rejected": None if critical is None else apart >= critical}


@checked
def critical_ks(
    n: Annotated[int, AtLeast(1)],
    m: Annotated[int, AtLeast(1)],
    alpha: _Level = 0.05,
) -> float:
    """Give the distance at which the two-sample test of independent samples rejects at level alpha.

    Examples
    --------
    >>> round(critical_ks(100, 50), 6)
    0.23523
    """
    return float(np.sqrt(-np.log(alpha / 2) * (1 + m / n) / (2 * m)))


@checked
def ecdf_interval(values: npt.ArrayLike, at: float, *, level: _Level = 0.95) -> tuple[float, float, float]:
    """Which share of values is at most ``at``, and within which bounds? Estimate, lower and upper bound.

    Examples
    --------
    >>> tuple(round(x, 4) for x in ecdf_interval([1, 2, 3, 4], 2))
    (0.5, 0.01, 0.99)
    """
    sample = _known(values, "values")
    share = float((sample <= at).mean())
    reach = NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(share * (1 - share) / len(sample)))
    return share, max(0.0, share - reach), min(1.0, share + reach)


@checked
def rank_sum(original: npt.ArrayLike, released: npt.ArrayLike) -> float:
    """Give Wilcoxon's two-sample statistic U of the original's values, with mid-ranks for ties.

    It counts the pairs in which the original's value is the larger one, ties as a half. No p-value: original and
    release are dependent.

    Examples
    --------
    >>> rank_sum([0.2, 0.4, 0.5, 0.5, 0.7], [0.3, 0.5, 0.6, 0.8])
    7.0
    """
    x, y = _known(original, "original"), _known(released, "released")
    ranks = scipy.stats.rankdata(np.concatenate([x, y]))
    return float(ranks[: len(x)].sum() - len(x) * (len(x) + 1) / 2)


@checked
def paired_t(original: npt.ArrayLike, released: npt.ArrayLike) -> dict[str, float | None]:
    """Is the mean difference of linked records other than chance? The paired t-test.

    It allows for the dependence of the two files, and asks for differences that are independent from record to
    record, as those of added noise are. It says nothing about rounding, bands or microaggregation.

    Returns
    -------
    dict
        ``t``, ``p_value``, ``difference`` (released minus original), ``records``; t and the p-value are None where
        all differences are alike.

    Examples
    --------
    >>> found = paired_t([1.0, 2.0, 3.0], [1.1, 1.9, 3.3])
    >>> round(found["difference"], 4), round(found["p_value"], 4)
    (0.1, 0.4778)
    """
    x = numbers_of(original, "original", missing=True, empty=True).ravel()
    y = numbers_of(released, "released", missing=True, empty=True).ravel()
    need_pairs(x, y, ("original", "released"), what="records")
    away = (y - x)[~np.isnan(x - y)]
    n = len(away)
    if n < 2 or np.ptp(away) == 0:
        return {"t": None, "p_value": None, "difference": float(away.mean()) if n else None, "records": n}
    statistic = float(away.mean() / (away.std(ddof=1) / np.sqrt(n)))
    p_value = float(2 * scipy.stats.t.sf(abs(statistic), n - 1))
    return {"t": statistic, "p_value": p_value, "difference": float(away.mean()), "records": n}


def _known(values: Any, what: str) -> Floats:
    sample = numbers_of(values, what, missing=True, empty=True).ravel()
    sample = sample[~np.isnan(sample)]
    if not len(sample):
        raise InputError(f"{what} holds no known values.")
    return sample


def _with_weights(values: Any, weight: Any, what: str, number: int) -> tuple[Floats, Floats]:
    sample = numbers_of(values, what, missing=True, empty=True).ravel()
    mass = np.ones(len(sample))
    if weight is not None:
        name = f"weights[{number}]"
        mass = numbers_of(weight, name, empty=True, least=0.0).ravel()
        need_pairs(sample, mass, (what, name))
    known = ~np.isnan(sample) & (mass > 0)
    if not known.any():
        raise InputError(f"{what} holds no known values.")
    return sample[known], mass[known]


# Would chance alone give so large a difference? Permutation of labels, and when that is a test at all.


@checked
def permutation_test(
    statistic: Callable[[Any, Any], float],
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    *,
    n_perm: Annotated[int, AtLeast(2)] = 999,
    paired: bool = False,
    assume_independent: bool = False,
    progress: bool = True,
    seed: Seed = None,
) -> Measure:
    """Is a difference between two samples larger than relabeling the records would make it?

    The records of both files are pooled, the labels "original" and "released" are dealt out anew ``n_perm`` times, and
    the statistic is computed each time. The share of relabelings with at least as large a statistic, the true one
    counted among them, is (1 + number)/(n_perm + 1).

    Parameters
    ----------
    statistic
        A function of two samples; large means different.
    original, released
        One row a record: vectors or tables of numbers.
    n_perm
        How often labels are dealt out anew.
    paired
        Whether row i of both belongs to the same record. Labels are then swapped only within pairs, which holds for
        dependent files whose two versions of a record could as well stand the other way round.
    assume_independent
        Say that the two samples are independent. An original and its release never are.
    progress
        False keeps it silent on a terminal.
    seed
        For the relabelings.

    Returns
    -------
    Measure
        ``value`` is the statistic; ``figures``: ``statistic``, ``null_mean``, ``null_sd``, ``ratio`` (to the mean),
        ``standardized``, ``share_as_large``, and ``p_value``, which is None unless the test is valid: paired files, or
        samples said to be independent. ``detail``: ``null``.

    How to read it
    --------------
    ``ratio`` says how many times as large the difference is as between two random halves of the pooled records.
    About 1 means that nothing tells the files apart by this statistic. ``share_as_large`` orders releases by how much
    they stand out; it is a p-value only where ``p_value`` is printed too.

    When not to trust it
    --------------------
    The test is valid for independent samples. A synthetic or masked file depends on its original and lies closer to
    it than an independent sample would: dealing out labels anew then rejects far too rarely, so that no p-value is
    printed. Use it for scale, not for decisions. With ``paired`` the swap must be fair: rounding or top-coding, which
    always goes one way, is not.

    Examples
    --------
    >>> gap = lambda x, y: abs(x.mean() - y.mean())
    >>> found = permutation_test(gap, [1.0, 2.0, 3.0, 4.0], [7.0, 8.0, 9.0, 10.0], seed=1)
    >>> found.value, found.figures["p_value"], round(found.figures["share_as_large"], 2)
    (6.0, None, 0.02)
    """
    x, y = rows_of(original, "original"), rows_of(released, "released")
    if x.shape[1:] != y.shape[1:]:
        raise ParameterError("The records of both samples must have the same columns.")
    if paired:
        need_pairs(x, y, ("original", "released"), what="records")
    base = int(generator(seed, "permutation test").integers(2**63))
    seen = _number(called(statistic, "statistic", x, y))
    pool = np.concatenate([x, y])

    def relabeled(turn: int) -> float:
        rng = generator(base, str(turn))
        if paired:
            turned = rng.random(len(x)) < 0.5
            turned = turned.reshape(-1, *(1,) * (x.ndim - 1))
            return _number(called(statistic, "statistic", np.where(turned, y, x), np.where(turned, x, y)))
        mixed = pool[rng.permutation(len(pool))]
        return _number(called(statistic, "statistic", mixed[: len(x)], mixed[len(x) :]))

    turns = track(range(n_perm), description="Permutations", progress=progress)
    null = np.array([relabeled(turn) for turn in turns])
    # Sums in another order may differ in the last digit from a statistic that is the same.
    as_large = null >= seen - 1e-12 * max(1.0, abs(seen))
    share = float((1 + as_large.sum()) / (n_perm + 1))
    valid = paired or assume_independent
    mean, sd = float(null.mean()), float(null.std(ddof=1))
    caveats = [] if valid else [
        "Original and release are dependent, so the share of relabelings is no p-value: it is for scale only."
    ]  # fmt: skip
    if paired:
        caveats.append(
            "Swapping within pairs is fair only where neither version of a record is larger by design."
        )
    return Measure(
        name="permutation_test",
        value=seen,
        figures={
            "statistic": seen,
            "null_mean": mean,
            "null_sd": sd,
            "ratio": seen / mean if mean else None,
            "standardized": (seen - mean) / sd if sd else None,
            "share_as_large": share,
            "p_value": share if valid else None,
            "permutations": n_perm,
        },
        meaning=(
            f"The difference is {shown(seen)}; relabeled records give {shown(mean)} on average, and at least as much "
            f"in {share:.1%} of cases."
        ),
        caveats=caveats,
        parameters={"n_perm": n_perm, "paired": paired, "assume_independent": assume_independent},
        detail={"null": pl.DataFrame({"statistic": null})},
    )


def _number(found: Any) -> float:
    try:
        return float(found)
    except (TypeError, ValueError) as error:
        raise ParameterError("statistic must give one number for two samples.") from error
