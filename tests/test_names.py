"""One name for one thing, and the seed last, over everything that can be called from outside."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator

import pytest

ROOMS = (
    "",
    "attack",
    "dp",
    "federated",
    "hierarchy",
    "outputs",
    "protect",
    "risk",
    "synth",
    "tables",
    "utility",
    "workflow",
)
# What a parameter must not be called, and what it is called instead.
ELSEWHERE = {
    "link": "ids",
    "control": "holdout",
    "ngroups": "groups",
    "n_groups": "groups",
    "most_rounds": "max_rounds",
    "most_cells": "max_cells",
    "max_iter": "max_rounds",
    "iterations": "max_rounds",
    "neighbours": "neighbors",
    "random_state": "seed",
    "verbose": "progress",
}


def public() -> Iterator[tuple[str, Callable[..., object]]]:
    for room in ROOMS:
        module = importlib.import_module(f"discreet.{room}".rstrip("."))
        for name in module.__all__:
            found = getattr(module, name)
            if not callable(found):
                continue
            yield f"{room}.{name}".lstrip("."), found
            if inspect.isclass(found) and found.__module__.startswith("discreet"):
                own = {
                    key
                    for base in found.__mro__
                    if base.__module__.startswith("discreet")
                    for key in vars(base)
                }
                for method in sorted(own):
                    if not method.startswith("_") and callable(getattr(found, method)):
                        yield f"{room}.{name}.{method}".lstrip("."), getattr(found, method)


def parameters(of: Callable[..., object]) -> list[str]:
    try:
        known = inspect.signature(of).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in known if one.kind is not one.VAR_KEYWORD]


def test_one_thing_has_one_name():
    wrong = [
        f"{where}: {name} is called {ELSEWHERE[name]}"
        for where, what in public()
        for name in parameters(what)
        if name in ELSEWHERE
    ]
    assert not wrong, "\n".join(wrong)


def test_the_seed_comes_last():
    wrong = [where for where, what in public() if "seed" in parameters(what)[:-1]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_shows_is_what_it_offers(room):
    """`dir` lists the public names: no modules, no helpers that were imported along."""
    module = importlib.import_module(f"discreet.{room}".rstrip("."))
    assert set(dir(module)) - {"__version__"} <= set(module.__all__) | {
        name for name in dir(module) if name.startswith("__")
    }
