"""Draw by throwing away: acceptance-rejection and conditioning, in batches; transformations and mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Flags
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.discrete import discrete_inverse
from discreet.synth.distributions.draws import Draws, Sampler, as_sampler, count_of

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
        accepted: Flags = rng.random(len(drawn)) <= ratio / bound
        return accepted

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
