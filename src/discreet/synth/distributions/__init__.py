"""Samplers from first principles: from a known distribution, from a fitted family, or from the data alone.

Every sampler returns `Draws`: the values and how they came about. The first group draws from a distribution that is
known, the second from a family that is fitted, the third from the records of a file:

- `inverse_transform`, `discrete_inverse`, `discrete_inverse_unbounded`, `conditional_inverse`, `accept_reject`,
  `condition`, `transform`, `mixture`, `multivariate_normal`
- `fit_family`, `fit_sample`, `from_moments`
- `bootstrap`, `smote`, `interpolate`; and `closeness` to see how near their records are to real ones
"""

from discreet.synth.distributions.draws import Draws
from discreet.synth.distributions.families import FittedFamily, fit_family, fit_sample, from_moments
from discreet.synth.distributions.inversion_sampling import (
    conditional_inverse,
    discrete_inverse,
    discrete_inverse_unbounded,
    inverse_transform,
)
from discreet.synth.distributions.rejection_sampling import (
    accept_reject,
    condition,
    covariance_root,
    mixture,
    multivariate_normal,
    transform,
)
from discreet.synth.distributions.resampled_records import bootstrap, closeness, interpolate
from discreet.synth.distributions.smote import segment, smote

__all__ = [
    "Draws",
    "FittedFamily",
    "accept_reject",
    "bootstrap",
    "closeness",
    "condition",
    "conditional_inverse",
    "covariance_root",
    "discrete_inverse",
    "discrete_inverse_unbounded",
    "fit_family",
    "fit_sample",
    "from_moments",
    "interpolate",
    "inverse_transform",
    "mixture",
    "multivariate_normal",
    "segment",
    "smote",
    "transform",
]
