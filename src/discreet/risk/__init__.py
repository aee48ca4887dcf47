"""What can an intruder learn from this file?"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from discreet.core.cards import offered
from discreet.risk.attribution_probability.cap import attribution
from discreet.risk.classes.alpha_k_anonymity import alpha_k
from discreet.risk.classes.beta_likeness import beta_likeness, delta_disclosure
from discreet.risk.classes.delta_presence import delta_presence, k_map
from discreet.risk.classes.k_anonymity import k_anonymity, reidentification
from discreet.risk.classes.key_contributions import key_contributions
from discreet.risk.classes.l_diversity import l_diversity
from discreet.risk.classes.t_closeness import t_closeness
from discreet.risk.classes.uniqueness import uniqueness
from discreet.risk.linkage_and_distance.identifiability import identifiability
from discreet.risk.linkage_and_distance.linkage import linkage
from discreet.risk.linkage_and_distance.nearest_neighbors import neighbors
from discreet.risk.linkage_and_distance.outliers import outliers
from discreet.risk.linkage_and_distance.shared_neighbors import shared_neighbors
from discreet.risk.load_curves.averaged_series import series
from discreet.risk.places.spatial_k import spatial_k
from discreet.risk.population_models.log_linear import log_linear
from discreet.risk.population_models.superpopulation import known_population, population
from discreet.risk.sample.individual_risk import individual
from discreet.risk.sample.suda import special_uniques
from discreet.risk.sample.unsafe_combinations import unsafe_combinations
from discreet.risk.singling_out.isolation import isolation
from discreet.risk.singling_out.overlapping_tables import overlapping_tables
from discreet.risk.successive_releases.differencing import differencing
from discreet.risk.synthetic_copies.attribute_disclosure import attribute_disclosure
from discreet.risk.synthetic_copies.disclosure import disclosure
from discreet.risk.synthetic_copies.group_disclosure import group_disclosure
from discreet.risk.synthetic_copies.near_copies import near_copies
from discreet.risk.synthetic_copies.replicated_special_uniques import replicated_special_uniques
from discreet.risk.synthetic_copies.replicated_uniques import remove_replicated_uniques, replicated_uniques

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
    "identifiability",
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
    "neighbors",
    "outliers",
    "overlapping_tables",
    "population",
    "reidentification",
    "remove_replicated_uniques",
    "replicated_special_uniques",
    "replicated_uniques",
    "series",
    "shared_neighbors",
    "spatial_k",
    "special_uniques",
    "t_closeness",
    "uniqueness",
    "unsafe_combinations",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Any]:
        """Give a measure that its module declares, also where it is not listed above."""
        return offered("risk", name)
