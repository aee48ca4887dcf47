"""Treatments of microdata: recode, suppress, perturb, mask."""

from discreet.protect.exchanging.class_swapping import ClassSwap
from discreet.protect.exchanging.pram import Pram
from discreet.protect.exchanging.record_swapping import RecordSwap
from discreet.protect.exchanging.swapping import RandomSwap, RankSwap
from discreet.protect.generalizing.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    KMap,
    LDiversity,
    TCloseness,
)
from discreet.protect.generalizing.mondrian import Mondrian
from discreet.protect.generalizing.optimal_generalization import OptimalGeneralization
from discreet.protect.hiding.robin_hood import RobinHood
from discreet.protect.hiding.suppression import LocalSuppression
from discreet.protect.numbers.microaggregation import Microaggregate
from discreet.protect.numbers.noise import AddNoise
from discreet.protect.numbers.regression_synthesis import RegressionSynthesis
from discreet.protect.numbers.shuffling import Shuffle
from discreet.protect.places.donut import DonutMask
from discreet.protect.places.raster import SpatialRaster
from discreet.protect.plan import Draft, Plan
from discreet.protect.recodings.extremes import TopBottomCode
from discreet.protect.recodings.identifiers import DropIdentifiers, Pseudonymize
from discreet.protect.recodings.ordering import ReorderRecords, ShiftDates
from discreet.protect.recodings.recoding import Band, Generalize, Recode, Round
from discreet.protect.recodings.stochastic_rounding import StochasticRound
from discreet.protect.sampling.sample_and_anonymize import SampleAndAnonymize
from discreet.protect.spectral import SpectralAnonymize
from discreet.protect.treatment import Change, Treatment

__all__ = [
    "AddNoise",
    "AlphaK",
    "Band",
    "BetaLikeness",
    "Change",
    "ClassSwap",
    "DeltaDisclosure",
    "DonutMask",
    "Draft",
    "DropIdentifiers",
    "Generalize",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "LocalSuppression",
    "Microaggregate",
    "Mondrian",
    "OptimalGeneralization",
    "Plan",
    "Pram",
    "Pseudonymize",
    "RandomSwap",
    "RankSwap",
    "Recode",
    "RecordSwap",
    "RegressionSynthesis",
    "ReorderRecords",
    "RobinHood",
    "Round",
    "SampleAndAnonymize",
    "ShiftDates",
    "Shuffle",
    "SpatialRaster",
    "SpectralAnonymize",
    "StochasticRound",
    "TCloseness",
    "TopBottomCode",
    "Treatment",
]
