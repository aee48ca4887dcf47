"""All methods there are, imported when a method is first asked for by name."""

from __future__ import annotations

import importlib

from discreet.synth.methods.method import Method

_FAMILIES = (
    "binomial",
    "counts",
    "given",
    "joint_tables",
    "linear",
    "logistic",
    "observed_linear",
    "resampling",
    "survival",
    "tree_donors",
)


def all_methods() -> dict[str, type[Method]]:
    """Return every method by its names."""
    for family in _FAMILIES:
        importlib.import_module(f"discreet.synth.methods.{family}")
    return Method.known
