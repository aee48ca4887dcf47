"""Treatments of microdata: recode, suppress, perturb, mask."""

from discreet.protect import spectral
from discreet.protect.generalizing.mondrian import Mondrian
from discreet.protect.generalizing.optimal_generalization import OptimalGeneralization
from discreet.protect.generalizing.privacy_models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    KMap,
    LDiversity,
    TCloseness,
)
from discreet.protect.graphs.lapgraph import GraphRelease, LapGraph, lapgraph_expected_recall
from discreet.protect.masking_places.density_maps import SpatialRaster
from discreet.protect.masking_places.donut_masking import DonutMask
from discreet.protect.perturbing.additive_noise import AddNoise
from discreet.protect.perturbing.microaggregation import Microaggregate
from discreet.protect.perturbing.pram import Pram
from discreet.protect.perturbing.regression_synthesis import RegressionSynthesis
from discreet.protect.perturbing.shuffling import Shuffle
from discreet.protect.perturbing.stochastic_rounding import StochasticRound
from discreet.protect.plan import Draft, Plan
from discreet.protect.recoding.dates_and_order import ReorderRecords, ShiftDates
from discreet.protect.recoding.global_recoding import Band, Generalize, Recode, Round
from discreet.protect.recoding.identifiers import DropIdentifiers, Pseudonymize
from discreet.protect.recoding.top_and_bottom_coding import TopBottomCode
from discreet.protect.sampling.sample_and_anonymize import SampleAndAnonymize
from discreet.protect.sampling.sampling_privacy import sampling_plan
from discreet.protect.spectral import SpectralAnonymize
from discreet.protect.suppressing.local_suppression import LocalSuppression
from discreet.protect.suppressing.robin_hood import RobinHood
from discreet.protect.swapping.class_swapping import ClassSwap
from discreet.protect.swapping.rank_swapping import RandomSwap, RankSwap
from discreet.protect.swapping.record_swapping import RecordSwap
from discreet.protect.treatment import Change, Treatment

__all__ = [
    "lapgraph_expected_recall",
    "sampling_plan",
    "spectral",
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
    "GraphRelease",
    "KMap",
    "LapGraph",
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


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
