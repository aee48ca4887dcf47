"""Adversarial random forests: trees that learn to tell real records from drawn ones, until they cannot."""

from discreet.synth.adversarial_forest.adversarial_forest import AdversarialForest
from discreet.synth.adversarial_forest.fitted import FittedForest

__all__ = ["AdversarialForest", "FittedForest"]
