import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.secret_keys import definitions, keyed_uniforms
from discreet.protect.plan import Plan
from discreet.protect.stochastic_rounding import StochasticRound, published_law, round_small_counts

KEY = b"a secret of at least sixteen bytes"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", KEY.decode())


def rounded(frame, **options):
    return StochasticRound(**{"columns": ["n"], "cell": ["c"], **options}).apply(Microdata(frame)).data.frame


@given(st.lists(st.integers(0, 20), min_size=1, max_size=50), st.integers(2, 10), st.integers(0, 2**32))
def test_no_count_between_zero_and_k_is_left_and_large_ones_stay(counts, k, seed):
    made = round_small_counts(counts, k, np.random.default_rng(seed).random(len(counts)))
    for old, new in zip(counts, made, strict=True):
        assert new == old if old == 0 or old >= k else new in (0, k)


def test_rounding_is_right_on_average_over_runs():
    runs = 20_000
    frame = pl.DataFrame({"c": ["x", "y"] * runs, "run": np.repeat(np.arange(runs), 2), "n": [1, 2] * runs})
    made = rounded(frame, run="run", k=3).group_by("c").agg(pl.col("n").mean()).sort("c")["n"].to_numpy()
    assert np.abs(made - [1, 2]).max() < 4 * np.sqrt(2 / runs)


def test_the_same_cell_gets_the_same_answer_in_every_table_and_order():
    one = pl.DataFrame({"sex": ["f", "m", "f", "m"] * 25, "age": list(range(25)) * 4, "n": [1, 2] * 50})
    one = one.unique(["sex", "age"], maintain_order=True)
    two = (
        one.select("age", "n", "sex", other=pl.lit(1))
        .reverse()
        .with_columns(age=pl.col("age").cast(pl.Float64))
    )
    first = rounded(one, cell=["sex", "age"]).sort("sex", "age")["n"]
    second = rounded(two, cell=["age", "sex"]).sort("sex", "age")["n"]
    assert first.equals(second)
    assert not first.equals(rounded(one, cell=["age", "sex"], subset="men").sort("sex", "age")["n"])


def test_another_key_draws_otherwise_and_runs_draw_on_their_own(monkeypatch, tmp_path):
    frame = pl.DataFrame({"c": range(200), "run": [0, 1] * 100, "n": [1] * 200})
    made = rounded(frame)
    (tmp_path / "key").write_bytes(b"another secret of sixteen bytes or more")
    assert not made.equals(rounded(frame, key_file=str(tmp_path / "key")))
    same_cell = frame.with_columns(c=pl.lit("one"))
    assert set(rounded(same_cell)["n"]) in ({0}, {3})
    assert set(rounded(frame.with_columns(c=pl.lit("one"), run=pl.col("c")), run="run")["n"]) == {0, 3}
    monkeypatch.delenv("DISCREET_KEY")
    with pytest.raises(ParameterError, match="stochastic-round needs a secret key"):
        rounded(frame)


def test_definitions_of_different_cells_never_read_alike():
    table = pl.DataFrame({"a": ["x", "x1:b", None, ""], "b": ["1:bx", "x", "", None]})
    assert definitions(table, ["a", "b"]).n_unique() == 4


def test_uniforms_from_the_key_are_uniform():
    drawn = keyed_uniforms(pl.Series([str(i) for i in range(20_000)]), KEY)
    assert 0 <= drawn.min() < drawn.max() < 1
    assert np.abs(np.histogram(drawn, bins=10, range=(0, 1))[0] - 2000).max() < 200


def test_weighted_totals_follow_their_count():
    frame = pl.DataFrame({"c": range(100), "n": [0, 1, 2, 5] * 25, "w": [0.0, 10.0, 30.0, 50.0] * 25})
    made = rounded(frame, weighted={"w": "n"})
    factor = (made["n"] / frame["n"]).fill_nan(1.0)
    assert (made["w"] - frame["w"] * factor).abs().max() < 1e-9
    gone = rounded(frame, weighted={"w": "n"}, weighted_rule="suppress")
    assert set(gone.filter(frame["n"].is_in([1, 2]))["w"]) == {0.0}
    assert gone.filter(frame["n"] == 5)["w"].to_list() == [50.0] * 25


def test_types_and_missing_values_survive_and_a_plan_file_brings_it_back():
    frame = pl.DataFrame({"c": range(6), "n": pl.Series([0, 1, 2, None, 3, 9], dtype=pl.UInt8)})
    plan = Plan([StochasticRound(columns=["n"], cell=["c"], k=3)])
    made = plan.apply(Microdata(frame)).data.frame
    assert made.schema == frame.schema
    assert made["n"].to_list()[3:] == [None, 3, 9]
    assert Plan.from_dict(plan.to_dict()).apply(Microdata(frame)).data.frame.equals(made)
    assert "secret" not in str(plan.to_dict())


def test_the_public_log_does_not_say_how_many_counts_were_small():
    release = StochasticRound(columns=["n"], cell=["c"]).apply(
        Microdata(pl.DataFrame({"c": [1, 2], "n": [1, 5]}))
    )
    assert "small_counts" not in str(release.to_dict())
    assert release.log[0].internal["small_counts"] == {"n": 1}


def test_what_is_no_count_is_refused():
    for values in ([1.5, 2.0], [-1.0, 2.0], [float("inf"), 1.0]):
        with pytest.raises(ColumnError, match="no column of counts"):
            rounded(pl.DataFrame({"c": [1, 2], "n": values}))
    frame = pl.DataFrame({"c": [1], "n": [1]})
    with pytest.raises(ParameterError, match="what each count is about"):
        rounded(frame, cell=None)
    with pytest.raises(ParameterError, match="cannot be rounded"):
        rounded(frame, cell=["n"])
    with pytest.raises(ParameterError, match="k must be"):
        rounded(frame, k=1)
    with pytest.raises(ParameterError, match="not among the columns"):
        rounded(frame, weighted={"w": "m"})
    with pytest.raises(ParameterError, match="prior"):
        published_law([1.0], 3)
