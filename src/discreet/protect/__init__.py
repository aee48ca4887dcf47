"""Treatments of microdata: recode, suppress, perturb, mask."""

from discreet.protect.extremes import TopBottomCode
from discreet.protect.identifiers import DropIdentifiers, Pseudonymize
from discreet.protect.microaggregation import Microaggregate
from discreet.protect.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    KMap,
    LDiversity,
    TCloseness,
)
from discreet.protect.mondrian import Mondrian
from discreet.protect.noise import AddNoise
from discreet.protect.optimal_generalization import OptimalGeneralization
from discreet.protect.ordering import ReorderRecords, ShiftDates
from discreet.protect.plan import Draft, Plan
from discreet.protect.pram import Pram
from discreet.protect.recoding import Band, Generalize, Recode, Round
from discreet.protect.record_swapping import RecordSwap
from discreet.protect.regression_synthesis import RegressionSynthesis
from discreet.protect.robin_hood import RobinHood
from discreet.protect.sample_and_anonymize import SampleAndAnonymize
from discreet.protect.shuffling import Shuffle
from discreet.protect.spectral import SpectralAnonymize
from discreet.protect.stochastic_rounding import StochasticRound
from discreet.protect.suppression import LocalSuppression
from discreet.protect.swapping import RandomSwap, RankSwap
from discreet.protect.treatment import Change, Treatment

__all__ = [
    "AddNoise",
    "AlphaK",
    "Band",
    "BetaLikeness",
    "Change",
    "DeltaDisclosure",
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
    "SpectralAnonymize",
    "StochasticRound",
    "TCloseness",
    "TopBottomCode",
    "Treatment",
]
