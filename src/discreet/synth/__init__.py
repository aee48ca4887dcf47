"""Make synthetic microdata: records of nobody that analyses can be tried on."""

from discreet.synth import distributions, from_outputs
from discreet.synth.adversarial_forest import AdversarialForest
from discreet.synth.all_others.all_others import AllOthers
from discreet.synth.baselines import Bootstrap, Independent
from discreet.synth.bayesian_network import BayesianNetwork
from discreet.synth.copulas.gaussian import GaussianCopula
from discreet.synth.copulas.vine import VineCopula
from discreet.synth.deep import CTGAN, DPGAN, PATEGAN, TVAE, LanguageModel, TabularDiffusion
from discreet.synth.finishing import finish, rules_against_chance
from discreet.synth.fitting_sample import FittingSample, fit_on_sample, fitting_sample
from discreet.synth.from_aggregates import MacroToMicro
from discreet.synth.from_outputs import FromOutputs
from discreet.synth.pmse_mechanism import PMSEMechanism
from discreet.synth.population import Households, Population, SurveyDesign, rake
from discreet.synth.preflighting import Finding, LinkedPreflight, Preflight, preflight, preflight_linked
from discreet.synth.private_histograms import NoisyBayes, PerturbedHistogram, SmoothHistogram
from discreet.synth.private_marginals import AIM, MST
from discreet.synth.record_rules import check_rules, enforce_rules
from discreet.synth.relational import FittedRelational, LinkedTables, Relational, Schema, TableSchema
from discreet.synth.sequential.ordering import OrderChoice, choose_order
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.survey_checks import survey_check
from discreet.synth.syndiffix import MultiTable, MultiTableRelease, SynDiffix, snap_range
from discreet.synth.synthesizer import Fitted, Synthesizer, load, load_plan, save_plan

__all__ = [
    "AIM",
    "CTGAN",
    "DPGAN",
    "MST",
    "PATEGAN",
    "TVAE",
    "AdversarialForest",
    "AllOthers",
    "BayesianNetwork",
    "Bootstrap",
    "Finding",
    "Fitted",
    "FittedRelational",
    "FittingSample",
    "FromOutputs",
    "GaussianCopula",
    "Households",
    "Independent",
    "LanguageModel",
    "LinkedPreflight",
    "LinkedTables",
    "MacroToMicro",
    "MultiTable",
    "MultiTableRelease",
    "NoisyBayes",
    "OrderChoice",
    "PMSEMechanism",
    "PerturbedHistogram",
    "Population",
    "Preflight",
    "Relational",
    "Schema",
    "Sequential",
    "SmoothHistogram",
    "SurveyDesign",
    "SynDiffix",
    "Synthesizer",
    "TableSchema",
    "TabularDiffusion",
    "VineCopula",
    "check_rules",
    "choose_order",
    "distributions",
    "enforce_rules",
    "finish",
    "fit_on_sample",
    "fitting_sample",
    "from_outputs",
    "load",
    "load_plan",
    "preflight",
    "preflight_linked",
    "rake",
    "rules_against_chance",
    "save_plan",
    "snap_range",
    "survey_check",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__
