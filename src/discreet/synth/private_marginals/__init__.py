"""Synthetic files from noisy margins: what is measured under a privacy budget, and records that agree with it."""

from discreet.synth.private_marginals.aim import AIM
from discreet.synth.private_marginals.mst import MST

__all__ = ["AIM", "MST"]
