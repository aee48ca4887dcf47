"""Aggregated tables: sensitive cells, suppression, rounding, cell keys, table synthesis, audit.

A `Table` holds what is to be published and the inner cells it is made of.
"""

from discreet.tables import gauss, poisson
from discreet.tables.auditing import Audit, Protection, audit
from discreet.tables.cell_key import CellKey
from discreet.tables.controlled_rounding import ControlledRounding
from discreet.tables.count_synthesis import (
    NegativeBinomialSynthesis,
    PoissonInverseGaussianSynthesis,
    PoissonSynthesis,
    expanded,
)
from discreet.tables.dimension import Dimension
from discreet.tables.epsilon_meaning import epsilon_meaning
from discreet.tables.formula import Formula, Term
from discreet.tables.information import information_loss
from discreet.tables.invariants import invariant_violations
from discreet.tables.links import putative_links
from discreet.tables.loglinear import fit_log_linear
from discreet.tables.noisy_counts import MultinomialDirichletSynthesis, NoisyCounts
from discreet.tables.perturbation import PerturbationTable, perturbation_table
from discreet.tables.protecting import ProtectedTable, TableProtection
from discreet.tables.reconstruction import Reconstruction, reconstruct
from discreet.tables.relations import equations
from discreet.tables.release_levels import ReleaseCheck, ReleaseLevel, check_release
from discreet.tables.replication import replication_audit, trajectories, unit_concentration
from discreet.tables.rounding import RandomRounding, SmallCountRounding
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
from discreet.tables.simulation_runs import RunningSummary, monte_carlo_summary
from discreet.tables.suppressed import SuppressionResult
from discreet.tables.suppression import Suppression
from discreet.tables.table import Table

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
