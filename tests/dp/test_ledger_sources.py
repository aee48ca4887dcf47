"""A budget belongs to the people of its source: whatever the format, the name, the engine and the order."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest
from dp.test_ledger_holds import FIRST, RECORD, as_first_version
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import discreet
from discreet import Microdata, dp, protect, synth
from discreet.cli import app
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.dp import Cost, Ledger
from discreet.io.fingerprints import content_of

PEOPLE = pl.DataFrame(
    {
        "sex": ["f", "m", None, "m", ""] * 20,
        "age": [30, 40, None, 50, 60] * 20,
        "pay": [1.5, 2.0, 1e6, -0.0, 0.1] * 20,
        "born": ["1990-02-01", "1980-12-31", None, "1970-01-01", "1960-06-15"] * 20,
        "zip": ["01234", "1", "99999", "00100", "7"] * 20,
        "old": [True, False, None, True, False] * 20,
    }
).with_columns(pl.col("born").str.to_date())
MEAN = {"column": "age", "lower": 0, "upper": 100, "epsilon": 0.125}
OTHERS = PEOPLE.with_columns(age=pl.col("age") + 1)


@pytest.fixture
def survey(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("survey.csv")
    Ledger.beside("survey.csv", 1.0)
    return Ledger.load("survey.privacy.toml")


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def refused(told, words: str) -> bool:
    return told.exit_code != 0 and words in f"{told.output}{told.exception}"


SAME = {
    "as it was read": lambda: discreet.read("survey.csv"),
    "with roles": lambda: discreet.read("survey.csv", keys=["sex"]),
    "Polars": lambda: Microdata(PEOPLE),
    "a query of Polars": lambda: Microdata(PEOPLE.lazy()),
    "pandas": lambda: Microdata(PEOPLE.to_pandas()),
    "PyArrow": lambda: Microdata(PEOPLE.to_arrow()),
    "DuckDB": lambda: Microdata(duckdb.from_arrow(PEOPLE.to_arrow())),
    "another order": lambda: Microdata(
        PEOPLE.sample(fraction=1, shuffle=True, seed=1).select(PEOPLE.columns[::-1])
    ),
    "decimal numbers": lambda: Microdata(PEOPLE.with_columns(pl.col("age").cast(pl.Float64))),
    "small numbers": lambda: Microdata(PEOPLE.with_columns(pl.col("age").cast(pl.UInt8))),
    "numbers as texts": lambda: Microdata(PEOPLE.with_columns(pl.col("age").cast(pl.String))),
    "categories": lambda: Microdata(PEOPLE.with_columns(pl.col("sex").cast(pl.Categorical))),
    "dates with a midnight": lambda: Microdata(PEOPLE.with_columns(pl.col("born").cast(pl.Datetime("ns")))),
    "a part that was made of it": lambda: (own := discreet.read("survey.csv")).with_frame(own.frame.head(7)),
    "some columns of it": lambda: (own := discreet.read("survey.csv")).with_frame(own.frame.select("age")),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_records_spend_from_the_budget_of_their_source(survey, name):
    dp.count(SAME[name](), epsilon=0.125, ledger=survey)
    assert survey.left == 0.875


OTHER = {
    "one more record": lambda: pl.concat([PEOPLE, PEOPLE.head(1)]),
    "one record less": lambda: PEOPLE.head(99),
    "one other value": lambda: PEOPLE.with_columns(
        age=pl.when(pl.int_range(pl.len()) == 3).then(51).otherwise(pl.col("age"))
    ),
    "two values exchanged": lambda: PEOPLE.with_columns(sex=PEOPLE["sex"].reverse()),
    "two columns exchanged": lambda: PEOPLE.rename({"sex": "zip", "zip": "sex"}),
    "another name": lambda: PEOPLE.rename({"age": "years"}),
    "one more column": lambda: PEOPLE.with_columns(new=pl.lit(None, pl.String)),
    "a zip that is a number": lambda: PEOPLE.with_columns(zip=pl.col("zip").str.strip_prefix("0")),
    "a part of unknown origin": lambda: PEOPLE.head(7),
    "every record twice": lambda: pl.concat([PEOPLE, PEOPLE]),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_records_are_refused_and_nothing_is_charged(survey, name):
    for call in (
        lambda: dp.count(Microdata(OTHER[name]()), epsilon=0.125, ledger=survey),
        lambda: Ledger.load(survey.path, source=Microdata(OTHER[name]())),
    ):
        with pytest.raises(InputError, match="another file or other data"):
            call()
    assert Ledger.load(survey.path).left == 1.0


CODED = Microdata(
    pl.DataFrame({name: pl.Series(["a", "b"] * 30, dtype=pl.Enum(["a", "b"])) for name in "xy"}), keys=["x"]
)
NUMBERED = Microdata(pl.DataFrame({"x": [0.25, 0.5, -1.0] * 10, "y": [1.0, -1.0, 0.5] * 10}))
LEVELS = {"x": ["a", "b"], "y": ["a", "b"]}
UNIT = {"x": (-1, 1), "y": (-1, 1)}
STAY = {"a": {"a": 0.75, "b": 0.25}, "b": {"a": 0.25, "b": 0.75}}
DOORS = {
    "count": lambda ledger: dp.count(CODED, epsilon=1, ledger=ledger),
    "total": lambda ledger: dp.total(NUMBERED, "x", lower=-1, upper=1, epsilon=1, ledger=ledger),
    "mean": lambda ledger: dp.mean(NUMBERED, "x", lower=-1, upper=1, epsilon=1, ledger=ledger),
    "variance": lambda ledger: dp.variance(NUMBERED, "x", lower=-1, upper=1, epsilon=1, ledger=ledger),
    "quantiles": lambda ledger: dp.quantiles(NUMBERED, "x", lower=-1, upper=1, epsilon=1, ledger=ledger),
    "table": lambda ledger: dp.table(CODED, ["x", "y"], levels=LEVELS, epsilon=1, ledger=ledger),
    "histogram": lambda ledger: dp.histogram(CODED, "x", levels=["a", "b"], epsilon=1, ledger=ledger),
    "linear regression": lambda ledger: dp.linear_regression(
        NUMBERED, y="y", x="x", x_bounds={"x": (-1, 1)}, y_bounds=(-1, 1), epsilon=1, ledger=ledger
    ),
    "quantile regression": lambda ledger: dp.quantile_regression(
        NUMBERED,
        y="y",
        x="x",
        x_bounds={"x": (-1, 1)},
        mechanism="kng",
        intercept=False,
        theta_bound=4,
        epsilon=1,
        ledger=ledger,
    ),
    "pram": lambda ledger: protect.Pram(columns=["x"], matrix={"x": STAY}, invariant=False).apply(
        CODED, ledger=ledger
    ),
    "sample-and-anonymize": lambda ledger: protect.SampleAndAnonymize(epsilon=1, delta=1e-3).apply(
        CODED, ledger=ledger
    ),
    "a plan": lambda ledger: protect.Plan([protect.SampleAndAnonymize(epsilon=1, delta=1e-3)]).apply(
        CODED, ledger=ledger
    ),
    "mst": lambda ledger: synth.MST(1, domain={"x": (-1, 1), "y": (-1, 1)}).fit(NUMBERED, ledger=ledger),
    "bayesian-network": lambda ledger: synth.BayesianNetwork(epsilon=1, domain=UNIT).fit(
        NUMBERED, ledger=ledger
    ),
    "perturbed-histogram": lambda ledger: synth.PerturbedHistogram(2, 1, domain=LEVELS).fit(
        CODED, ledger=ledger
    ),
    "smooth-histogram": lambda ledger: synth.SmoothHistogram(2, 1, domain=LEVELS).fit(CODED, ledger=ledger),
    "noisy-bayes": lambda ledger: synth.NoisyBayes(1, bounds=UNIT, n_datasets=1).fit(NUMBERED, ledger=ledger),
    "pmse-mechanism": lambda ledger: synth.PMSEMechanism(
        1, prior=UNIT, depth=1, sampler="candidates", candidates=10
    ).fit(NUMBERED, ledger=ledger),
    "catall": lambda ledger: synth.Sequential(method="catall", method_options={"catall": {"epsilon": 1}}).fit(
        CODED, ledger=ledger
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_that_is_given_data_asks_whose_the_budget_is(door):
    foreign = Ledger(100, 0.1, adjacency="replace", source=Microdata(PEOPLE))
    with pytest.raises(InputError, match="another file or other data"):
        DOORS[door](foreign)
    assert foreign.table().height == 0


@pytest.mark.parametrize("data", [CODED, NUMBERED])
def test_a_ledger_in_memory_belongs_to_data_and_to_parts_made_of_them(data):
    ledger = Ledger(1.0, source=data)
    dp.count(Microdata(data.frame.reverse()), epsilon=0.25, ledger=ledger)
    dp.count(data.with_frame(data.frame.head(3)).with_roles(keys="x"), epsilon=0.25, ledger=ledger)
    with pytest.raises(InputError, match="with_frame"):
        dp.count(Microdata(data.frame.head(3)), epsilon=0.25, ledger=ledger)
    assert ledger.left == 0.5


def test_a_changed_file_spends_on_once_its_owner_declares_the_same_people(survey):
    pl.concat([PEOPLE, PEOPLE.head(1)]).write_csv("survey.csv")
    survey.spend(Cost("laplace", "pure", epsilon=0.25))
    for renewed in (
        lambda: Ledger.beside("survey.csv", 1.0),
        lambda: dp.mean(discreet.read("survey.csv"), **MEAN, ledger=survey),
        lambda: Ledger.load(survey.path, source="survey.csv"),
    ):
        with pytest.raises(InputError, match="has changed since"):
            renewed()
    with pytest.raises(ParameterError, match="why"):
        survey.same_source("survey.csv", why=" ")
    Ledger.load(survey.path).same_source("survey.csv", why="one record was late")
    dp.mean(discreet.read("survey.csv"), **MEAN, ledger=survey)
    dp.mean(Microdata(PEOPLE), **MEAN, ledger=survey)  # what it was before is still about these people
    assert Ledger.beside("survey.csv", 1.0).left == 0.5


def test_a_file_about_other_people_gets_a_budget_of_its_own_and_the_old_one_is_kept_closed(survey):
    survey.spend(Cost("laplace", "pure", epsilon=0.25))
    with pytest.raises(ParameterError, match="set once"):
        Ledger.new_source("survey.csv", 1.0, why="I want more")
    OTHERS.write_csv("survey.csv")
    with pytest.raises(DiscreetError):
        Ledger.new_source("survey.csv", -1, why="second wave")
    assert not Ledger.load(survey.path).closed
    ledger = Ledger.new_source("survey.csv", 2.0, why="second wave, \U0001f600")
    assert ledger.left == 2.0
    kept = Ledger.load("survey.1.privacy.toml")
    assert kept.closed
    assert kept.left == 0.75
    assert "survey.1.privacy.toml: second wave" in Path("survey.privacy.toml").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="took its place"):
        survey.spend(Cost("laplace", "pure", epsilon=0.25))


def test_the_owner_declares_on_the_command_line(survey):
    pl.concat([PEOPLE, PEOPLE.head(1)]).write_csv("survey.csv")
    mean = (
        "dp",
        "mean",
        "survey.csv",
        "--column",
        "age",
        "--lower",
        "0",
        "--upper",
        "100",
        "--epsilon",
        "0.25",
    )
    spending = ("--ledger", "survey.privacy.toml")
    assert refused(
        run(*mean), "discreet budget declare --same"
    )  # without a ledger it would not be renewed either
    assert refused(run(*mean, *spending), "discreet budget declare --same")
    assert refused(run("budget", "open", "survey.csv", "--epsilon", "1"), "discreet budget declare --same")
    assert refused(run("budget", "declare", "survey.csv", "--why", "x"), "--same or --new")
    assert run("budget", "declare", "survey.csv", "--same", "--why", "late").exit_code == 0
    assert run(*mean, *spending).exit_code == 0
    OTHERS.write_csv("survey.csv")
    told = run("budget", "declare", "survey.csv", "--new", "--epsilon", "3", "--why", "second wave", "--json")
    assert json.loads(told.output)["left"] == 3.0
    assert run(*mean, *spending).exit_code == 0
    assert Ledger.load("survey.1.privacy.toml").left == 0.75


@pytest.mark.parametrize("copied", ["parquet", "gz", "link", "another separator", "excel"])
def test_a_copy_in_another_format_is_the_same_source_on_the_command_line(survey, copied):
    Path("elsewhere").mkdir()
    place = Path("elsewhere") / {"parquet": "a.parquet", "gz": "a.csv.gz", "excel": "a.xlsx"}.get(
        copied, "a.csv"
    )
    if copied == "parquet":
        PEOPLE.write_parquet(place)
    elif copied == "gz":
        place.write_bytes(gzip.compress(Path("survey.csv").read_bytes()))
    elif copied == "link":
        place.symlink_to(Path("survey.csv").absolute())
    elif copied == "excel":
        pytest.importorskip("xlsxwriter")
        PEOPLE.write_excel(place)
    else:
        PEOPLE.write_csv(place, separator=";")
    asked = ("--column", "age", "--lower", "0", "--upper", "100", "--epsilon", "0.25")
    told = run("dp", "mean", str(place), *asked, "--ledger", "survey.privacy.toml")
    assert told.exit_code == 0, f"{told.output}{told.exception}"
    assert Ledger.load("survey.privacy.toml").left == 0.75
    if copied == "link":
        assert refused(run("dp", "mean", str(place), *asked), "survey.privacy.toml")


def test_a_ledger_of_the_first_version_knows_its_file_by_its_bytes_and_learns_its_content(tmp_path):
    import hashlib

    source = tmp_path / "survey.csv"
    PEOPLE.write_csv(source)
    mark = hashlib.sha256(source.read_bytes()).hexdigest()
    place = tmp_path / "survey.privacy.toml"
    place.write_text(as_first_version({**FIRST, "source": "survey.csv", "fingerprint": mark}, [RECORD]))
    ledger = Ledger.load(place)
    with pytest.raises(InputError, match="other data"):
        dp.mean(Microdata(PEOPLE), **MEAN, ledger=ledger)
    dp.mean(discreet.read(source), **MEAN, ledger=ledger)
    assert Ledger.beside(source, 1.0).left == 0.375
    Ledger.load(place, source=source)
    dp.mean(Microdata(PEOPLE), **MEAN, ledger=Ledger.load(place))
    assert Ledger.load(place).left == 0.25


def test_what_can_be_shown_of_a_ledger_has_no_fingerprint(survey):
    survey.same_source("survey.csv", why="again")
    survey.spend(Cost("laplace", "pure", epsilon=0.25))
    marks = [survey._header["fingerprint"], survey._header["content"]]
    assert all(len(mark) == 64 for mark in marks)
    shown = [
        repr(survey), str(survey.table()), str(survey.spending()), survey.meaning,
        survey.to_html("budget.html").read_text(encoding="utf-8"),
        run("budget", "show", "survey.csv").output, run("budget", "show", "survey.csv", "--json").output,
    ]  # fmt: skip
    assert not [mark for mark in marks for text in shown if mark[:12] in text]
    assert survey.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.Series([2**64 - 1, 5], dtype=pl.UInt64), pl.Series(["18446744073709551615", "5"])),
        (pl.Series([2**53 + 1, -(2**63)]), pl.Series([str(2**53 + 1), str(-(2**63))])),
        (pl.Series(["1.50", None]).cast(pl.Decimal(10, 2)), pl.Series([1.5, None])),
        (pl.Series([True, None]), pl.Series(["true", ""])),
        (pl.Series([3_600_000_000]).cast(pl.Duration("us")), pl.Series([3_600_000]).cast(pl.Duration("ms"))),
        (pl.Series(["e\u0301"]), pl.Series(["\xe9 "])),
    ],
)
def test_one_value_has_one_form(one, other):
    known = content_of(Microdata(pl.DataFrame({"a": one})))
    assert content_of(Microdata(pl.DataFrame({"a": other}))) == known
    assert content_of(Microdata(pl.DataFrame({"a": one.reverse(), "b": one}))) != known


def test_data_by_which_no_source_is_known_open_no_ledger():
    with pytest.raises(InputError, match="cannot be recognized"):
        Ledger(1.0, source=Microdata(pl.DataFrame({"a": [[1]]})))


def test_a_file_that_is_no_table_is_known_by_its_bytes(tmp_path):
    graph = tmp_path / "graph.bin"
    graph.write_bytes(b"\x00\x01\x02")
    ledger = Ledger.beside(graph, 1.0)
    shutil.copy(graph, tmp_path / "copy.bin")
    assert Ledger.load(ledger.path, source=tmp_path / "copy.bin").left == 1.0
    (tmp_path / "copy.bin").write_bytes(b"\x00\x01\x03")
    with pytest.raises(InputError, match="another file"):
        Ledger.load(ledger.path, source=tmp_path / "copy.bin")


VALUES = st.none() | st.integers(-(2**63), 2**63 - 1)


@settings(deadline=None)
@given(
    st.lists(st.tuples(VALUES, st.none() | st.floats(), st.none() | st.text(max_size=5)), max_size=12),
    st.randoms(),
)
def test_content_is_known_in_any_order_and_as_text_and_not_after_a_change(rows, random):
    kinds = {"a": pl.Int64, "b": pl.Float64, "c": pl.String}
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    mixed = random.sample(rows, len(rows))
    order = random.sample(list(kinds), 3)
    known = content_of(Microdata(frame))
    assert content_of(Microdata(pl.DataFrame(mixed, schema=kinds, orient="row").select(order))) == known
    assert content_of(Microdata(frame.with_columns(pl.col("a").cast(pl.String)))) == known
    assert (
        content_of(Microdata(frame.vstack(pl.DataFrame([(1, 1.0, "x")], schema=kinds, orient="row"))))
        != known
    )
    assert content_of(Microdata(frame.rename({"a": "d"}))) != known
    if rows:
        other = (frame["a"].fill_null(0) // 2 + 17).set(pl.int_range(frame.height, eager=True) > 0, None)
        changed = frame.with_columns(a=pl.coalesce(other, "a"))
        assert (content_of(Microdata(changed)) == known) == changed["a"].equals(frame["a"])


def test_a_file_that_is_changed_between_reading_and_asking_is_not_asked(survey):
    data = discreet.read("survey.csv")
    pl.concat([PEOPLE, PEOPLE.head(1)]).write_csv("survey.csv")
    with pytest.raises(InputError, match="changed or removed since"):
        dp.count(data, epsilon=0.125, ledger=survey)
    assert Ledger.load(survey.path).left == 1.0


def test_a_treatment_with_a_report_spends_from_the_budget_of_data_without_a_file():
    from discreet.workflow.treatment_report import document_plan

    ledger = Ledger(2.0, adjacency="replace", source=Microdata(CODED.frame.reverse()))
    plan = protect.Plan([protect.Pram(columns=["x"], matrix={"x": STAY}, invariant=False)])
    document_plan(CODED, plan, ledger=ledger)
    assert ledger.table().height == 1
