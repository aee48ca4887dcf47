from discreet.attack.attribute_inference import inference as inference
from discreet.attack.graph_convolution import GraphConvolution as GraphConvolution
from discreet.attack.graph_convolution import LocalService as LocalService
from discreet.attack.graph_convolution import train_graph_convolution as train_graph_convolution
from discreet.attack.guarded_explanations import NoisyExplanation as NoisyExplanation
from discreet.attack.guarded_explanations import RoundedExplanation as RoundedExplanation
from discreet.attack.guarded_explanations import TopFeatures as TopFeatures
from discreet.attack.guarded_explanations import explanation_fidelity as explanation_fidelity
from discreet.attack.link_stealing_attack import link_stealing as link_stealing
from discreet.attack.linkability_attack import linkability as linkability
from discreet.attack.membership_inference import membership as membership
from discreet.attack.model_membership_inference import model_membership as model_membership
from discreet.attack.node_injection import baseline_scores as baseline_scores
from discreet.attack.node_injection import node_injection_scores as node_injection_scores
from discreet.attack.published_tables.counting_queries import (
    answer_queries as answer_queries,
)
from discreet.attack.published_tables.counting_queries import (
    marginal_queries as marginal_queries,
)
from discreet.attack.published_tables.counting_queries import (
    schema_of as schema_of,
)
from discreet.attack.published_tables.counting_queries import (
    table_queries as table_queries,
)
from discreet.attack.published_tables.planned_tables import (
    queries_of as queries_of,
)
from discreet.attack.published_tables.planned_tables import (
    table_reconstruction as table_reconstruction,
)
from discreet.attack.published_tables.reconstruction import reconstruct as reconstruct
from discreet.attack.published_tables.reconstruction_audit import audit_reconstruction as audit_reconstruction
from discreet.attack.quasi_identifiers import quasi_identifier_attack as quasi_identifier_attack
from discreet.attack.repeated_releases import attribute_reconstruction as attribute_reconstruction
from discreet.attack.shadow_models import shadow_membership as shadow_membership
from discreet.attack.shapley import Explanation as Explanation
from discreet.attack.shapley import explain as explain
from discreet.attack.shapley import shap_explainer as shap_explainer
from discreet.attack.shapley import shapley_values as shapley_values
from discreet.attack.shapley_attack import shapley_reconstruction as shapley_reconstruction
from discreet.attack.shapley_attack import shapley_sweep as shapley_sweep
from discreet.attack.singling_out_attack import singling_out as singling_out
from discreet.attack.structural_attack import model_structure as model_structure
from discreet.attack.success import Tally as Tally
from discreet.attack.success import measured as measured
from discreet.attack.trained_attribute_attack import attribute_attack as attribute_attack
