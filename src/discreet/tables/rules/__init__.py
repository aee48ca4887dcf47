"""Primary rules: which cells must not be published as they are, and why."""

from discreet.tables.rules.counting_rules import (
    GroupDisclosure,
    KDisclosure,
    MinimumContributors,
    Ones,
    Threshold,
    Zeros,
)
from discreet.tables.rules.judging import Rule, primary
from discreet.tables.rules.named_cells import Custom, Listed
from discreet.tables.rules.share_rules import PQ, Dominance, PPercent, RequestRule

__all__ = [
    "PQ",
    "Custom",
    "Dominance",
    "GroupDisclosure",
    "KDisclosure",
    "Listed",
    "MinimumContributors",
    "Ones",
    "PPercent",
    "RequestRule",
    "Rule",
    "Threshold",
    "Zeros",
    "primary",
]
