from discreet.dp.auditing import audit as audit
from discreet.dp.calibration import checked_epsilon as checked_epsilon
from discreet.dp.calibration import epsilon_from_zcdp as epsilon_from_zcdp
from discreet.dp.calibration import gaussian_delta as gaussian_delta
from discreet.dp.calibration import gaussian_sigma as gaussian_sigma
from discreet.dp.calibration import largest_rho as largest_rho
from discreet.dp.calibration import rational_epsilon as rational_epsilon
from discreet.dp.calibration import subsampled_gaussian_epsilon as subsampled_gaussian_epsilon
from discreet.dp.calibration import subsampled_gaussian_noise as subsampled_gaussian_noise
from discreet.dp.calibration import zcdp_from as zcdp_from
from discreet.dp.coins import bernoulli as bernoulli
from discreet.dp.coins import bernoulli_exp as bernoulli_exp
from discreet.dp.coins import chosen_privately as chosen_privately
from discreet.dp.coins import uniform_below as uniform_below
from discreet.dp.costs import Cost as Cost
from discreet.dp.costs import Total as Total
from discreet.dp.costs import together as together
from discreet.dp.entropy import (
    Stream as Stream,
)
from discreet.dp.entropy import (
    Words as Words,
)
from discreet.dp.entropy import (
    os_words as os_words,
)
from discreet.dp.entropy import (
    seeded_words as seeded_words,
)
from discreet.dp.ledger import Ledger as Ledger
from discreet.dp.linear_regression import linear_regression as linear_regression
from discreet.dp.mechanisms import Noisy as Noisy
from discreet.dp.mechanisms import gaussian as gaussian
from discreet.dp.mechanisms import laplace as laplace
from discreet.dp.mechanisms import local_laplace as local_laplace
from discreet.dp.mechanisms import randomized_response as randomized_response
from discreet.dp.objective_perturbation import smoothed_check_loss as smoothed_check_loss
from discreet.dp.private_tables import histogram as histogram
from discreet.dp.private_tables import table as table
from discreet.dp.quantile_regression import quantile_regression as quantile_regression
from discreet.dp.queries import count as count
from discreet.dp.queries import mean as mean
from discreet.dp.queries import quantiles as quantiles
from discreet.dp.queries import total as total
from discreet.dp.queries import variance as variance
from discreet.dp.samplers import cube_noise as cube_noise
from discreet.dp.samplers import discrete_gaussian as discrete_gaussian
from discreet.dp.samplers import discrete_laplace as discrete_laplace
from discreet.dp.samplers import poisson as poisson
from discreet.dp.samplers import rounded_laplace as rounded_laplace
from discreet.dp.samplers import shuffled as shuffled
from discreet.dp.samplers import weighted_rows as weighted_rows
from discreet.dp.selection import Chosen as Chosen
from discreet.dp.selection import SparseVector as SparseVector
from discreet.dp.selection import choose as choose
from discreet.dp.sensitivity import pmse_sensitivity as pmse_sensitivity
