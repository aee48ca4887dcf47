"""Draw by throwing away or transforming: rejection and conditioning, in batches; transformations and mixtures.

Correlated normal variables are a transformation of independent ones, by a root of the covariance matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Flags, Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.draws import Draws, Sampler, as_sampler, count_of
from discreet.synth.distributions.inversion_sampling import discrete_inverse

_LARGEST_BATCH = 1_000_000
Keep = Callable[[Array, np.random.Generator], Flags]


def accept_reject(
    density: Callable[[Array], Any],
    proposal: Any,
    bound: float,
    size: int,
    *,
    proposal_density: Callable[[Array], Any] | None = None,
    tolerance: float = 1e-9,
    max_proposals: int | None = None,
    seed: Seed = None,
) -> Draws[Array]:
    """Draw from a density by proposing from another and accepting in proportion.

    A proposal y is accepted with probability f(y) / (c h(y)). That is right only if c h is nowhere below f, and a c
    that is too small gives a wrong distribution without a sign. So every proposal is checked.

    Parameters
    ----------
    density
        The density f to draw from, of an array of draws.
    proposal
        A frozen scipy distribution, or a function of a generator and a number of draws with its density in
        ``proposal_density``.
    bound
        The constant c, at least the largest f / h. One proposal in c is accepted.
    size
        How many to draw.
    proposal_density
        The density h of the proposal.
    tolerance
        Relative excess of f over c h that counts as rounding.
    max_proposals
        After so many proposals it is an error that too few were accepted; 1,000 c a draw unless given.
    seed
        For the random numbers.

    Examples
    --------
    >>> drawn = accept_reject(
    ...     lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2),
    ...     lambda rng, n: rng.exponential(size=n),
    ...     np.sqrt(2 * np.e / np.pi),
    ...     10_000,
    ...     proposal_density=lambda x: np.exp(-x),
    ...     seed=1,
    ... )
    >>> round(drawn.diagnostics["acceptance_rate"], 2)
    0.76
    """
    if not (np.isfinite(bound) and bound > 0):
        raise ParameterError("bound must be a number above 0: the largest ratio of the two densities.")
    height: Any = getattr(proposal, "pdf", None) if proposal_density is None else proposal_density
    if height is None:
        raise ParameterError("Give the density of the proposal with proposal_density=.")
    largest = 0.0

    def keep(drawn: Array, rng: np.random.Generator) -> Flags:
        nonlocal largest
        wanted = np.asarray(density(drawn), dtype=np.float64)
        there = np.asarray(height(drawn), dtype=np.float64)
        if wanted.shape != (len(drawn),) or there.shape != (len(drawn),):
            raise ParameterError("Both densities must return one number for each draw.")
        if (
            not (np.isfinite(wanted).all() and np.isfinite(there).all())
            or (wanted < 0).any()
            or (there <= 0).any()
        ):
            raise ParameterError("A density is negative, missing, or zero where the proposal draws.")
        ratio = wanted / there
        largest = max(largest, float(ratio.max(initial=0.0)))
        if largest > bound * (1 + tolerance):
            raise ParameterError(
                f"bound is {bound:.6g}, but the ratio of the densities is at least {largest:.6g}: the draws would "
                "follow another distribution. Use the largest ratio as bound."
            )
        return np.asarray(rng.random(len(drawn)) <= ratio / bound)

    sampler = as_sampler(proposal, "proposal")
    n = count_of(size)
    limit = max_proposals if max_proposals is not None else int(max(10_000, 1000 * max(bound, 1.0) * n))
    values, proposals, accepted = _kept(
        sampler, keep, n, rate=1 / max(bound, 1.0), limit=limit, rng=generator(seed)
    )
    return Draws(
        values,
        {
            "method": "acceptance-rejection",
            "draws": n,
            "proposals": proposals,
            "acceptance_rate": accepted / proposals if proposals else None,
            "expected_acceptance": 1 / bound,
            "largest_ratio": largest,
        },
    )


def condition(
    sampler: Any,
    predicate: Callable[[Array], Any],
    size: int,
    *,
    max_tries: int = 10_000_000,
    seed: Seed = None,
) -> Draws[Array]:
    """Draw given that something holds: draw, and keep what fulfils it.

    Parameters
    ----------
    sampler
        A function of a generator and a number of draws, or a frozen scipy distribution. Draws may be rows.
    predicate
        True or false for each draw.
    size
        How many to keep.
    max_tries
        After so many draws it is an error that too few were kept.
    seed
        For the random numbers.

    Examples
    --------
    >>> upper = condition(lambda rng, n: rng.standard_normal(n), lambda x: x > 1, 1000, seed=1)
    >>> bool((upper.values > 1).all()), upper.diagnostics["acceptance_rate"] < 0.2
    (True, True)
    """

    def keep(drawn: Array, _: np.random.Generator) -> Flags:
        fulfilled = np.asarray(predicate(drawn))
        if fulfilled.shape != (len(drawn),) or fulfilled.dtype != np.bool_:
            raise ParameterError("predicate must return true or false for each draw.")
        return fulfilled

    n = count_of(size)
    values, tries, kept = _kept(as_sampler(sampler), keep, n, rate=0.5, limit=max_tries, rng=generator(seed))
    rate = kept / tries if tries else None
    return Draws(values, {"method": "conditioning", "draws": n, "proposals": tries, "acceptance_rate": rate})


def transform(
    sampler: Any, function: Callable[[Array], Any], size: int, *, seed: Seed = None
) -> Draws[Array]:
    """Draw a function of something that can be drawn.

    Examples
    --------
    >>> chi_square = transform(
    ...     lambda rng, n: rng.standard_normal((n, 3)), lambda z: (z**2).sum(axis=1), 20_000, seed=1
    ... )
    >>> round(float(np.mean(chi_square)))
    3
    """
    n = count_of(size)
    drawn = as_sampler(sampler)(generator(seed), n)
    values = np.asarray(function(drawn))
    if values.ndim == 0 or len(values) != n:
        raise ParameterError("function must return one value, or one row, for each draw.")
    return Draws(values, {"method": "transformation", "draws": n})


def mixture(samplers: Sequence[Any], weights: npt.ArrayLike, size: int, *, seed: Seed = None) -> Draws[Array]:
    """Draw from several distributions, each record from one of them by chance.

    Returns
    -------
    Draws
        ``diagnostics["component"]`` tells which distribution each draw came from.

    Examples
    --------
    >>> two = mixture([lambda r, n: r.normal(0, 1, n), lambda r, n: r.normal(9, 1, n)], [0.3, 0.7], 1000, seed=1)
    >>> round(float(np.mean(two.values > 4.5)), 1)
    0.7
    """
    rng, n = generator(seed), count_of(size)
    parts = [as_sampler(sampler, "Each sampler") for sampler in samplers]
    component = discrete_inverse(np.arange(len(parts)), weights, n, seed=rng).values
    counts = np.bincount(component, minlength=len(parts))
    drawn = np.concatenate([part(rng, int(count)) for part, count in zip(parts, counts, strict=True)])
    values = np.empty_like(drawn)
    values[np.argsort(component, kind="stable")] = drawn
    return Draws(values, {"method": "mixture", "draws": n, "component": component, "counts": counts})


def _kept(
    sampler: Sampler, keep: Keep, n: int, *, rate: float, limit: int, rng: np.random.Generator
) -> tuple[Array, int, int]:
    """Draw in batches, sized by the share kept so far, until there are enough."""
    pieces: list[Array] = []
    tries, kept = 0, 0
    if limit < 1:
        raise ParameterError("At least one try must be allowed.")
    while kept < n or not pieces:
        if tries >= limit:
            raise ParameterError(
                f"Only {kept:,} of {tries:,} draws were kept ({kept / tries:.2g} of them); {n:,} are wanted. Choose "
                "a proposal nearer to the target or a likelier condition, or allow more tries."
            )
        batch = int(min((n - kept) / max(rate, 1e-6) * 1.1 + 16, _LARGEST_BATCH, limit - tries))
        drawn = sampler(rng, batch)
        stays = drawn[keep(drawn, rng)]
        pieces.append(stays)
        tries, kept = tries + batch, kept + len(stays)
        rate = max(kept, 1) / tries
    return np.concatenate(pieces)[:n], tries, kept


# Draw correlated normal variables from independent ones, by a root of the covariance matrix.
Root = Literal["cholesky", "spectral"]


def multivariate_normal(
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
    size: int | None = None,
    *,
    method: Root = "cholesky",
    tolerance: float = 1e-10,
    standard: npt.ArrayLike | None = None,
    seed: Seed = None,
) -> Draws[Floats]:
    """Draw normal vectors with a given mean and covariance: X = mean + root · Y.

    Parameters
    ----------
    mean
        One number a variable.
    covariance
        The covariance matrix.
    size
        Number of vectors.
    method
        ``cholesky`` needs a matrix of full rank. ``spectral`` also takes a singular one.
    tolerance
        Eigenvalues this much below 0, relative to the largest, are rounding; below that the matrix is refused.
    standard
        The vectors Y to use, a row each. They must have mean 0 and the identity as covariance: that they are
        independent is not enough.
    seed
        For Y.

    Returns
    -------
    Draws
        ``diagnostics["root"]`` is the matrix whose product with its transpose is the covariance.

    Examples
    --------
    >>> drawn = multivariate_normal([0, 1], [[1, 0.7], [0.7, 1]], standard=[[1.0, 1.0]])
    >>> drawn.values.round(6).tolist(), drawn.diagnostics["root"].round(6).tolist()
    ([[1.0, 2.414143]], [[1.0, 0.0], [0.7, 0.714143]])
    """
    center, matrix = np.asarray(mean, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
    if center.ndim != 1 or matrix.shape != (len(center), len(center)):
        raise ParameterError("covariance must be a square matrix with a row for each number of mean.")
    root, values = covariance_root(matrix, method=method, tolerance=tolerance)
    if standard is None:
        if size is None:
            raise ParameterError("Say how many to draw with size=.")
        noise = generator(seed).standard_normal((count_of(size), len(center)))
    else:
        noise = np.asarray(standard, dtype=np.float64)
        if noise.ndim != 2 or noise.shape[1] != len(center):
            raise ParameterError("standard must have a column for each variable.")
    return Draws(
        center + noise @ root.T,
        {"method": f"{method} root", "draws": len(noise), "root": root, "eigenvalues": values},
    )


def covariance_root(
    covariance: npt.ArrayLike, *, method: Root = "cholesky", tolerance: float = 1e-10
) -> tuple[Floats, Floats]:
    """Return a root of a covariance matrix (times its transpose it is the matrix), and the eigenvalues.

    Examples
    --------
    >>> root, eigenvalues = covariance_root([[1, 1], [1, 1]], method="spectral")
    >>> (root @ root.T).round(6).tolist(), eigenvalues.round(6).tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [0.0, 2.0])
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ParameterError("covariance must be a square matrix of finite numbers.")
    scale = max(float(np.abs(matrix).max(initial=0.0)), 1e-300)
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * scale:
        raise ParameterError("covariance must be symmetric.")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values.min(initial=0.0) < -tolerance * scale:
        raise ParameterError(
            f"covariance has a negative eigenvalue ({values.min():.3g}), so it is the covariance of nothing. "
            "discreet.numerics.correlation.nearest_correlation mends a correlation matrix."
        )
    values = np.maximum(values, 0.0)
    if method == "spectral":
        signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(vectors))])
        return vectors * signs * np.sqrt(values), values
    if method != "cholesky":
        raise ParameterError("method must be 'cholesky' or 'spectral'.")
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64), values
    except np.linalg.LinAlgError as error:
        raise ParameterError("covariance is singular. Use method='spectral'.") from error
