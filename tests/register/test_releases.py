from __future__ import annotations

import json
import threading

import polars as pl
import pytest

from discreet import DiscreetError, Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.core.verdicts import Acceptance, Unjudged, Verdict
from discreet.register import Register

PEOPLE = pl.DataFrame({"age": range(20, 80), "pay": [1234.5 + n for n in range(60)], "home": ["zqtown"] * 60})


@pytest.fixture
def place(tmp_path):
    return tmp_path / "people.register.jsonl"


def opened(place, frame=PEOPLE):
    return Register(place, Microdata(frame))


def released(place):
    return opened(place).enter("microdata", columns=["age"], records=60, file="a.csv", checksum="x")


def test_what_was_entered_is_read_again_in_order(place):
    for name in ("a.csv", "b.csv"):
        opened(place).enter("microdata", columns=["age"], records=60, file=name, checksum=name)
    assert [line["file"] for line in Register.load(place).releases] == ["a.csv", "b.csv"]
    assert Register.load(place).of_file("b.csv")["number"] == 3


def test_an_acceptance_stands_in_the_register(place):
    verdict = Verdict("Ours", (), (Unjudged("rule", "at most 1", "the original", "compare"),))
    taken = verdict.accepting([Acceptance("rule", because="nobody can know", by="A. Steward")])
    opened(place).enter("microdata", columns=["age"], records=60, verdict=taken)
    (line,) = Register.load(place).releases
    assert line["verdict"] == {"policy": "Ours", "outcome": "accepted"}
    assert line["accepted"][0]["by"] == "A. Steward"


def test_no_value_and_no_key_is_written(place):
    register = opened(place)
    released(place)
    text = place.read_text()
    assert "zqtown" not in text
    assert not any(str(value) in text for value in PEOPLE["pay"])
    assert register.key.hex() not in text
    assert {file.stat().st_mode & 0o077 for file in place.parent.iterdir()} == {0}


def test_a_changed_line_is_noticed(place):
    released(place)
    place.write_text(place.read_text().replace('"records": 60', '"records": 61'))
    with pytest.raises(InputError, match="line of a register of releases 2 was changed"):
        Register.load(place)


def test_half_a_line_is_noticed(place):
    released(place)
    place.write_bytes(place.read_bytes()[:-20])
    with pytest.raises(InputError, match="a line is damaged"):
        Register.load(place)


def test_an_older_copy_that_is_put_back_is_noticed_by_a_new_run_too(place):
    opened(place)
    older = place.read_bytes()
    released(place)
    place.write_bytes(older)
    with pytest.raises(InputError, match="an older copy took its place"):
        Register.load(place)


def test_a_register_that_was_emptied_is_noticed(place):
    released(place)
    place.write_text("")
    with pytest.raises(InputError, match="lines that were in it are gone"):
        opened(place)


def test_a_file_that_is_something_else_is_refused(place):
    place.write_text(json.dumps({"a": 1}) + "\n")
    with pytest.raises(DiscreetError, match="no line of a register"):
        Register.load(place)


def test_other_people_are_refused_until_somebody_declares_them_to_be_the_same(place):
    released(place)
    other = Microdata(PEOPLE.with_columns(pl.col("pay") * 2))
    with pytest.raises(InputError, match="belongs to 'data', and these are other data"):
        Register(place, other)
    with pytest.raises(ParameterError, match="who declares"):
        Register.load(place).same_source(other, why=" ")
    Register.load(place).same_source(other, why="pay in another currency, said by the owner")
    assert len(Register(place, other).releases) == 1


def test_a_version_in_which_few_records_changed_is_known_again_and_noted_with_its_release(place):
    released(place)
    changed = PEOPLE.with_columns(pay=pl.when(pl.col("age") == 33).then(0.0).otherwise("pay"))
    before = place.read_bytes()
    register = opened(place, changed)
    assert place.read_bytes() == before, "looking writes nothing"
    register.enter("microdata", columns=["age"], records=60)
    first, last = Register.load(place).releases
    assert first["version"] != last["version"]


def test_the_same_people_in_another_order_and_engine_are_the_source(place):
    released(place)
    mixed = PEOPLE.sample(fraction=1, shuffle=True, seed=1).select("pay", "home", "age")
    assert len(Register(place, Microdata(mixed.to_pandas())).releases) == 1


def test_threads_enter_one_after_the_other(place):
    opened(place)
    threads = [threading.Thread(target=released, args=(place,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line["number"] for line in Register.load(place).releases] == list(range(2, 10))


def test_a_file_is_found_by_its_checksum_and_not_by_its_name(place, tmp_path):
    from discreet.core.files.journals import digest_of

    (tmp_path / "a.csv").write_text("age\n20\n")
    line = opened(place).enter(
        "microdata", columns=["age"], records=1, file="a.csv", checksum=digest_of(tmp_path / "a.csv")
    )
    (tmp_path / "a.csv").rename(tmp_path / "moved.csv")
    (tmp_path / "a.csv").write_text("age\n99\n")
    assert Register.load(place).file_of(line) is None
    assert Register.load(place).file_of(line, [tmp_path / "moved.csv"]) == tmp_path / "moved.csv"
