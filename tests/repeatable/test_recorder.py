"""The record of answers turns red for every class of change, and stays green where nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from repeatable.comparing import Answer, differences, read_record, unsteady
from repeatable.recorder import Digest, name_of

from discreet import Microdata, risk

FRAME = pl.DataFrame({"sex": ["f", "m", "m"], "pay": [1.0, 2.5, None], "day": [date(2024, 1, 1)] * 3})


def data(frame=FRAME, keys=("sex",)):
    return Microdata(frame, keys=list(keys))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (data(), data(FRAME.with_columns(pay=pl.Series([1.0, 2.5, 3.0])))),
        (data(), data(FRAME[::-1])),
        (data(), data(FRAME.select("pay", "sex", "day"))),
        (data(), data(keys=("sex", "day"))),
        (data(), data(FRAME.with_columns(pl.col("sex").cast(pl.Categorical)))),
        (risk.k_anonymity(data()), risk.k_anonymity(data(keys=("sex", "day")))),
        (risk.k_anonymity(data()), risk.uniqueness(data())),
        (np.array([1, 2]), np.array([1.0, 2.0])),
        (ValueError("k must be 2"), ValueError("k must be 3")),
        (ValueError("k"), TypeError("k")),
        ("<p>one</p>", "<p>two</p>"),
        (b"one", b"two"),
        ([1, [2]], [1, 2]),
        ({"k": 1}, {"k": 2}),
        ({"k": 1, "t": 2}, {"t": 2, "k": 1}),
        (True, 1),
    ],
)
def test_a_changed_answer_has_another_digest(one, other):
    assert Digest.of(one) == Digest.of(one)
    assert Digest.of(one)[1] != Digest.of(other)[1]


def test_a_changed_last_bit_is_seen_and_told_from_a_changed_number():
    for one, other in (
        (0.1 + 0.2, 0.3),
        (np.array([0.1 + 0.2]), np.array([0.3])),
        (pl.Series([0.1 + 0.2]), pl.Series([0.3])),
    ):
        assert Digest.of(one)[0] != Digest.of(other)[0]
        assert Digest.of(one)[1] == Digest.of(other)[1]


def test_when_and_where_something_ran_is_no_change(tmp_path):
    assert Digest.of({"seconds": 1.2, "k": 1}) == Digest.of({"seconds": 3.4, "k": 1})
    assert Digest.of(f"written to {tmp_path}/a.csv") == Digest.of(f"written to {tmp_path.parent}/b/a.csv")
    assert Digest.of(tmp_path / "x.csv") == Digest.of(Path("x.csv"))


def test_answers_that_differ_by_themselves_are_left_out_and_others_are_not():
    before = {"t": [Answer("f", "1", "1"), Answer("g", "2", "2")], "u": [Answer("f", "1", "1")]}
    again = {"t": [Answer("f", "9", "9"), Answer("g", "2", "2")], "u": [Answer("f", "1", "1")]}
    left_out = unsteady(before, again)
    assert left_out == {("t", 0)}
    assert differences(before, again, left_out) == []
    after = {"t": [Answer("f", "5", "5"), Answer("g", "3", "2")]}
    assert differences(before, after, left_out) == [("t", "bits 1 of g"), ("u", "gone")]
    more = {**before, "u": [Answer("f", "1", "1")] * 2}
    assert differences(before, more, left_out) == [("u", "2 answers instead of 1")]


def test_an_example_has_the_same_name_in_whatever_module_it_is():
    one = name_of("src/discreet/risk/classes/k_anonymity.py::discreet.risk.classes.k_anonymity.k_anonymity")
    assert one == name_of("src/discreet/risk/k_anonymity.py::discreet.risk.k_anonymity.k_anonymity")
    assert name_of("tests/test_names.py::test_a") == "tests/test_names.py::test_a"


def test_a_changed_name_signature_card_policy_or_help_is_shown(monkeypatch):
    import dataclasses

    from repeatable.surface import surface

    from discreet.core.cards import _CARDS

    before = surface()
    assert {name.split()[0] for name in before} == {"name", "card", "policy", "help"}

    def changed() -> set[str]:
        after = surface()
        return {name for name in {*before, *after} if before.get(name) != after.get(name)}

    assert changed() == set()
    with monkeypatch.context() as patch:
        patch.setattr(risk, "k_anonymity", lambda data, *, keys=(): None)
        assert changed() == {"name discreet.risk.k_anonymity"}
    with monkeypatch.context() as patch:
        patch.delattr(Microdata, "with_roles")
        assert changed() == {"name discreet.Microdata.with_roles"}
    with monkeypatch.context() as patch:
        patch.setitem(_CARDS, "uniqueness", dataclasses.replace(_CARDS["uniqueness"], headline="other"))
        assert changed() == {"card risk uniqueness"}


SMALL = """
import numpy as np, polars as pl, pytest
from discreet import Microdata, dp, risk
from discreet.core.errors import DiscreetError

def test_measure():
    assert risk.k_anonymity(Microdata(pl.DataFrame({"a": [1, 1, 2]}), keys="a")).value == 1

def test_refusal():
    with pytest.raises(DiscreetError):
        risk.k_anonymity(Microdata(pl.DataFrame({"a": [1]}), keys="a"), keys=["b"])

def test_entropy():
    dp.count(Microdata(pl.DataFrame({"a": [1, 1, 2]})), epsilon=1.0)
"""


def test_a_run_is_written_down_the_same_way_twice(tmp_path):
    tests = Path(__file__).parent.parent
    inside = tests / "repeatable" / "_small_for_the_recorder.py"
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(tests.parent / "pyproject.toml"), "--rootdir",
               str(tests.parent), "-p", "repeatable.recorder", "-p", "no:cacheprovider", str(inside)]  # fmt: skip
    paths = os.pathsep.join([str(tests.parent / "src"), str(tests)])
    records = []
    inside.write_text(SMALL)
    try:
        for number in (1, 2):
            file = tmp_path / f"{number}.jsonl"
            subprocess.run(
                [*command, "--record", str(file)],
                check=True,
                env={**os.environ, "PYTHONPATH": paths},
                cwd=tests.parent,
            )
            records.append(read_record(file))
    finally:
        inside.unlink()
    assert records[0] == records[1]
    told = {test.rpartition("::")[2]: [one.what for one in answers] for test, answers in records[0].items()}
    assert set(told) == {"test_measure", "test_refusal", "test_entropy"}
    assert "refusal" in told["test_refusal"]
