"""What generators share that model all columns of a record at once: columns in, columns out, rules and conditions."""

from discreet.synth.whole_records.drawing import FittedRecords
from discreet.synth.whole_records.preparing import Blueprint, Prepared, prepare

__all__ = ["Blueprint", "FittedRecords", "Prepared", "prepare"]
