"""Microdata from published tables."""

from discreet.synth.from_aggregates.latent_correlation import Latent, UnitMargin, latent_correlation
from discreet.synth.from_aggregates.macro_to_micro import MacroToMicro
from discreet.synth.from_aggregates.macro_to_micro_model import FittedMacroToMicro

__all__ = ["FittedMacroToMicro", "Latent", "MacroToMicro", "UnitMargin", "latent_correlation"]
