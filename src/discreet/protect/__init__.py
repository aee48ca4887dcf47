"""Treatments of microdata: recode, suppress, perturb, mask."""

from discreet.core.index import open_door

__all__, __getattr__, __dir__ = open_door(__name__)
