"""What can an intruder learn from this file?"""

from discreet.risk.cap import attribution
from discreet.risk.closeness import t_closeness
from discreet.risk.combinations import unsafe_combinations
from discreet.risk.contributions import key_contributions
from discreet.risk.disclosure_of_groups import group_disclosure
from discreet.risk.diversity import alpha_k, l_diversity
from discreet.risk.identity import k_anonymity, reidentification
from discreet.risk.isolating import isolation
from discreet.risk.likeness import beta_likeness, delta_disclosure
from discreet.risk.load_curves import series
from discreet.risk.matching import linkage
from discreet.risk.nearest import neighbours
from discreet.risk.outlying import outliers
from discreet.risk.overlapping import overlapping_tables
from discreet.risk.poisson_models import log_linear
from discreet.risk.presence import delta_presence, k_map
from discreet.risk.replicated import remove_replicated_uniques, replicated_uniques
from discreet.risk.replicated_specials import replicated_special_uniques
from discreet.risk.sampled import individual
from discreet.risk.successive import differencing
from discreet.risk.suda import special_uniques
from discreet.risk.superpopulation import known_population, population
from discreet.risk.synthetic import attribute_disclosure, disclosure
from discreet.risk.uniques import uniqueness

__all__ = [
    "alpha_k",
    "attribute_disclosure",
    "attribution",
    "beta_likeness",
    "delta_disclosure",
    "delta_presence",
    "differencing",
    "disclosure",
    "group_disclosure",
    "individual",
    "isolation",
    "k_anonymity",
    "k_map",
    "key_contributions",
    "known_population",
    "l_diversity",
    "linkage",
    "log_linear",
    "neighbours",
    "outliers",
    "overlapping_tables",
    "population",
    "reidentification",
    "remove_replicated_uniques",
    "replicated_special_uniques",
    "replicated_uniques",
    "series",
    "special_uniques",
    "t_closeness",
    "uniqueness",
    "unsafe_combinations",
]
