"""Microdata from published tables."""

from discreet.synth.from_aggregates.fitted_macro import FittedMacroToMicro
from discreet.synth.from_aggregates.latent import Latent, latent_correlation
from discreet.synth.from_aggregates.macro_to_micro import MacroToMicro
from discreet.synth.from_aggregates.unit_margins import UnitMargin

__all__ = ["FittedMacroToMicro", "Latent", "MacroToMicro", "UnitMargin", "latent_correlation"]
