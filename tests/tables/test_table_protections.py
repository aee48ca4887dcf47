"""Cell keys, rounding and synthesis: what must hold of every table, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.tables import (
    CellKey,
    ControlledRounding,
    MultinomialDirichletSynthesis,
    NegativeBinomialSynthesis,
    NoisyCounts,
    PoissonInverseGaussianSynthesis,
    PoissonSynthesis,
    RandomRounding,
    ReleaseLevel,
    SmallCountRounding,
    Table,
    TableProtection,
    check_release,
    equations,
    expanded,
    fit_log_linear,
    poisson,
    replication_audit,
    unit_concentration,
)
from discreet.tables.mixed_poisson import NegativeBinomial, PoissonInverseGaussian
from discreet.tables.random_rounding import round_to_base

SECRET = "a secret of at least sixteen bytes"


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", SECRET)


def population(seed=0, rows=400, weight=False):
    rng = np.random.default_rng(seed)
    columns = {
        "id": np.arange(rows),
        "town": rng.integers(0, 6, rows).astype(str),
        "sex": rng.choice(["f", "m"], rows),
        "job": rng.integers(0, 4, rows).astype(str),
        "pay": rng.lognormal(3, 1, rows).round(2),
    }
    if weight:
        columns["w"] = rng.uniform(1, 3, rows)
    frame = pl.DataFrame(columns)
    return frame.with_columns(
        county=pl.col("town").replace({"0": "A", "1": "A", "2": "A", "3": "B", "4": "B", "5": "B"})
    )


def counted(seed=0, rows=400):
    return Table.from_microdata(
        population(seed, rows), "town*sex*job", hierarchies={"town": "county"}, zeros="all"
    )


CODES = {
    "town": {"A": ["0", "1", "2"], "B": ["3", "4", "5"]},
    "sex": {"All": ["f", "m"]},
    "job": {"All": ["0", "1", "2", "3"]},
}


def declared(seed=0, rows=400):
    """The same table from code lists that were given, not read from the records."""
    return Table.from_microdata(population(seed, rows), "town*sex*job", hierarchies=CODES, zeros="all")


tables_of_counts = st.builds(counted, st.integers(0, 50), st.sampled_from([20, 60, 300]))


# Sums.


@settings(max_examples=examples(15), deadline=None)
@given(tables_of_counts, st.integers(0, 1000))
def test_margins_of_drawn_tables_add_up(table, seed):
    sums = equations(table)
    for protection in (
        PoissonSynthesis(alpha=0.001, domain="public"),
        NegativeBinomialSynthesis(alpha=0.001, epsilon=2, domain="public"),
        RandomRounding(base=5, draws="seed"),
        SmallCountRounding(k=4),
        NoisyCounts(epsilon=1),
        MultinomialDirichletSynthesis(epsilon=2),
    ):
        made = protection.apply(table, seed=seed)
        assert np.abs(sums @ made.table.values).max() == 0
        assert made.information.figures["broken_sums"] == 0
        assert (made.table.values >= 0).all()
        assert np.array_equal(made.table.x.T @ made.table.inner["count"].to_numpy(), made.table.values)


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 50), st.sampled_from([3, 5, 10]), st.sampled_from(["nearest", "unbiased"]))
def test_controlled_rounding_keeps_all_sums_with_adjacent_multiples(seed, base, method):
    table = Table.from_microdata(population(seed, 150), "town*sex", hierarchies={"town": "county"})
    made = ControlledRounding(base=base, method=method).apply(table, seed=seed)
    values = made.table.values
    assert (values % base == 0).all()
    assert np.abs(values - table.values).max() < base
    assert np.abs(equations(table) @ values).max() == 0
    same = table.values % base == 0
    assert np.array_equal(values[same], table.values[same])


def test_controlled_rounding_without_an_adjacent_solution_says_how_many_cells_moved_further():
    # Three cells of 1 whose pairs are published: no pattern of 0 and 2 makes every pair 2.
    frame = pl.DataFrame(
        {"r": ["1", "2", "3"], "h": ["12", "12", "c"], "i": ["a", "23", "23"], "j": ["13", "b", "13"]}
    )
    table = Table.from_microdata(frame, "r", hierarchies={"r": ["h", "i", "j"]})
    with pytest.warns(DiscreetWarning, match="moved further"):
        made = ControlledRounding(base=2).apply(table)
    assert made.figures["beyond"] > 0
    assert np.abs(equations(table) @ made.table.values).max() == 0
    with pytest.raises(ParameterError, match="restricted=False"):
        ControlledRounding(base=2, restricted=True).apply(table)


@pytest.mark.slow
def test_unbiased_controlled_rounding_is_right_on_average():
    table = Table.from_microdata(population(3, 60), "town*sex")
    drawn = [ControlledRounding(base=5, method="unbiased").apply(table, seed=seed) for seed in range(300)]
    assert all(result.figures["unbiased"] for result in drawn)
    mean = np.mean([result.table.values for result in drawn], axis=0)
    error = np.sqrt((table.values % 5) * (5 - table.values % 5) / 300)
    assert (np.abs(mean - table.values) <= 4.5 * error + 1e-9).all()


# Consistency.


def test_the_same_people_get_the_same_cell_key_noise_in_every_table_and_order():
    frame = population(1, 500)
    protect = CellKey(id="id")
    one = protect.apply(Table.from_microdata(frame, "town*sex", measure="pay"))
    other = protect.apply(
        Table.from_microdata(
            frame.sample(fraction=1, shuffle=True, seed=3), "sex*town + county*job", measure="pay"
        )
    )
    on = ["town", "sex"]
    both = one.published.join(
        other.published.filter((pl.col("county") == "Total") & (pl.col("job") == "Total")),
        on=on,
        suffix="_other",
    )
    assert both.height == one.published.height
    assert both["count"].equals(both["count_other"].rename("count"))
    assert np.allclose(both["pay"], both["pay_other"])
    assert protect.apply(one.original, seed=1).published.equals(protect.apply(one.original, seed=2).published)


def test_cell_key_noise_keeps_its_bounds_mean_and_variance():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"id": np.arange(60_000), "cell": rng.integers(0, 4000, 60_000)})
    made = CellKey(id="id").apply(Table.from_microdata(frame, "cell", margins=False))
    noise = made.table.values - made.original.values
    assert np.abs(noise).max() <= 5
    assert not np.isin(made.table.values, (1, 2)).any()
    assert abs(noise.mean()) < 4 * np.sqrt(3 / 4000)
    assert noise.var() == pytest.approx(3, rel=0.12)


def test_noise_of_sums_is_bounded_by_the_largest_contribution():
    frame = population(2, 300)
    table = Table.from_microdata(frame, "town*sex", measure="pay")
    made = CellKey(id="id", reach=0.3, sd=0.15, gap=0.05).apply(table)
    largest = table.contributions(1, "pay").top(1)
    share = np.abs(made.table.cells["pay"].to_numpy() - table.cells["pay"].to_numpy()) / largest
    assert share.min() >= 0.05 - 1e-9
    assert share.max() <= 0.3 + 1e-9


def test_another_secret_key_gives_other_noise_and_none_is_refused(monkeypatch):
    table = Table.from_microdata(population(), "town*sex*job")
    one = CellKey(id="id").apply(table).published
    monkeypatch.setenv("DISCREET_KEY", "another secret of sixteen bytes")
    assert not CellKey(id="id").apply(table).published.equals(one)
    monkeypatch.delenv("DISCREET_KEY")
    with pytest.raises(ParameterError, match="secret key"):
        CellKey(id="id").apply(table)


def test_record_keys_of_a_column_work_without_a_secret_also_on_cells(monkeypatch):
    monkeypatch.delenv("DISCREET_KEY")
    frame = population().with_columns(
        rkey=pl.Series(np.random.default_rng(0).integers(0, 2**20, 400) / 2**20)
    )
    direct = CellKey(key_column="rkey").apply(Table.from_microdata(frame, "town*sex"))
    sums = frame.group_by("town", "sex").agg(n=pl.len(), rkey=pl.col("rkey").sum())
    cells = Table.from_cells(sums, "town*sex", count="n", measure="rkey")
    made = CellKey(key_column="rkey").apply(cells)
    on = ["town", "sex"]
    assert direct.published.sort(on).select(*on, "count").equals(made.published.sort(on).select(*on, "count"))
    assert "rkey" not in made.published.columns


def test_keyed_rounding_is_the_same_in_every_table():
    frame = population(4, 200)
    small = SmallCountRounding(k=8, margins="independent")
    with pytest.warns(DiscreetWarning):
        one = small.apply(Table.from_microdata(frame, "town*job")).published
    with pytest.warns(DiscreetWarning):
        more = small.apply(Table.from_microdata(frame, "town*job*sex")).published.filter(
            pl.col("sex") == "Total"
        )
    assert one.sort("town", "job").equals(more.drop("sex").sort("town", "job"))


def test_the_same_seed_gives_the_same_table_and_runs_have_their_own_draws():
    table = counted(1)
    make = PoissonSynthesis(alpha=0.001, domain="public")
    assert make.apply(table, seed=4).published.equals(make.apply(table, seed=4).published)
    assert not make.apply(table, seed=4).published.equals(make.apply(table, seed=5).published)
    runs = [SmallCountRounding(k=9, run=run).apply(table).published for run in ("1", "2")]
    assert not runs[0].equals(runs[1])


# Unbiasedness and laws.


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 60), st.sampled_from([2, 3, 5, 10]))
def test_random_rounding_is_right_on_average(count, base):
    drawn = (np.arange(10_000) + 0.5) / 10_000
    made = round_to_base(np.full(10_000, count), base, drawn)
    assert made.mean() == pytest.approx(count, abs=base / 5000)
    assert (made % base == 0).all()
    assert np.abs(made - count).max() < base


def test_poisson_synthesis_has_mean_and_spread_of_its_law():
    table = Table.from_microdata(pl.DataFrame({"c": np.repeat(np.arange(3000), 4)}), "c", margins=False)
    made = PoissonSynthesis(alpha=0.1, domain="public").apply(table, seed=1)
    row = made.detail["by_count"].row(3, named=True)
    assert row["count"] == 4
    assert row["mean_seen"] == pytest.approx(row["mean_expected"], abs=4)
    assert row["sd_seen"] == pytest.approx(row["sd_expected"], rel=0.06)


def test_sparse_synthesis_has_the_law_of_the_dense_one():
    rng = np.random.default_rng(2)
    drawn = [poisson.synthesize_sparse([1, 3], [2, 5], 6, 0.5, rng, structural=[4]) for _ in range(4000)]
    dense = np.zeros((4000, 6))
    for row, (cells, counts) in zip(dense, drawn, strict=True):
        row[cells] = counts
    assert dense.mean(axis=0) == pytest.approx([0.5, 2.5, 0.5, 5.5, 0, 0.5], abs=0.15)
    assert dense.var(axis=0) == pytest.approx([0.5, 2.5, 0.5, 5.5, 0, 0.5], rel=0.15)
    cells, counts = poisson.synthesize_sparse([7], [3], 10**12, 1e-8, rng)
    assert len(cells) == pytest.approx(10_000, rel=0.1)
    assert (np.diff(cells) > 0).all()
    assert (counts > 0).all()


@pytest.mark.parametrize("kind", [NegativeBinomial, PoissonInverseGaussian])
def test_chances_of_mixed_laws_have_their_mean_and_variance(kind):
    law = kind(0.3)
    chances = law.pmf(4.0, 400)
    y = np.arange(401)
    assert chances.sum() == pytest.approx(1)
    assert chances @ y == pytest.approx(4)
    assert chances @ (y - 4) ** 2 == pytest.approx(4 + 0.3 * 16)
    drawn = law.draw(np.full(60_000, 4.0), np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(4, abs=0.06)
    assert np.bincount(drawn, minlength=6)[:6] / 60_000 == pytest.approx(chances[:6], abs=0.008)


@pytest.mark.parametrize("kind", [NegativeBinomial, PoissonInverseGaussian])
def test_the_factors_bound_the_delta_of_mixed_laws(kind):
    law = kind(0.2)
    for count in (1, 3, 10):
        bound = law.factor_delta((count + 1) / count, 0.5)
        assert law.delta_at(count, 1.0, 0.5) <= bound + 1e-12


def test_nearly_no_dispersion_gives_nearly_the_poisson_delta():
    assert NegativeBinomial(0.001).delta(1, 2) == pytest.approx(
        poisson.delta(1, 2, guarantee="tight"), abs=2e-4
    )


def test_epsilon_and_delta_are_each_other_s_inverse():
    found = poisson.epsilon(2.0, 1e-6)
    assert poisson.delta(2.0, found, guarantee="tight") == pytest.approx(1e-6, rel=1e-3)
    alpha = poisson.calibrate(1.0, 1e-6, guarantee="tight")
    assert poisson.delta(alpha, 1.0, guarantee="tight") <= 1e-6
    assert poisson.delta(poisson.calibrate(0.5, 0.05), 0.5) <= 0.05


# Honest words.


def test_a_guarantee_is_given_only_where_it_is_proved():
    table = declared(2)
    make = {"alpha": 0.001, "epsilon": 20}
    assert PoissonSynthesis(**make, domain="public").apply(table).guarantee
    seeded = PoissonSynthesis(**make, domain="public").apply(table, seed=1)
    assert seeded.guarantee is None
    assert "drawn from a seed" in seeded.why_none
    for other in ({"domain": "observed"}, {}, {"domain": "public", "model": "town + sex"}):
        result = PoissonSynthesis(**make, **other).apply(table)
        assert result.guarantee is None
        assert result.why_none
    for weak in (RandomRounding(draws="seed"), ControlledRounding(), CellKey(id="id")):
        assert weak.apply(table).guarantee is None


def test_several_copies_spend_the_budget_again():
    table = declared(2)
    one = PoissonSynthesis(alpha=0.01, epsilon=3, domain="public").apply(table)
    three = PoissonSynthesis(alpha=0.01, epsilon=3, domain="public", copies=3).apply(table)
    assert one.guarantee.startswith("(3, ")
    assert three.guarantee.startswith("(9, ")
    assert len(three.copies) == 3
    assert not three.copies[0].cells.equals(three.copies[1].cells)


def test_noise_on_every_cell_shares_the_budget_among_the_cells_of_a_record():
    table = Table.from_microdata(population(), "town*sex", hierarchies={"town": "county"}, zeros="all")
    made = NoisyCounts(epsilon=1, margins="independent", domain="public").apply(table, seed=1)
    assert made.figures["cells_of_a_record"] == 6
    assert made.figures["epsilon_a_cell"] == pytest.approx(1 / 6)


def test_the_public_log_holds_neither_seed_nor_key_nor_counts_of_changed_cells():
    made = PoissonSynthesis(alpha=0.001, domain="public").apply(declared(), seed=987654321)
    public = json.dumps(made.to_dict())
    assert "987654321" not in public
    assert made.log[0].changed_cells == {}
    assert made.to_dict(internal=True)["steps"][0]["internal"]["seed"] == 987654321
    assert SECRET not in json.dumps(CellKey(id="id").apply(counted()).to_dict(internal=True))


def test_released_tables_hold_no_records_and_no_sensitive_flags():
    made = RandomRounding(draws="seed").apply(counted())
    assert made.table.contributing is None
    assert set(made.published.columns) == {"town", "sex", "job", "count"}


def test_without_margins_only_inner_cells_are_listed_as_whole_numbers():
    made = SmallCountRounding(k=3, margins="none").apply(counted())
    assert made.published["count"].dtype == pl.Int64
    assert made.published.height == made.table.inner.height


def test_notes_that_count_records_do_not_go_out():
    frame = population().with_columns(town=pl.when(pl.col("id") > 1).then("town"))
    table = Table.from_microdata(frame, "town*sex")
    assert any("2 records" in note for note in table.notes)
    assert not any("2 records" in note for note in RandomRounding(draws="seed").apply(table).table.notes)


def test_a_pseudocount_that_swamps_the_table_is_warned_of():
    with pytest.warns(DiscreetWarning, match="more than 5 %"):
        PoissonSynthesis(alpha=1, domain="public").apply(counted(0, 20))


# Models, records, names.


def test_a_log_linear_model_keeps_its_margins():
    table = counted(5)
    fit = fit_log_linear(table, "town*sex + job")
    counts = table.inner["count"].to_numpy()
    both = table.inner.with_columns(fit=pl.Series(fit.means), n=pl.Series(counts))
    for margin in (["town", "sex"], ["job"]):
        sums = both.group_by(margin).agg(pl.col("fit", "n").sum())
        assert sums["fit"].to_numpy() == pytest.approx(sums["n"].to_numpy(), abs=1e-4)
    assert fit_log_linear(table, "town*sex*job").means == pytest.approx(counts)


def test_a_synthetic_table_becomes_records():
    made = PoissonSynthesis(alpha=0.001, domain="public", total=400).apply(counted(), seed=1)
    assert expanded(made.table).height == 400


def test_every_protection_has_its_name_and_comes_back_from_it():
    for name in (
        "cell-key",
        "controlled-rounding",
        "poisson-synthesis",
        "noisy-counts",
        "small-count-rounding",
    ):
        assert name in TableProtection.known
    made = TableProtection.named("random-rounding", {"base": 10, "draws": "seed"})
    assert made.to_dict() == {"base": 10, "draws": "seed"}
    with pytest.raises(ParameterError, match="Did you mean 'base'"):
        TableProtection.named("random-rounding", {"bas": 10})


def test_weighted_totals_follow_their_counts():
    table = Table.from_microdata(population(1, 120, weight=True), "town*sex", weight="w")
    for make in (SmallCountRounding(k=12, draws="seed"), CellKey(id="id")):
        made = make.apply(table, seed=1).table.cells
        gone = made["count"] == 0
        assert (made["weighted"].filter(gone) == 0).all()
    assert SmallCountRounding(k=12, draws="seed").apply(table, seed=1).information.figures["broken_sums"] == 0


# Replication.


def test_systematic_copies_are_flagged_and_chance_finds_are_not():
    rng = np.random.default_rng(0)
    real = pl.DataFrame(
        {"age": rng.integers(0, 40, 300), "job": rng.integers(0, 30, 300), "ill": rng.integers(0, 2, 300)}
    )
    copied = replication_audit(real, [real] * 20, keys=["age", "job"], sensitive="ill")
    apart = [
        real.select(
            pl.col(name).sample(fraction=1, shuffle=True, seed=seed + i)
            for i, name in enumerate(real.columns)
        )
        for seed in range(0, 60, 3)
    ]
    drawn = replication_audit(real, apart, keys=["age", "job"], sensitive="ill")
    assert copied.value == 1
    assert drawn.value == 0
    rows = drawn.detail["combinations"]
    assert rows["occurs"].mean() == pytest.approx(rows["chance"].mean(), abs=0.03)


def test_a_unit_that_always_makes_the_transition_is_counted():
    rng = np.random.default_rng(1)
    runs = [
        pl.DataFrame({"id": [1, 2, 3], "age": [95, 95, 40], "dies": [True, bool(rng.random() < 0.3), False]})
        for _ in range(20)
    ]
    found = unit_concentration(runs, unit="id", event="dies", classes=["age"])
    assert (found.value, found.figures["always"]) == (1.0, 1)


# Release levels.


def test_levels_say_who_may_see_what_and_why_not():
    table = counted(0, 60)
    assert check_release(table, "inner").passed
    raw = check_release(table, "middle")
    assert not raw.passed
    assert "has not been protected" in raw.line
    assert check_release(SmallCountRounding(k=3).apply(table), "middle").passed
    assert not check_release(NoisyCounts(epsilon=1).apply(table, seed=1), "outer").passed
    assert not check_release(population(), "middle").passed
    assert check_release(population(), "outer", synthetic=True).passed
    coarse = {"outer": ReleaseLevel(deepest=1)}
    deep = check_release(SmallCountRounding(k=3).apply(table), "outer", geography="town", levels=coarse)
    assert deep.reasons == ("'town' goes 2 levels deep; 1 are allowed.",)


# Refusals.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PoissonSynthesis(), "Give alpha"),
        (lambda: PoissonSynthesis(alpha=1, epsilon=1, delta=0.1), "not all three"),
        (lambda: PoissonSynthesis(alpha=-1), "alpha"),
        (lambda: NoisyCounts(epsilon=0), "epsilon"),
        (lambda: CellKey(), "records apart"),
        (lambda: CellKey(id="id", V=1), "variance between 2 and 5"),
        (lambda: ControlledRounding(base=1), "base"),
        (lambda: SmallCountRounding(k=1), "k must"),
        (lambda: RandomRounding(margins="exact"), "margins"),
        (lambda: NegativeBinomialSynthesis(alpha=1, dispersion=0), "dispersion"),
        (lambda: poisson.delta(0, 1), "alpha"),
        (lambda: poisson.delta(1, 0), "epsilon"),
        (lambda: poisson.calibrate(1, 1), "delta"),
        (lambda: poisson.checked_counts([1.5]), "whole numbers"),
        (lambda: poisson.checked_counts([np.nan]), "missing"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_tables_that_do_not_fit_are_refused():
    frame = population(weight=True)
    sums = Table.from_microdata(frame, "town*sex", measure="pay")
    weighted = Table.from_microdata(frame, "town*sex", weight="w")
    observed = Table.from_microdata(frame.head(20), "town*sex*job")
    for make in (PoissonSynthesis(alpha=1), SmallCountRounding(), NoisyCounts(epsilon=1)):
        with pytest.raises(ParameterError, match="works on counts"):
            make.apply(sums)
    with pytest.raises(ParameterError, match="weighted"):
        PoissonSynthesis(alpha=1).apply(weighted)
    with pytest.raises(ParameterError, match="zeros='all'"):
        PoissonSynthesis(alpha=1).apply(observed)
    with pytest.raises(ParameterError, match="stay empty"):
        PoissonSynthesis(alpha=0).apply(counted(0, 20))
    full = Table.from_microdata(frame, "sex")
    with pytest.raises(ParameterError, match="accept_no_guarantee"):
        PoissonSynthesis(alpha=0).apply(full)
    assert PoissonSynthesis(alpha=0, accept_no_guarantee=True).apply(full).guarantee is None
    with pytest.raises(ColumnError, match="does not tell the records apart"):
        CellKey(id="sex").apply(full)
    with pytest.raises(ParameterError, match="made from cells"):
        CellKey(id="id").apply(Table.from_cells(pl.DataFrame({"a": ["x"], "n": [3]}), ["a"], count="n"))


def test_inverse_gaussian_synthesis_says_what_its_law_would_keep_and_claims_nothing():
    table = Table.from_microdata(population(), "sex", hierarchies={"sex": CODES["sex"]}, zeros="all")
    made = PoissonInverseGaussianSynthesis(alpha=1, epsilon=1, domain="public", dispersion=0.1).apply(table)
    assert made.guarantee is None
    assert "would keep (1, 0.0891)-differential privacy" in made.why_none
    assert round(made.figures["delta"], 4) == 0.0891


@pytest.mark.parametrize("law", [NegativeBinomial(0.1), PoissonInverseGaussian(0.1)])
@pytest.mark.slow
def test_a_guarantee_that_no_pseudocount_reaches_is_refused(law):
    for epsilon, delta in ((0.5, 0.0), (8e-209, 1e-300)):
        with pytest.raises(ParameterError, match="alpha"):
            law.calibrate(epsilon, delta)


def test_counts_spread_beyond_reckoning_are_refused():
    with pytest.raises(ParameterError, match="smaller dispersion"):
        PoissonInverseGaussian(1e6).calibrate(1, 0.01)
