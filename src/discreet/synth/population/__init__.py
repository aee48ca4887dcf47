"""A synthetic population of households from a weighted sample, and generators of records that keep households."""

from discreet.synth.population.households import Households
from discreet.synth.population.population import Population
from discreet.synth.population.sampling import SurveyDesign, rake

__all__ = ["Households", "Population", "SurveyDesign", "rake"]
