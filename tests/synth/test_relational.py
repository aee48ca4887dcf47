"""Linked tables: every child has a parent, times are in order, rules hold, and what cannot be is refused."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import synth
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.synth.table_schema import check_tables

BANK = {
    "tables": {
        "region": {"key": "region_id", "public": True},
        "client": {"key": "client_id", "parents": {"region_id": "region"}},
        "account": {"key": "account_id", "rules": ["opened >= 0"]},
        "holds": {"key": "hold_id", "parents": {"client_id": "client", "account_id": "account"}},
        "entry": {
            "key": "entry_id",
            "parents": {"account_id": "account"},
            "order": "day",
            "rules": ["day >= `account.opened`"],
        },
        "note": {"parents": {"entry_id": "entry"}},
    }
}


def bank(seed=1, clients=60):
    rng = np.random.default_rng(seed)
    region = pl.DataFrame({"region_id": [1, 2, 3], "name": ["a", "b", "c"]})
    client = pl.DataFrame(
        {
            "client_id": np.arange(clients) + 100,
            "region_id": rng.integers(1, 4, clients),
            "age": rng.integers(18, 90, clients),
        }
    )
    accounts = max(2, clients // 2)
    account = pl.DataFrame(
        {
            "account_id": np.arange(accounts) + 7,
            "opened": rng.integers(0, 100, accounts),
            "kind": rng.choice(["gold", "plain"], accounts),
        }
    )
    holds = pl.DataFrame(
        {
            "hold_id": np.arange(clients),
            "client_id": client["client_id"],
            "account_id": account["account_id"].to_numpy()[np.arange(clients) % accounts],
            "role": rng.choice(["owner", "user"], clients),
        }
    )
    often = rng.poisson(np.where(account["kind"] == "gold", 6, 2))
    at = np.repeat(np.arange(accounts), often)
    entry = pl.DataFrame(
        {
            "entry_id": np.arange(len(at)),
            "account_id": account["account_id"].to_numpy()[at],
            "day": account["opened"].to_numpy()[at] + rng.integers(0, 50, len(at)),
            "amount": np.round(
                rng.gamma(2, 50, len(at)) * np.where(account["kind"].to_numpy()[at] == "gold", 3, 1), 2
            ),
        }
    )
    note = pl.DataFrame(
        {
            "entry_id": entry["entry_id"].filter(pl.Series(rng.random(len(at)) < 0.3)),
        }
    ).with_columns(pl.lit("late").alias("text"))
    return {
        "region": region,
        "client": client,
        "account": account,
        "holds": holds,
        "entry": entry,
        "note": note,
    }


def whole(made, schema):
    check_tables(synth.Schema.from_dict(schema), made)


@settings(max_examples=examples(2))
@given(st.integers(0, 1000), st.sampled_from([0.3, 1.0, 2.5]))
def test_every_child_has_a_parent_times_are_in_order_and_rules_hold(seed, scale):
    tables = bank(seed % 7)
    made = synth.Relational(BANK).fit(tables, seed=seed).sample(scale, seed=seed)
    whole(made, BANK)
    for name, frame in made.items():
        assert frame.schema == tables[name].schema
    assert made["region"].equals(tables["region"])
    beside = made["entry"].join(made["account"], on="account_id")
    assert (beside["day"] >= beside["opened"]).all()
    assert made["entry"].select((pl.col("day").diff().over("account_id") >= 0).all()).item()
    assert made["client"].height == round(60 * scale)


def test_numbers_of_children_and_what_they_depend_on_are_kept():
    tables = bank(3, clients=600)
    made = synth.Relational(BANK).fit(tables, seed=1).sample(seed=1)
    assert abs(made["entry"].height / tables["entry"].height - 1) < 0.1

    def gold(own):
        beside = own["entry"].join(own["account"], on="account_id")
        return beside.group_by("kind").agg(pl.len(), pl.col("amount").mean()).sort("kind")

    real, drawn = gold(tables), gold(made)
    assert np.allclose(real["amount"], drawn["amount"], rtol=0.2)
    assert np.allclose(real["len"], drawn["len"], rtol=0.2)
    held = made["holds"].group_by("account_id").len()["len"]
    assert held.max() <= 4
    separate = synth.Relational(BANK, strategy="separate").fit(tables, seed=1).sample(seed=1)
    assert set(separate["entry"]["account_id"]) <= set(separate["account"]["account_id"])
    assert abs(np.diff(gold(separate)["amount"])[0]) < abs(np.diff(gold(made)["amount"])[0]) / 2


def test_the_same_seed_gives_the_same_tables_also_from_a_file(tmp_path):
    tables = bank()
    fitted = synth.Relational(BANK).fit(tables, seed=1)
    first = fitted.sample(seed=2)
    again = synth.FittedRelational.load(fitted.save(tmp_path / "bank.model")).sample(seed=2)
    assert all(first[name].equals(again[name]) for name in first)


def test_a_panel_keeps_its_waves_and_what_comes_before():
    rng = np.random.default_rng(1)
    person = pl.DataFrame({"id": np.arange(400), "sex": rng.choice(["f", "m"], 400)})
    rows = []
    for who in range(400):
        pay = 1000.0 + 500 * rng.random()
        for wave in range(2020, 2020 + rng.integers(1, 5)):
            rows.append((who, wave, pay))
            pay += rng.normal(20, 5)
    wave = pl.DataFrame(rows, schema=["id", "wave", "pay"], orient="row")
    links = {"person": {"key": "id"}, "wave": {"parents": {"id": "person"}, "order": "wave"}}
    made = synth.Relational({"tables": links}).fit({"person": person, "wave": wave}, seed=1).sample(seed=1)
    drawn = made["wave"]
    assert drawn.select(pl.struct("id", "wave").is_unique().all()).item()
    assert drawn.group_by("id").agg(pl.col("wave").min())["wave"].unique().to_list() == [2020]
    step = drawn.with_columns((pl.col("pay") - pl.col("pay").shift(1).over("id")).alias("step"))[
        "step"
    ].drop_nulls()
    assert abs(step.median() - 20) < 30
    assert step.std() < 150


def test_one_to_one_tables_may_be_joined():
    """The pseudo-data of relational-vs-single-table-synthesis.md, R3, in small."""
    rng = np.random.default_rng(1)
    n = 3000
    year, sex, flag = np.round(rng.normal(1970, 14.9, n)), rng.integers(1, 3, n), rng.random(n) < 0.038
    days = 98286.67 - 48.71 * year + 332.89 * sex - 1332.74 * flag + rng.normal(0, 2129.4, n)
    helped = rng.random(n) >= 0.041
    person = pl.DataFrame({"id": np.arange(n), "year": year, "sex": sex})
    benefit = pl.DataFrame(
        {
            "person": np.arange(n),
            "days": days,
            "ioaw": flag.astype(int),
            "bijstand": helped.astype(int),
            "since": [dt.date(2015, 1, 1) if own else None for own in helped],
        }
    )
    links = {"tables": {"person": {"key": "id"}, "benefit": {"parents": {"person": "person"}}}}
    made = (
        synth.Relational(links, strategy="joined")
        .fit({"person": person, "benefit": benefit}, seed=1)
        .sample(seed=1)
    )
    whole(made, links)
    assert made["benefit"].filter(pl.col("bijstand") == 0)["since"].is_null().all()
    assert made["benefit"].filter(pl.col("bijstand") == 1)["since"].is_not_null().all()
    twice = pl.concat([benefit, benefit.head(5)])
    with pytest.raises(ParameterError, match="5 records"):
        synth.Relational(links, strategy="joined").fit({"person": person, "benefit": twice}, seed=1)


def test_a_schema_is_inferred_and_must_be_confirmed(tmp_path):
    tables = bank()
    guess = synth.Schema.infer(tables)
    assert dict(guess.tables["entry"].parents) == {"account_id": "account"}
    assert dict(guess.tables["note"].parents) == {"entry_id": "entry"}
    with pytest.raises(ParameterError, match="confirmed"):
        synth.Relational(guess)
    assert synth.Relational(guess.confirm()).links.confirmed
    again = synth.Schema.load(guess.save(tmp_path / "bank.toml"))
    assert again == guess


def test_an_empty_child_table_stays_empty():
    tables = bank() | {"note": bank()["note"].clear()}
    made = synth.Relational(BANK).fit(tables, seed=1).sample(seed=1)
    assert made["note"].height == 0
    assert made["note"].schema == tables["note"].schema


def test_what_cannot_be_is_refused_with_counts():
    tables = bank()
    orphaned = tables | {"entry": tables["entry"].with_columns(account_id=pl.col("account_id") + 10_000)}
    with pytest.raises(InputError, match=f"{tables['entry'].height:,} records name a 'account'"):
        synth.Relational(BANK).fit(orphaned, seed=1)
    double = tables | {"client": pl.concat([tables["client"], tables["client"].head(3)])}
    with pytest.raises(InputError, match="repeats another in 3"):
        synth.Relational(BANK).fit(double, seed=1)
    with pytest.raises(ParameterError, match="circle"):
        synth.Schema.from_dict(
            {"tables": {"a": {"key": "x", "parents": {"y": "b"}}, "b": {"key": "y", "parents": {"x": "a"}}}}
        )
    with pytest.raises(InputError, match="was not given"):
        synth.Relational(BANK).fit({"client": tables["client"]}, seed=1)
    wrong = {"tables": {**BANK["tables"], "entry": {**BANK["tables"]["entry"], "rules": ["day < 0"]}}}
    with pytest.raises(InputError, match="break a rule"):
        synth.Relational(wrong).fit(tables, seed=1)
    nowhere = {"tables": {**BANK["tables"], "entry": {**BANK["tables"]["entry"], "order": "dya"}}}
    with pytest.raises(ColumnError, match="'day'"):
        synth.Relational(nowhere).fit(tables, seed=1)


def test_the_command_synthesizes_linked_tables(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from discreet.cli import app

    monkeypatch.chdir(tmp_path)
    tables = {name: frame for name, frame in bank().items() if name in ("account", "entry")}
    for name, frame in tables.items():
        frame.write_csv(f"{name}.csv")
    (tmp_path / "schema.toml").write_text(
        '[tables.account]\nkey = "account_id"\nfile = "account.csv"\n'
        '[tables.entry]\nkey = "entry_id"\nparents = {account_id = "account"}\norder = "day"\nfile = "entry.csv"\n'
    )
    done = CliRunner().invoke(app, ["synthesize", "--schema", "schema.toml", "--out", "made", "--seed", "1"])
    assert done.exit_code == 0, done.output
    entry, account = pl.read_csv("made/entry.csv"), pl.read_csv("made/account.csv")
    assert set(entry["account_id"]) <= set(account["account_id"])


ACCOUNTS = {"account_id": range(1, 61), "kind": ["a", "b"] * 30}
ENTRIES = {
    "entry_id": range(1, 121),
    "account_id": [1 + n // 2 for n in range(120)],
    "day": [n % 9 for n in range(120)],
}
LINKS = (
    '[tables.account]\nkey = "account_id"\nfile = "account.csv"\n'
    '[tables.entry]\nkey = "entry_id"\nparents = {account_id = "account"}\norder = "day"\nfile = "entry.csv"\n'
)


@pytest.mark.parametrize(
    ("account", "entry", "links", "said"),
    [
        ({}, {"account_id": [99] * 120}, LINKS, "120 records name a 'account'"),
        ({"account_id": [1, 1, 2] * 20}, {}, LINKS, "repeats another in 58"),
        ({}, {}, LINKS.replace('"account.csv"', '"account.csv"\nparents = {kind = "entry"}'), "circle"),
        ({}, {}, LINKS.replace('"account_id"\nfile', '"acount_id"\nfile'), "Did you mean 'account_id'"),
        ({}, {}, LINKS.replace("entry.csv", "entries.csv"), "Table 'entry': There is no file"),
        ({}, None, LINKS, "Table 'entry': The file 'entry.csv' has a header but no records"),
        ({}, {}, "confirmed = false\n" + LINKS, "confirmed"),
    ],
)
def test_the_command_refuses_what_cannot_be_and_writes_nothing(
    tmp_path, monkeypatch, account, entry, links, said
):
    from typer.testing import CliRunner

    from discreet.cli import app

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({**ACCOUNTS, **account}).write_csv("account.csv")
    own = pl.DataFrame({**ENTRIES, **(entry or {})})
    (own if entry is not None else own.clear()).write_csv("entry.csv")
    (tmp_path / "schema.toml").write_text(links)
    done = CliRunner().invoke(app, ["synthesize", "--schema", "schema.toml", "--out", "made", "--seed", "1"])
    assert isinstance(done.exception, DiscreetError)
    assert said in str(done.exception)
    assert not (tmp_path / "made").exists()


def test_a_folder_that_is_there_is_refused_before_any_work(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from discreet.cli import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    done = CliRunner().invoke(app, ["synthesize", "--schema", "not-even-there.toml", "--out", "made"])
    assert "--overwrite" in str(done.exception)


def test_children_that_no_draw_can_fit_to_their_parent_are_left_out_and_counted():
    links = synth.Schema.from_dict({"tables": {"visit": {}}})
    fitted = synth.FittedRelational(links, {}, {}, [], {})
    at, frame = np.arange(100), pl.DataFrame({"day": np.arange(100)})
    left = fitted._without("visit", np.array([3, 7]), at, frame, pl.DataFrame())
    assert [len(left[0]), left[1].height, left[2].width] == [98, 98, 0]
    assert not {3, 7} & set(left[1]["day"])
    assert fitted.unplaced == {"visit": 2}
    assert fitted._without("visit", np.array([], dtype=np.int64), at)[0] is at
    with pytest.raises(ParameterError, match="10 of 100 records break a rule"):
        fitted._without("visit", np.arange(10), at)


def one_to_one() -> dict[str, pl.DataFrame]:
    """Persons, and the benefits of the women under the same numbers."""
    person = pl.DataFrame({"id": range(200), "sex": ["f", "m"] * 100})
    benefit = person.filter(pl.col("sex") == "f").select("id", pay=pl.col("id") % 7)
    return {"person": person, "benefit": benefit}


ONE_TO_ONE = {"tables": {"person": {"key": "id"}, "benefit": {"key": "id", "parents": {"id": "person"}}}}


def test_a_child_whose_key_is_that_of_its_parent_stays_with_its_parent():
    made = synth.Relational(ONE_TO_ONE).fit(one_to_one(), seed=1).sample(seed=1)
    of_whom = made["benefit"].join(made["person"], on="id")
    assert len(of_whom) == len(made["benefit"]) == made["benefit"]["id"].n_unique()
    assert (of_whom["sex"] == "f").mean() > 0.95


@pytest.mark.parametrize("strategy", ["joined", "separate"])
def test_tables_that_share_their_key_are_drawn_by_every_strategy(strategy):
    made = synth.Relational(ONE_TO_ONE, strategy=strategy).fit(one_to_one(), seed=1).sample(seed=1)
    assert made["benefit"].columns == ["id", "pay"]
    assert made["benefit"]["id"].n_unique() == len(made["benefit"])
    assert made["benefit"]["id"].is_in(made["person"]["id"].implode()).all()


def test_moments_that_came_as_texts_are_modelled_and_come_back_as_they_were_written(tmp_path):
    moments = pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 3, 1), "7h", eager=True)
    visit = pl.DataFrame(
        {"person": [n % 60 for n in range(len(moments))], "seen": moments.dt.strftime("%d.%m.%Y %H:%M")}
    )
    person = pl.DataFrame({"id": range(60), "sex": ["f", "m"] * 30})
    links = {"tables": {"person": {"key": "id"}, "visit": {"parents": {"person": "person"}, "order": "seen"}}}
    fitted = synth.Relational(links).fit({"person": person, "visit": visit}, seed=1)
    made = fitted.sample(seed=1)["visit"]
    assert made["seen"].str.to_datetime("%d.%m.%Y %H:%M").is_between(moments[0], moments[-1]).mean() > 0.9
    again = synth.FittedRelational.load(fitted.save(tmp_path / "model"))
    assert again.sample(seed=1)["visit"].equals(made)


def test_what_is_left_out_is_said():
    person = pl.DataFrame(
        {"id": range(60), "name": [f"x{n} y{n * 7}" for n in range(60)], "sex": ["f", "m"] * 30}
    )
    visit = pl.DataFrame({"person": [n // 2 for n in range(120)], "day": range(120)})
    links = {"tables": {"person": {"key": "id"}, "visit": {"parents": {"person": "person"}}}}
    fitted = synth.Relational(links).fit({"person": person, "visit": visit}, seed=1)
    assert "Left out: person.name (a text that is different in nearly every record)." in repr(fitted)
