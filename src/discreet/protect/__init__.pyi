from discreet.protect import spectral as spectral
from discreet.protect.additive_noise import AddNoise as AddNoise
from discreet.protect.density_maps import SpatialRaster as SpatialRaster
from discreet.protect.donut_masking import DonutMask as DonutMask
from discreet.protect.lapgraph import GraphRelease as GraphRelease
from discreet.protect.lapgraph import LapGraph as LapGraph
from discreet.protect.lapgraph import lapgraph_expected_recall as lapgraph_expected_recall
from discreet.protect.microaggregation import Microaggregate as Microaggregate
from discreet.protect.mondrian import Mondrian as Mondrian
from discreet.protect.optimal_generalization import OptimalGeneralization as OptimalGeneralization
from discreet.protect.plan import Draft as Draft
from discreet.protect.plan import Plan as Plan
from discreet.protect.pram import Pram as Pram
from discreet.protect.privacy_models import AlphaK as AlphaK
from discreet.protect.privacy_models import BetaLikeness as BetaLikeness
from discreet.protect.privacy_models import DeltaDisclosure as DeltaDisclosure
from discreet.protect.privacy_models import KAnonymity as KAnonymity
from discreet.protect.privacy_models import KMap as KMap
from discreet.protect.privacy_models import LDiversity as LDiversity
from discreet.protect.privacy_models import TCloseness as TCloseness
from discreet.protect.recoding.dates_and_order import (
    ReorderRecords as ReorderRecords,
)
from discreet.protect.recoding.dates_and_order import (
    ShiftDates as ShiftDates,
)
from discreet.protect.recoding.global_recoding import (
    Band as Band,
)
from discreet.protect.recoding.global_recoding import (
    Generalize as Generalize,
)
from discreet.protect.recoding.global_recoding import (
    Recode as Recode,
)
from discreet.protect.recoding.global_recoding import (
    Round as Round,
)
from discreet.protect.recoding.identifiers import (
    DropIdentifiers as DropIdentifiers,
)
from discreet.protect.recoding.identifiers import (
    Pseudonymize as Pseudonymize,
)
from discreet.protect.recoding.top_and_bottom_coding import TopBottomCode as TopBottomCode
from discreet.protect.regression_synthesis import RegressionSynthesis as RegressionSynthesis
from discreet.protect.sampling.sample_and_anonymize import SampleAndAnonymize as SampleAndAnonymize
from discreet.protect.sampling.sampling_privacy import sampling_plan as sampling_plan
from discreet.protect.shuffling import Shuffle as Shuffle
from discreet.protect.spectral import SpectralAnonymize as SpectralAnonymize
from discreet.protect.stochastic_rounding import StochasticRound as StochasticRound
from discreet.protect.suppressing.local_suppression import LocalSuppression as LocalSuppression
from discreet.protect.suppressing.robin_hood import RobinHood as RobinHood
from discreet.protect.swapping.class_swapping import ClassSwap as ClassSwap
from discreet.protect.swapping.rank_swapping import RandomSwap as RandomSwap
from discreet.protect.swapping.rank_swapping import RankSwap as RankSwap
from discreet.protect.swapping.record_swapping import RecordSwap as RecordSwap
from discreet.protect.treatment import Change as Change
from discreet.protect.treatment import Treatment as Treatment
