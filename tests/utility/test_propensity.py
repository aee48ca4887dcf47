"""Can a model tell the files apart? What must not change the answer, and what must be refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.utility import permutation_test, pmse, tabular
from discreet.utility.propensity_learners import Fit

RNG = np.random.default_rng(2)


def people(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.normal(40 + shift, 10, n).round(),
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2]),
        }
    )


A, B = people(400, 1), people(300, 2, 2.0)


def of(frame, **roles):
    return Microdata(frame, **roles)


@pytest.mark.parametrize("model", ["logit", "cart", "linear"])
def test_order_of_records_and_columns_and_names_of_categories_change_nothing(model):
    options = {"model": model, "n_perm": 3, "seed": 1}
    base = pmse(of(A), of(B), **options)
    mixed = [frame.sample(fraction=1, shuffle=True, seed=5).select("town", "age", "sex") for frame in (A, B)]
    renamed = [frame.with_columns(pl.col("town").replace({"a": "z", "b": "y", "c": "x"})) for frame in (A, B)]
    for files in (mixed, renamed):
        again = pmse(of(files[0]), of(files[1]), **options)
        assert again.value == pytest.approx(base.value, rel=1e-6)
        assert again.figures["auc"] == pytest.approx(base.figures["auc"], abs=1e-9)


@settings(max_examples=examples(25), deadline=None)
@example(
    [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "b"), (3, "a"), (3, "b")],
    [(0, "a"), (0, "a"), (1, "a"), (1, "b"), (2, "a"), (1, "b"), (2, "b"), (3, "a"), (3, "b")],
)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=3, max_size=40),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), min_size=3, max_size=40),
)
def test_grouping_like_records_gives_the_same_answer(before, after):
    files = [of(pl.DataFrame(rows, schema=["x", "y"], orient="row")) for rows in (before, after)]
    alone, grouped = (pmse(*files, aggregate=choice, interactions=0) for choice in (False, True))
    assert grouped.value == pytest.approx(alone.value, abs=1e-9)
    assert grouped.figures.get("k") == alone.figures.get("k")
    for name in ("auc", "specks"):
        assert grouped.figures[name] == pytest.approx(alone.figures[name], abs=1e-6)
    share = len(after) / (len(before) + len(after))
    assert -1e-12 <= alone.value <= share * (1 - share) + 1e-9


def test_a_saturated_logit_equals_the_table():
    names = ["sex", "town"]
    found = pmse(of(A.select(names)), of(B.select(names)))
    table = tabular(of(A.select(names)), of(B.select(names)), ways=2).detail["tables"]
    row = table.filter(pl.col("df") == table["df"].max()).row(0, named=True)
    assert found.figures["ratio"] == pytest.approx(row["S_pMSE"], rel=1e-6)


def test_weights_of_one_change_nothing_and_others_do():
    plain = pmse(of(A), of(B), interactions=0)
    ones = [frame.with_columns(w=pl.lit(3.0)) for frame in (A, B)]
    even = pmse(of(ones[0]), of(ones[1]), interactions=0, weight="w", null="theory")
    assert even.value == pytest.approx(plain.value, rel=1e-9)
    assert even.figures["p_value"] is None
    uneven = pmse(
        of(A.with_columns(w=pl.col("age") + 30)),
        of(B),
        interactions=0,
        weight="w",
        columns=["age"],
        n_perm=5,
        seed=1,
    )
    assert uneven.value != pytest.approx(plain.value, rel=1e-3)
    assert uneven.parameters["null"] == "permutation"


def test_separated_files_reach_the_largest_value_and_are_flagged():
    far = of(pl.DataFrame({"x": np.arange(50.0)})), of(pl.DataFrame({"x": np.arange(100.0, 150)}))
    found = pmse(*far)
    assert found.value == pytest.approx(0.25, abs=1e-3)
    assert found.figures["auc"] == 1.0
    assert found.figures["p_value"] is None
    assert any("for sure" in caveat for caveat in found.caveats)


def test_a_level_that_only_the_release_has_is_a_failure_of_utility_and_no_error():
    found = pmse(of(A), of(B.with_columns(town=pl.lit("new"))), interactions=0)
    assert found.figures["auc"] == 1.0


def test_gaps_are_seen():
    gone = B.with_columns(age=pl.when(pl.col("sex") == "f").then(None).otherwise(pl.col("age")))
    found = pmse(of(A), of(gone), interactions=0)
    assert found.detail["variables"]["variable"][0] == "age"
    assert "age[missing]" in found.detail["coefficients"]["term"].to_list()


def test_several_copies_are_averaged_and_pairs_standardize_every_distance():
    copies = [of(people(400, seed)) for seed in (10, 11, 12)]
    found = pmse(of(A), copies, null="pairs")
    each = found.detail["copies"]["pmse"].to_list()
    assert found.value == pytest.approx(np.mean(each))
    assert found.figures["specks_ratio"] > 0
    assert len(found.detail["null"]) == 3


def test_resynthesis_uses_the_synthesizer():
    def normal(data, n, rng):
        age = data.frame["age"].to_numpy()
        return of(pl.DataFrame({"age": rng.normal(age.mean(), age.std(), n)}))

    real = of(A.select("age"))
    made = normal(real, 400, np.random.default_rng(3))
    found = pmse(real, made, model="cart", synthesizer=normal, n_resyntheses=4, seed=1)
    assert found.parameters["null"] == "resynthesis"
    assert found.figures["null_factor"] == 1.0
    assert found == found
    again = pmse(real, made, model="cart", synthesizer=normal, n_resyntheses=4, seed=1)
    assert again.figures == found.figures


def test_linked_records_are_permuted_within_pairs():
    noisy = A.with_columns(age=pl.col("age") + np.random.default_rng(4).normal(0, 1, 400))
    found = pmse(of(A), of(noisy), aligned=True, n_perm=20, seed=1, interactions=0)
    free = pmse(of(A), of(noisy), null="permutation", n_perm=20, seed=1, interactions=0)
    assert found.figures["null_mean"] < free.figures["null_mean"]
    assert found.figures["p_value"] is None
    with pytest.raises(ParameterError, match="aligned"):
        pmse(of(A), of(B), aligned=True)


def test_only_synthesized_rows_are_compared():
    flagged = [frame.with_columns(made=pl.Series(np.arange(frame.height) % 2 == 0)) for frame in (A, A)]
    other = flagged[1].with_columns(age=pl.when(pl.col("made")).then(0.0).otherwise(pl.col("age")))
    found = pmse(of(flagged[0]), of(other), synthesized_rows="made", interactions=0)
    assert found.figures["n_released"] == 200
    assert found.figures["auc"] > 0.99


def test_same_seed_same_numbers():
    first, second = (pmse(of(A), of(B), model="cart", n_perm=5, seed=9) for _ in range(2))
    assert first.figures == second.figures


def test_a_function_may_be_the_model():
    found = pmse(of(A), of(B), model=lambda table, labels: np.full(len(labels), labels.mean()), n_perm=2)
    assert found.value == 0.0


def test_constant_columns_are_left_out_with_a_note():
    same = [frame.with_columns(land=pl.lit("x")) for frame in (A, B)]
    found = pmse(of(same[0]), of(same[1]))
    assert any("'land'" in caveat for caveat in found.caveats)
    nothing = [frame.select("land") for frame in same]
    assert pmse(of(nothing[0]), of(nothing[1])).value == 0.0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"model": "tree"}, ParameterError, "model must be"),
        ({"interactions": 3}, ParameterError, "interactions"),
        ({"null": "pairs"}, ParameterError, "at least two"),
        ({"null": "resynthesis"}, ParameterError, "synthesizer"),
        ({"model": "cart", "null": "theory"}, ParameterError, "theory"),
        ({"model": "cart", "tree": {"depth": 3}}, ParameterError, "option of tree"),
        ({"tree": {"cp": 0.1}}, ParameterError, "has none"),
        ({"unsynthesized": "nose"}, ColumnError, "nose"),
        ({"unsynthesized": ["age", "sex", "town"]}, ParameterError, "every column"),
        ({"unsynthesized": ["age"], "null": "permutation"}, ParameterError, "partly"),
        ({"n_perm": 1}, ParameterError, "n_perm"),
        ({"tree_null_scale": 2.0, "model": "cart"}, ParameterError, "tree_null_scale"),
    ],
)
def test_bad_requests_say_the_way_out(change, error, words):
    with pytest.raises(error, match=words):
        pmse(of(A), of(B), **change)


def test_bad_files_say_the_way_out():
    with pytest.raises(ColumnError, match="the release lacks it"):
        pmse(of(A), of(B.drop("sex")), columns=["sex"])
    names = pl.Series([str(number % 290) for number in range(400)])
    with pytest.raises(ParameterError, match="coefficients"):
        pmse(of(A.with_columns(name=names)), of(B.with_columns(name=pl.lit("x"))))
    with pytest.raises(InputError, match="no records"):
        pmse(of(A), of(B.clear()))
    with pytest.raises(ColumnError, match="infinite"):
        pmse(of(A), of(B.with_columns(age=pl.lit(np.inf))))
    with pytest.raises(ParameterError, match="at least one"):
        pmse(of(A), [])


def test_partly_synthetic_trees_without_copies_have_no_null():
    found = pmse(of(A), of(A.with_columns(age=pl.col("age") + 1)), model="cart", unsynthesized=["sex"])
    assert found.figures["null_mean"] is None
    assert found.figures["ratio"] is None
    assert "no reference" in found.meaning


def test_permutation_gives_a_p_value_only_where_it_is_one():
    gap = lambda x, y: abs(x.mean() - y.mean())  # noqa: E731
    x, y = RNG.normal(size=30), RNG.normal(size=30)
    assert permutation_test(gap, x, y, n_perm=50, seed=1).figures["p_value"] is None
    assert permutation_test(gap, x, y, n_perm=50, seed=1, assume_independent=True).figures["p_value"] > 0.01
    paired = permutation_test(gap, x, x + 5, n_perm=200, paired=True, seed=1)
    assert paired.figures["p_value"] == pytest.approx(1 / 201)
    with pytest.raises(ParameterError, match="give as many of both"):
        permutation_test(gap, x, y[:5], paired=True)


def test_a_tree_that_splits_nothing_gives_a_pmse_of_exactly_zero_and_no_ratio_of_rounding_errors():
    scores = np.full(3, 0.1 + 0.2)
    assert Fit(scores, np.array([3.0, 3.0, 3.0]), np.array([10.0, 10.0, 10.0])).pmse == 0


def test_a_text_that_nearly_every_record_has_for_itself_costs_one_coefficient():
    rng = np.random.default_rng(1)
    files = [
        pl.DataFrame(
            {
                "seen": [f"2024-{month:02}-{day:02} {number}" for number, (month, day) in enumerate(dates)],
                "age": rng.integers(18, 90, 2_000),
            }
        )
        for dates in rng.integers(1, 13, (2, 2_000, 2))
    ]
    found = pmse(*map(Microdata, files), model="logit", interactions=0, null="theory")
    assert abs(found.figures["standardized"]) < 4
    assert any("'seen' has" in caveat and "count as one" in caveat for caveat in found.caveats)
