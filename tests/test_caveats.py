"""Caveats are sentences for people and codes for the program: nothing in it reads English."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path

import polars as pl
import pytest

import discreet
from discreet import Microdata, risk
from discreet.core.findings import WEIGHTS_UNUSED, Caveat, code_of, without
from discreet.core.results import Measure

SOURCE = Path(discreet.__file__).parent
SEARCHES = {"startswith", "endswith", "find", "index", "count", "partition", "removeprefix", "removesuffix"}
WRITTEN_BY_OTHERS = {
    "io": "files of others",
    "outputs": "outputs and messages of other programs",
    "tables": "the files of tau-ARGUS",
    "engine": "messages of engines",
}
"""What is read there was written by somebody else, and has no code to ask for."""


def sentences_searched(tree: ast.AST) -> list[str]:
    """Find the texts of several words that are looked for in another text."""
    found = []
    for node in ast.walk(tree):
        looked_for: list[ast.expr] = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            # A text in a collection that is written out is a choice, not a search.
            looked_for = (
                [] if isinstance(node.comparators[0], ast.Tuple | ast.List | ast.Set) else [node.left]
            )
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SEARCHES
        ):
            looked_for = list(node.args)
        for one in looked_for:
            for part in ast.walk(one):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    words = [word for word in part.value.split() if word.isalpha()]
                    found += [part.value] if len(words) > 1 else []
    return found


def test_no_module_searches_a_sentence():
    wrong = {
        str(path.relative_to(SOURCE)): said
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in WRITTEN_BY_OTHERS
        if (said := sentences_searched(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert wrong == {}


@pytest.mark.parametrize("name", ["tables/secondary_cells.py", "tables/table_suppression.py"])
def test_a_warning_of_our_own_is_known_by_its_class(name):
    assert sentences_searched(ast.parse((SOURCE / name).read_text(encoding="utf-8"))) == []


def test_a_caveat_is_a_text_that_keeps_its_code():
    said = Caveat("Not used here.", code=WEIGHTS_UNUSED)
    assert said == "Not used here."
    assert json.dumps([said]) == '["Not used here."]'
    assert code_of(pickle.loads(pickle.dumps(said))) == WEIGHTS_UNUSED
    assert code_of(Measure("k_anonymity", 1, {}, "One.", caveats=[said]).caveats[0]) == WEIGHTS_UNUSED
    assert without([said, "Another."], WEIGHTS_UNUSED) == ["Another."]


def test_measures_that_use_weights_do_not_say_that_they_do_not():
    people = pl.DataFrame({"sex": ["f", "f", "m", "m"] * 9, "age": list(range(12)) * 3, "w": [3.0] * 36})
    data = Microdata(people, keys=["sex", "age"], weight="w")
    assert WEIGHTS_UNUSED in map(code_of, risk.k_anonymity(data).caveats)
    for uses in (risk.individual, risk.special_uniques):
        assert WEIGHTS_UNUSED not in map(code_of, uses(data).caveats)
