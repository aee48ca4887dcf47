"""Samplers from first principles: from a known distribution, from a fitted family, or from the data alone.

Every sampler returns `Draws`: the values and how they came about. The first group draws from a distribution that is
known, the second from a family that is fitted, the third from the records of a file:

- `inverse_transform`, `discrete_inverse`, `discrete_inverse_unbounded`, `conditional_inverse`, `accept_reject`,
  `condition`, `transform`, `mixture`, `multivariate_normal`
- `fit_family`, `fit_sample`, `from_moments`
- `bootstrap`, `smote`, `interpolate`; and `closeness` to see how near their records are to real ones
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
