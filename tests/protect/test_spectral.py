import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.protect import spectral
from discreet.protect.plan import Plan
from discreet.protect.spectral import SpectralAnonymize, asymptotic_cov
from discreet.protect.spectral_measures import match_measures, nearest_distances

NAMES = ["sales", "costs", "debt"]


def firms(records=300, seed=0):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(records, 3)) @ rng.normal(size=(3, 3)) * [1, 10, 100] + [50, 0, 1e4]
    return pl.DataFrame(matrix, schema=NAMES).with_columns(
        region=pl.Series(rng.choice(["n", "s"], records)),
        staff=pl.Series(rng.poisson(30, records).astype(np.int32)),
    )


def masked(frame, seed=1, **parameters):
    parameters.setdefault("columns", NAMES)
    return SpectralAnonymize(**parameters).apply(Microdata(frame), seed=seed)


@given(
    records=st.integers(3, 80),
    columns=st.integers(2, 6),
    standardize=st.booleans(),
    seed=st.integers(0, 10_000),
)
@settings(max_examples=examples(40), deadline=None)
def test_permutation_keeps_means(records, columns, standardize, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(records, columns)) @ rng.normal(size=(columns, columns)) + rng.normal(
        size=columns
    )
    frame = pl.DataFrame(matrix, schema=[f"x{at}" for at in range(columns)])
    made = masked(
        frame, seed, columns=frame.columns, method="P", standardize=standardize
    ).data.frame.to_numpy()
    assert np.abs(made.mean(axis=0) - matrix.mean(axis=0)).max() < 1e-10


@pytest.mark.parametrize("method", ["O", "P"])
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(method):
    first, again, other = (masked(firms(), seed, method=method).data.frame for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize("method", ["O", "P"])
def test_covariances_survive_within_what_theory_allows(method):
    frame = firms(20_000)
    made = masked(frame, method=method).data.frame
    before = np.cov(frame.select(NAMES).to_numpy(), rowvar=False)
    after = np.cov(made.select(NAMES).to_numpy(), rowvar=False)
    allowed = np.sqrt(asymptotic_cov(before, 20_000, method, "cov").diagonal()).reshape(3, 3)
    assert (np.abs(after - before) < 5 * allowed).all()


def test_standard_deviations_of_different_size_matter_less_when_standardized():
    frame = firms()
    plain, scaled = (
        masked(frame, standardize=flag).log[0].internal["singular_values"][0] for flag in (False, True)
    )
    assert plain[0] / plain[-1] > scaled[0] / scaled[-1]
    assert sum(value**2 for value in scaled) == pytest.approx(3 * 299)


@pytest.mark.parametrize("method", ["O", "J"])
def test_means_come_back_when_recentered(method):
    frame = firms(3_000, seed=3)
    options = {"recenter": True, "method": method}
    if method == "J":
        with pytest.warns(DiscreetWarning, match="UNCHANGED"):
            made = masked(frame, **options).data.frame
    else:
        made = masked(frame, **options).data.frame
    assert made.select(NAMES).mean().row(0) == pytest.approx(frame.select(NAMES).mean().row(0), rel=1e-10)


def test_leading_components_only_are_perturbed_when_asked():
    frame = firms()
    made = masked(frame, components=1, method="P").data.frame.select(NAMES).to_numpy()
    matrix = frame.select(NAMES).to_numpy()
    _, _, axes = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    before, after = (matrix - matrix.mean(axis=0)) @ axes.T, (made - matrix.mean(axis=0)) @ axes.T
    assert after[:, 1:] == pytest.approx(before[:, 1:], abs=1e-8)
    assert not np.allclose(after[:, 0], before[:, 0])


def test_groups_are_masked_apart_and_keep_their_means():
    frame = firms()
    made = masked(frame, by="region", method="P").data.frame
    for region in ("n", "s"):
        own = pl.col("region") == region
        before, after = (table.filter(own).select(NAMES).mean().row(0) for table in (frame, made))
        assert after == pytest.approx(before, rel=1e-10)
    with pytest.raises(ParameterError, match="fewer than 15 complete records"):
        masked(firms(20), by="region")


def test_missing_values_are_an_error_unless_their_records_are_left_out():
    frame = firms().with_columns(costs=pl.when(pl.int_range(pl.len()) % 10 > 0).then("costs"))
    with pytest.raises(ColumnError, match="30 records have missing values"):
        masked(frame)
    release = masked(frame, missing="complete", columns=[*NAMES, "staff"])
    gone = frame["costs"].is_null()
    for name in (*NAMES, "staff"):
        assert release.data.frame[name].is_null().equals(gone)
    assert release.data.frame.schema == frame.schema
    assert release.log[0].suppressed_cells == {"sales": 30, "debt": 30, "staff": 30}
    assert any("30 records with missing values were left out" in note for note in release.log[0].notes)


def test_constant_and_collinear_columns_pass():
    frame = firms().with_columns(same=pl.lit(0.1), twice=2 * pl.col("sales"))
    release = masked(frame, columns=["sales", "costs", "same", "twice"], method="P")
    made = release.data.frame
    assert made["same"].equals(frame["same"])
    assert made["twice"].to_numpy() == pytest.approx(2 * made["sales"].to_numpy())
    assert len(release.log[0].internal["singular_values"][0]) == 2
    assert any("'same' does not vary" in note for note in release.log[0].notes)
    assert any("follow from the others" in note for note in release.log[0].notes)


def test_more_columns_than_records_pass():
    frame = pl.DataFrame(np.random.default_rng(0).normal(size=(5, 8)), schema=[f"x{at}" for at in range(8)])
    release = masked(frame, columns=frame.columns)
    assert len(release.log[0].internal["singular_values"][0]) == 4


def test_columns_that_all_follow_from_one_are_refused_where_records_would_stay():
    frame = firms().with_columns(twice=2 * pl.col("sales"))
    with pytest.raises(ParameterError, match="all follow from one"):
        masked(frame, columns=["sales", "twice"], method="P")
    assert masked(frame, columns=["sales", "twice"], method="O").data.frame.height == 300


def test_equal_singular_values_are_noted():
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    release = masked(pl.DataFrame(cross, schema=["a", "b"]), columns=["a", "b"])
    assert any("Two singular values are equal" in note for note in release.log[0].notes)


def test_rounding_and_clipping_are_done_and_said():
    frame = firms()
    release = masked(frame, columns=["sales", "staff"], clip_to_range=True)
    made = release.data.frame
    assert made["staff"].dtype == pl.Int32
    assert made["staff"].min() >= frame["staff"].min()
    assert made["sales"].max() <= frame["sales"].max()
    notes = " ".join(release.log[0].notes)
    assert "Rounding" in notes
    assert "pulled back" in notes
    assert release.log[0].parameters["diagnostics"]["largest_mean_change"] > 0
    assert (
        masked(frame, columns=["sales", "staff"], round_integers=False).data.frame["staff"].dtype
        == pl.Float64
    )


def test_diagnostics_are_in_the_public_log_and_singular_values_are_not():
    release = masked(firms(), method="P")
    public = release.to_dict()["steps"][0]
    assert set(public["parameters"]["diagnostics"]) == {
        "largest_mean_change",
        "covariance_change",
        "euc",
        "matches",
        "duplicates",
        "matches_beyond_duplicates",
        "expected_matches",
        "looked_at",
        "smallest_gap",
    }
    assert "singular_values" not in json.dumps(public, allow_nan=False)
    assert release.guarantee is None


def test_duplicates_in_the_file_are_not_matches_of_the_method():
    twins = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0)
    found = match_measures(twins, twins)
    assert (found["matches"], found["duplicates"], found["matches_beyond_duplicates"]) == (1, 1, 0)


def test_many_columns_are_compared_record_by_record_with_the_same_answer():
    rng = np.random.default_rng(0)
    originals, points = rng.normal(size=(50, 25)), rng.normal(size=(7, 25))
    direct = np.linalg.norm(points[:, None] - originals[None], axis=2).min(axis=1)
    assert nearest_distances(points, originals) == pytest.approx(direct)
    assert nearest_distances(originals[:3], originals) == pytest.approx(0, abs=1e-12)


def test_long_files_are_looked_at_in_part_and_in_blocks(monkeypatch):
    frame = firms(3_000)
    whole = masked(frame).data.frame
    monkeypatch.setattr(spectral, "_ROWS", 700)
    monkeypatch.setattr(spectral, "_LOOKED_AT", 500)
    release = masked(frame)
    assert release.data.frame.select(NAMES).to_numpy() == pytest.approx(
        whole.select(NAMES).to_numpy(), rel=1e-9
    )
    assert any("500 masked records" in note for note in release.log[0].notes)


def test_pandas_comes_back_as_pandas():
    frame = firms().to_pandas()
    made = masked(frame, columns=[*NAMES, "staff"]).data.frame
    assert isinstance(made, pd.DataFrame)
    assert (made.dtypes == frame.dtypes).all()


def test_a_plan_file_brings_the_same_treatment_back(tmp_path):
    plan = Plan([SpectralAnonymize(NAMES, method="P", by="region", components=2)])
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "Q"}, "method"),
        ({"missing": "drop"}, "missing"),
        ({"components": 0}, "components"),
        ({"components": 4}, "components"),
        ({"exact_match_tol": 0}, "exact_match_tol"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(ParameterError, match=words):
        SpectralAnonymize(NAMES, **parameters)


def test_bad_input_is_refused():
    with pytest.raises(ColumnError, match="is for numbers"):
        masked(firms(), columns=["region", "sales"])
    with pytest.raises(ColumnError, match="infinite"):
        masked(pl.DataFrame({"a": [1.0, float("inf")], "b": [1.0, 2.0]}), columns=["a", "b"])
    with pytest.raises(ParameterError, match="at least 2 records"):
        masked(firms(1))
    for wrong in ([[1, 2]], [[1, 2], [0, 1]], [[1, 2], [2, 1]]):
        with pytest.raises(ParameterError, match="Sigma"):
            asymptotic_cov(wrong, 5)
    with pytest.raises(ParameterError, match="what"):
        asymptotic_cov(np.eye(2), 5, what="median")
