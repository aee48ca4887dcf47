"""What a look at a file finds, keeps to itself, and puts back."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.value_gate import is_withheld
from discreet.microdata import Microdata
from discreet.synth.baselines import Independent
from discreet.synth.column_forms import NumberForm
from discreet.synth.preflighting import Finding, Preflight, preflight
from discreet.synth.preflighting.column_kinds import exhaustive_splits
from discreet.synth.preflighting.generator_proposal import topological
from discreet.synth.preflighting.preflight_checks import spike_scores, whipple_indices
from discreet.synth.saved_models import Parts, decoded, encoded
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.visit_sequence import in_order
from discreet.synth.written_values import WrittenNumberForm


def people(n=600, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(16, 90, n)
    job = rng.choice(["none", "clerk", "nurse", "cook"], n, p=[0.3, 0.3, 0.2, 0.2])
    wage = np.where(rng.random(n) < 0.1, -8, rng.integers(500, 4000, n))
    rent = rng.integers(0, 500, n)
    hours = pl.Series(rng.integers(5, 60, n)).set(pl.Series(job == "none"), None)
    return pl.DataFrame(
        {
            "age": age,
            "band": np.array(["young", "middle", "old"])[np.digitize(age, [30, 60])],
            "job": job,
            "hours": hours,
            "wage": wage,
            "rent": rent,
            "heat": rng.integers(0, 200, n),
        }
    ).with_columns(costs=pl.col("rent") + 2 * pl.col("heat"))


def look(frame, **options):
    return preflight(Microdata(frame), probe=False, **options)


def names(found, kind):
    return {finding.column for finding in found.of(kind)}


def test_codes_bands_sums_and_skips_are_found_together():
    found = look(people())
    assert found["coded-missing:wage"].parameters["codes"] == [-8]
    assert found["look-up:band"].columns == ("band", "age")
    assert found["sum:costs"].parameters["expression"] == "rent + 2 * heat"
    assert found["given-value:hours"].parameters == {"when": "job == 'none'"}


def test_several_codes_are_found_and_come_back_each_as_itself():
    frame = people().with_columns(
        wage=pl.when(pl.col("age") % 9 == 0)
        .then(-7)
        .when(pl.col("age") % 7 == 0)
        .then(None)
        .otherwise("wage")
    )
    found = look(frame)
    assert found["coded-missing:wage"].parameters["codes"] == [-8, -7]
    clean = found.apply(Microdata(frame))
    assert set(clean.frame["wage: code"].unique()) == {"-7", "-8", "missing", "ordinary"}
    assert found.restore(clean).frame["wage"].equals(frame["wage"])


def test_temperatures_below_zero_are_no_codes():
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"degrees": rng.integers(-30, 35, 2000), "x": rng.normal(size=2000)})
    assert not [f for f in look(frame).of("coded-missing") if f.confidence != "low"]
    ends_at_code = pl.DataFrame({"degrees": rng.integers(-9, 35, 2000), "x": rng.normal(size=2000)})
    assert not [f for f in look(ends_at_code).of("coded-missing") if f.confidence == "high"]


def test_a_code_that_the_codebook_calls_legal_is_of_low_confidence_and_a_declared_one_of_high():
    frame = people().with_columns(score=pl.Series(np.random.default_rng(3).integers(0, 77, 600)))
    found = look(frame, codebook={"wage": {"legal": [-8]}, "score": {"missing": [50]}})
    assert found["coded-missing:wage"].confidence == "low"
    assert found["coded-missing:score"].parameters["codes"] == [50]


def test_an_isolated_ninety_nine_is_of_medium_confidence():
    rng = np.random.default_rng(4)
    children = np.where(rng.random(1000) < 0.02, 99, rng.integers(0, 6, 1000))
    found = look(pl.DataFrame({"children": children, "x": rng.normal(size=1000)}))
    assert found["coded-missing:children"].confidence == "medium"


def test_texts_that_mean_nothing_are_codes():
    frame = people().with_columns(job=pl.when(pl.col("age") > 80).then(pl.lit("N/A")).otherwise("job"))
    found = look(frame)
    assert found["coded-missing:job"].parameters["codes"] == ["N/A"]
    clean = found.apply(Microdata(frame))
    assert clean.frame["job"].null_count() == (frame["job"] == "N/A").sum()
    assert found.restore(clean).frame["job"].equals(frame["job"])


def test_the_weight_is_neither_a_code_nor_derived():
    frame = people().with_columns(w=pl.when(pl.col("age") > 60).then(-9.0).otherwise(pl.col("rent") * 2.0))
    found = preflight(Microdata(frame, weight="w"), probe=False)
    assert not [f for f in found.findings if "w" in f.columns]
    assert "w" not in found.order


def test_chains_are_undone_step_by_step_and_of_two_that_tell_each_other_the_first_stays():
    frame = people().with_columns(
        year=2020 - pl.col("age"),
        half=pl.when(pl.col("band") == "young").then(pl.lit("first")).otherwise(pl.lit("second")),
    )
    found = look(frame)
    told = {f.column: f.columns[1:] for f in found.findings if f.kind in ("look-up", "sum", "product")}
    assert told["half"] == ("band",)
    assert told["band"] == ("age",) or told["band"] == ("year",)
    assert ("year" in told) != ("age" in told)
    data = Microdata(frame)
    assert found.restore(found.apply(data)).frame.equals(frame)


def test_a_question_that_was_skipped_does_not_tell_the_answer_before_it():
    frame = people().with_columns(works=pl.col("job") != "none")
    found = look(frame)
    assert ("works", "hours") not in [f.columns for f in found.of("look-up")]
    assert ("works", "job") in [f.columns for f in found.of("look-up")]


def test_circles_of_derived_columns_are_refused_when_a_plan_is_edited_into_one():
    loop = [
        Finding("look-up", ("a", "b"), {}, "high", "", parameters={"of": "b"}),
        Finding("look-up", ("b", "a"), {}, "high", "", parameters={"of": "a"}),
    ]
    with pytest.raises(ParameterError, match="circle"):
        topological(loop)


def test_a_few_wrong_records_do_not_hide_a_sum_and_are_listed():
    frame = people(2000).with_row_index("at").with_columns(
        costs=pl.when(pl.col("at").is_in([5, 77])).then(1).otherwise("costs")
    ).drop("at")  # fmt: skip
    finding = look(frame)["sum:costs"]
    assert finding.evidence["broken"] == 2
    assert finding.evidence["exceptions"] == [5, 77]
    assert not finding.reversible


def test_a_division_by_zero_restores_as_missing():
    rng = np.random.default_rng(5)
    frame = pl.DataFrame({"a": rng.integers(1, 90, 500), "b": rng.integers(1, 90, 500)})
    frame = frame.with_columns(ratio=pl.col("a") / pl.col("b"))
    found = look(frame)
    assert found["product:ratio"].parameters["expression"] == "a / b"
    made = Microdata(pl.DataFrame({"a": [4, 4], "b": [2, 0]}))
    assert found.restore(made).frame["ratio"].to_list() == [2.0, None]


def test_small_scales_are_no_sums():
    rng = np.random.default_rng(6)
    frame = pl.DataFrame({f"q{i}": rng.integers(0, 3, 300) for i in range(8)})
    assert not look(frame).of("sum")
    assert not look(frame).of("look-up")


def test_identifiers_constants_and_empty_columns_are_named():
    frame = people().with_row_index("number").with_columns(
        pl.lit(1).alias("one"), pl.lit(None, dtype=pl.Float64).alias("nothing"),
        pl.col("number").cast(pl.String).alias("code_text"),
    )  # fmt: skip
    found = look(frame)
    assert names(found, "identifier") == {"number", "code_text"}
    assert names(found, "constant") == {"one"}
    assert names(found, "all-missing") == {"nothing"}
    data = Microdata(frame)
    back = found.restore(found.apply(data)).frame
    assert back["nothing"].null_count() == 600
    assert back["nothing"].dtype == pl.Float64
    assert "number" not in back.columns
    fitted = found.synthesizer().fit(data, seed=1)
    assert "number" not in fitted.sample(5, seed=1).columns


def test_numbers_and_dates_in_texts_become_what_they_are_and_come_back():
    frame = people().with_columns(
        text=pl.col("rent").cast(pl.String),
        day=pl.date(2020, 1, 1).dt.offset_by(pl.format("{}d", "heat")).dt.strftime("%Y-%m-%d"),
    )
    found = look(frame)
    assert found["number-as-text:text"].confidence == "high"
    data = Microdata(frame)
    found = found.decided(
        accept=["date-as-text:day"],
        reject=["look-up:text"] if "look-up:text" in [f.name for f in found.findings] else [],
    )
    clean = found.apply(data)
    if "text" in clean.columns:
        assert clean.frame["text"].dtype == pl.Int64
    back = found.restore(clean).frame
    assert back.select("text", "day").equals(frame.select("text", "day"))


def test_a_start_that_never_follows_its_end_is_found_and_kept():
    rng = np.random.default_rng(7)
    start = rng.integers(1950, 2010, 800)
    frame = pl.DataFrame({"start": start, "end": start + rng.integers(0, 30, 800), "x": rng.normal(size=800)})
    found = look(frame)
    assert found["inequality:start"].parameters["constraint"] == "start <= end"
    made = found.synthesizer().fit(Microdata(frame), seed=1).sample(seed=1).frame
    assert (made["start"] <= made["end"]).all()


def test_values_of_outliers_stay_in_the_house_unless_asked_for():
    rng = np.random.default_rng(8)
    pay = np.append(rng.normal(3000, 500, 999).round(), 987654.0)
    frame = pl.DataFrame({"pay": pay, "x": rng.normal(size=1000)})
    found = look(frame)
    assert found["outliers:pay"].evidence["beyond_gap"] == 1
    assert "987654" not in str(found) + found.to_toml() + found._repr_html_()
    assert look(frame, show_values=True)["outliers:pay"].evidence["values"] == [987654.0]


def test_small_files_are_not_searched_for_outliers_and_spikes():
    frame = pl.DataFrame({"a": [*range(40), 100_000], "b": list(range(41))})
    found = look(frame)
    assert not found.of("outliers")
    assert not found.of("spikes")


def test_a_plan_is_saved_edited_and_run_again(tmp_path):
    frame, data = people(), Microdata(people())
    found = look(frame)
    path = found.save(tmp_path / "plan.toml", show_values=True)
    assert path.read_text(encoding="utf-8").startswith("# This file holds values of the data")
    again = Preflight.load(path)
    assert again.to_dict() == found.to_dict()
    text = path.read_text(encoding="utf-8").replace(
        'name = "coded-missing:wage"', 'name = "coded-missing:wage"\naccepted = false'
    )
    path.write_text(text, encoding="utf-8")
    edited = Preflight.load(path)
    assert "coded-missing:wage" not in [f.name for f in edited.accepted()]
    assert edited.synthesizer().special_codes is None
    assert edited.restore(edited.apply(data)).frame.equals(frame)
    assert found.synthesizer(accept=["sum:costs"]).method == {"costs": "~rent + 2 * heat"}


def test_a_plan_that_is_saved_without_values_can_be_decided_on_but_not_acted_on(tmp_path):
    found = look(people())
    again = Preflight.load(found.save(tmp_path / "plan.toml"))
    assert [f.name for f in again.findings] == [f.name for f in found.findings]
    assert again["sum:costs"] == found["sum:costs"]
    assert again["coded-missing:wage"].parameters == {"codes": {"withheld": 1}}
    with pytest.raises(ParameterError, match="'coded-missing:wage' was saved without its values"):
        again.synthesizer()
    left = [f.name for f in found.findings if is_withheld(dict(again[f.name].parameters))]
    assert again.decided(reject=left).synthesizer() == found.decided(reject=left).synthesizer()


def test_the_whole_way_round_works_with_any_generator():
    frame = people()
    found = look(frame)
    made = found.synthesize(Microdata(frame), Sequential(), seed=1).frame
    assert made.schema == frame.schema
    assert (made["costs"] == made["rent"] + 2 * made["heat"]).all()
    assert (made["wage"] == -8).any()
    assert made["wage"].filter(made["wage"] < 0).unique().to_list() == [-8]


def test_categories_and_booleans_come_back_in_their_type():
    frame = people().with_columns(
        pl.col("band").cast(pl.Enum(["young", "middle", "old"])), grown=pl.col("age") >= 60
    )
    found = look(frame)
    assert found.restore(found.apply(Microdata(frame))).frame.equals(frame)
    made = found.synthesizer().fit(Microdata(frame), seed=2).sample(seed=2).frame
    assert made.schema == frame.schema
    assert (made["grown"] == (made["age"] >= 60)).all()


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_frames_come_back_in_the_kind_they_came_in(kind):
    frame = people().to_pandas() if kind == "pandas" else people().to_arrow()
    data = Microdata(frame)
    found = preflight(data, probe=False)
    assert type(found.restore(found.apply(data)).frame) is type(frame)


def test_mistakes_are_named():
    data = Microdata(people())
    with pytest.raises(ParameterError, match="sentinel_min_share"):
        preflight(data, sentinel_min_shar=0.1)
    with pytest.raises(ParameterError, match="negative"):
        preflight(data, fd_tol=-1)
    with pytest.raises(ParameterError, match="hihg"):
        preflight(data, accept="hihg")
    with pytest.raises(ColumnError, match="wages"):
        preflight(data, codebook={"wages": {"missing": [1]}})
    with pytest.raises(ParameterError, match="mising"):
        preflight(data, codebook={"wage": {"mising": [1]}})
    with pytest.raises(InputError, match="no records"):
        preflight(Microdata(people().head(0)))
    found = look(people())
    with pytest.raises(ColumnError, match="'rent' is gone"):
        found.apply(Microdata(people().drop("rent")))
    with pytest.raises(ColumnError, match="'rent'"):
        found.restore(Microdata(people().drop("rent", "costs")))
    with pytest.raises(ParameterError, match="finding"):
        found.synthesizer(accept=["sum:cost"])
    with pytest.raises(InputError, match=r"no plan file 'none.toml'"):
        Preflight.load("none.toml")


def test_cost_is_predicted_and_said():
    found = preflight(Microdata(people()))
    assert found.expected["fit_seconds"] > 0
    assert found.expected["memory_bytes"] > 1e7
    assert "Expected with CART" in str(found)
    assert "Compiling" in str(found)


def test_scores_and_indices_are_those_of_the_definition():
    assert exhaustive_splits(20) == 524_287
    values, counts = np.arange(0.0, 11), np.array([4, 4, 4, 4, 4, 40, 4, 4, 4, 4, 4])
    assert spike_scores(values, counts, 2)[5] == pytest.approx(36 / np.sqrt(5))
    fives, tens = whipple_indices(np.arange(1.0, 101), np.ones(100, dtype=np.int64))
    assert (fives, tens) == (100, 100)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10_000), st.integers(-3, 3), st.integers(1, 3), st.integers(-50, 50))
def test_every_sum_of_two_columns_is_found_and_restored(seed, first, second, plus):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.integers(0, 500, 400), "b": rng.integers(0, 500, 400)})
    frame = frame.with_columns(c=first * pl.col("a") + second * pl.col("b") + plus + 5000)
    found = look(frame)
    kinds = {finding.kind for finding in found.findings}
    assert kinds & {"sum", "look-up"}
    assert found.restore(found.apply(Microdata(frame))).frame.equals(frame)


@settings(max_examples=examples(30), deadline=None)
@given(st.permutations(list("abcdef")), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8))
def test_an_order_is_kept_but_for_what_must_come_first(order, pairs):
    edges: dict[str, set[str]] = {}
    for one, other in pairs:
        if one > other:  # later letters follow from earlier ones, so there is no circle
            edges.setdefault("abcdef"[one], set()).add("abcdef"[other])
    done = in_order(order, edges)
    assert sorted(done) == list("abcdef")
    assert all(done.index(source) < done.index(name) for name, own in edges.items() for source in own)


def test_a_total_of_many_parts_is_found_though_few_records_have_some_of_them():
    rng = np.random.default_rng(12)
    parts = {
        f"part{place}": np.where(rng.random(3000) < share, rng.gamma(2, 500, 3000).round(2), 0.0)
        for place, share in enumerate((0.9, 0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.008))
    }
    frame = pl.DataFrame(parts).with_columns(income=pl.sum_horizontal(*parts).round(2))
    found = look(frame.with_columns(age=rng.integers(18, 90, 3000)))
    total = found["sum:income"]
    assert set(total.columns[1:]) == set(parts)
    assert (total.confidence, total.evidence["broken"]) == ("high", 0)


def test_a_value_that_many_share_is_a_spike_in_numbers_with_decimals_too():
    rng = np.random.default_rng(7)
    none = rng.random(400) < 0.6
    benefit = np.where(none, 0.0, rng.gamma(2, 100, 400).round(2))
    frame = pl.DataFrame(
        {"age": rng.integers(18, 90, 400), "benefit": benefit, "rent": rng.gamma(3, 200, 400)}
    )
    found = look(frame)
    spike = found["spikes:benefit"]
    assert (spike.confidence, spike.evidence["records_at_spikes"]) == ("high", int(none.sum()))
    assert [finding.column for finding in found.of("spikes")] == ["benefit"]
    assert found.synthesizer().semicontinuous == {"benefit": [0.0]}
    made = found.synthesizer(method="parametric").fit(Microdata(frame), seed=1).sample(4000, seed=1).frame
    assert (made["benefit"] == 0).mean() == pytest.approx(none.mean(), abs=0.04)
    assert made["benefit"].mean() == pytest.approx(benefit.mean(), rel=0.15)


def coded_incomes(n=600):
    rng = np.random.default_rng(8)
    age = rng.integers(5, 80, n)
    income = np.where(age < 15, "N", (100 * rng.integers(-20, 900, n)).astype(str))
    return pl.DataFrame(
        {
            "age": age,
            "income": income,
            "industry": rng.choice(["N", *(str(v) for v in range(170, 9900, 130))], n),
            "schooling": rng.choice(["N", "1", "2", "3"], n),
            "price": [f"{v:.2f}" for v in rng.uniform(0, 9, n)],
        }
    )


def test_a_code_among_numbers_that_are_texts_is_named_with_what_to_do():
    found = look(coded_incomes())
    income = found["number-as-text:income"]
    assert (income.confidence, income.reversible) == ("high", True)
    assert income.evidence["code"] == "1 text"
    assert look(coded_incomes(), show_values=True)["number-as-text:income"].evidence["code"] == "'N'"
    assert income.evidence["records_with_code"] == (coded_incomes()["income"] == "N").sum()
    assert "take as numbers, its codes as states of their own (special_codes)" in str(found)
    # Numbers of industries may be mere labels; school years are few enough to stay a category.
    assert found["number-as-text:industry"].confidence == "medium"
    assert found["many-levels:industry"].confidence == "high"
    assert "number-as-text:schooling" not in [finding.name for finding in found.findings]
    told = preflight(
        Microdata(coded_incomes()),
        codebook={"industry": {"kind": "number"}, "income": {"kind": "category"}},
        probe=False,
    )
    assert told["number-as-text:industry"].confidence == "high"
    assert "number-as-text:income" not in [finding.name for finding in told.findings]


def test_numbers_among_codes_are_synthesized_as_numbers_and_written_as_they_were():
    data = Microdata(coded_incomes())
    found = look(coded_incomes())
    synthesizer = found.synthesizer()
    assert synthesizer.special_codes == {"income": ["N"], "price": []}
    made = synthesizer.fit(data, seed=1).sample(seed=1).frame
    assert made.schema == data.frame.schema
    assert (made.filter(pl.col("age") < 15)["income"] == "N").mean() > 0.9
    assert made["price"].str.contains(r"^\d+\.\d\d$").all()
    clean = found.apply(data)
    assert clean.frame.schema["income"] == pl.Int64
    assert clean.frame.schema["price"] == pl.Float64
    assert found.restore(clean).frame.equals(data.frame)
    other = found.synthesize(data, Independent(), seed=1)
    assert other.frame.schema == data.frame.schema


def test_two_codes_and_missing_texts_come_back_each_as_itself():
    frame = coded_incomes().with_columns(
        income=pl.when(pl.int_range(pl.len()) % 9 == 0)
        .then(pl.lit("NA"))
        .when(pl.int_range(pl.len()) % 9 > 1)
        .then(pl.col("income"))
    )
    found = look(frame)
    assert found["number-as-text:income"].parameters["codes"] == ["N", "NA"]
    assert found.restore(found.apply(Microdata(frame))).frame.equals(frame)
    made = found.synthesizer().fit(Microdata(frame), seed=1).sample(seed=1).frame["income"]
    assert {"N", "NA", None} < set(made.to_list())


def test_a_text_of_one_person_among_numbers_is_not_told():
    frame = coded_incomes().with_columns(
        income=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("ask Ann Lee")).otherwise(pl.col("income"))
    )
    found = look(frame)
    assert "Ann Lee" not in str(found)
    assert found["number-as-text:income"].evidence["code"] == "2 rare texts"


def test_numbers_with_leading_zeros_stay_as_they_are():
    frame = coded_incomes().with_columns(zip=pl.Series([f"{v:05d}" for v in range(600)]).sample(600, seed=1))
    frame = frame.with_columns(pl.col("zip").str.replace("00001", "N").str.replace("00002", "N"))
    found = look(frame)["number-as-text:zip"]
    assert (found.confidence, found.reversible) == ("medium", False)
    assert "convert them yourself" in found.action
    assert "zip" not in (look(frame).decided(accept=[found.name]).synthesizer().special_codes or {})


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.sampled_from(["N", "?"]), st.integers(-999, 999).map(str)),
        min_size=3,
        max_size=40,
    )
)
def test_any_column_of_numbers_and_codes_is_split_and_joined_again(texts):
    series = pl.Series("x", texts, dtype=pl.String)
    form = WrittenNumberForm.of_texts(series, codes=["N", "?"])
    assert form.joined([part.values for part in form.split(series)]).to_list() == [
        None if text is None else text for text in texts
    ]
    parts = Parts()
    again = decoded(encoded(form, NumberForm, parts), NumberForm, parts)
    assert again.split(series)[-1].values.tolist() == form.split(series)[-1].values.tolist()


def test_codes_among_words_do_not_make_numbers():
    answers = pl.Series(["yes", "no", "-8", "-9"] * 50)
    found = preflight(Microdata(pl.DataFrame({"answer": answers, "age": list(range(100)) * 2})))
    assert not [f for f in found.findings if f.kind == "number-as-text"]
    amounts = pl.Series(([str(v) for v in range(-49, 50)] + ["N"]) * 2)
    found = preflight(Microdata(pl.DataFrame({"pay": amounts, "age": list(range(100)) * 2})))
    assert [f.columns for f in found.findings if f.kind == "number-as-text"] == [("pay",)]


def test_dates_whose_order_is_in_doubt_are_not_guessed():
    texts = pl.Series(["03/04/1990", "05/06/1991"] * 50)
    found = preflight(Microdata(pl.DataFrame({"born": texts, "age": list(range(50)) * 2})))
    (finding,) = [f for f in found.findings if f.kind == "date-as-text"]
    assert finding.confidence == "low"
    assert "dates='dmy'" in finding.action


def households_file():
    rng = np.random.default_rng(2)
    size = rng.choice([1, 2, 3], 200)
    home = np.repeat(np.arange(200), size)
    return pl.DataFrame(
        {
            "home": home,
            "size": np.repeat(size, size),
            "w": np.repeat(rng.uniform(5, 9, 200).round(1), size),
            "sex": rng.choice(["f", "m"], len(home)),
            "age": rng.integers(0, 90, len(home)),
            "pay": rng.gamma(2, 900, len(home)).round(0),
        }
    )


def test_a_file_of_weighted_households_is_said_to_call_for_a_population():
    data = Microdata(households_file(), household="home", weight="w")
    found = preflight(data, probe=False)
    assert set(found.generators) == {"households", "population"}
    assert "It also suits population" in str(found)
    plan = found.generator("population")
    assert (plan.structure, plan.continuous) == (["sex", "age"], ["pay"])
    made = plan.fit(data, seed=1).sample(seed=1).frame
    assert made.group_by("home").len().height > 1000
    assert found.from_dict(found.to_dict()).generators == found.generators
    with pytest.raises(ParameterError, match="There is no generator 'populaton'"):
        found.generator("populaton")


def test_persons_with_several_records_call_for_generators_that_count_persons():
    data = Microdata(households_file().drop("w", "size"), person="home")
    found = preflight(data, probe=False)
    assert found.generator("syndiffix").person == "home"
    with pytest.raises(ParameterError, match="--schema"):
        found.generator("relational")


def test_a_plain_file_calls_for_nothing_else():
    assert not preflight(Microdata(households_file().select("sex", "age", "pay")), probe=False).generators
