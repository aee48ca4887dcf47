from discreet.synth.from_outputs.codebook import Codebook as Codebook
from discreet.synth.from_outputs.codebook import Variable as Variable
from discreet.synth.from_outputs.fitted_outputs import FittedOutputs as FittedOutputs
from discreet.synth.from_outputs.fitted_outputs import (
    attribution_beyond_holdout as attribution_beyond_holdout,
)
from discreet.synth.from_outputs.published_models import LinearCoefs as LinearCoefs
from discreet.synth.from_outputs.published_models import LogitCoefs as LogitCoefs
from discreet.synth.from_outputs.published_targets import CondMean as CondMean
from discreet.synth.from_outputs.published_targets import CondMedian as CondMedian
from discreet.synth.from_outputs.published_targets import Correlation as Correlation
from discreet.synth.from_outputs.published_targets import CrossTab as CrossTab
from discreet.synth.from_outputs.published_targets import Frequencies as Frequencies
from discreet.synth.from_outputs.published_targets import Target as Target
from discreet.synth.from_outputs.table_conditions import ConflictingTargetsError as ConflictingTargetsError
from discreet.synth.from_outputs.teaching_data import FromOutputs as FromOutputs
from discreet.synth.from_outputs.teaching_data import Raking as Raking
