"""What could somebody do with what is about to be released? Attacks, run before an intruder runs them.

Risk measures count; attacks try. Every attack is a function of what the intruder has, and answers with a `Measure`: how
often it succeeded against the people in the file, how often the same attack succeeds against people who are not in it
(the control), how often a blind guess does, and the risk that is left: the part of the successes that only the release
explains (`discreet.attack.success`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.attack.explanations.explainers import shap_explainer
    from discreet.attack.explanations.guarded_explanations import (
        NoisyExplanation,
        RoundedExplanation,
        TopFeatures,
        explanation_fidelity,
    )
    from discreet.attack.explanations.shapley import Explanation, explain, shapley_values
    from discreet.attack.explanations.shapley_reconstruction import shapley_reconstruction
    from discreet.attack.explanations.shapley_sweep import shapley_sweep
    from discreet.attack.graph_service.graph_convolution import (
        GraphConvolution,
        LocalService,
        train_graph_convolution,
    )
    from discreet.attack.graph_service.link_stealing import link_stealing
    from discreet.attack.graph_service.node_injection import baseline_scores, node_injection_scores
    from discreet.attack.models.membership import model_membership
    from discreet.attack.models.structure import model_structure
    from discreet.attack.published_tables.counting_queries import (
        answer_queries,
        marginal_queries,
        schema_of,
        table_queries,
    )
    from discreet.attack.published_tables.planned_tables import queries_of, table_reconstruction
    from discreet.attack.published_tables.reconstruction import reconstruct
    from discreet.attack.published_tables.reconstruction_audit import audit_reconstruction
    from discreet.attack.releases.attribute_attack import attribute_attack
    from discreet.attack.releases.attribute_reconstruction import attribute_reconstruction
    from discreet.attack.releases.inference import inference
    from discreet.attack.releases.linkability import linkability
    from discreet.attack.releases.membership import membership
    from discreet.attack.releases.quasi_identifiers import quasi_identifier_attack
    from discreet.attack.releases.shadow_models import shadow_membership
    from discreet.attack.releases.singling_out import singling_out
    from discreet.attack.success import Tally, measured

_HOME = {
    "GraphConvolution": "graph_service.graph_convolution",
    "LocalService": "graph_service.graph_convolution",
    "train_graph_convolution": "graph_service.graph_convolution",
    "node_injection_scores": "graph_service.node_injection",
    "link_stealing": "graph_service.link_stealing",
    "baseline_scores": "graph_service.node_injection",
    "answer_queries": "published_tables.counting_queries",
    "marginal_queries": "published_tables.counting_queries",
    "schema_of": "published_tables.counting_queries",
    "table_queries": "published_tables.counting_queries",
    "queries_of": "published_tables.planned_tables",
    "table_reconstruction": "published_tables.planned_tables",
    "reconstruct": "published_tables.reconstruction",
    "audit_reconstruction": "published_tables.reconstruction_audit",
    "Explanation": "explanations.shapley",
    "NoisyExplanation": "explanations.guarded_explanations",
    "RoundedExplanation": "explanations.guarded_explanations",
    "TopFeatures": "explanations.guarded_explanations",
    "explain": "explanations.shapley",
    "explanation_fidelity": "explanations.guarded_explanations",
    "shap_explainer": "explanations.explainers",
    "shapley_reconstruction": "explanations.shapley_reconstruction",
    "shapley_sweep": "explanations.shapley_sweep",
    "shapley_values": "explanations.shapley",
    "Tally": "success",
    "attribute_attack": "releases.attribute_attack",
    "quasi_identifier_attack": "releases.quasi_identifiers",
    "attribute_reconstruction": "releases.attribute_reconstruction",
    "inference": "releases.inference",
    "linkability": "releases.linkability",
    "measured": "success",
    "membership": "releases.membership",
    "model_membership": "models.membership",
    "model_structure": "models.structure",
    "shadow_membership": "releases.shadow_models",
    "singling_out": "releases.singling_out",
}
"""Public names and the modules that they live in, which are imported when they are first used.

A function does not share its name with a module of this folder itself: importing one would hide the other.
"""

__all__ = [
    "GraphConvolution",
    "LocalService",
    "train_graph_convolution",
    "node_injection_scores",
    "link_stealing",
    "baseline_scores",
    "answer_queries",
    "marginal_queries",
    "schema_of",
    "table_queries",
    "queries_of",
    "table_reconstruction",
    "reconstruct",
    "audit_reconstruction",
    "Explanation",
    "NoisyExplanation",
    "RoundedExplanation",
    "TopFeatures",
    "explain",
    "explanation_fidelity",
    "shap_explainer",
    "shapley_reconstruction",
    "shapley_sweep",
    "shapley_values",
    "Tally",
    "attribute_attack",
    "quasi_identifier_attack",
    "attribute_reconstruction",
    "inference",
    "linkability",
    "measured",
    "membership",
    "model_membership",
    "model_structure",
    "shadow_membership",
    "singling_out",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"discreet.attack.{_HOME[name]}"), name)
    raise AttributeError(f"module 'discreet.attack' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
