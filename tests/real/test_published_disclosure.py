"""Published disclosure figures on real files: SD2011, Adult and the NIST releases with known answers.

Sources: Raab (2024) as recomputed in the repU/DiSCO spec; the ``unique_exact_matches`` that SDNist printed for
each release.
"""

import json

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.attribute_disclosure import attribute_disclosure
from discreet.risk.correct_attribution import attribution
from discreet.risk.replicated_uniques import remove_replicated_uniques, replicated_uniques
from discreet.risk.synthetic_disclosure import disclosure


@pytest.fixture(scope="module")
def social_diagnosis(test_data):
    frame = pl.read_csv(test_data / "SD2011.csv", infer_schema_length=None, null_values=[""])
    return Microdata(frame, keys=["sex", "age", "region", "placesize"])


@pytest.fixture(scope="module")
def adult(test_data):
    parts = [
        pl.read_csv(test_data / "adult" / f"adult_{part}.csv.gz", null_values="?")
        for part in ("train", "test")
    ]
    # The version in R's arules, which the paper used, lacks the income of the test file.
    parts[1] = parts[1].with_columns(income=pl.lit(None, dtype=pl.String))
    return Microdata(pl.concat(parts), keys=["age", "sex", "occupation", "race"])


def test_social_diagnosis_discloses_depression_for_half_of_the_people(social_diagnosis):
    measure = attribute_disclosure(social_diagnosis, social_diagnosis, "depress")
    assert measure.figures["Dorig"] == pytest.approx(53.30, abs=0.005)
    assert measure.figures["CAPd"] == pytest.approx(74.146, abs=0.0005)
    # A file against itself: everything that is disclosed is right.
    assert measure.figures["DiSCO"] == measure.figures["Dorig"] == measure.figures["DiSDiO"]


def test_social_diagnosis_has_3459_combinations_of_keys_and_23_levels_of_depression(social_diagnosis):
    assert attribution(social_diagnosis, sensitive="depress").value == pytest.approx(0.74146, abs=5e-6)
    frame = social_diagnosis.frame
    assert frame.select("sex", "age", "region", "placesize").n_unique() == 3459
    assert frame["depress"].n_unique() == 23


EXCLUSIONS = {
    "none": {},
    "level": {"exclude_values": [0]},
    "level, missing": {"exclude_values": [0], "missing_target": False},
    "level, missing, limit": {
        "exclude_values": [0],
        "missing_target": False,
        "denom_lim": 1,
        "exclude_over_denom": True,
    },
    "limit": {"denom_lim": 1, "exclude_over_denom": True},
}
PUBLISHED = {
    "capital-gain": (22.55, 0.21, 0.21, 0.21, 2.68),
    "education": (3.71, 3.71, 3.71, 2.68, 2.68),
    "workclass": (14.27, 14.27, 9.14, 2.45, 2.68),
}


@pytest.mark.parametrize("target", PUBLISHED)
def test_adult_columns_of_the_original_in_table_2_of_the_paper(adult, target):
    for (name, options), expected in zip(EXCLUSIONS.items(), PUBLISHED[target], strict=True):
        kept = {
            key: value
            for key, value in options.items()
            if target == "capital-gain" or key != "exclude_values"
        }
        figures = attribute_disclosure(adult, adult, target, **kept).figures
        assert figures["Dorig"] == pytest.approx(expected, abs=0.005), name
        assert figures["UiO"] == pytest.approx(2.6821, abs=5e-5)


def test_adult_checks_find_the_values_anybody_would_guess(adult):
    measure = disclosure(adult, adult, ["capital-loss", "capital-gain", "native-country"])
    flags = measure.detail["one_way"].select("target", "flagged", "share_of_file").rows()
    assert {target for target, flagged, _ in flags if flagged} == {
        "capital-loss",
        "capital-gain",
        "native-country",
    }
    shares = {target: share for target, _, share in flags}
    expected = {"capital-loss": 95.3, "capital-gain": 91.7, "native-country": 89.7}
    assert shares == pytest.approx(expected, abs=0.05)


NIST = [
    "aim_e_10_all",
    "cart_cf21",
    "k_anonymity_k_6",
    "pram_default",
    "sdv_ctgan_epochs1000",
    "subsample_40pcnt_all",
]


@pytest.mark.parametrize("name", NIST)
@pytest.mark.slow
def test_unique_exact_matches_of_the_nist_releases(test_data, name):
    expected = json.loads((test_data / "nist-dce" / "crc-releases" / f"{name}.expected.json").read_text())
    features = expected["features"]
    target = pl.read_csv(test_data / "nist-dce" / "national2019.csv", infer_schema_length=None)
    release = pl.read_csv(
        test_data / "nist-dce" / "crc-releases" / f"{name}.csv.gz", infer_schema_length=None
    )
    # SDNist leaves out released records with suppressed values.
    release = release.select(features).drop_nulls()
    figures = replicated_uniques(Microdata(target, keys=features), Microdata(release)).figures
    printed = expected["unique_exact_matches"]
    assert figures["uniques_original"] == printed["unique target records"]
    assert figures["unique_matches"] == printed["records matched in target data"]


def test_replicated_uniques_are_gone_from_the_subsample_after_removal(test_data):
    target = pl.read_csv(test_data / "nist-dce" / "national2019.csv", infer_schema_length=None)
    release = pl.read_csv(
        test_data / "nist-dce" / "crc-releases" / "subsample_40pcnt_all.csv.gz", infer_schema_length=None
    )
    original = Microdata(target, keys=["PUMA", "AGEP", "SEX", "RAC1P"])
    before = replicated_uniques(original, Microdata(release)).figures
    removed = remove_replicated_uniques(original, Microdata(release))
    assert removed.log[0].removed_records == before["replicated"] > 0
    assert replicated_uniques(original, removed.data).value == 0
