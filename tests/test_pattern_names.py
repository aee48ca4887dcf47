"""A column called ``*`` or ``^k1$`` stands for itself everywhere, or is refused; never for others."""

import inspect
import json

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, risk, utility
from discreet.core.errors import ColumnError, DiscreetError
from discreet.protect import Treatment
from discreet.synth import Synthesizer
from discreet.tables import Table

ROWS = 60
RNG = np.random.default_rng(3)
FILE = {
    "k1": RNG.integers(20, 26, ROWS), "k2": RNG.choice(["f", "m"], ROWS), "num": np.round(RNG.normal(100, 20, ROWS), 1),
    "s": RNG.choice(["x", "y", "z"], ROWS), "w": np.full(ROWS, 2.0), "x": RNG.normal(0, 1, ROWS),
    "y": RNG.normal(0, 1, ROWS), "p": np.arange(ROWS) // 2,
}  # fmt: skip
RELEASED = {
    **FILE,
    "num": np.round(FILE["num"] + RNG.normal(0, 3, ROWS), 1),
    "k2": RNG.permutation(FILE["k2"]),
}
ROLES = {
    "keys": ["k1", "k2"],
    "sensitive": ["s", "num"],
    "weight": "w",
    "location": ["x", "y"],
    "household": "p",
}
# Patterns that match nothing, everything, or just one other column: the last would go unnoticed.
NAMES = [{"k2": "*", "num": "^k.*$", "s": "^.*$"}, {"num": "^x$", "k2": "^k1$", "s": "^y$"}]
MEASURES = [
    getattr(room, name)
    for room in (risk, utility)
    for name in room.__all__
    if inspect.isfunction(getattr(room, name))
    and {"data", "original"} & set(inspect.signature(getattr(room, name)).parameters)
]
OTHER_FILES = ("released", "next", "holdout", "control", "population")


def people(columns, names):
    frame = pl.DataFrame({names.get(name, name): values for name, values in columns.items()})
    roles = {
        role: names.get(given, given) if isinstance(given, str) else [names.get(name, name) for name in given]
        for role, given in ROLES.items()
    }
    return Microdata(frame, **roles)


def figures(function, names):
    given = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("data", "original"):
            given[name] = people(FILE, names)
        elif name in OTHER_FILES and parameter.default is parameter.empty:
            given[name] = people(RELEASED, names)
        elif name == "seed":
            given[name] = 1
        elif parameter.default is parameter.empty:
            pytest.skip(f"{name} has no usual value")
    found = function(**given)
    if not hasattr(found, "to_dict"):
        pytest.skip("no measure")
    text = json.dumps(found.to_dict().get("figures", {}), default=str)
    for plain, odd in names.items():
        text = text.replace(json.dumps(odd)[1:-1], plain)
    return json.loads(text)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", MEASURES, ids=lambda function: function.__name__)
def test_a_measure_counts_the_column_itself_or_refuses_it(function):
    try:
        plain = figures(function, {})
    except DiscreetError as error:
        pytest.skip(f"refused in any case: {type(error).__name__}")
    for names in NAMES:
        try:
            found = figures(function, names)
        except ColumnError as error:
            if "would be taken for a pattern" not in str(error):
                raise
        else:
            assert found == pytest.approx(plain, nan_ok=True) if _flat(plain) else found == plain


def _flat(found):
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in found.values())


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize(
    "kind", ["sequential", "independent", "bootstrap", "gaussian-copula", "bayesian-network"]
)
def test_synthesizers_refuse_such_names(kind, names):
    with pytest.raises(ColumnError, match="would be taken for a pattern"):
        Synthesizer.known[kind]().fit(people(FILE, names), seed=1)


@pytest.mark.parametrize("names", NAMES)
def test_treatments_and_tables_refuse_such_names(names):
    data = people(FILE, names)
    with pytest.raises(ColumnError, match="would be taken for a pattern"):
        Treatment.named("reorder-records", {}).apply(data, seed=1)
    with pytest.raises(ColumnError, match="would be taken for a pattern"):
        Table.from_microdata(data, f"`{names['k2']}`")
