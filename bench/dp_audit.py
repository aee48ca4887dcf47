"""Which false claims of differential privacy does an audit find, and does it find any in this package?

    python bench/dp_audit.py [--runs 100000] [--asks 100000] [--fits 100000] [--steps 100000] [--only NAME]

Five mechanisms that claim an epsilon and do not keep it, each known from the literature or from careless code, stand
beside everything in this package that carries a guarantee: samplers and mechanisms (``--runs``), doors that answer once
a call, alone and many parts at once (``--asks``), generators, fitted again and again (``--fits``), and the steps by
which private networks learn (``--steps``; needs torch), on two small files that differ in one record.
``at least`` is the lower bound on epsilon that half of the runs show with a confidence of 1 - 1e-9, for an event that
the other half chose. A hundred thousand fits of a generator take 5 to 40 minutes of a core.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import dp_audit_at_once as at_once
import dp_audit_doors as doors
import dp_audit_networks as networks
import numpy as np
import numpy.typing as npt
import polars as pl
from dp_audit_doors import Claim

from discreet import Microdata, dp, synth


def floating_point_laplace(answer: float, runs: int) -> npt.ArrayLike:
    """Laplace noise as everybody draws it first: its last digits tell the answer (Mironov 2012)."""
    # One run in twenty misses it; the same draws every time say the same every time.
    rng = np.random.default_rng([7, runs, int(1_000 * abs(answer))])
    return answer + rng.laplace(0.0, 1.0, runs)


def gaussian_with_half_the_noise(answer: float, runs: int) -> npt.ArrayLike:
    """A sensitivity of one half where it is one."""
    sigma = dp.gaussian_sigma(1.0, 1.0, 1e-3) / 2
    # Rounded, because the last digits of floating-point noise are another fault.
    return answer + np.rint(np.random.default_rng([8, runs, int(answer)]).normal(0.0, sigma, runs) * 64) / 64


def greedy_tree_pmse(records: npt.NDArray[np.float64], runs: int) -> npt.ArrayLike:
    """The exponential mechanism over two synthetic files by the pMSE of a greedy tree, with the bound of the best tree.

    A greedy tree stops where the first split gains nothing, also where the second would tell everything; one record
    decides whether it goes on.
    """
    from sklearn.tree import DecisionTreeClassifier

    n = len(records)
    crossed = np.array([[0.0, 1.0], [1.0, 0.0]] * (n // 2))
    far = np.full((n, 2), 9.0)
    told = np.repeat([0, 1], n)
    losses = []
    for made in (crossed, far):
        both = np.vstack([records, made])
        tree = DecisionTreeClassifier(max_depth=2, min_impurity_decrease=1e-9).fit(both, told)
        losses.append(float(((tree.predict_proba(both)[:, 1] - 0.5) ** 2).mean()))
    weights = np.exp(-np.asarray(losses) * n / 2)
    return (
        np.random.default_rng([9, int(records.sum())])
        .choice(2, size=runs, p=weights / weights.sum())
        .astype(np.float64)
    )


def all_others_with_a_switch(value: float, runs: int) -> npt.ArrayLike:
    """The "safety" switch of regression synthesis: a prediction, or where it is near the value with one-sided noise."""
    rng = np.random.default_rng([10, runs, int(1_000 * value)])
    predicted = 0.2 + rng.normal(0.0, 0.05, runs)
    noise = rng.laplace(0.0, 1.0, runs)
    released = np.where(np.abs(predicted - value) >= noise, predicted, value + noise)
    return np.rint(released * 64) / 64


def catall_without_noise(cells: tuple[int, int], runs: int) -> npt.ArrayLike:
    """A table of all columns, counted as it is: the only one in a cell is seen in the files drawn from it."""
    places = pl.Series("place", ["a"] * cells[0] + ["b"] * cells[1], dtype=pl.Enum(["a", "b"]))
    other = pl.Series("sex", ["f"] * sum(cells), dtype=pl.Enum(["f", "m"]))
    fitted = synth.Sequential(method="catall").fit(Microdata(pl.DataFrame([places, other])), seed=1)
    drawn = fitted.sample(20 * runs, seed=2).frame["place"].cast(pl.String).to_numpy()
    return (drawn == "b").reshape(runs, 20).sum(axis=1)


def _square(moved: bool) -> npt.NDArray[np.float64]:
    records = np.array([[0.0, 0.0], [1.0, 1.0]] * 20)
    if moved:
        records[1] = [0.0, 1.0]
    return records


PLANTED = {
    "Laplace noise in floating point": Claim(floating_point_laplace, (0.0, 1.0), 1.0),
    "Gaussian noise of half the size": Claim(gaussian_with_half_the_noise, (0.0, 1.0), 1.0, 1e-3),
    "pMSE mechanism with a greedy tree": Claim(greedy_tree_pmse, (_square(False), _square(True)), 1.0),
    "all-others synthesis with a Laplace switch": Claim(all_others_with_a_switch, (0.2, 0.8), 1.0),
    "catall with its noise switched off": Claim(catall_without_noise, ((19, 0), (19, 1)), 1.0),
}


def _chosen(method: str) -> Claim:
    return Claim(
        doors.again_and_again(
            lambda scores: dp.choose(scores, sensitivity=1, epsilon=1.0, method=method).place  # type: ignore[arg-type]
        ),
        ([3, 2, 2], [2, 3, 3]),
        1.0,
    )


def _above(counts: list[int]) -> float:
    asked = dp.SparseVector(5, sensitivity=1, epsilon=1.0)
    told = 0
    for at, count in enumerate(counts):
        if asked.left and asked.above(count):
            told = at + 1
    return float(told)


def _noisy_poisson(count: int, runs: int) -> npt.ArrayLike:
    return dp.poisson([Fraction(count) + 1], np.zeros(runs, dtype=np.int64), dp.os_words)


def _variance() -> Fraction:
    """The variance with which `dp.gaussian` draws for epsilon 1 and delta 0.001."""
    return Fraction(round(dp.gaussian(0, sensitivity=1, epsilon=1.0, delta=1e-3).scale ** 2 * 2**20), 2**20)


AT_ONCE = {
    "discrete Laplace": Claim(
        lambda n, runs: n + dp.discrete_laplace(Fraction(1), runs, dp.os_words), (7, 8), 1.0
    ),
    "discrete Gaussian": Claim(
        lambda n, runs: n + dp.discrete_gaussian(_variance(), runs, dp.os_words), (7, 8), 1.0, 1e-3
    ),
    "rounded Laplace": Claim(
        lambda n, runs: n + dp.rounded_laplace(Fraction(1), runs, dp.os_words), (7, 8), 1.0
    ),
    "local Laplace": Claim(
        lambda x, runs: dp.local_laplace(np.full(runs, x), lower=0.0, upper=1.0, epsilon=1.0).value,
        (0.0, 1.0),
        1.0,
    ),
    "randomized response": Claim(
        lambda code, runs: dp.randomized_response(np.full(runs, code), 4, epsilon=1.0)[0], (0, 3), 1.0
    ),
    "laplace, a decimal number": Claim(
        lambda x, runs: dp.laplace(np.full(runs, x), sensitivity=1.0, epsilon=1.0).value, (0.0, 1.0), 1.0
    ),
    "gaussian, a decimal number": Claim(
        lambda x, runs: dp.gaussian(np.full(runs, x), sensitivity=1.0, epsilon=1.0, delta=1e-3).value,
        (0.0, 1.0),
        1.0,
        1e-3,
    ),
    "Poisson cells, alpha 1": Claim(_noisy_poisson, (0, 1), 2.0, 0.025611),
    **doors.AT_ONCE,
}
ONE_BY_ONE = {
    "choose: permute-and-flip": _chosen("permute-and-flip"),
    "choose: exponential": _chosen("exponential"),
    "choose: noisy-max": _chosen("noisy-max"),
    "sparse vector": Claim(doors.again_and_again(_above), ([4, 5, 6], [5, 4, 5]), 1.0),
    "K-norm noise of the cube": Claim(
        lambda x, runs: np.stack(
            [np.asarray(x) + dp.cube_noise(Fraction(1, 2), 2, dp.os_words) for _ in range(runs)]
        ),
        ((0, 0), (2, 2)),
        1.0,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("runs", "asks", "fits", "steps"):
        parser.add_argument(f"--{name}", type=int, default=100_000)
    parser.add_argument("--only", default="", help="lines with this in their name")
    asked = parser.parse_args()
    print(f"{'':<46}{'claimed':>16}{'at least':>10}{'runs':>9}{'CPU s':>8}")
    for title, claims, runs in (
        ("planted", PLANTED, asked.runs),
        ("ours", {**AT_ONCE, **ONE_BY_ONE}, asked.runs),
        ("asked", {**at_once.CLAIMS, **doors.ONE_BY_ONE}, asked.asks),
        ("fitted", doors.GENERATORS, asked.fits),
        ("trained", networks.claims() if asked.steps else {}, asked.steps),
    ):
        for name, claim in claims.items() if runs else ():
            if asked.only not in name:
                continue
            start = time.process_time()
            found = claim.audited(runs)
            spent = time.process_time() - start
            claimed = f"{claim.epsilon:g}" + (f", {claim.delta:g}" if claim.delta else "")
            mark = "refuted" if found.figures["violated"] else ""
            print(
                f"{title:<8} {name:<44}{claimed:>9}{found.value:>10.2f}{runs:>9,}{spent:>8.1f}  {mark}",
                flush=True,
            )


if __name__ == "__main__":
    main()
