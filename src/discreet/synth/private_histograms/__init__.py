"""Simple private generators on bounded data, with which others are compared."""

from discreet.synth.private_histograms.noisy_bayes import NoisyBayes
from discreet.synth.private_histograms.perturbed_histogram import PerturbedHistogram
from discreet.synth.private_histograms.smooth_histogram import SmoothHistogram

__all__ = ["NoisyBayes", "PerturbedHistogram", "SmoothHistogram"]
