"""Sequential synthesis at its edges: odd types and names, rules in strata, plan files, privacy, proper copies."""

import datetime as dt
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Sequential, load, load_plan, save_plan
from discreet.synth.methods.tree_donors import Cart

RNG = np.random.default_rng(8)
N = 300
SEX = RNG.choice(["f", "m"], N)
START = dt.datetime(2020, 1, 1)
FILE = pl.DataFrame(
    {
        "sex": SEX,
        "age": RNG.integers(0, 90, N),
        "pregnant": np.where(SEX == "m", "no", RNG.choice(["no", "yes"], N)),
        "region": RNG.choice(list("abcd"), N, p=[0.5, 0.4, 0.09, 0.01]),
        "born": [dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 9000, N)],
        "stay": [dt.timedelta(minutes=int(m)) for m in RNG.integers(0, 99, N)],
        "pay": [None if r < 0.1 else round(r * 1000, 1) for r in RNG.random(N)],
        "visits": RNG.integers(1, 9, N),
    }
).with_columns(
    zip=pl.col("region") + pl.Series(RNG.integers(0, 30, N).astype(str)),
    shows=(pl.col("visits") * 0.4).cast(pl.Int64),
)
DATA = Microdata(FILE)


def drawn(n=None, data=DATA, **options):
    return Sequential(**options).fit(data, seed=1).sample(n, seed=2).frame


ODD = {
    "int8": pl.Series(RNG.integers(-100, 100, N), dtype=pl.Int8),
    "int128": pl.Series(RNG.integers(-100, 100, N).tolist(), dtype=pl.Int128),
    "far from zero": pl.Series((RNG.integers(0, 50, N) + 2**60).tolist(), dtype=pl.UInt64),
    "nanoseconds": pl.Series(1_700_000_000_123_000_000 + RNG.integers(0, 10**6, N) * 10**6).cast(
        pl.Datetime("ns")
    ),
    "with a zone": pl.Series([START + dt.timedelta(hours=int(h)) for h in RNG.integers(0, 999, N)])
    .dt.replace_time_zone("UTC")
    .dt.convert_time_zone("Europe/Vienna"),
    "clock": pl.Series([dt.time(int(h), 30) for h in RNG.integers(0, 24, N)]),
    "duration": FILE["stay"],
    "decimal": pl.Series([Decimal(int(v)) / 4 for v in RNG.integers(0, 99, N)], dtype=pl.Decimal(10, 2)),
    "single": pl.Series(np.round(RNG.normal(size=N), 1), dtype=pl.Float32),
    "one value or none": pl.Series([5 if r < 0.5 else None for r in RNG.random(N)]),
    "empty": pl.Series([None] * N, dtype=pl.Float64),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("method", ["cart", "pmm", "norm"])
def test_numbers_and_times_of_every_type_come_back_in_it(kind, method, tmp_path):
    frame = FILE.select("age").with_columns(ODD[kind].alias("x"), last=FILE["visits"])
    fitted = Sequential(method={"x": method}).fit(Microdata(frame), seed=1)
    synthetic = fitted.sample(400, seed=2).frame
    assert synthetic.schema == frame.schema
    if method != "norm":
        assert set(synthetic["x"].to_list()) <= set(ODD[kind].to_list())
    assert synthetic["x"].null_count() / 400 == pytest.approx(ODD[kind].null_count() / N, abs=0.12)
    again = load(fitted.save(tmp_path / "m"))
    assert again.sample(50, seed=3).frame.equals(fitted.sample(50, seed=3).frame)


def test_drawn_times_are_told_as_finely_as_the_observed_ones():
    frame = FILE.select("age").with_columns(ODD["with a zone"].alias("x"), ODD["single"].alias("y"))
    synthetic = drawn(data=Microdata(frame), method={"x": "norm", "y": "norm"})
    assert set(synthetic["x"].dt.minute()) == {0}
    assert set(synthetic["x"].dt.microsecond()) == {0}
    assert (synthetic["y"].cast(pl.Float64).round(1) - synthetic["y"]).abs().max() < 1e-6


def test_infinite_values_are_refused():
    frame = FILE.select("age").with_columns(x=pl.Series([np.inf, *RNG.random(N - 1)]))
    with pytest.raises(ColumnError, match="infinite values"):
        drawn(data=Microdata(frame))


@pytest.mark.parametrize("name", ["", "pay: state", 'it\'s "q"', "$array", "mass", "record", "k0"])
def test_a_column_may_be_called_anything(name, tmp_path):
    frame = pl.DataFrame({name: FILE["region"], "pay": FILE["pay"], "b": FILE["visits"]})
    turned = pl.DataFrame({"b": FILE["visits"], "pay": FILE["pay"], name: FILE["region"]})
    for options, data in [
        ({}, frame),
        ({"method": "parametric"}, frame),
        ({"method": {"pay": f"nested.{name}"}}, frame),
        ({"strata": name, "min_stratum": 5}, frame),
        ({"strata": name}, frame),
        ({"rules": {name: [("b > 5", "a")]}}, turned),
        ({"visit_sequence": "auto"}, frame),
        ({"visit_sequence": "dependence-tree"}, frame),
        ({"method": {name: "keep"}, "constraints": ["b < 8"]}, frame),
    ]:
        fitted = Sequential(**options).fit(Microdata(data), seed=1)
        synthetic = fitted.sample(seed=1).frame
        assert synthetic.schema == data.schema
        again = load(fitted.save(tmp_path / "m"))
        assert again.sample(seed=1).frame.equals(synthetic)


def test_the_state_of_a_number_has_random_numbers_of_its_own():
    same = FILE["pay"].is_null().cast(pl.String)
    frame = pl.DataFrame({"pay": FILE["pay"], "pay: state": same.sample(N, shuffle=True, seed=1)})
    synthetic = drawn(5000, data=Microdata(frame), method="sample")
    both = synthetic.select(
        pl.corr(pl.col("pay").is_null().cast(int), (pl.col("pay: state") == "true").cast(int))
    )
    assert abs(both.item()) < 0.1


def test_a_rule_may_cover_a_whole_stratum():
    rules = {"pregnant": [("sex == 'm'", "no")]}
    synthetic = drawn(strata="sex", min_stratum=5, rules=rules)
    assert synthetic.filter((pl.col("sex") == "m") & (pl.col("pregnant") == "yes")).is_empty()
    assert synthetic["pregnant"].n_unique() == 2


def test_a_rule_that_covers_all_records_is_said_so():
    warnings = Sequential(rules={"pregnant": [("age >= 0", "no")]}).fit(DATA, seed=1).plan.warnings
    assert any("cover every record" in warning for warning in warnings)


def test_of_several_rules_the_first_counts_also_where_the_data_break_them():
    rules = {"pregnant": [("sex == 'm'", "no"), ("age >= 0", "yes")]}
    men = FILE.filter(pl.col("sex") == "m").height
    fine = FILE.with_columns(
        pregnant=pl.when(pl.col("sex") == "m").then(pl.lit("no")).otherwise(pl.lit("yes"))
    )
    assert men > 0
    assert not any("break the rule" in w for w in Sequential(rules=rules).plan(Microdata(fine)).warnings)


def test_every_parameter_goes_through_a_plan_file(tmp_path):
    given = Sequential(
        method={"age": Cart(min_leaf=9), "zip": "nested.region", "visits": {"method": "rf", "n_trees": 3}},
        otherwise="ctree",
        visit_sequence=["age", "region", "born", "stay", "pay", "visits", "zip", "shows"],
        predictor_matrix={"pay": ["age", "region"]},
        rules={
            "born": [("age < 16", dt.date(2000, 1, 1))],
            "stay": [("age > 80", dt.timedelta(minutes=5))],
            "pay": [("age < 10", None)],
        },
        special_codes={"born": [FILE["born"][0]]},
        semicontinuous={"pay": [FILE["pay"].drop_nulls()[0]]},
        smoothing={"pay": "density"},
        strata="sex",
        proper=False,
        weights="ignore",
        method_options={"ctree": {"mincriterion": 0.8}, "logit": {"augment": False}},
        defaults={"number": "norm"},
        few_values=2,
        max_levels=500,
        number_groups={"age": 4},
        denominators={"shows": "visits"},
        constraints=["age < 89"],
        max_rounds=50,
        stratum_sizes="fixed",
        min_stratum=5,
        leave_out=["pregnant"],
    )
    read = load_plan(save_plan(given, tmp_path / "p.toml"))
    ours, theirs = given.fit(DATA, seed=1), read.fit(DATA, seed=1)
    assert ours.plan.to_dict() == theirs.plan.to_dict()
    synthetic = ours.sample(seed=1).frame
    assert synthetic.equals(theirs.sample(seed=1).frame)
    assert synthetic.filter(pl.col("age") < 16)["born"].unique().to_list() == [dt.date(2000, 1, 1)]
    assert load(ours.save(tmp_path / "m")).sample(seed=1).frame.equals(synthetic)


def test_one_method_with_options_for_all_columns_goes_through_a_plan_file(tmp_path):
    read = load_plan(save_plan(Sequential(method=Cart(min_leaf=11)), tmp_path / "p.toml"))
    assert read.plan(DATA).steps[1].method == Cart(min_leaf=11)


def test_a_time_without_events_goes_through_a_plan_file(tmp_path):
    read = load_plan(save_plan(Sequential(events={"visits": None}), tmp_path / "p.toml"))
    assert read.plan(DATA).methods["visits"] == "survival-tree"


def test_options_may_stand_under_any_name_of_a_method():
    plan = Sequential(method={"age": "ranger"}, method_options={"rf": {"n_trees": 3}}).plan(DATA)
    assert plan.steps[1].method.n_trees == 3


@pytest.mark.parametrize("proper", [True, "bootstrap"])
@pytest.mark.parametrize("method", ["nested.region", "satcat", "cart"])
def test_a_proper_copy_keeps_relations_that_have_no_exception(proper, method):
    codes = dict(zip("abcd", [10, 20, 30, 40], strict=True))
    frame = FILE.select("region", "zip").with_columns(code=pl.col("region").replace_strict(codes))
    options = {"method": {"zip": method}, "proper": proper, "predictor_matrix": {"zip": ["region"]}}
    for copy in Sequential(**options).fit(Microdata(frame), seed=1).sample(copies=3, seed=2):
        assert (copy.frame["region"].replace_strict(codes) == copy.frame["code"]).all()
        if method != "cart":
            assert (copy.frame["zip"].str.slice(0, 1) == copy.frame["region"]).all()


def test_pooled_strata_keep_what_belongs_to_them():
    synthetic = drawn(
        data=Microdata(FILE.select("region", "zip", "sex", "age")), strata="region", min_stratum=1000
    )
    assert (synthetic["zip"].str.slice(0, 1) == synthetic["region"]).mean() > 0.95


def test_a_stratum_of_one_record_is_drawn():
    frame = FILE.with_columns(region=pl.when(pl.int_range(N) == 7).then(pl.lit("z")).otherwise("region"))
    for method in ("cart", "parametric"):
        synthetic = drawn(3000, data=Microdata(frame), strata="region", min_stratum=1, method=method)
        assert synthetic.filter(pl.col("region") == "z")["age"].unique().to_list() == [frame["age"][7]]


def test_strata_are_drawn_in_the_shares_of_the_population():
    weighted = FILE.with_columns(w=pl.when(pl.col("sex") == "f").then(9.0).otherwise(1.0))
    share = 9 * (SEX == "f").sum() / (9 * (SEX == "f").sum() + (SEX == "m").sum())
    data = Microdata(weighted, weight="w")
    synthetic = drawn(10_000, data=data, strata="sex", min_stratum=5)
    assert (synthetic["sex"] == "f").mean() == pytest.approx(share, abs=0.02)
    fixed = Sequential(strata="sex", min_stratum=5, stratum_sizes="fixed").plan(data)
    assert any("the file is not" in warning for warning in fixed.warnings)


@pytest.mark.parametrize("method", ["pmm", "cart", "ctree", "rf", "bag", "norm", "satcat", "sample"])
def test_donors_are_drawn_in_proportion_to_their_weights(method):
    group, value = RNG.integers(0, 2, 4000), RNG.integers(0, 2, 4000)
    frame = pl.DataFrame(
        {"group": group.astype(str), "value": value * 10.0, "w": np.where(value == 1, 9.0, 1.0)}
    )
    synthetic = drawn(20_000, data=Microdata(frame, weight="w"), method={"value": method})
    assert synthetic["value"].mean() == pytest.approx(9.0, abs=0.2)


def test_ranks_of_heaped_values_keep_the_margin_when_ties_are_spread():
    heaped = pl.DataFrame(
        {"group": RNG.choice(["a", "b"], 4000), "value": RNG.choice([0.0, 10.0], 4000, p=[0.1, 0.9])}
    )
    method = {"value": {"method": "normrank", "ties": "random"}}
    synthetic = drawn(20_000, data=Microdata(heaped), method=method)
    assert synthetic["value"].mean() == pytest.approx(9.0, abs=0.15)
    with pytest.raises(ParameterError, match="ties"):
        drawn(method={"age": {"method": "normrank", "ties": "first"}})


def test_a_privacy_parameter_is_refused_where_weights_are_used():
    levels = pl.Enum(["f", "m"])
    frame = pl.DataFrame(
        {"a": FILE["sex"].cast(levels), "b": FILE["sex"].cast(levels), "w": RNG.random(N) + 0.1}
    )
    noisy = {"method": "catall", "method_options": {"catall": {"epsilon": 1.0}}}
    with pytest.raises(ParameterError, match="weights='ignore'"):
        Sequential(**noisy).fit(Microdata(frame, weight="w"), seed=1)
    fitted = Sequential(**noisy, weights="ignore").fit(Microdata(frame, weight="w"))
    assert "1-differential privacy" in fitted.guarantee


def test_names_that_hardly_repeat_are_refused():
    names = [f"person {i}" for i in range(N - 3)] + ["person 0"] * 3
    with pytest.raises(ColumnError, match="Declare it as an identifier"):
        drawn(data=Microdata(FILE.with_columns(name=pl.Series(names))))


def test_a_fit_that_would_take_hours_is_refused():
    codes = pl.Series([f"c{i % 150}" for i in range(N)])
    data = Microdata(FILE.select("age", "visits").with_columns(code=codes))
    assert drawn(data=data, method={"code": {"method": "polyreg", "max_iterations": 3}}).height == N
    with pytest.raises(ParameterError, match="polyreg would take too long"):
        drawn(data=data, method={"code": {"method": "polyreg", "max_work": 1e5}})


def test_a_private_model_tells_nothing_but_its_noisy_table():
    levels = pl.Enum(["f", "m", "x"])
    small = pl.DataFrame({"a": FILE["sex"].head(40).cast(levels), "b": FILE["sex"].head(40).cast(levels)})
    noisy = Sequential(method="catall", method_options={"catall": {"epsilon": 0.05}})
    one, other = (noisy.fit(Microdata(file), seed=1) for file in (small, small.tail(39)))
    for fitted in (one, other):
        assert fitted.plan.rows == fitted.rows
        assert fitted.rows not in (39, 40)
    assert {**one.plan.to_dict(), "rows": 0} == {**other.plan.to_dict(), "rows": 0}


def test_counts_and_their_denominators_may_be_missing_together():
    young = pl.col("age") < 9
    holes = FILE.with_columns(pl.when(~young).then(pl.col("visits", "shows")))
    synthetic = drawn(2000, data=Microdata(holes), denominators={"shows": "visits"})
    assert (synthetic["shows"] <= synthetic["visits"]).all()
    assert synthetic["shows"].null_count() / 2000 == pytest.approx(holes["shows"].null_count() / N, abs=0.05)
    assert drawn(denominators={"shows": "visits"}, few_values=20).height == N


def test_a_constant_survival_time_is_drawn():
    frame = FILE.select("sex", "age").with_columns(time=pl.lit(3.0), event=pl.Series(RNG.integers(0, 2, N)))
    assert drawn(data=Microdata(frame), events={"time": "event"})["time"].unique().to_list() == [3.0]


def test_a_passive_column_may_be_missing_where_it_never_was():
    frame = FILE.select("age", "pregnant").with_columns(edu=pl.when(pl.col("age") > 9).then(pl.lit("high")))
    synthetic = drawn(data=Microdata(frame.select("age", "edu", "pregnant")), method={"pregnant": "~edu"})
    assert synthetic["pregnant"].null_count() > 0


def test_many_columns_that_are_alike_are_found_quickly():
    base = RNG.integers(0, 2, (2000, 120))
    frame = pl.DataFrame({f"c{i}": base[:, i] for i in range(120)}).with_columns(twin=1 - pl.col("c7"))
    plan = Sequential().plan(Microdata(frame))
    assert plan.methods["twin"] == "collinear"
    assert list(plan.methods.values()).count("collinear") == 1


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rules": {"age": [("sex == 'f'", "x")]}}, ColumnError, "cannot hold"),
        ({"rules": {"age": [("sex == 'f'", 3.5)]}}, ColumnError, "cannot hold"),
        ({"rules": {"born": [("age < 3", "then")]}}, ColumnError, "cannot hold"),
        ({"rules": {"pregnant": [("1 == 1", "no")]}}, ParameterError, "speaks of no column"),
        ({"rules": {"sex": [("age < 3", "f")]}, "strata": "sex"}, ParameterError, "no room"),
        ({"rules": ["x"]}, ParameterError, "must be a mapping"),
        ({"constraints": ["age"]}, ParameterError, "must be a condition"),
        ({"constraints": ["1 == 1"]}, ParameterError, "must be a condition"),
        ({"method_options": {"carts": {}}}, ParameterError, "Did you mean 'cart'"),
        ({"method_options": {"cart": {"minleaf": 3}}}, ParameterError, "Did you mean 'min_leaf'"),
        ({"defaults": {"numbr": "norm"}}, ParameterError, "Did you mean 'number'"),
        ({"defaults": {"number": "nrm"}}, ParameterError, "Did you mean 'norm'"),
        ({"events": {"visits": "sex"}}, ColumnError, "must hold 0 and 1"),
        ({"events": {"visits": "shows", "pay": "shows"}}, ParameterError, "stands twice"),
        ({"events": {"visits": "shows"}, "method": {"shows": "cart"}}, ParameterError, "drawn together"),
        ({"denominators": {"shows": "sex"}}, ColumnError, "no number"),
        ({"few_values": "x"}, ParameterError, "whole number"),
        ({"max_rounds": 0}, ParameterError, "whole number"),
        ({"min_stratum": -1}, ParameterError, "whole number"),
        ({"visit_sequence": 3}, ParameterError, "list of columns"),
        ({"strata": "sex", "method": {"sex": "keep"}}, ParameterError, "is a stratum"),
        ({"special_codes": {"age": ["x"]}}, ColumnError, "cannot hold"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_fitted(options, error, words):
    with pytest.raises(error, match=words) as caught:
        Sequential(**options).fit(DATA, seed=1)
    assert "\n" not in str(caught.value)


def test_a_text_column_under_special_codes_is_taken_for_numbers():
    rng = np.random.default_rng(9)
    x = rng.normal(size=400)
    texts = np.where(x < -1, "N", np.round(100 * x + rng.normal(size=400)).astype(int).astype(str))
    data = Microdata(pl.DataFrame({"x": x, "pay": texts}))
    plain = Sequential().fit(data, seed=1)
    assert any("'pay' is text" in note and "special_codes" in note for note in plain.plan.warnings)
    for method in ("cart", "norm"):
        fitted = Sequential(method={"pay": method}, special_codes={"pay": ["N"]}).fit(data, seed=1)
        assert not any("is text" in note for note in fitted.plan.warnings)
        made = fitted.sample(seed=1).frame
        assert made["pay"].dtype == pl.String
        assert (made["pay"] == "N").mean() == pytest.approx((texts == "N").mean(), abs=0.06)
        numbers = made.filter(pl.col("pay") != "N").with_columns(pl.col("pay").cast(pl.Int64))
        assert numbers.select(pl.corr("x", "pay")).item() > 0.95
    with pytest.raises(ColumnError, match=r"'pay' stands under special_codes .* in \d+ records it is not"):
        Sequential(special_codes={"pay": []}).fit(data)
    with pytest.raises(ColumnError, match="None of the special_codes of column 'pay'"):
        Sequential(special_codes={"pay": ["refused"]}).fit(data)
    zeros = Microdata(data.frame.with_columns(pay=pl.col("pay").str.strip_chars("-").str.zfill(5)))
    with pytest.raises(ColumnError, match="leading zeros"):
        Sequential(special_codes={"pay": ["0000N"]}).fit(zeros)


def test_a_rule_may_give_numbers_in_texts_a_code():
    rng = np.random.default_rng(10)
    age = rng.integers(5, 60, 300)
    texts = np.where(age < 15, "N", (age * 10).astype(str))
    data = Microdata(pl.DataFrame({"age": age, "pay": texts}))
    fitted = Sequential(special_codes={"pay": []}, rules={"pay": [("age < 15", "N")]}).fit(data, seed=1)
    made = fitted.sample(seed=1).frame
    assert (made.filter(pl.col("age") < 15)["pay"] == "N").all()
    assert (made.filter(pl.col("age") >= 15)["pay"] != "N").all()
