"""Analysis over data that may not be pooled: sums, likelihoods, models and trees over several holders.

A hospital, a registry and a school authority each hold part of the picture and send no records. Protocols give the same
numbers as pooled data would; what they give away beside them is counted in the leakage report of every run, and is part
of the result.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "Answer": "answers",
    "CovarianceModel": "covariance_models",
    "Discoleaf": "discoleaf",
    "Fit": "fits",
    "Holder": "parties",
    "InProcess": "transport",
    "JointAssessment": "counting",
    "Layout": "layouts",
    "Leakage": "leakage",
    "LikelihoodRatio": "fits",
    "MergedTree": "merged_trees",
    "Message": "messages",
    "Party": "parties",
    "ProtocolError": "messages",
    "RAMModel": "covariance_models",
    "SecureMLE": "secure_mle",
    "Transcript": "transcript",
    "Transport": "transport",
    "assess": "counting",
    "bin_codes": "binning",
    "bin_edges": "binning",
    "complex_layout": "layouts",
    "dirichlet_split": "client_splits",
    "factor_model": "covariance_models",
    "fit_from_moments": "fits",
    "fit_vs_saturated": "fits",
    "freedman_diaconis_bins": "binning",
    "full_information_likelihood": "missing_rows",
    "horizontal": "layouts",
    "NoisyCounts": "noisy_counting",
    "PooledImputations": "imputation_pooling",
    "RankOverSites": "ranks_over_sites",
    "noisy_counts_over_sites": "noisy_counting",
    "pool_imputations": "imputation_pooling",
    "rank_over_sites": "ranks_over_sites",
    "robust_standard_errors": "robust_errors",
    "invariant_pram_epsilon": "invariant_pram",
    "invariant_pram_theta": "invariant_pram",
    "latent_growth": "covariance_models",
    "likelihood_ratio": "fits",
    "link": "matrix_product",
    "marginal_imputation": "missing_rows",
    "merge_trees": "merged_trees",
    "pca_from_cov": "moment_models",
    "ranked_element": "ranked_elements",
    "record_epsilon": "discoleaf",
    "regression_from_moments": "moment_models",
    "regression_over_sites": "generalized_linear",
    "robust_range": "ranked_elements",
    "saturated": "covariance_models",
    "secure_matrix_product": "matrix_product",
    "secure_sufficient_statistics": "sufficient_statistics",
    "secure_sum": "secure_sums",
    "split_by_class_shares": "client_splits",
    "vertical": "layouts",
    "weighted_moments": "moment_models",
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet.federated' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"discreet.federated.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Show what is public."""
    return list(__all__)
