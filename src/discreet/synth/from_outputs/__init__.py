"""Teaching data: microdata on which published analyses reproduce, made from the results alone."""

from discreet.synth.from_outputs.codebook import Codebook, Variable
from discreet.synth.from_outputs.fitted_outputs import FittedOutputs, attribution_beyond_holdout
from discreet.synth.from_outputs.published_models import LinearCoefs, LogitCoefs
from discreet.synth.from_outputs.published_targets import (
    CondMean,
    CondMedian,
    Correlation,
    CrossTab,
    Frequencies,
    Target,
)
from discreet.synth.from_outputs.table_conditions import ConflictingTargetsError
from discreet.synth.from_outputs.teaching_data import FromOutputs, Raking

__all__ = [
    "Codebook",
    "CondMean",
    "CondMedian",
    "ConflictingTargetsError",
    "Correlation",
    "CrossTab",
    "FittedOutputs",
    "Frequencies",
    "FromOutputs",
    "LinearCoefs",
    "LogitCoefs",
    "Raking",
    "Target",
    "Variable",
    "attribution_beyond_holdout",
]
