import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.protect.plan import Plan
from discreet.protect.regression_synthesis import RegressionSynthesis

PAIR = ["sales", "debt"]


def firms(records=200, seed=0):
    rng = np.random.default_rng(seed)
    staff = rng.normal(50, 10, records)
    sector = rng.choice(["farm", "shop", "bank"], records)
    sales = 1e6 + 2e4 * staff + 1e5 * (sector == "bank") + rng.normal(0, 1e5, records)
    return pl.DataFrame(
        {
            "sector": sector,
            "staff": staff,
            "sales": sales,
            "debt": 1e-3 * sales + rng.standard_exponential(records) * 300,
            "branches": np.round(staff / 10 + rng.normal(size=records)).astype(np.int16),
        }
    )


def made_from(frame, seed=1, **parameters):
    return RegressionSynthesis(**parameters).apply(Microdata(frame), seed=seed)


def design(frame):
    dummies = [(frame["sector"] == level).cast(pl.Float64).to_numpy() for level in ("farm", "shop")]
    return np.column_stack([np.ones(frame.height), frame["staff"].to_numpy(), *dummies])


def fit(frame):
    """Coefficients, their standard errors and residual cross-products of both columns on staff and sector."""
    x, y = design(frame), frame.select(PAIR).to_numpy()
    slope = np.linalg.lstsq(x, y, rcond=None)[0]
    rest = y - x @ slope
    return slope, rest.T @ rest


def test_exact_synthesis_keeps_means_covariances_and_regressions():
    frame = firms()
    made = made_from(frame, columns=PAIR, given=["staff", "sector"]).data.frame
    for before, after in zip(fit(frame), fit(made), strict=True):
        assert after == pytest.approx(before, rel=1e-8)
    numbers = ["staff", *PAIR]
    before, after = (np.cov(table.select(numbers).to_numpy(), rowvar=False) for table in (frame, made))
    assert after == pytest.approx(before, rel=1e-8)
    assert made.select(PAIR).mean().row(0) == pytest.approx(frame.select(PAIR).mean().row(0), rel=1e-10)
    assert not np.allclose(made["sales"], frame["sales"])


@given(
    records=st.integers(12, 60),
    similarity=st.floats(0, 0.99),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-4, 1.0, 1e6]),
)
@settings(max_examples=examples(40), deadline=None)
def test_exact_synthesis_keeps_moments_whatever_the_file(records, similarity, seed, scale):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((records, 4)) @ rng.normal(size=(4, 4)) * [1, 1, scale, 1] + [0, 9, 0, scale]
    frame = pl.DataFrame(matrix, schema=list("abcd"))
    made = made_from(frame, seed, columns=["c", "d"], given=["a", "b"], similarity=similarity).data.frame
    spread = np.cov(matrix, rowvar=False)
    size = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    assert (np.abs(np.cov(made.to_numpy(), rowvar=False) - spread) / size).max() < 1e-8
    assert (
        np.abs(made.to_numpy().mean(axis=0) - matrix.mean(axis=0)) / np.abs(matrix).max(axis=0)
    ).max() < 1e-10


@pytest.mark.parametrize("similarity", [0.0, 0.4, 0.95])
def test_new_residuals_correlate_with_the_old_ones_as_asked(similarity):
    frame = firms()
    made = made_from(frame, columns=PAIR, given=["staff", "sector"], similarity=similarity).data.frame
    x = design(frame)
    old, new = (
        y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        for y in (t.select(PAIR).to_numpy() for t in (frame, made))
    )
    for at in range(2):
        assert np.corrcoef(old[:, at], new[:, at])[0, 1] == pytest.approx(similarity, abs=1e-8)


def test_without_given_columns_means_and_covariances_are_kept():
    frame = firms()
    made = made_from(frame, columns=PAIR).data.frame
    before, after = (np.cov(table.select(PAIR).to_numpy(), rowvar=False) for table in (frame, made))
    assert after == pytest.approx(before, rel=1e-8)


def test_coefficients_only_are_kept_when_asked():
    frame = firms()
    made = made_from(frame, columns=PAIR, given=["staff", "sector"], method="coefficients").data.frame
    before, after = fit(frame), fit(made)
    assert after[0] == pytest.approx(before[0], rel=1e-8)
    assert not np.allclose(after[1], before[1], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["coefficients", "sampled"])
def test_what_is_not_kept_exactly_is_right_on_average(method):
    frame = firms(40)
    found = [
        fit(made_from(frame, seed, columns=PAIR, given=["staff", "sector"], method=method).data.frame)
        for seed in range(250)
    ]
    before = fit(frame)
    assert np.mean([rest for _, rest in found], axis=0) == pytest.approx(before[1], rel=0.12)
    assert np.mean([slope[1] for slope, _ in found], axis=0) == pytest.approx(before[0][1], rel=0.05)


def test_collinear_predictors_do_no_harm():
    frame = firms().with_columns(twice=2 * pl.col("staff") + 1, same=pl.lit(3))
    plain = made_from(frame, columns=PAIR, given=["staff"]).data.frame
    more = made_from(frame, columns=PAIR, given=["staff", "twice", "same"]).data.frame
    for table in (plain, more):
        found = np.cov(table.select(["staff", *PAIR]).to_numpy(), rowvar=False)
        assert found == pytest.approx(
            np.cov(frame.select(["staff", *PAIR]).to_numpy(), rowvar=False), rel=1e-8
        )


def test_columns_that_follow_from_one_another_still_do():
    frame = firms().with_columns(twice=2 * pl.col("sales"))
    made = made_from(frame, columns=["sales", "twice"], given=["staff"]).data.frame
    assert made["twice"].to_numpy() == pytest.approx(2 * made["sales"].to_numpy(), rel=1e-9)


def test_a_record_alone_in_its_category_is_warned_of():
    frame = firms().with_columns(
        sector=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("mint")).otherwise("sector")
    )
    with pytest.warns(DiscreetWarning, match="given columns, 1 in number"):
        release = made_from(frame, columns=PAIR, given=["sector"])
    assert release.data.frame["sales"][0] == pytest.approx(frame["sales"][0])
    assert any("only ones of their kind" in note for note in release.log[0].notes)


def test_a_column_that_follows_from_the_given_ones_is_warned_of():
    frame = firms().with_columns(twice=2 * pl.col("staff"))
    with pytest.warns(DiscreetWarning, match="'twice' follow exactly"):
        made_from(frame, columns=["sales", "twice"], given=["staff"])


def test_missing_values_stay_missing_and_known_ones_of_the_same_record_do_not_leak():
    frame = firms().with_columns(
        sales=pl.when(pl.int_range(pl.len()) % 10 > 0).then("sales"),
        staff=pl.when(pl.int_range(pl.len()) % 7 > 0).then("staff"),
    )
    release = made_from(frame, columns=[*PAIR, "branches"], given=["staff", "sector"])
    made = release.data.frame
    assert made["sales"].is_null().equals(frame["sales"].is_null())
    assert made["staff"].equals(frame["staff"], null_equal=True)
    assert (made["debt"] != frame["debt"]).all()
    gone = frame["sales"].is_null() | frame["staff"].is_null()
    assert any(f"{gone.sum()} records with missing values" in note for note in release.log[0].notes)
    known = made.filter(gone)["debt"]
    assert known.mean() == pytest.approx(frame.filter(gone)["debt"].mean(), rel=0.2)


def test_whole_numbers_stay_whole_and_the_log_says_what_that_costs():
    release = made_from(firms(), columns=["branches"], given=["staff"])
    assert release.data.frame["branches"].dtype == pl.Int16
    assert any("Rounding" in note for note in release.log[0].notes)
    assert (
        made_from(firms(), columns=["branches"], round_integers=False).data.frame["branches"].dtype
        == pl.Float64
    )


def test_the_same_seed_gives_the_same_bytes_and_another_does_not():
    first, again, other = (
        made_from(firms(), seed, columns=PAIR, given=["staff"]).data.frame for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)


def test_pandas_comes_back_as_pandas():
    frame = firms().to_pandas()
    frame["sector"] = frame["sector"].astype("category")
    made = made_from(frame, columns=PAIR, given=["sector"]).data.frame
    assert isinstance(made, pd.DataFrame)
    assert (made.dtypes == frame.dtypes).all()


def test_a_plan_file_brings_the_same_treatment_back(tmp_path):
    plan = Plan([RegressionSynthesis(["sales"], given=["staff"], similarity=0.5)])
    assert Plan.load(plan.save(tmp_path / "plan.toml")) == plan


def test_bad_input_is_refused():
    with pytest.raises(ParameterError, match="method must be"):
        RegressionSynthesis(PAIR, method="ipso")
    with pytest.raises(ParameterError, match="below 1"):
        RegressionSynthesis(PAIR, similarity=1)
    with pytest.raises(ParameterError, match="'exact' only"):
        RegressionSynthesis(PAIR, method="sampled", similarity=0.5)
    with pytest.raises(ColumnError, match="'stuff'"):
        made_from(firms(), columns=PAIR, given=["stuff"])
    with pytest.raises(ParameterError, match="both changed"):
        made_from(firms(), columns=PAIR, given=PAIR)
    with pytest.raises(ParameterError, match="needs at least 6 records"):
        made_from(firms(5), columns=PAIR, given=["staff"])


def test_members_of_a_household_get_the_same_value_and_moments_are_kept_among_households():
    homes = firms().with_columns(home=pl.int_range(pl.len()))
    members = homes[np.repeat(np.arange(200), 2)]
    made = made_from(members, columns=PAIR, given=["staff"], by="home").data.frame
    assert (made["sales"][::2] == made["sales"][1::2]).all()
    spread = [np.cov(table.select(["staff", *PAIR]).to_numpy(), rowvar=False) for table in (homes, made[::2])]
    assert spread[1] == pytest.approx(spread[0], rel=1e-8)
