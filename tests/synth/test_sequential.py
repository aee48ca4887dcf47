"""Sequential synthesis: the plan, what every drawn file must keep, and bad input."""

import datetime as dt

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Sequential, load

RNG = np.random.default_rng(3)
N = 400
PEOPLE = pl.DataFrame(
    {
        "sex": RNG.choice(["f", "m"], N),
        "age": RNG.integers(0, 90, N),
        "town": RNG.choice([f"town {i}" for i in range(60)], N),
        "pay": np.where(RNG.random(N) < 0.2, np.nan, np.round(RNG.lognormal(7, 1, N), 2)),
        "hours": RNG.choice([-8, 0, 20, 40, 45], N),
        "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 9000, N)],
        "member": RNG.random(N) < 0.3,
    }
).with_columns(
    status=pl.when(pl.col("age") < 16).then(pl.lit("child")).otherwise(pl.lit("adult")),
    hours=pl.when(pl.col("age") < 16).then(0).otherwise(pl.col("hours")),
    pay=pl.col("pay").fill_nan(None),
)
DATA = Microdata(PEOPLE, keys=["sex", "age"], sensitive="pay")


def test_a_file_is_synthesized_in_the_order_of_its_columns():
    fitted = Sequential().fit(DATA, seed=1)
    assert fitted.plan.order == tuple(PEOPLE.columns)
    assert fitted.plan.methods["sex"] == "sample"
    assert fitted.plan.predictor_matrix.tolist() == np.tril(np.ones((8, 8), dtype=int), -1).tolist()


def test_types_column_order_and_roles_survive():
    synthetic = Sequential().fit(DATA, seed=1).sample(seed=2)
    assert synthetic.frame.schema == PEOPLE.schema
    assert synthetic.roles == DATA.roles


@pytest.mark.parametrize("n", [1, 17, 3 * N])
def test_any_number_of_records_can_be_drawn(n):
    assert Sequential().fit(DATA, seed=1).sample(n, seed=2).frame.height == n


def test_donors_give_observed_values_only():
    synthetic = Sequential().fit(DATA, seed=1).sample(3 * N, seed=5).frame
    for name in PEOPLE.columns:
        assert set(synthetic[name].to_list()) <= set(PEOPLE[name].to_list())


def test_the_share_of_missing_values_is_kept():
    synthetic = Sequential().fit(DATA, seed=1).sample(20_000, seed=5).frame
    share = PEOPLE["pay"].null_count() / N
    assert synthetic["pay"].null_count() / 20_000 == pytest.approx(share, abs=0.03)


def test_the_same_seed_gives_the_same_bytes_and_copies_differ():
    fitted = Sequential().fit(DATA, seed=1)
    first, second = fitted.sample(copies=2, seed=9)
    again = Sequential().fit(DATA, seed=1).sample(copies=2, seed=9)
    assert first.frame.equals(again[0].frame)
    assert second.frame.equals(again[1].frame)
    assert not first.frame.equals(second.frame)


def test_a_model_is_saved_and_loaded_and_draws_the_same_file(tmp_path):
    fitted = Sequential(strata="sex", rules={"status": [("age < 16", "child")]}, min_stratum=10).fit(
        DATA, seed=1
    )
    again = load(fitted.save(tmp_path / "model.discreet"))
    assert again.sample(50, seed=4).frame.equals(fitted.sample(50, seed=4).frame)
    assert str(again.plan) == str(fitted.plan)
    assert again.sample(5, seed=1).roles == DATA.roles


def test_rules_are_never_broken():
    rules = {
        "status": [("age < 16", "child")],
        "hours": [("status == 'child'", 0)],
        "pay": [("age < 16", None)],
    }
    synthetic = Sequential(
        rules=rules, visit_sequence=["sex", "age", "status", "town", "hours", "pay", "born", "member"]
    )
    drawn = synthetic.fit(DATA, seed=1).sample(5000, seed=1).frame
    children = drawn.filter(pl.col("age") < 16)
    assert children.height > 100
    assert children["status"].unique().to_list() == ["child"]
    assert children["hours"].unique().to_list() == [0]
    assert children["pay"].null_count() == children.height


def test_data_that_break_a_rule_are_reported():
    plan = Sequential(rules={"member": [("age < 16", False)]}).plan(DATA)
    assert any("break the rule 'age < …' of column 'member'" in warning for warning in plan.warnings)


def test_special_codes_and_spikes_keep_their_shares():
    fitted = Sequential(special_codes={"hours": [-8]}, semicontinuous={"hours": 40}).fit(DATA, seed=1)
    drawn = fitted.sample(20_000, seed=1).frame
    for code in (-8, 40):
        assert (drawn["hours"] == code).mean() == pytest.approx((PEOPLE["hours"] == code).mean(), abs=0.03)


def test_kept_columns_stay_and_others_are_drawn():
    fitted = Sequential(method={"sex": "keep", "age": ""}).fit(DATA, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert drawn.select("sex", "age").equals(PEOPLE.select("sex", "age"))
    assert not drawn["pay"].equals(PEOPLE["pay"])
    assert fitted.combining_rule == "partial"
    with pytest.raises(ParameterError, match="Leave n out"):
        fitted.sample(10)


def test_kept_columns_predict_even_what_is_visited_before_them():
    plan = Sequential(method={"member": "keep"}).plan(DATA)
    assert plan.predictors["sex"] == ("member",)


def test_a_passive_column_is_computed():
    fitted = Sequential(method={"hours": "~age * 2"}).fit(DATA, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert (drawn["hours"] == drawn["age"] * 2).all()
    assert any("'hours' is not 'age * 2'" in warning for warning in fitted.plan.warnings)


def test_a_one_to_one_column_is_looked_up():
    twin = PEOPLE.with_columns(code=pl.col("town").str.slice(5).cast(pl.Int64))
    fitted = Sequential().fit(Microdata(twin), seed=1)
    assert fitted.plan.methods["code"] == "collinear"
    drawn = fitted.sample(seed=1).frame
    assert (drawn["town"].str.slice(5).cast(pl.Int64) == drawn["code"]).all()


def test_strata_are_drawn_apart():
    fitted = Sequential(strata="sex", min_stratum=5, stratum_sizes="fixed").fit(DATA, seed=1)
    drawn = fitted.sample(seed=1).frame
    assert drawn["sex"].value_counts(sort=True).equals(PEOPLE["sex"].value_counts(sort=True))


def test_small_strata_are_pooled_and_said_so():
    fitted = Sequential(strata="town").fit(DATA, seed=1)
    assert any("60 strata" in warning for warning in fitted.plan.warnings)
    assert set(fitted.sample(seed=1).frame["town"]) <= set(PEOPLE["town"])


def test_constraints_hold_in_every_record():
    fitted = Sequential(constraints=["age >= 30 or status == 'adult'", "hours >= 0"]).fit(DATA, seed=1)
    drawn = fitted.sample(2000, seed=1).frame
    assert drawn.filter((pl.col("age") < 30) & (pl.col("status") != "adult")).is_empty()
    assert (drawn["hours"] >= 0).all()


def test_a_constraint_that_cannot_hold_is_an_error():
    fitted = Sequential(constraints=["age > 200"], max_rounds=3).fit(DATA, seed=1)
    with pytest.raises(ParameterError, match="still break a constraint after 3 rounds"):
        fitted.sample(10, seed=1)


def test_identifiers_and_weights_are_left_out():
    weighted = PEOPLE.with_columns(w=2.0 + pl.int_range(N) % 2, id=pl.int_range(N))
    data = Microdata(weighted, identifiers="id", weight="w")
    fitted = Sequential().fit(data, seed=1)
    assert set(fitted.plan.left_out) == {"id", "w"}
    assert fitted.sample(seed=1).columns == tuple(PEOPLE.columns)
    assert fitted.combining_rule == "pseudo-likelihood"


def test_regenerated_weights_add_up_to_the_population():
    data = Microdata(PEOPLE.with_columns(w=pl.Series(RNG.uniform(1, 5, N))), weight="w")
    drawn = Sequential(weights="regenerate").fit(data, seed=1).sample(50, seed=1)
    assert drawn.frame["w"].sum() == pytest.approx(data.frame["w"].sum())
    assert drawn.roles.weight == "w"


def test_weighted_donors_follow_the_weights():
    frame = pl.DataFrame({"a": [0, 1] * 500, "b": ["x", "y"] * 500, "w": [9.0, 1.0] * 500})
    drawn = Sequential().fit(Microdata(frame, weight="w"), seed=1).sample(10_000, seed=1).frame
    assert drawn["a"].mean() == pytest.approx(0.1, abs=0.02)


def test_equal_weights_change_nothing():
    plain = Sequential().fit(Microdata(PEOPLE), seed=1).sample(seed=1).frame
    even = (
        Sequential()
        .fit(Microdata(PEOPLE.with_columns(w=pl.lit(3.0)), weight="w"), seed=1)
        .sample(seed=1)
        .frame
    )
    assert plain.select(pl.col("age").mean()).item() == pytest.approx(even["age"].mean(), abs=5)


def test_a_proper_synthesis_varies_the_models_between_copies():
    fitted = Sequential(proper=True).fit(DATA, seed=1)
    first, second = fitted.sample(copies=2, seed=1)
    assert not first.frame.equals(second.frame)
    with pytest.raises(ParameterError, match="cannot be saved"):
        fitted.save("model.discreet")


def test_the_plan_reads_from_and_writes_to_plain_values():
    given = Sequential(
        method={"age": "cart", "pay": "sample"},
        rules={"status": [("age < 16", "child")]},
        special_codes={"hours": [-8]},
        predictor_matrix={"pay": ["age"]},
    )
    again = Sequential.from_dict(given.to_dict())
    assert str(again.plan(DATA)) == str(given.plan(DATA))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"method": "crat"}, ParameterError, "Did you mean 'cart'"),
        ({"method": {"agee": "cart"}}, ColumnError, "Did you mean 'age'"),
        ({"visit_sequence": ["sex"]}, ColumnError, "does not say when column 'age' comes"),
        ({"visit_sequence": ["sex", "sex"]}, ColumnError, "stands twice"),
        ({"predictor_matrix": [[0, 1], [1, 0]]}, ParameterError, "must be 8 by 8"),
        ({"predictor_matrix": np.ones((8, 8), dtype=int)}, ParameterError, "predict itself"),
        ({"rules": {"sex": [("age < 16", "f")]}}, ParameterError, "must come earlier"),
        ({"rules": {"age": [("age < 16", 3)]}}, ParameterError, "speaks of the column itself"),
        ({"rules": {"age": [("agee < 16", 3)]}}, ColumnError, "Did you mean 'age'"),
        ({"special_codes": {"hours": [-77]}}, ColumnError, "None of the special_codes"),
        ({"special_codes": {"sex": ["f"]}}, ColumnError, "must be numbers"),
        ({"strata": "towns"}, ColumnError, "named under strata"),
        ({"max_levels": 50}, ColumnError, "'town' has 60 levels"),
        ({"method": {"pay": "~wage * 2"}}, ColumnError, "wage"),
        ({"method": {"sex": "~age * 2"}}, ParameterError, "must come earlier"),
        ({"method": {"town": "nested.region"}}, ColumnError, "no column 'region'"),
        ({"leave_out": "wage"}, ColumnError, "leave_out"),
        ({"stratum_sizes": "population"}, ParameterError, "needs survey weights"),
    ],
)
def test_bad_input_is_named_with_a_way_out(options, error, words):
    with pytest.raises(error, match=words):
        Sequential(**options).fit(DATA, seed=1)


def test_weights_that_are_not_positive_are_refused():
    data = Microdata(PEOPLE.with_columns(w=pl.Series([0.0] + [1.0] * (N - 1))), weight="w")
    with pytest.raises(ColumnError, match="in 1 records"):
        Sequential().fit(data, seed=1)


def test_a_column_of_names_is_refused():
    data = Microdata(PEOPLE.with_columns(name=pl.Series([f"person {i}" for i in range(N)])))
    with pytest.raises(ColumnError, match="Declare it as an identifier"):
        Sequential().fit(data, seed=1)


def test_one_column_or_one_record_cannot_be_synthesized():
    with pytest.raises(ParameterError, match="two columns"):
        Sequential().fit(Microdata(PEOPLE.select("age")), seed=1)
    with pytest.raises(ParameterError, match="two records"):
        Sequential().fit(Microdata(PEOPLE.head(1)), seed=1)


def test_a_constant_and_an_empty_column_come_back_as_they_were():
    frame = PEOPLE.select("sex", "age").with_columns(k=pl.lit(7), nothing=pl.lit(None, dtype=pl.Float64))
    drawn = Sequential().fit(Microdata(frame), seed=1).sample(10, seed=1).frame
    assert drawn["k"].to_list() == [7] * 10
    assert drawn["nothing"].null_count() == 10
    assert drawn.schema == frame.schema


def test_many_levels_in_front_do_not_stop_it():
    wide = pl.DataFrame(
        {
            "code": [f"c{i % 700}" for i in range(3000)],
            "a": RNG.integers(0, 5, 3000),
            "b": RNG.normal(size=3000),
        }
    )
    assert Sequential().fit(Microdata(wide), seed=1).sample(seed=1).frame.height == 3000


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", None]),
            st.one_of(st.none(), st.integers(-5, 5)),
            st.one_of(st.none(), st.floats(-10, 10, allow_nan=False)),
            st.one_of(st.none(), st.booleans()),
        ),
        min_size=2,
        max_size=60,
    ),
    st.integers(1, 90),
)
def test_whatever_the_file_its_synthetic_twin_has_its_types_and_its_values(records, n):
    kinds = {"t": pl.String, "i": pl.Int16, "f": pl.Float64, "b": pl.Boolean}
    frame = pl.DataFrame(records, schema=kinds, orient="row")
    drawn = Sequential().fit(Microdata(frame), seed=1).sample(n, seed=2).frame
    assert drawn.schema == frame.schema
    assert drawn.height == n
    for name in ("t", "i", "b"):
        assert set(drawn[name].to_list()) <= set(frame[name].to_list())


def test_the_automatic_order_puts_columns_after_those_that_rules_and_formulas_speak_of():
    rng = np.random.default_rng(1)
    age = rng.integers(0, 90, 400)
    frame = pl.DataFrame(
        {
            "married": np.where((age > 17) & (rng.random(400) < 0.5), "yes", "no"),
            "adult": np.where(age > 17, "yes", "no"),
            "age": age,
            "months": age * 12,
            "children": rng.binomial(3, 0.4, 400),
            "born": np.full(400, 3),
        }
    )
    options = Sequential(
        visit_sequence="auto",
        rules={"married": [("age < 18", "no")]},
        method={"adult": "nested.children", "age": "~months / 12"},
        denominators={"children": "born"},
    )
    order = options.plan(Microdata(frame)).order
    assert order.index("months") < order.index("age") < order.index("married")
    assert order.index("born") < order.index("children") < order.index("adult")
    drawn = options.fit(Microdata(frame), seed=1).sample(seed=1).frame
    assert drawn.filter((pl.col("age") < 18) & (pl.col("married") == "yes")).is_empty()
    circle = {"rules": {"married": [("age < 18", "no")], "age": [("married == 'yes'", 20)]}}
    with pytest.raises(ParameterError, match="must come earlier"):
        Sequential(visit_sequence="auto", **circle).plan(Microdata(frame))
