"""Would chance alone give so large a difference? Permutation of labels, and when that is a test at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.number_arrays import called, need_pairs, rows_of
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import shown


@checked
def permutation_test(
    statistic: Callable[[Any, Any], float],
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    *,
    n_perm: int = 999,
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
    if isinstance(n_perm, bool) or not isinstance(n_perm, int) or n_perm < 2:
        raise ParameterError("n_perm must be a whole number of at least 2.")
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
        detail=Detail(null=lambda: _table(null)),
    )


def _table(null: Floats) -> Any:
    import polars as pl

    return pl.DataFrame({"statistic": null})


def _number(found: Any) -> float:
    try:
        return float(found)
    except (TypeError, ValueError) as error:
        raise ParameterError("statistic must give one number for two samples.") from error
