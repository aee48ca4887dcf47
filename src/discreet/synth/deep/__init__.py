"""Generators that are neural networks; they need torch (``pip install 'discreet[deep]'``) when they are fitted."""

from discreet.synth.deep.generators import CTGAN, TVAE, TabularDiffusion
from discreet.synth.deep.language_model import LanguageModel
from discreet.synth.deep.private_networks import DPGAN, PATEGAN

__all__ = ["CTGAN", "DPGAN", "PATEGAN", "TVAE", "LanguageModel", "TabularDiffusion"]
