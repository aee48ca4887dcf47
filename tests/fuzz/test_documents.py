"""Any TOML file and any code list is taken or refused, and a name in it never leads out of its folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import discreet
from discreet.hierarchy import Hierarchy
from discreet.io.sidecar import load_sidecar
from discreet.microdata import Microdata
from discreet.outputs.output_policy import OutputPolicy
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.synth import load_plan
from discreet.synth.preflighting import Preflight
from discreet.tables import Table
from discreet.workflow.evaluation import Study
from fuzz import documents
from fuzz.campaign import fuzzed
from fuzz.harness import command, refused_or_done
from fuzz.values import PEOPLE, PLAIN_WRONG, microdata

LOADS: dict[str, Callable[[Path], Any]] = {
    "plan": lambda path: Plan.load(path).apply(microdata(), seed=1),
    "policy": lambda path: discreet.assess(microdata(), policy=Policy.load(path)),
    "outputs": OutputPolicy.load,
    "synthesis": lambda path: load_plan(path).fit(microdata(), seed=1).sample(4, seed=1),
    "study": lambda path: Study.load(path).cells(),
    "sidecar": load_sidecar,
    "findings": Preflight.load,
}
TEXTS = {
    "plan": documents.PLANS,
    "policy": documents.POLICIES,
    "outputs": documents.POLICIES,
    "synthesis": documents.SYNTHESES,
    "study": documents.STUDIES,
    "sidecar": documents.SIDECARS,
    "findings": st.one_of(documents.SYNTHESES, documents.POLICIES),
}


@fuzzed(
    st.sampled_from(sorted(LOADS)).flatmap(lambda kind: st.tuples(st.just(kind), TEXTS[kind])),
    quick=40,
    share=0.06,
)
def test_a_toml_file_is_taken_or_refused(case: tuple[str, str]) -> None:
    kind, text = case
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "given.toml"
        place.write_text(text, encoding="utf-8", errors="replace")
        refused_or_done(lambda: LOADS[kind](place))
        assert [path.name for path in Path(folder).iterdir()] == ["given.toml"]


@fuzzed(st.one_of([documents.changed(one) for one in documents.HIERARCHIES]), quick=40, share=0.04)
def test_a_hierarchy_is_taken_or_refused(description: dict[str, Any]) -> None:
    for column in ("age", "sex", "day"):
        refused_or_done(lambda column=column: Hierarchy.from_dict(description).generalize(PEOPLE[column], 1))


@fuzzed(documents.HRC, quick=20, share=0.02)
def test_a_code_list_is_taken_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("region.hrc", "region.csv"):
            place = Path(folder) / name
            place.write_text(text, encoding="utf-8", errors="replace")
            people = Microdata(PEOPLE.drop_nulls("region"))
            refused_or_done(
                lambda place=place, people=people: Table.from_microdata(
                    people, "region", hierarchies={"region": place}
                )
            )


@fuzzed(
    st.tuples(
        documents.STUDIES,
        st.sampled_from([("--dry-run",), ("--training", "parts"), ("--out", "kept", "--json")]),
    ),
    quick=3,
    share=0.005,
)
def test_a_study_stays_in_its_folder(case: tuple[str, tuple[str, ...]]) -> None:
    text, options = case
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        here.mkdir()
        PEOPLE.write_csv(here / "people.csv")
        (here / "study.toml").write_text(text, encoding="utf-8", errors="replace")
        outcome = command(["evaluate", "study.toml", *options], here)
        outside = [name for name in outcome.written if not name.startswith(("here/parts/", "here/kept/"))]
        assert not outside, f"written elsewhere: {outside}"


@fuzzed(st.tuples(st.sampled_from(["--set", "--step", "--rule"]), PLAIN_WRONG), quick=10, share=0.01)
def test_settings_of_the_command_line_are_taken_or_refused(case: tuple[str, Any]) -> None:
    option, value = case
    text = documents.written({"v": value}).partition("=")[2].strip() or str(value)
    base = {
        "--set": ["risk", "k_anonymity", "people.csv", "-k", "age", "--set", f"threshold={text}"],
        "--step": [
            "protect",
            "people.csv",
            "--out",
            "o.csv",
            "--step",
            f"{{treatment = 'round', base = {text}}}",
        ],
        "--rule": ["table", "protect", "people.csv", "--table", "sex", "--rule", f"threshold={text}"],
    }
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        here.mkdir()
        PEOPLE.write_csv(here / "people.csv")
        command(base[option], here)
