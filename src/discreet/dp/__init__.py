"""Differential privacy: draws that are exact, from a source nobody can repeat.

A proof of differential privacy is about a law of the noise. Floating-point draws do not have that law, and draws from a
seed can be drawn again by whoever has the seed. So an epsilon is claimed in this package only for draws that are made
here (`discreet.dp.samplers`, `discreet.dp.choosing`), in whole numbers, from the operating system's entropy
(`discreet.dp.entropy`).
"""

from discreet.dp.budget import checked_epsilon, rational_epsilon
from discreet.dp.choosing import chosen_privately
from discreet.dp.entropy import Stream, Words, os_words, seeded_words
from discreet.dp.samplers import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    poisson,
    rounded_laplace,
    shuffled,
    uniform_below,
    weighted_rows,
)

__all__ = [
    "Stream",
    "Words",
    "bernoulli",
    "bernoulli_exp",
    "checked_epsilon",
    "chosen_privately",
    "discrete_gaussian",
    "discrete_laplace",
    "os_words",
    "poisson",
    "rational_epsilon",
    "rounded_laplace",
    "seeded_words",
    "shuffled",
    "uniform_below",
    "weighted_rows",
]
