"""Noise, shuffling, regression synthesis and spectral masking on the files of the microaggregation literature.

Tarragona and the CASC census file are skewed, partly collinear and whole-numbered: what the methods promise has to
hold there too.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import DiscreetWarning
from discreet.protect.additive_noise import AddNoise
from discreet.protect.number_blocks import rank_correlation
from discreet.protect.regression_synthesis import RegressionSynthesis, Shuffle
from discreet.protect.spectral import SpectralAnonymize, asymptotic_cov

FILES = ("Tarragona", "CASC", "EIA", "testdata", "credit")


def block(folder: Path, file: str) -> pl.DataFrame:
    """Read the numeric columns of a file."""
    if file == "Tarragona":
        return pl.read_csv(folder / "Tarragona.csv", infer_schema_length=None)
    if file == "CASC":
        return pl.read_csv(folder / "CASCrefmicrodata.csv", infer_schema_length=None)
    if file == "EIA":
        frame = pl.read_csv(folder / "EIA.csv", infer_schema_length=None)
        return frame.select(frame.columns[frame.columns.index("RESREVENUE") :])
    if file == "testdata":
        frame = pl.read_csv(folder / "testdata.csv", null_values="NA", infer_schema_length=None)
        return frame.select("expend", "income", "savings")
    frame = pl.read_csv(folder / "tabular" / "creditcard_default.csv.gz", infer_schema_length=None)
    return frame.select(pl.selectors.by_name("limit_bal") | pl.selectors.contains("_amt"))


def covariance(frame: pl.DataFrame) -> np.ndarray:
    return np.cov(frame.to_numpy().astype(float), rowvar=False)


def furthest(found: np.ndarray, right: np.ndarray) -> float:
    """The largest change of a covariance in standard deviations of its two columns."""
    size = np.sqrt(np.outer(np.diag(right), np.diag(right)))
    return float((np.abs(found - right) / size).max())


@pytest.mark.parametrize("file", FILES)
def test_orthogonal_masking_keeps_moments_of_real_files(test_data: Path, file: str):
    frame = block(test_data, file)
    treatment = AddNoise(frame.columns, method="romm", level=0.3, round_integers=False)
    made = treatment.apply(Microdata(frame), seed=1).data.frame
    assert furthest(covariance(made), covariance(frame)) < 1e-10
    spread = frame.std().to_numpy().ravel()
    assert (np.abs((made.mean().to_numpy() - frame.mean().to_numpy()).ravel()) / spread).max() < 1e-10
    assert (np.abs(made.to_numpy() - frame.to_numpy()) > 0).all()


@pytest.mark.parametrize("method", ["independent", "correlated", "restricted", "romm", "outliers", "laplace"])
def test_every_kind_of_noise_keeps_the_types_of_real_files(test_data: Path, method: str):
    for file in FILES[:4]:
        frame = block(test_data, file)
        made = AddNoise(frame.columns, method=method).apply(Microdata(frame), seed=1).data.frame
        assert made.schema == frame.schema


@pytest.mark.parametrize("file", FILES)
def test_exact_synthesis_keeps_moments_of_real_files(test_data: Path, file: str):
    frame = block(test_data, file)
    given, columns = frame.columns[:2], frame.columns[2:]
    treatment = RegressionSynthesis(columns, given=given, similarity=0.3, round_integers=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreetWarning)
        made = treatment.apply(Microdata(frame), seed=1).data.frame
    assert furthest(covariance(made), covariance(frame)) < 1e-8
    x = np.column_stack([np.ones(frame.height), frame.select(given).to_numpy()])
    slopes = [np.linalg.lstsq(x, table.select(columns).to_numpy(), rcond=None)[0] for table in (frame, made)]
    assert slopes[1] == pytest.approx(slopes[0], rel=1e-8, abs=1e-8 * np.abs(slopes[0]).max())


@pytest.mark.parametrize("file", FILES)
def test_shuffling_keeps_margins_and_rank_correlations_of_real_files(test_data: Path, file: str):
    frame = block(test_data, file)
    given, columns = frame.columns[:1], frame.columns[1:]
    made = Shuffle(columns, given=given).apply(Microdata(frame), seed=1).data.frame
    for name in columns:
        assert made[name].sort().equals(frame[name].sort())
    before, after = (rank_correlation(table.to_numpy().astype(float)) for table in (frame, made))
    assert np.abs(after - before).mean() < 0.06
    assert not made.equals(frame)


@pytest.mark.parametrize("method", ["O", "P"])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.slow
def test_spectral_masking_keeps_what_it_promises_on_real_files(test_data: Path, file: str, method: str):
    frame = block(test_data, file)
    treatment = SpectralAnonymize(frame.columns, method=method, standardize=True, round_integers=False)
    release = treatment.apply(Microdata(frame), seed=1)
    found = release.log[0].parameters["diagnostics"]
    spread = frame.std().to_numpy().ravel()
    moved = np.abs((release.data.frame.mean().to_numpy() - frame.mean().to_numpy()).ravel()) / spread
    allowed = np.sqrt(asymptotic_cov(covariance(frame), frame.height, "O").diagonal()) / spread
    assert (moved < (1e-10 if method == "P" else 5 * allowed)).all()
    assert found["covariance_change"] < 0.35
    assert found["matches_beyond_duplicates"] < 0.01
    assert found["euc"] > 0
