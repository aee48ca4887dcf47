"""The same seed gives the same bytes, with one thread and with two, and in every kind of frame."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, protect, synth
from discreet.io import write
from discreet.protect.additive_noise import _spread_of

QUICK = ["add-noise", "add-noise outliers", "spectral O", "saved gaussian-copula"]
THREADS = (
    "POLARS_MAX_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "MKL_NUM_THREADS",
)


def digests(threads: int, names: list[str]) -> dict[str, str]:
    script = Path(__file__).with_name("digests.py")
    settings_of = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    done = subprocess.run(
        [sys.executable, str(script), *names], env=settings_of, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def assert_same_with_one_and_two_threads(names: list[str]) -> None:
    one, two = digests(1, names), digests(2, names)
    assert all(len(found) == 64 for found in one.values()), one
    assert one == two


@pytest.mark.slow
def test_noise_spectra_and_saved_copulas_are_the_same_with_one_and_two_threads():
    assert_same_with_one_and_two_threads(QUICK)


@pytest.mark.slow
def test_every_treatment_and_generator_is_the_same_with_one_and_two_threads():
    assert_same_with_one_and_two_threads([])


def people(n=3000):
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "region": rng.choice(["n", "s", "w"], n),
            "pay": rng.lognormal(7, 1, n),
            "tax": rng.lognormal(5, 1, n),
        }
    )


@pytest.mark.parametrize(
    "treatment",
    [
        protect.AddNoise(columns=["pay", "tax"]),
        protect.AddNoise(columns=["pay", "tax"], strata=["region"]),
        protect.AddNoise(columns=["pay", "tax"], method="correlated"),
        protect.SpectralAnonymize(columns=["pay", "tax"]),
        protect.Shuffle(columns=["pay"], given=["tax"]),
    ],
    ids=["noise", "noise by strata", "correlated noise", "spectral", "shuffle"],
)
def test_every_kind_of_frame_gives_the_same_bits(treatment):
    import duckdb

    frame = people()
    wanted = treatment.apply(Microdata(frame), seed=5).data.frame.select("pay", "tax").to_numpy()
    arrow = frame.to_arrow()
    chunked = pa.concat_tables([arrow.slice(0, 1001), arrow.slice(1001)])
    kinds = [
        frame.to_pandas(),
        chunked,
        pl.concat([frame[:700], frame[700:]], rechunk=False),
        duckdb.sql("FROM arrow"),
    ]
    for kind in kinds:
        made = treatment.apply(Microdata(kind), seed=5).data.frame
        made = made.pl() if hasattr(made, "pl") else pl.DataFrame(made)
        assert (made.select("pay", "tax").to_numpy() == wanted).all()


@pytest.fixture(scope="module")
def made_a_while_ago(tmp_path_factory):
    """A fitted model, and the folder where it and a workbook were written more than two seconds ago."""
    folder = tmp_path_factory.mktemp("old")
    fitted = synth.GaussianCopula().fit(Microdata(people(200)), seed=1)
    fitted.save(folder / "model")
    write(Microdata(people(5)), folder / "book.xlsx")
    time.sleep(2.1)  # the times in an archive are even seconds
    return fitted, folder


def test_a_saved_model_holds_no_time(made_a_while_ago, tmp_path):
    fitted, folder = made_a_while_ago
    again = fitted.save(tmp_path / "model")
    assert again.read_bytes() == (folder / again.name).read_bytes()


def test_a_workbook_holds_no_time(made_a_while_ago, tmp_path):
    _, folder = made_a_while_ago
    write(Microdata(people(5)), tmp_path / "book.xlsx")
    assert (tmp_path / "book.xlsx").read_bytes() == (folder / "book.xlsx").read_bytes()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=30))
def test_only_values_that_are_all_the_same_have_no_spread(values):
    """Neither rounding nor overflow makes a column constant, or a constant column vary."""
    spread = _spread_of(np.array(values))
    halves = np.array(values) / 2 - values[0] / 2
    if not 0 < np.abs(halves).max() < 1e-300:
        assert (spread == 0) == (not halves.any())
    assert np.isfinite(spread) or np.ptp(halves) > 1e307
