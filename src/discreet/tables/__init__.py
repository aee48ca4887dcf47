"""Aggregated tables: sensitive cells, suppression, rounding, cell keys, table synthesis, audit.

A `Table` holds what is to be published and the inner cells it is made of.
"""

from discreet.formula import Formula, Term
from discreet.tables import gauss, poisson
from discreet.tables.building.dimension import Dimension
from discreet.tables.building.relations import equations
from discreet.tables.building.table import Table
from discreet.tables.checking import Audit, Protection, audit
from discreet.tables.checking.information_loss import information_loss
from discreet.tables.checking.invariants import invariant_violations
from discreet.tables.checking.putative_links import putative_links
from discreet.tables.checking.reconstruction import Reconstruction, reconstruct
from discreet.tables.checking.replication import replication_audit, trajectories, unit_concentration
from discreet.tables.perturbing.cell_key import CellKey
from discreet.tables.perturbing.controlled_rounding import ControlledRounding
from discreet.tables.perturbing.noisy_counts import MultinomialDirichletSynthesis, NoisyCounts
from discreet.tables.perturbing.perturbation_table import PerturbationTable, perturbation_table
from discreet.tables.perturbing.random_rounding import RandomRounding, SmallCountRounding
from discreet.tables.protecting import ProtectedTable, TableProtection
from discreet.tables.release_levels import ReleaseCheck, ReleaseLevel, check_release
from discreet.tables.rules import (
    PQ,
    Custom,
    Dominance,
    GroupDisclosure,
    KDisclosure,
    Listed,
    MinimumContributors,
    Ones,
    PPercent,
    RequestRule,
    Rule,
    Threshold,
    Zeros,
    primary,
)
from discreet.tables.suppressing.suppression import Suppression
from discreet.tables.suppressing.suppression_result import SuppressionResult
from discreet.tables.synthesizing.count_synthesis import (
    NegativeBinomialSynthesis,
    PoissonInverseGaussianSynthesis,
    PoissonSynthesis,
)
from discreet.tables.synthesizing.epsilon_meaning import epsilon_meaning
from discreet.tables.synthesizing.expanding import expanded
from discreet.tables.synthesizing.log_linear import fit_log_linear
from discreet.tables.synthesizing.simulation_runs import RunningSummary, monte_carlo_summary

__all__ = [
    "Audit",
    "Protection",
    "Reconstruction",
    "Suppression",
    "SuppressionResult",
    "audit",
    "gauss",
    "putative_links",
    "reconstruct",
    "PQ",
    "Custom",
    "Dimension",
    "Dominance",
    "Formula",
    "GroupDisclosure",
    "KDisclosure",
    "Listed",
    "MinimumContributors",
    "Ones",
    "PPercent",
    "RequestRule",
    "Rule",
    "Table",
    "Term",
    "Threshold",
    "Zeros",
    "CellKey",
    "ControlledRounding",
    "MultinomialDirichletSynthesis",
    "NegativeBinomialSynthesis",
    "NoisyCounts",
    "PerturbationTable",
    "PoissonInverseGaussianSynthesis",
    "PoissonSynthesis",
    "ProtectedTable",
    "RandomRounding",
    "ReleaseCheck",
    "ReleaseLevel",
    "RunningSummary",
    "SmallCountRounding",
    "TableProtection",
    "check_release",
    "expanded",
    "fit_log_linear",
    "monte_carlo_summary",
    "perturbation_table",
    "poisson",
    "replication_audit",
    "trajectories",
    "unit_concentration",
    "epsilon_meaning",
    "equations",
    "information_loss",
    "invariant_violations",
    "primary",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
