"""Any settings are taken or refused, for every treatment, synthesizer, measure and protection of tables there is."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy.typing as npt
from hypothesis import strategies as st

import discreet
from discreet import attack, dp, federated, risk, tables, utility
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.protect import Treatment
from discreet.synth import Synthesizer
from discreet.tables import Rule, Suppression, Table, TableProtection, primary
from fuzz.campaign import fuzzed
from fuzz.frames import frames
from fuzz.harness import refused_or_done
from fuzz.values import ARRAYS, COLUMNS, PEOPLE, ROLES, WRONG, annotations, fitting, microdata, settings

# Exact draws and costs that rooms build on: what they take was checked by whoever calls them.
BUILDING_BLOCKS = {
    name
    for name in dp.__all__
    if inspect.isfunction(getattr(dp, name)) and "words" in inspect.signature(getattr(dp, name)).parameters
} | {"os_words", "seeded_words", "checked_epsilon", "rational_epsilon", "measured"}
MEASURES = {
    f"{room.__name__.rpartition('.')[2]}.{name}": getattr(room, name)
    for room in (risk, utility, dp, attack, federated)
    for name in room.__all__
    if inspect.isfunction(getattr(room, name)) and name not in BUILDING_BLOCKS
}
RULES = {
    name: kind
    for name in tables.__all__
    if inspect.isclass(kind := getattr(tables, name))
    and issubclass(kind, Rule)
    and not inspect.isabstract(kind)
}
# Numbers of repetitions: a user who asks for a billion of them waits for a billion of them.
_SLOW = {
    "n_perm",
    "draws",
    "replicates",
    "repeats",
    "copies",
    "trees",
    "n_resyntheses",
    "progress",
    "epochs",
    "shadows",
    "permutations",
}
_FILES = {"data", "original", "released", "next", "population", "holdout", "control", "reference"}


@st.composite
def calls(draw: st.DrawFn, kinds: dict[str, Any], *, plain: bool) -> tuple[str, dict[str, Any]]:
    """A name and settings for it."""
    name = draw(st.sampled_from(sorted(kinds)))
    return name, draw(settings(kinds[name], plain=plain, skip=tuple(_SLOW)))


@st.composite
def measured(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A measure with the files it wants and settings."""
    name = draw(st.sampled_from(sorted(MEASURES)))
    chosen = draw(settings(MEASURES[name], skip=tuple(_SLOW | _FILES)))
    for role, (annotation, needed) in annotations(MEASURES[name]).items():
        if annotation is npt.ArrayLike:
            chosen[role] = draw(ARRAYS)
        elif role in _FILES and (needed or draw(st.integers(0, 3)) == 0):
            # Mostly a file; sometimes whatever else the signature, or nobody, would take.
            chosen[role] = draw(st.one_of(*[st.builds(microdata)] * 4, fitting(annotation), WRONG))
        if role in _SLOW and (needed or draw(st.booleans())):
            chosen[role] = draw(st.sampled_from([0, 1, 2, -1, 1.5, float("nan"), "x", None, []]))
    return name, chosen


@fuzzed(calls(Treatment.known, plain=False), quick=40, share=0.09)
def test_a_treatment_treats_or_refuses(case: tuple[str, dict[str, Any]]) -> None:
    name, chosen = case
    refused_or_done(lambda: Treatment.known[name](**chosen).apply(microdata(), seed=1).to_dict())


@fuzzed(calls(Treatment.known, plain=True), quick=24, share=0.05)
def test_a_step_of_a_plan_is_taken_or_refused(case: tuple[str, dict[str, Any]]) -> None:
    name, chosen = case
    plain = {
        name: value.to_dict() if isinstance(value, Hierarchy) else value for name, value in chosen.items()
    }
    refused_or_done(lambda: Treatment.named(name, plain).apply(microdata(), seed=1))


@fuzzed(calls(Synthesizer.known, plain=False), quick=12, share=0.03)
def test_a_synthesizer_fits_or_refuses(case: tuple[str, dict[str, Any]]) -> None:
    name, chosen = case
    refused_or_done(lambda: Synthesizer.known[name](**chosen).fit(microdata(), seed=1).sample(5, seed=2))


@fuzzed(measured(), quick=40, share=0.09)
def test_a_measure_measures_or_refuses(case: tuple[str, dict[str, Any]]) -> None:
    name, chosen = case

    def call() -> None:
        found = MEASURES[name](**chosen)
        str(found)
        if hasattr(found, "to_dict"):
            found.to_dict()

    refused_or_done(call)


@functools.cache
def _table() -> Table:
    return Table.from_microdata(Microdata(PEOPLE.drop_nulls("region")), "sex*region", zeros="all")


@fuzzed(
    st.one_of(
        calls(TableProtection.known, plain=False),
        calls({"suppression": Suppression}, plain=False),
        calls(RULES, plain=False),
    ),
    quick=30,
    share=0.06,
)
def test_a_table_is_protected_or_refused(case: tuple[str, dict[str, Any]]) -> None:
    name, chosen = case

    def call() -> None:
        if name in TableProtection.known:
            str(TableProtection.known[name](**chosen).apply(_table(), seed=1))
        elif name in RULES:
            primary(_table(), RULES[name](**chosen))
        else:
            str(Suppression(**chosen).apply(primary(_table(), tables.Threshold(3))))

    refused_or_done(call)


_ROLE_VALUES = st.one_of(st.sampled_from(COLUMNS), st.lists(st.sampled_from(COLUMNS), max_size=3), WRONG)


@fuzzed(
    st.tuples(
        frames(),
        st.dictionaries(st.sampled_from([*ROLES, "person", "strata", "psu"]), _ROLE_VALUES, max_size=3),
    ),
    quick=8,
    share=0.02,
)
def test_any_frame_is_assessed_or_refused(case: tuple[Any, dict[str, Any]]) -> None:
    frame, roles = case
    given = {"keys": frame.columns[:2], "sensitive": frame.columns[-1:], **roles}
    refused_or_done(lambda: str(discreet.assess(Microdata(frame, **given))))
    refused_or_done(lambda: Synthesizer.known["sequential"]().fit(Microdata(frame), seed=1).sample(3, seed=1))
