"""Singling out: isolation against blind guessing, and the baselines of guessing for those who need them alone."""

from discreet.risk.singling_out.blind_guess import (
    best_guess,
    best_noisy_guess,
    blind_isolations,
    guesses_needed,
    isolation_chance,
    partition_bound,
    partition_isolations,
    population_unique,
    posterior,
)

__all__ = [
    "best_guess",
    "best_noisy_guess",
    "blind_isolations",
    "guesses_needed",
    "isolation_chance",
    "partition_bound",
    "partition_isolations",
    "population_unique",
    "posterior",
]
