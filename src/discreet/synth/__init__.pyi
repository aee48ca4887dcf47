from discreet.synth import distributions as distributions
from discreet.synth import from_outputs as from_outputs
from discreet.synth.adversarial_forest import AdversarialForest as AdversarialForest
from discreet.synth.aim import AIM as AIM
from discreet.synth.all_others import AllOthers as AllOthers
from discreet.synth.baselines import Bootstrap as Bootstrap
from discreet.synth.baselines import Independent as Independent
from discreet.synth.bayesian_network import BayesianNetwork as BayesianNetwork
from discreet.synth.deep_generators import CTGAN as CTGAN
from discreet.synth.deep_generators import TVAE as TVAE
from discreet.synth.deep_generators import TabularDiffusion as TabularDiffusion
from discreet.synth.fitting_sample import (
    FittingSample as FittingSample,
)
from discreet.synth.fitting_sample import (
    fit_on_sample as fit_on_sample,
)
from discreet.synth.fitting_sample import (
    fitting_sample as fitting_sample,
)
from discreet.synth.from_aggregates import MacroToMicro as MacroToMicro
from discreet.synth.from_outputs.teaching_data import FromOutputs as FromOutputs
from discreet.synth.gaussian_copula import GaussianCopula as GaussianCopula
from discreet.synth.household_surveys import SurveyDesign as SurveyDesign
from discreet.synth.household_surveys import rake as rake
from discreet.synth.households import Households as Households
from discreet.synth.language_model import LanguageModel as LanguageModel
from discreet.synth.mst import MST as MST
from discreet.synth.noisy_bayes import NoisyBayes as NoisyBayes
from discreet.synth.pmse_mechanism import PMSEMechanism as PMSEMechanism
from discreet.synth.population import Population as Population
from discreet.synth.preflighting.preflight_checks import LinkedPreflight as LinkedPreflight
from discreet.synth.preflighting.preflight_checks import preflight as preflight
from discreet.synth.preflighting.preflight_checks import preflight_linked as preflight_linked
from discreet.synth.preflighting.preflight_findings import Finding as Finding
from discreet.synth.preflighting.preflight_result import Preflight as Preflight
from discreet.synth.private_gans import DPGAN as DPGAN
from discreet.synth.private_gans import PATEGAN as PATEGAN
from discreet.synth.private_histograms import PerturbedHistogram as PerturbedHistogram
from discreet.synth.private_histograms import SmoothHistogram as SmoothHistogram
from discreet.synth.record_rules import check_rules as check_rules
from discreet.synth.record_rules import enforce_rules as enforce_rules
from discreet.synth.relational import Relational as Relational
from discreet.synth.relational_model import FittedRelational as FittedRelational
from discreet.synth.release_preparation import finish as finish
from discreet.synth.release_preparation import rules_against_chance as rules_against_chance
from discreet.synth.sequential.sequential import Sequential as Sequential
from discreet.synth.sequential.visit_sequence import OrderChoice as OrderChoice
from discreet.synth.sequential.visit_sequence import choose_order as choose_order
from discreet.synth.survey_checks import survey_check as survey_check
from discreet.synth.syndiffix import (
    MultiTable as MultiTable,
)
from discreet.synth.syndiffix import (
    MultiTableRelease as MultiTableRelease,
)
from discreet.synth.syndiffix.range_forest import snap_range as snap_range
from discreet.synth.syndiffix.syndiffix import SynDiffix as SynDiffix
from discreet.synth.synthesizer import Fitted as Fitted
from discreet.synth.synthesizer import Synthesizer as Synthesizer
from discreet.synth.synthesizer import load as load
from discreet.synth.synthesizer import load_plan as load_plan
from discreet.synth.synthesizer import save_plan as save_plan
from discreet.synth.table_schema import LinkedTables as LinkedTables
from discreet.synth.table_schema import Schema as Schema
from discreet.synth.table_schema import TableSchema as TableSchema
from discreet.synth.vine_copula import VineCopula as VineCopula
