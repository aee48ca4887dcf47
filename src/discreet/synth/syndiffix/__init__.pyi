from discreet.synth.syndiffix.range_forest import snap_range as snap_range
from discreet.synth.syndiffix.syndiffix import MultiTable as MultiTable
from discreet.synth.syndiffix.syndiffix import MultiTableRelease as MultiTableRelease
from discreet.synth.syndiffix.syndiffix import SynDiffix as SynDiffix
