"""Teaching data: microdata on which published analyses reproduce, made from the results alone."""

from discreet.synth.from_outputs.codebook import Codebook, Variable
from discreet.synth.from_outputs.counting import ConflictingTargetsError
from discreet.synth.from_outputs.disclosure import attribution_beyond_holdout
from discreet.synth.from_outputs.fitted import FittedOutputs
from discreet.synth.from_outputs.model_targets import LinearCoefs, LogitCoefs
from discreet.synth.from_outputs.raking import Raking
from discreet.synth.from_outputs.synthesis import FromOutputs
from discreet.synth.from_outputs.targets import (
    CondMean,
    CondMedian,
    Correlation,
    CrossTab,
    Frequencies,
    Target,
)

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
