"""Make synthetic microdata: records of nobody that analyses can be tried on."""

from discreet.synth.ordering import OrderChoice, choose_order
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.synthesizer import Fitted, Synthesizer, load, load_plan, save_plan

__all__ = [
    "Fitted",
    "OrderChoice",
    "Sequential",
    "Synthesizer",
    "choose_order",
    "load",
    "load_plan",
    "save_plan",
]
