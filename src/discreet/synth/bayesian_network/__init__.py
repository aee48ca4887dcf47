"""A network of columns, each drawn given a few others (PrivBayes, DataSynthesizer)."""

from discreet.synth.bayesian_network.fitted_network import FittedBayesianNetwork
from discreet.synth.bayesian_network.network import BayesianNetwork

__all__ = ["BayesianNetwork", "FittedBayesianNetwork"]
