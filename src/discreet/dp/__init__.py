"""Differential privacy: draws that are exact, from a source nobody can repeat, and one budget for a data source.

A proof of differential privacy is about a law of the noise. Floating-point draws do not have that law, and draws from a
seed can be drawn again by whoever has the seed. So an epsilon is claimed in this package only for draws that are made
here (`discreet.dp.entropy`, `discreet.dp.samplers`), in whole numbers, from the operating system's entropy
(`discreet.dp.entropy`).
"""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
