"""Every treatment works from Python, from a plan file and from the command line, on Polars and on pandas."""

import sys
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from discreet import Hierarchy, Microdata
from discreet.cli import main
from discreet.core.errors import DiscreetError
from discreet.protect import (
    AddNoise,
    Band,
    ClassSwap,
    DonutMask,
    DropIdentifiers,
    Generalize,
    KAnonymity,
    LDiversity,
    LocalSuppression,
    Microaggregate,
    Mondrian,
    OptimalGeneralization,
    Plan,
    Pram,
    Pseudonymize,
    RandomSwap,
    RankSwap,
    Recode,
    RecordSwap,
    RegressionSynthesis,
    ReorderRecords,
    RobinHood,
    Round,
    SampleAndAnonymize,
    ShiftDates,
    Shuffle,
    SpatialRaster,
    SpectralAnonymize,
    StochasticRound,
    TopBottomCode,
    Treatment,
)

pytestmark = pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")

AGE = Hierarchy.intervals([10, 30])

EXAMPLES = {
    "add-noise": AddNoise(columns=["income", "wealth"], method="correlated"),
    "band": Band(widths={"age": 10}),
    "class-swap": ClassSwap([LDiversity("income", 2)], keys=["region"]),
    "donut-mask": DonutMask(r_min=100, r_max=400),
    "drop-identifiers": DropIdentifiers(),
    "generalize": Generalize({"age": 1}, {"age": AGE}),
    "local-suppression": LocalSuppression(k=2),
    "microaggregate": Microaggregate(k=3, columns=["income", "wealth"]),
    "mondrian": Mondrian(k=4),
    "optimal-generalization": OptimalGeneralization(
        [KAnonymity(2)], hierarchies={"age": AGE}, suppression_limit=0.2
    ),
    "plan": Plan([Round({"income": 10}), ReorderRecords()]),
    "pram": Pram(columns=["sex", "region"]),
    "pseudonymize": Pseudonymize(),
    "random-swap": RandomSwap(columns=["income"], share=0.5),
    "rank-swap": RankSwap(columns=["income"], p=10),
    "recode": Recode({"region": {"north": "other", "west": "other"}}),
    "record-swap": RecordSwap(geography=["region"], share=0.3, match=[["sex"]]),
    "regression-synthesis": RegressionSynthesis(columns=["income", "wealth"], given=["age", "sex"]),
    "reorder-records": ReorderRecords(),
    "robin-hood": RobinHood(fairness="sex", k_target=4, k_initial=2, hierarchies={"age": AGE}),
    "round": Round({"income": 100}),
    "sample-and-anonymize": SampleAndAnonymize(epsilon=2.0, delta=1e-3, hierarchies={"age": AGE}),
    "shift-dates": ShiftDates(["seen"], max_days=10),
    "shuffle": Shuffle(columns=["income", "wealth"], given=["age"]),
    "spatial-raster": SpatialRaster(cell_size=500, value="income", min_count=3),
    "spectral-anonymize": SpectralAnonymize(columns=["income", "wealth"]),
    "stochastic-round": StochasticRound(columns=["children"], k=3),
    "top-bottom-code": TopBottomCode(top_share={"income": 0.1}),
}


@pytest.fixture(autouse=True)
def secret_key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a key for tests only, long enough")


def frame(n=240):
    rng = np.random.default_rng(7)
    ages = rng.integers(18, 80, n)
    return pl.DataFrame(
        {
            "name": [f"p{i}" for i in range(n)],
            "home": np.arange(n) // 2,
            "region": np.repeat(rng.choice(["north", "south", "east", "west"], n // 2), 2),
            "sex": pl.Series(rng.choice(["f", "m"], n), dtype=pl.Enum(["f", "m"])),
            "age": ages,
            "income": (rng.lognormal(7, 0.5, n)).round(2),
            "wealth": rng.lognormal(9, 1, n),
            "children": rng.integers(0, 5, n),
            "seen": [date(2024, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 300, n)],
            "east": rng.normal(0, 1000, n),
            "north": rng.normal(0, 1000, n),
            "member": rng.random(n) < 0.5,
        }
    )


def people(data=None):
    return Microdata(
        frame() if data is None else data,
        keys=["region", "sex", "age"],
        sensitive=["income"],
        identifiers=["name"],
        household="home",
        location=["east", "north"],
    )


def comparable(data):
    table = pl.from_pandas(data) if not isinstance(data, pl.DataFrame) else data
    return table.with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String), pl.col(pl.Datetime).dt.date()
    ).rows()


def test_no_treatment_is_left_out_of_these_tests():
    assert set(EXAMPLES) == set(Treatment.known)


@pytest.mark.parametrize("name", EXAMPLES)
def test_pandas_is_treated_as_polars_is(name):
    on_polars = EXAMPLES[name].apply(people(), seed=3)
    on_pandas = EXAMPLES[name].apply(people(frame().to_pandas()), seed=3)
    assert comparable(on_pandas.data.frame) == comparable(on_polars.data.frame)
    assert on_pandas.log[-1].changed_cells == on_polars.log[-1].changed_cells


@pytest.mark.parametrize("name", EXAMPLES)
def test_untouched_columns_keep_their_types(name):
    release = EXAMPLES[name].apply(people(), seed=3)
    counts = [
        step.internal.get("changed_cells", {}) if step.counts_withheld else step.changed_cells
        for step in release.log
    ]
    touched = {column for own in counts for column in own}
    before, after = frame().schema, release.data.frame.schema
    kept = [column for column in before if column in after and column not in touched]
    assert {column: after[column] for column in kept} == {column: before[column] for column in kept}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plan_file_brings_back_the_same_treatment(name, tmp_path):
    plan = Plan([EXAMPLES[name]]) if name != "plan" else EXAMPLES[name]
    path = plan.save(tmp_path / "plan.toml")
    again = Plan.load(path)
    assert again.to_dict() == plan.to_dict()
    one, two = (p.apply(people(), seed=3).data.frame for p in (plan, again))
    assert comparable(one) == comparable(two)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_line_runs_it(name, tmp_path, monkeypatch, capsys):
    plan = Plan([EXAMPLES[name]]) if name != "plan" else EXAMPLES[name]
    source, out = tmp_path / "people.parquet", tmp_path / "safe.parquet"
    frame().write_parquet(source)
    arguments = [
        "protect", str(source), "--plan", str(plan.save(tmp_path / "plan.toml")), "--out", str(out), "--seed", "3",
        "--keys", "region,sex,age", "--sensitive", "income", "--identifiers", "name", "--household", "home",
        "--location", "east,north",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["discreet", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, capsys.readouterr().err
    assert comparable(pl.read_parquet(out)) == comparable(plan.apply(people(), seed=3).data.frame)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_without_its_columns_is_refused_clearly(name):
    if name in ("reorder-records", "drop-identifiers", "pseudonymize"):
        pytest.skip("any file can be put in another order, or have no identifiers to take care of")
    bare = Microdata(pl.DataFrame({"other": ["x", "y"]}))
    with pytest.raises(DiscreetError) as caught:
        EXAMPLES[name].apply(bare, seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_public_log_holds_neither_seed_nor_key(name):
    text = str(EXAMPLES[name].apply(people(), seed=987654321).to_dict())
    assert "987654321" not in text
    assert "a key for tests" not in text
