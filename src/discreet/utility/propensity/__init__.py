"""Can a model tell the release from the original? Propensity scores and what they say."""

from discreet.utility.propensity.measure import pmse
from discreet.utility.propensity.nulls import pmse_null
from discreet.utility.propensity.permuting import permutation_test

__all__ = ["permutation_test", "pmse", "pmse_null"]
