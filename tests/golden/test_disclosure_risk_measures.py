"""The worked example of the disclosure-risk spec: a town, a sample of it and two releases.

Source: worked examples of the thesis behind ``disclosure-risk-measures``, with its arithmetic slips corrected.
"""

import math

import polars as pl
import pytest

from discreet import Microdata, risk
from discreet.core.errors import ParameterError

WOMEN = [1942, 1941, 1952, 1955, 1956, 1961, 1966, 1966, 1968, 1964, 1974, 1975, 1975, 1978, 1987, 1988]
MEN = [1954, 1959, 1959, 1959, 1961, 1962, 1967, 1967, 1968, 1978, 1973, 1971, 1975, 1974]
TOWN = pl.DataFrame({"gender": ["F"] * len(WOMEN) + ["M"] * len(MEN), "year": WOMEN + MEN})
SAMPLE = pl.DataFrame(
    [
        (5, "F", 1942, "-ve"),
        (3, "F", 1955, "-ve"),
        (11, "F", 1964, "-ve"),
        (7, "F", 1966, "Zero"),
        (13, "F", 1975, "-ve"),
        (6, "F", 1975, "-ve"),
        (8, "F", 1987, "-ve"),
        (4, "M", 1959, "-ve"),
        (12, "M", 1959, "+ve"),
        (1, "M", 1959, "+ve"),
        (2, "M", 1962, "-ve"),
        (14, "M", 1967, "-ve"),
        (9, "M", 1975, "-ve"),
        (10, "M", 1978, "-ve"),
    ],
    schema=["id", "gender", "year", "test"],
    orient="row",
)
DECADES = SAMPLE.filter(~pl.col("id").is_in([5, 3, 8])).with_columns(decade=pl.col("year") // 10 * 10)
KEYS = ["gender", "year"]

town = Microdata(TOWN, keys=KEYS)
sample = Microdata(SAMPLE, keys=KEYS, sensitive="test", identifiers="id")
release = Microdata(DECADES.drop("year"), keys=["gender", "decade"], sensitive="test", identifiers="id")


def by_class(measure, column):
    table = measure.detail["classes"]
    return {
        (gender, decade): value
        for gender, decade, value in table.select("gender", "decade", column).iter_rows()
    }


def test_the_town_has_21_unique_classes_of_25():
    assert risk.uniqueness(town).figures["pue"] == pytest.approx(21 / 25)


def test_the_sample_has_9_unique_classes_of_11_and_9_unique_records_of_14():
    figures = risk.uniqueness(sample).figures
    assert figures["pue"] == pytest.approx(9 / 11)
    assert figures["unique_share"] == pytest.approx(9 / 14)


def test_the_release_by_decade_has_no_unique_record():
    assert risk.uniqueness(release).figures["pue"] == 0


def test_rfue_of_the_literature_from_the_population_size():
    figures = risk.uniqueness(sample, population_size=31, method="thesis").figures
    assert figures["rfue"] == pytest.approx(0.9363, abs=5e-5)


def test_rfue_by_bayes_weighs_class_sizes_by_the_chance_of_drawing_exactly_one():
    def g(i):
        return i * math.comb(31 - i, 13) / math.comb(31, 14)

    expected = 9 * g(1) / (9 * g(1) + g(2) + g(3))
    figures = risk.uniqueness(sample, population_size=31).figures
    assert figures["rfue"] == pytest.approx(expected, rel=1e-12)


def test_rfue_against_the_town_counts_sample_uniques_that_are_unique_there():
    unique_in_sample = {("F", y) for y in (1942, 1955, 1964, 1966, 1987)} | {
        ("M", y) for y in (1962, 1967, 1975, 1978)
    }
    counts = dict.fromkeys(TOWN.iter_rows(), 0)
    for row in TOWN.iter_rows():
        counts[row] += 1
    expected = sum(counts[row] == 1 for row in unique_in_sample) / 9
    assert risk.uniqueness(sample, population=town).figures["rfue"] == pytest.approx(expected)
    assert expected == pytest.approx(7 / 9)


def test_rfue_is_undefined_without_a_sample_unique():
    found = risk.uniqueness(release, population_size=31)
    assert found.figures["rfue"] is None
    assert any("undefined" in caveat for caveat in found.caveats)


def test_a_population_smaller_than_the_file_is_refused():
    with pytest.raises(ParameterError, match="population_size"):
        risk.uniqueness(sample, population_size=13)


def test_k_of_the_release_is_2_with_prosecutor_risk_one_half_and_mean_5_elevenths():
    assert risk.k_anonymity(release).value == 2
    figures = risk.reidentification(release).figures
    assert figures["prosecutor_max"] == 0.5
    assert figures["prosecutor_mean"] == pytest.approx(5 / 11)
    assert figures["expected_matches"] == pytest.approx(5)


def test_distinct_l_by_class():
    assert by_class(risk.l_diversity(release), "l") == {
        ("F", 1970): 1,
        ("F", 1960): 2,
        ("M", 1950): 2,
        ("M", 1960): 1,
        ("M", 1970): 1,
    }
    assert risk.l_diversity(release).value == 1


def test_kl_distances_by_class_with_the_slip_of_the_source_corrected():
    found = risk.t_closeness(release, distance="kl")
    distances = by_class(found, "t")
    assert distances["M", 1950] == pytest.approx(0.6061, abs=5e-5)
    assert distances["F", 1960] == pytest.approx(0.6650, abs=5e-5)
    for alike in (("M", 1960), ("M", 1970), ("F", 1970)):
        assert distances[alike] == pytest.approx(0.3185, abs=5e-5)
    assert found.value == pytest.approx(0.6650, abs=5e-5)


def test_kl_of_the_coarser_release():
    coarse = pl.DataFrame(
        {"gender": ["F"] * 4 + ["M"] * 7, "test": ["-ve"] * 3 + ["Zero"] + ["+ve"] * 2 + ["-ve"] * 5}
    )
    found = risk.t_closeness(Microdata(coarse, keys="gender", sensitive="test"), distance="kl")
    distances = dict(found.detail["classes"].select("gender", "t").iter_rows())
    assert distances["F"] == pytest.approx(0.2760, abs=5e-5)
    assert distances["M"] == pytest.approx(0.1163, abs=5e-5)
    assert found.value == pytest.approx(0.2760, abs=5e-5)


def test_one_more_negative_leaves_l_at_two_but_the_best_guess_at_two_thirds():
    more = pl.concat(
        [DECADES.drop("year"), pl.DataFrame({"id": [99], "gender": "F", "test": "-ve", "decade": [1960]})],
        how="diagonal",
    )
    found = risk.l_diversity(Microdata(more, keys=["gender", "decade"], sensitive="test"))
    classes = found.detail["classes"].filter(gender="F", decade=1960)
    assert classes["l"].item() == 2
    assert classes["best_guess"].item() == pytest.approx(2 / 3)


def test_almost_equal_weights_are_three_values_without_and_one_with_a_tolerance():
    people = Microdata(pl.DataFrame({"sex": ["f"] * 3, "kg": [55.1, 55.3, 55.4]}), keys="sex", sensitive="kg")
    without = risk.l_diversity(people)
    assert without.value == 3
    assert any("tolerance" in caveat for caveat in without.caveats)
    assert risk.l_diversity(people, tolerance=1.0).value == 1


def test_a_five_anonymous_file_with_one_value_a_class_warns_of_attribute_disclosure():
    people = pl.DataFrame({"sex": ["f"] * 5 + ["m"] * 5, "ill": ["yes"] * 5 + ["no"] * 5})
    data = Microdata(people, keys="sex", sensitive="ill")
    assert risk.k_anonymity(data).value == 5
    found = risk.l_diversity(data)
    assert found.value == 1
    assert any("Attribute disclosure in spite of k = 5" in caveat for caveat in found.caveats)
