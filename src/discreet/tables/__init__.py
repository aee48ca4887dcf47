"""Aggregated tables: sensitive cells, suppression, rounding, cell keys, table synthesis, audit.

A `Table` holds what is to be published and the inner cells it is made of.
"""

from discreet.tables import gauss
from discreet.tables.auditing import Audit, Protection, audit
from discreet.tables.dimension import Dimension
from discreet.tables.formula import Formula, Term
from discreet.tables.information import information_loss
from discreet.tables.relations import equations
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
from discreet.tables.suppressed import SuppressionResult
from discreet.tables.suppression import Suppression
from discreet.tables.table import Table

__all__ = [
    "Audit",
    "Protection",
    "Suppression",
    "SuppressionResult",
    "audit",
    "gauss",
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
    "equations",
    "information_loss",
    "primary",
]
