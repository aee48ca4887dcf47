"""How many modules does a reader open who follows one call from the front door to its answer?

A *walk* is one call on a small file, made a second time on fresh data so that nothing is compiled or looked up for the
first time. Counted is every module of which some function runs during the call, compiled loops included where Python
calls them (so that small tables, which are begun in plain Python, are compiled from the start here). Left
out is the foundation (``core`` and ``microdata``): errors, wording, cards, results, roles and checks
of parameters, which every reader knows after the first walk and no walk could do without.

Limits are those that were set when the house was last tidied; whoever needs one more module on a walk looks first for
two that are only ever opened together. That no room is entered twice is a matter of the import graph, see
`test_house.test_no_room_is_entered_again_from_a_room_it_calls`.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_house import SOURCE

from discreet import Microdata, Plan, assess, compare, protect, synth, tables
from discreet.core.compiling import Patience
from discreet.tables.gauss import elimination_runs

GROUND = {"core", "microdata"}


def people(n: int = 300) -> Microdata:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(list("abcd"), n),
            "age": rng.integers(2, 6, n) * 10,
            "income": rng.lognormal(8, 1, n).round(),
            "job": rng.choice(["x", "y", "z"], n),
        }
    )
    return Microdata(frame, keys=["sex", "region", "age"], sensitive=["job"])


def weighted() -> Microdata:
    data = people()
    return data.with_frame(data.frame.with_columns(weight=pl.lit(10.0))).with_roles(weight="weight")


def sensitive_table() -> tables.Table:
    return tables.primary(tables.Table.from_microdata(people(), ["region", "job"]), tables.Threshold(20))


def synthetic() -> Microdata:
    return synth.Sequential().fit(people(), seed=1).sample(seed=2)


Walk = tuple[Callable[[], tuple[Any, ...]], Callable[..., Any], int]
WALKS: dict[str, Walk] = {
    "assess": (
        lambda: (weighted(),),
        lambda data: assess(data, "public-use-file", seed=1, progress=False),
        42,
    ),
    "Plan": (
        lambda: (people(),),
        lambda data: Plan([protect.LocalSuppression(k=3)]).apply(data, seed=1),
        15,
    ),
    "Sequential": (
        lambda: (people(),),
        lambda data: synth.Sequential().fit(data, seed=1).sample(seed=2),
        30,
    ),
    "compare": (
        lambda: (people(), synthetic()),
        lambda data, made: compare(data, made, seed=1, progress=False),
        70,
    ),
    "Suppression": (lambda: (sensitive_table(),), lambda table: tables.Suppression().apply(table), 14),
}


@contextmanager
def visited() -> Iterator[set[str]]:
    """Note the modules of which a function is called, in all threads that start meanwhile."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and code.co_name != "<module>":
            found.add(code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


@pytest.mark.parametrize("name", WALKS)
def test_a_reader_opens_few_modules_on_the_way_from_a_call_to_its_answer(name, monkeypatch):
    monkeypatch.setattr(elimination_runs, "PATIENCE", Patience(-1))
    prepared, call, most = WALKS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(*prepared())
        arguments = prepared()
        with visited() as files:
            call(*arguments)
    modules = sorted(file.removeprefix(f"{SOURCE}/").removesuffix(".py") for file in files)
    above = [module for module in modules if module.split("/")[0] not in GROUND]
    assert len(above) <= most, f"{len(above)} modules above the ground floor:\n" + "\n".join(above)
