"""Make synthetic microdata: records of nobody that analyses can be tried on."""

from discreet.synth import distributions
from discreet.synth.from_aggregates import MacroToMicro
from discreet.synth.ordering import OrderChoice, choose_order
from discreet.synth.record_rules import check_rules, enforce_rules
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.synthesizer import Fitted, Synthesizer, load, load_plan, save_plan

__all__ = [
    "Fitted",
    "MacroToMicro",
    "OrderChoice",
    "Sequential",
    "Synthesizer",
    "check_rules",
    "choose_order",
    "distributions",
    "enforce_rules",
    "load",
    "load_plan",
    "save_plan",
]
