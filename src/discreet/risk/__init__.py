"""What can an intruder learn from this file?"""

from discreet.risk.closeness import t_closeness
from discreet.risk.contributions import key_contributions
from discreet.risk.diversity import alpha_k, l_diversity
from discreet.risk.identity import k_anonymity, reidentification
from discreet.risk.likeness import beta_likeness, delta_disclosure
from discreet.risk.presence import delta_presence, k_map
from discreet.risk.uniques import uniqueness

__all__ = [
    "alpha_k",
    "beta_likeness",
    "delta_disclosure",
    "delta_presence",
    "k_anonymity",
    "k_map",
    "key_contributions",
    "l_diversity",
    "reidentification",
    "t_closeness",
    "uniqueness",
]
