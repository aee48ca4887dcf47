from discreet.risk.alpha_k_anonymity import alpha_k as alpha_k
from discreet.risk.beta_likeness import beta_likeness as beta_likeness
from discreet.risk.beta_likeness import delta_disclosure as delta_disclosure
from discreet.risk.correct_attribution import attribution as attribution
from discreet.risk.delta_presence import delta_presence as delta_presence
from discreet.risk.delta_presence import k_map as k_map
from discreet.risk.individual_risk import individual as individual
from discreet.risk.isolation import isolation as isolation
from discreet.risk.k_anonymity import k_anonymity as k_anonymity
from discreet.risk.k_anonymity import reidentification as reidentification
from discreet.risk.key_contributions import key_contributions as key_contributions
from discreet.risk.l_diversity import l_diversity as l_diversity
from discreet.risk.linkage_and_distance.identifiability import identifiability as identifiability
from discreet.risk.linkage_and_distance.linkage import linkage as linkage
from discreet.risk.linkage_and_distance.nearest_neighbors import neighbors as neighbors
from discreet.risk.linkage_and_distance.outliers import outliers as outliers
from discreet.risk.linkage_and_distance.shared_neighbors import shared_neighbors as shared_neighbors
from discreet.risk.load_curves.averaged_series import series as series
from discreet.risk.log_linear_risk import log_linear as log_linear
from discreet.risk.overlapping_tables import overlapping_tables as overlapping_tables
from discreet.risk.places.spatial_k import spatial_k as spatial_k
from discreet.risk.successive_releases.differencing import differencing as differencing
from discreet.risk.suda import special_uniques as special_uniques
from discreet.risk.superpopulation import known_population as known_population
from discreet.risk.superpopulation import population as population
from discreet.risk.synthetic_copies.attribute_disclosure import attribute_disclosure as attribute_disclosure
from discreet.risk.synthetic_copies.disclosure import disclosure as disclosure
from discreet.risk.synthetic_copies.group_disclosure import group_disclosure as group_disclosure
from discreet.risk.synthetic_copies.near_copies import near_copies as near_copies
from discreet.risk.synthetic_copies.replicated_special_uniques import (
    replicated_special_uniques as replicated_special_uniques,
)
from discreet.risk.synthetic_copies.replicated_uniques import (
    remove_replicated_uniques as remove_replicated_uniques,
)
from discreet.risk.synthetic_copies.replicated_uniques import (
    replicated_uniques as replicated_uniques,
)
from discreet.risk.t_closeness import t_closeness as t_closeness
from discreet.risk.uniqueness import uniqueness as uniqueness
from discreet.risk.unsafe_combinations import unsafe_combinations as unsafe_combinations
