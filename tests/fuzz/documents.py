"""TOML files as people write them, with one thing or several changed: plans, policies, studies, roles, hierarchies."""

from __future__ import annotations

import copy
from typing import Any

import tomli_w
from hypothesis import strategies as st

from discreet.protect import Treatment
from discreet.synth import Synthesizer
from fuzz.values import PLAIN_WRONG, settings

PLAN = {
    "name": "ours",
    "step": [
        {"treatment": "drop-identifiers"},
        {"treatment": "band", "widths": {"age": 10}},
        {"treatment": "top-bottom-code", "top": {"pay": 1200.0}},
        {"treatment": "local-suppression", "k": 2, "importance": ["sex", "age"]},
        {"treatment": "generalize", "levels": {"age": 1},
         "hierarchies": {"age": {"kind": "intervals", "widths": [10, 20]}}},
        {"treatment": "optimal-generalization", "models": [{"kind": "k-anonymity", "k": 2}],
         "hierarchies": {"sex": {"kind": "tree", "tree": ["f", "m"]}}},
    ],
}  # fmt: skip
POLICY = {
    "name": "ours",
    "description": "for tests",
    "rules": {
        "k_anonymity": {"at_least": 3, "why": "so"},
        "reidentification.share_above_threshold": {"at_most": 0.05},
    },
    "parameters": {"reidentification": {"threshold": 0.2}},
    "comparison": {"replicated_uniques.repU": {"at_most": 5}},
    "outputs": {"threshold": 10},
}
SYNTHESIS = {
    "synthesizer": "sequential",
    "method": {"age": "cart", "sex": "sample"},
    "visit_sequence": ["sex", "age"],
    "rules": {"pay": {"when": "age < 16", "value": 0}},
    "special_codes": {"age": [99]},
    "constraints": ["age >= 0"],
    "few_values": 5,
}
STUDY = {
    "title": "two ways",
    "seeds": [1],
    "holdout": 0.2,
    "data": [
        {"name": "people", "source": "people.csv", "roles": {"keys": ["age", "sex"], "sensitive": ["pay"]}}
    ],
    "generator": [
        {"name": "margins", "synthesizer": "independent"},
        {"name": "other", "files": "other/{data}-{seed}.csv"},
    ],
    "metric": [{"name": "margins"}],
    "model": [{"name": "pay", "formula": "pay ~ age", "family": "linear"}],
}
SIDECAR = {
    "roles": {"keys": ["age", "sex"], "sensitive": ["pay"], "weight": "w"},
    "reading": {"separator": ",", "missing": ["-8"], "dates": {"day": "%Y-%m-%d"}, "text": ["sex"]},
    "hierarchies": {"age": "age.csv"},
}
HIERARCHIES: list[dict[str, Any]] = [
    {"kind": "intervals", "widths": [5, 10], "origin": 0, "lower": 0, "upper": 90, "closed": "left"},
    {
        "kind": "breaks",
        "breaks": [[18, 65], [18]],
        "labels": [["a", "b", "c"], ["a", "d"]],
        "closed": "right",
    },
    {"kind": "prefixes", "keep": [3, 1], "mask": "*"},
    {"kind": "dates", "levels": ["month", "year"]},
    {"kind": "tree", "tree": {"all": {"x": ["f", "m"]}}},
    {"kind": "table", "rows": [["f", "x", "*"], ["m", "x", "*"]]},
    {"kind": "csv", "path": "age.csv"},
]
_ODD_TEXTS = st.sampled_from(
    ["", "x = " + "[" * 50_000, "x = " + "9" * 5_000, "[" * 400, "a" + ".a" * 4_000 + " = 1", "\ufeff", "\x00",
     "x = 1\nx = 2",
     "[a]\n[a]", "x = nan", "x = 9999-12-31", "x = 0001-01-01T00:00:00Z", "step = 5", "rules = []", "[[data]]",
          "é = 1",
     "name = '''" + "a" * 70_000 + "'''", "x = {" + "y = {" * 3_000, "data = ['../../x']", '"" = 1', "x = 1e400"]
)  # fmt: skip
_ODD_NAMES = st.sampled_from(
    ["../../outside", "/tmp/outside", "a/b", "..", ".", "", "{data.__class__}", "{seed!r:>9999999}", "{0}", "{",
     "a\x00b",
     "con", "a" * 300, "\x1b[2J", "~", "${HOME}", "a\nb"]
)  # fmt: skip


def _places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(document, dict):
        for name, value in document.items():
            found += _places(value, (*path, name))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            found += _places(value, (*path, number))
    return found


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """A document with up to three places left out, renamed or given something else."""
    made = copy.deepcopy(document)
    for _ in range(draw(st.integers(0, 3))):
        places = _places(made)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        inside = made
        for step in way:
            inside = inside[step]
        how = draw(st.sampled_from(["wrong", "wrong", "odd", "gone", "named", "twice"]))
        if how == "gone":
            del inside[last]
        elif how == "named" and isinstance(inside, dict):
            inside[draw(st.one_of(_ODD_NAMES, st.text(max_size=5)))] = inside.pop(last)
        elif how == "twice" and isinstance(inside, list):
            inside.append(copy.deepcopy(inside[last]))
        else:
            # A copy: the next change may be inside it, and the values are shared by all cases.
            inside[last] = copy.deepcopy(draw(_ODD_NAMES if how == "odd" else PLAIN_WRONG))
    return made


def written(document: Any) -> str:
    """Write a document as TOML; what TOML cannot hold is left out."""
    try:
        return tomli_w.dumps(document)
    except (TypeError, AttributeError, ValueError):
        return "x = 1"


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """A plan of drawn steps."""
    names = draw(st.lists(st.sampled_from(sorted(set(Treatment.known) - {"plan"})), min_size=1, max_size=2))
    return {
        "step": [{"treatment": name, **draw(settings(Treatment.known[name], plain=True))} for name in names]
    }


@st.composite
def syntheses(draw: st.DrawFn) -> dict[str, Any]:
    """A plan of a synthesis with drawn settings."""
    name = draw(st.sampled_from(sorted(Synthesizer.known)))
    return {"synthesizer": name, **draw(settings(Synthesizer.known[name], plain=True))}


def texts(*documents: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    """Whole files: changed documents, and texts that are odd as such."""
    drawn = [one.map(written) for one in documents]
    return st.one_of(*drawn, *drawn, *drawn, _ODD_TEXTS)


PLANS = texts(changed(PLAN), steps())
POLICIES = texts(changed(POLICY))
SYNTHESES = texts(changed(SYNTHESIS), syntheses())
STUDIES = texts(changed(STUDY))
SIDECARS = texts(changed(SIDECAR))
HRC = st.one_of(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["north", "south", "east", "x", "", " ", "@", "\t", "a" * 200])),
        max_size=7
    ).map(lambda lines: "\n".join("@" * depth + code for depth, code in lines)),
    st.text(max_size=40),
)  # fmt: skip
