"""Differential privacy: draws that are exact, from a source nobody can repeat, and one budget for a data source.

A proof of differential privacy is about a law of the noise. Floating-point draws do not have that law, and draws from a
seed can be drawn again by whoever has the seed. So an epsilon is claimed in this package only for draws that are made
here (`discreet.dp.coins`, `discreet.dp.samplers`, `discreet.dp.choosing`), in whole numbers, from the operating
system's entropy (`discreet.dp.entropy`).
"""

from discreet.dp.accounting import Total, together
from discreet.dp.auditing import audit
from discreet.dp.budget import checked_epsilon, rational_epsilon
from discreet.dp.calibration import (
    epsilon_from_zcdp,
    gaussian_delta,
    gaussian_sigma,
    largest_rho,
    zcdp_from,
)
from discreet.dp.choosing import chosen_privately
from discreet.dp.coins import bernoulli, bernoulli_exp, uniform_below
from discreet.dp.costs import Cost
from discreet.dp.cube_noise import cube_noise
from discreet.dp.entropy import Stream, Words, os_words, seeded_words
from discreet.dp.ledger import Ledger
from discreet.dp.mechanisms import Noisy, gaussian, laplace, local_laplace, randomized_response
from discreet.dp.pmse_sensitivity import pmse_sensitivity
from discreet.dp.private_tables import histogram, table
from discreet.dp.queries import count, mean, quantiles, total, variance
from discreet.dp.regression import linear_regression, quantile_regression, smoothed_check_loss
from discreet.dp.samplers import (
    discrete_gaussian,
    discrete_laplace,
    poisson,
    rounded_laplace,
    shuffled,
    weighted_rows,
)
from discreet.dp.selecting import Chosen, SparseVector, choose
from discreet.dp.subsampling import subsampled_gaussian_epsilon, subsampled_gaussian_noise

__all__ = [
    "Chosen",
    "SparseVector",
    "choose",
    "Cost",
    "Ledger",
    "Noisy",
    "Stream",
    "Total",
    "Words",
    "audit",
    "bernoulli",
    "bernoulli_exp",
    "checked_epsilon",
    "chosen_privately",
    "count",
    "cube_noise",
    "discrete_gaussian",
    "discrete_laplace",
    "epsilon_from_zcdp",
    "gaussian",
    "gaussian_delta",
    "gaussian_sigma",
    "histogram",
    "laplace",
    "largest_rho",
    "linear_regression",
    "local_laplace",
    "mean",
    "os_words",
    "pmse_sensitivity",
    "poisson",
    "quantile_regression",
    "quantiles",
    "randomized_response",
    "rational_epsilon",
    "rounded_laplace",
    "seeded_words",
    "shuffled",
    "smoothed_check_loss",
    "subsampled_gaussian_epsilon",
    "subsampled_gaussian_noise",
    "table",
    "together",
    "total",
    "uniform_below",
    "variance",
    "weighted_rows",
    "zcdp_from",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
