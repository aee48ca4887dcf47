from __future__ import annotations

import pytest

from discreet.outputs import barns, classify, registry

ACRO_NAMES = """
AdjustedRSquared AlluvialFlow AnalysisOfVariance Ancova BarGraph BartlettsTestOfSphericity BetaCoefficient
BinaryLogisticRegression BoxPlot BoxsTestOfEqualityOfCovarianceMatrices CanonicalCorrelation ChiSquaredTest
CochransQTest CoefficientOfDetermination CohensD CohensKappaCoefficient ConfidenceIntervals
ContrastCoefficients Covariates CoxSnellRSquared CramersV Crosstabs DiscriminantFunctionAnalysis
DiscriminantValidity EigenvaluesScreePlots EtaSquared FactorAnalysis FrequencyTable FriedmanTest
GeneralLinearModel GiniCurves HazardRatio HazardTables Heatmap HerfindahlHirschmanIndex Histogram
HomogeneityOfRegression HomogeneityOfVariance HomogeneityOfVarianceCovarianceMatrices HosmerLemeshowTest
IndependentTtests InterquartileRange KaiserMeyerOlkinTest KaplanMeier KappaMeasureOfAgreement KendallsRank
KernelEstimates Kolmogorov-SmirnovTest Kruskal-WallisTest Kurtosis Lambda LevenesTest LineGraph
LinearRegressionCoefficients LogLinearForHigherOrderTables LogisticRegression Logit LongitudinalEstimation
MahalanobisDistance Mancova MannWhitneyUTest MauchlySphericityTest Maximum McNemarsTest Mean MeanPlots Median
Minimum ModeCalculation MultinomialLogit MultipleRegression MultivariateAnalysisOfVariance NagelkerkeRSquared
OddRatios OmnibusTestsOfModelCoefficients PairedTtests PanelDataModels ParallelAnalysis
PartialCorrelationCoefficients PartialEtaSquared PearsonsProductMomentCorrelationCoefficient PearsonsR
PhiCoefficient PieChart PrevalenceRatio PrincipalComponentAnalysis Probit proportionalHazardsRegression
PseudoRSquared Quartiles RSquared Range RiskRatios ScatterGraph SimpleConcentrationRatio Skewness
SmoothedHistogram SpearmansRankCorrelationCoefficient StandardDeviation StandardisedRegressionCoefficients
StructuralEquationModelling Sum SurvivalTables ThreeStageLeastSquares TrimmedMean
TukeysHonestySignificantDifferenceTest TwoStageLeastSquares TwoWayAnalysisOfVariance VarianceCovarianceMatrix
WaterfallChart WilcoxonSignedRankTest WilksLambda ZeroOrderCorrelation
"""


def test_at_least_150_statistics_are_known_each_with_a_barn_or_a_reason():
    entries = registry()
    assert len(entries) >= 150
    assert all(entry.barn in barns() or entry.rationale for entry in entries)
    assert sum(1 + len(entry.synonyms) for entry in entries) > 700


def test_every_name_and_synonym_leads_to_its_own_entry():
    wrong = [
        (name, entry.name, classify(name).name)
        for entry in registry()
        for name in (entry.name, *entry.synonyms)
        if classify(name).barn != entry.barn
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ACRO_NAMES.split())
def test_every_analysis_that_acro_names_is_known(name):
    assert classify(name).barn_name != "not in the registry"


def test_case_spaces_and_plural_do_not_matter():
    assert classify("KAPLAN-MEIER curves") == classify("kaplan meier curve")


def test_an_unknown_name_is_for_a_human_and_never_passed():
    info = classify("medain")
    assert (info.verdict, info.safe, info.barn) == ("review", None, None)
    assert "median" in info.near


def test_search_finds_synonyms_and_groups():
    assert classify("repeated measurement").name in [entry.name for entry in registry("panel data")]
    assert {entry.barn for entry in registry("concentration ratio")} >= {"d"}
    assert registry(barn="j")[0].name == "mode"
    assert registry("zzzz") == []


def test_an_entry_reads_as_text_and_json():
    info = classify("odds ratio")
    assert "unsafe" in str(info)
    assert info.to_dict()["barn"] == "e"
