"""What can an intruder learn from this file?"""

from discreet.risk.attributing.cap import attribution
from discreet.risk.classes.alpha_k_anonymity import alpha_k
from discreet.risk.classes.closeness import t_closeness
from discreet.risk.classes.contributions import key_contributions
from discreet.risk.classes.diversity import l_diversity
from discreet.risk.classes.identity import k_anonymity, reidentification
from discreet.risk.classes.likeness import beta_likeness, delta_disclosure
from discreet.risk.classes.presence import delta_presence, k_map
from discreet.risk.classes.uniques import uniqueness
from discreet.risk.copies.disclosure_of_groups import group_disclosure
from discreet.risk.copies.replicated import remove_replicated_uniques, replicated_uniques
from discreet.risk.copies.replicated_specials import replicated_special_uniques
from discreet.risk.copies.synthetic import attribute_disclosure, disclosure
from discreet.risk.curves.load_curves import series
from discreet.risk.guessing.isolating import isolation
from discreet.risk.guessing.overlapping import overlapping_tables
from discreet.risk.inference.poisson_models import log_linear
from discreet.risk.inference.superpopulation import known_population, population
from discreet.risk.nearness.matching import linkage
from discreet.risk.nearness.near_copies import near_copies
from discreet.risk.nearness.nearest import neighbours
from discreet.risk.nearness.outlying import outliers
from discreet.risk.places.spatial import spatial_k
from discreet.risk.releases.successive import differencing
from discreet.risk.sample.combinations import unsafe_combinations
from discreet.risk.sample.sampled import individual
from discreet.risk.sample.suda import special_uniques

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
    "near_copies",
    "neighbours",
    "outliers",
    "overlapping_tables",
    "population",
    "reidentification",
    "remove_replicated_uniques",
    "replicated_special_uniques",
    "replicated_uniques",
    "series",
    "spatial_k",
    "special_uniques",
    "t_closeness",
    "uniqueness",
    "unsafe_combinations",
]
