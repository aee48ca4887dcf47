"""Records rebuilt from tables: exact where arithmetic settles it, ranked where it does not, audited either way."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import attack, tables
from discreet.core.errors import InputError, ParameterError

QUICK = {"runs": 6, "rows": 60, "steps": 150, "device": "cpu", "seed": 1}


def people(count=120, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 4, count)
    return pl.DataFrame(
        {
            "place": rng.choice(["north", "south"], count),
            "sex": rng.choice(["f", "m"], count),
            "age": [f"a{a}" for a in age],
            "job": [
                f"j{min(int(a), 2)}" if u < 0.8 else "j0" for a, u in zip(age, rng.random(count), strict=True)
            ],
        }
    )


ATTRIBUTES = ["sex", "age", "job"]


@pytest.fixture(scope="module")
def asked():
    file = people().select(ATTRIBUTES)
    schema = attack.schema_of(file)
    queries = attack.marginal_queries(schema, 2)
    return file, schema, queries, attack.answer_queries(queries, file, schema)


def test_queries_count_what_a_filter_counts(asked):
    file, schema, _, _ = asked
    queries = attack.table_queries(
        schema, ["sex", "age"], groupings={"age": [["a0", "a1"], ["a2", "a3"]]}, where={"job": ["j0", "j1"]}
    )
    counts = attack.answer_queries(queries, file, schema)
    for query, count in zip(queries, counts, strict=True):
        kept = file.filter(*(pl.col(name).is_in(list(allowed)) for name, allowed in query.items()))
        assert kept.height == count


@pytest.mark.slow
def test_a_fit_answers_as_the_tables_do_and_finds_most_common_records(asked):
    file, schema, queries, counts = asked
    found = attack.reconstruct(queries, counts, schema, file.height, **QUICK)
    assert found.figures["mean_error"] < 0.5
    ranking = found.detail["ranking"]
    assert ranking["freq"].sum() == 6 * file.height
    assert ranking["freq"].is_sorted(descending=True)
    audit = attack.audit_reconstruction(file, found)
    assert audit.figures["pearson"] > 0.8
    assert audit.figures["match_rate"] > 0.6
    again = attack.reconstruct(queries, counts, schema, file.height, **QUICK)
    assert again.detail["ranking"].equals(ranking)


def test_suppressed_interval_and_noisy_answers_are_taken(asked):
    file, schema, queries, counts = asked
    some = [None if count < 5 else (count - 1, count + 1) for count in counts]
    found = attack.reconstruct(queries, some, schema, file.height, **QUICK)
    assert found.figures["suppressed"] == sum(answer is None for answer in some)
    assert found.figures["mean_error"] < 0.2
    noisy = counts + np.random.default_rng(1).normal(0, 6, len(counts))
    with pytest.raises(ParameterError, match="noisy=True"):
        attack.reconstruct(queries, noisy, schema, file.height, **QUICK)
    worse = attack.reconstruct(queries, noisy, schema, file.height, noisy=True, **QUICK)
    assert worse.figures["mean_error"] > found.figures["mean_error"]
    assert any("contradict" in caveat for caveat in worse.caveats)


def test_a_prior_and_argmax_and_once_a_run(asked):
    file, schema, queries, counts = asked
    found = attack.reconstruct(
        queries, counts, schema, file.height, prior=file, draw="argmax", once_a_run=True, **QUICK
    )
    assert found.detail["ranking"]["freq"].max() <= QUICK["runs"]
    assert attack.audit_reconstruction(file, found).figures["missed"] < 0.5


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=12), st.data())
def test_what_is_certain_is_true(records, data):
    file = pl.DataFrame(records, schema=["a", "b"], orient="row")
    schema = {"a": [0, 1], "b": [0, 1, 2]}
    queries = attack.marginal_queries(schema, 1) + attack.marginal_queries(schema, 2)
    counts = attack.answer_queries(queries, file, schema).tolist()
    hidden = data.draw(st.sets(st.integers(0, len(queries) - 1), max_size=6))
    shown = [None if i in hidden else count for i, count in enumerate(counts)]
    if all(answer is None for answer in shown):
        return
    found = attack.reconstruct(queries, shown, schema, file.height, method="exact")
    cells = found.detail["cells"].join(
        file.group_by("a", "b").agg(pl.len().alias("true")), on=["a", "b"], how="left"
    )
    true = cells["true"].fill_null(0)
    assert ((cells["lower"] <= true) & (true <= cells["upper"])).all()
    assert found.figures["solutions"] is None or found.figures["solutions"] >= 1


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.dictionaries(st.integers(0, 8).map(lambda x: (str(x),)), st.integers(1, 9), min_size=1),
)
def test_shares_of_an_audit_are_shares_and_add_up(values, ranking):
    file = pl.DataFrame({"x": [str(value) for value in values]})
    figures = attack.audit_reconstruction(file, ranking).figures
    kinds = len(set(values))
    assert figures["missed"] * kinds + figures["rebuilt"] - figures["invented"] * kinds == pytest.approx(
        kinds
    )
    for name in ("unique_share", "match_rate", "missed", "smallest_chance"):
        assert 0 <= figures[name] <= 1
    assert figures["pearson"] is None or -1.000001 <= figures["pearson"] <= 1.000001


def test_a_perfect_ranking_finds_everybody_and_invents_nobody():
    file = people().select(ATTRIBUTES)
    ranking = file.group_by(ATTRIBUTES).agg(pl.len().alias("freq"))
    found = attack.audit_reconstruction(
        file, ranking, public=["sex", "age"], confidential=["job"], exhaustive=True
    )
    assert found.figures["pearson"] == pytest.approx(1.0)
    assert found.figures["invented"] == found.figures["missed"] == 0
    assert found.figures["all_alike"] == found.figures["disclosed"]
    open_ = attack.audit_reconstruction(file, ranking, public=["sex", "age"], confidential=["job"])
    assert open_.figures["disclosed"] == 0
    assert any("exhaustive=False" in caveat for caveat in open_.caveats)


def test_areas_are_pooled_by_their_counts():
    file = people()
    ranking = file.group_by("place", *ATTRIBUTES).agg(pl.len().alias("freq"))
    wrong = (
        ranking.with_columns(pl.lit("m").alias("sex"))
        .group_by("place", *ATTRIBUTES)
        .agg(pl.col("freq").sum())
    )
    found = attack.audit_reconstruction(file, wrong, strata="place")
    areas = found.detail["areas"]
    assert areas["prototypes"].sum() == found.figures["prototypes"]
    assert areas["missed_count"].sum() == found.figures["missed_count"]
    assert found.figures["missed"] == pytest.approx(
        found.figures["missed_count"] / found.figures["prototypes"]
    )


def test_missing_values_are_a_category():
    file = pl.DataFrame({"x": ["a", None, None]})
    schema = attack.schema_of(file)
    assert schema == {"x": ["a", None]}
    found = attack.reconstruct([{"x": "a"}, {"x": None}], [1, 2], schema, 3, method="exact")
    assert attack.audit_reconstruction(file, found).figures["match_rate"] == 1.0


@pytest.mark.slow
def test_a_planned_publication_is_attacked_before_and_after_protection(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")
    file = people()
    planned = tables.Table.from_microdata(file, "place*sex*age*job")
    rounded = tables.RandomRounding(base=5, margins="independent").apply(planned, seed=1)
    found = attack.table_reconstruction(
        file, planned, rounded, area="place", method="exact", tolerance=4, confidential=["job"], public=["sex", "age"],
        exhaustive=True,
    )  # fmt: skip
    assert found.figures["before_certain"] == 1.0 > found.figures["certain"]
    # Rounding hides how many people there are, and not that all who are alike share a value.
    assert found.figures["before_disclosed"] >= found.figures["disclosed"] > 0
    assert found.figures["areas"] == 2
    assert found.detail["audit"].columns == ["figure", "before", "after"]
    ranked = attack.table_reconstruction(file, planned, rounded, area="place", **QUICK)
    assert ranked.figures["before_mean_error"] < 1
    assert ranked.figures["match_rate"] <= ranked.figures["before_match_rate"] + 0.05


@pytest.mark.slow
def test_suppressed_cells_say_nothing():
    file = people(40)
    planned = tables.Table.from_microdata(file, "sex*age + job")
    judged = tables.primary(planned, tables.Threshold(4))
    suppressed = tables.Suppression().apply(judged)
    asked = attack.queries_of(suppressed)
    assert sum(answer is None for answer in asked.answers) == int(suppressed.suppressed.sum()) > 0
    found = attack.table_reconstruction(file, planned, suppressed, method="exact")
    assert found.figures["certain"] <= found.figures["before_certain"]


def test_bad_input_is_refused_by_name(asked):
    file, schema, queries, counts = asked
    with pytest.raises(ParameterError, match="Query 1: There is no attribute"):
        attack.reconstruct([{"shoe": 1}], [1], schema, 3)
    with pytest.raises(ParameterError, match="category of 'sex'"):
        attack.reconstruct([{"sex": "x"}], [1], schema, 3)
    with pytest.raises(ParameterError, match="one answer a query"):
        attack.reconstruct(queries, counts[:-1], schema, file.height)
    with pytest.raises(ParameterError, match="n must be"):
        attack.reconstruct(queries, counts, schema, 0)
    with pytest.raises(ParameterError, match="negative"):
        attack.reconstruct(queries, [-1.0] * len(queries), schema, file.height)
    with pytest.raises(InputError, match="suppressed"):
        attack.reconstruct(queries, [None] * len(queries), schema, file.height)
    wide = {f"x{i}": list(range(10)) for i in range(6)}
    with pytest.raises(ParameterError, match="1,000,000 combinations"):
        attack.reconstruct([{"x0": 1}], [1], wide, 3, method="exact")
    one = attack.audit_reconstruction(pl.DataFrame({"x": ["a", "a"]}), {("a",): 3})
    assert one.figures["pearson"] is None
    assert any("undefined" in caveat for caveat in one.caveats)
    with pytest.raises(ParameterError, match="both"):
        attack.audit_reconstruction(file, attack.schema_of(file) and {("f", "a0", "j0"): 1}, public=["sex"])
