"""Real files are read right at the first try, and their roles are proposed sensibly."""

from __future__ import annotations

import polars as pl
import pytest

from discreet.io import read, write
from discreet.workflow.inspection import inspect


def test_adult_marks_missing_with_a_question_mark(test_data):
    data = read(test_data / "adult" / "adult_train.csv.gz", keys=["age", "sex"], sensitive="income")
    frame = data.frame.collect()
    assert frame.shape == (32_561, 15)
    assert frame["age"].dtype == pl.Int64
    assert frame["workclass"].null_count() == 1_836
    assert frame["native-country"].null_count() == 583
    assert data.metadata.reading["rows"] == 32_561
    assert len(data.metadata.checksum) == 64


def test_adult_of_arx_is_separated_by_semicolons(test_data):
    data = read(test_data / "adult" / "adult_arx_30162.csv.gz")
    assert data.metadata.reading["separator"] == ";"
    assert data.frame.collect().shape == (30_162, 9)


def test_nist_extracts_keep_codes_as_text_and_missing_as_missing(test_data):
    data = read(test_data / "nist-dce" / "ma2019.csv")
    frame = data.frame.collect()
    assert frame.shape == (7_634, 24)
    assert frame["PUMA"].dtype == pl.String
    # These files write "N" for "not applicable": a value, unless the reader says it means missing.
    assert frame["PINCP"].dtype == pl.String
    named = read(test_data / "nist-dce" / "ma2019.csv", missing=["N"]).frame.collect()
    assert named["PINCP"].dtype.is_numeric()
    assert named["PINCP"].null_count() == (frame["PINCP"] == "N").sum() > 0


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("german-credit/german.csv", (1_000, 21)),
        ("SD2011.csv", (5_000, 35)),
        ("eusilcS.csv.gz", (11_725, 18)),
    ],
)
def test_other_files_have_the_shape_their_makers_say(test_data, name, shape):
    assert read(test_data / name).frame.collect().shape == shape


@pytest.mark.filterwarnings("ignore:.*seems to have no header")
@pytest.mark.slow
def test_every_delimited_file_of_the_folder_can_be_read(test_data):
    files = [*test_data.glob("*.csv"), *test_data.glob("*.csv.gz"), *test_data.glob("*/*.csv.gz")]
    assert len(files) > 20
    for file in files:
        data = read(file)
        assert data.frame.lazy().select(pl.len()).collect().item() == data.metadata.reading["rows"], file.name


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".sav", ".dta", ".xlsx"])
def test_adult_survives_every_format(test_data, tmp_path, suffix):
    pytest.importorskip("pyreadstat")
    data = read(test_data / "adult" / "adult_train.csv.gz")
    frame = data.frame.head(3_000).collect().rename(lambda name: name.replace("-", "_"))
    back = read(write(frame, tmp_path / f"adult{suffix}")).frame.lazy().collect()
    assert back.equals(frame)


@pytest.mark.slow
def test_the_parquet_extract_of_the_american_survey_stays_lazy(test_data):
    files = sorted(test_data.glob("**/*acs_income*.parquet"))
    if not files:
        pytest.skip("the folder holds no acs_income Parquet file")
    data = read(files[0])
    assert isinstance(data.frame, pl.LazyFrame)
    assert {"Age", "Gender"} <= set(inspect(data).proposal.keys)


def test_roles_proposed_for_adult(test_data):
    proposal = inspect(read(test_data / "adult" / "adult_train.csv.gz")).proposal
    assert {"age", "sex", "race", "marital-status", "education", "occupation", "native-country"} <= set(
        proposal.keys
    )
    assert {"income", "capital-gain"} <= set(proposal.sensitive)
    assert proposal.weight == "fnlwgt"
    assert proposal.identifiers == ()


def test_roles_proposed_for_a_household_survey(test_data):
    proposal = inspect(read(test_data / "testdata.csv")).proposal
    assert proposal.household == "ori_hid"
    assert proposal.weight == "sampling_weight"
    assert {"sex", "age", "urbrur"} <= set(proposal.keys)
    assert {"income", "expend", "savings"} <= set(proposal.sensitive)


def test_body_weight_in_the_social_diagnosis_is_no_survey_weight(test_data):
    proposal = inspect(read(test_data / "SD2011.csv")).proposal
    assert proposal.weight is None
    assert {"sex", "age", "region", "edu", "marital"} <= set(proposal.keys)
    assert {"income", "depress"} <= set(proposal.sensitive)


def test_a_phone_column_of_yes_and_no_is_no_identifier(test_data):
    inspection = inspect(read(test_data / "german-credit" / "german.csv"))
    assert inspection.proposal.identifiers == ()
    assert {"age", "housing", "foreign_worker"} <= set(inspection.proposal.keys)
