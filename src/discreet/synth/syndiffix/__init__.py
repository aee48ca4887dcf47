"""SynDiffix: synthetic tables from ranges that hold enough people, as many tables of one file as are needed."""

from discreet.synth.syndiffix.multi_table import MultiTable, MultiTableRelease
from discreet.synth.syndiffix.range_forest import snap_range
from discreet.synth.syndiffix.syndiffix import SynDiffix

__all__ = ["MultiTable", "MultiTableRelease", "SynDiffix", "snap_range"]
