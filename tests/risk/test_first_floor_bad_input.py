"""What the first floor refuses, and that no refusal shows a data value."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, engine, risk
from discreet.core.errors import ColumnError, DiscreetError, DiscreetWarning, InputError, ParameterError

PEOPLE = pl.DataFrame(
    {
        "name": ["secret-anna", "secret-bert", "secret-carl", "secret-dora"],
        "sex": ["secret-f", "secret-m", "secret-m", None],
        "age": [31, 41, 41, 51],
        "height": [1.61, 1.82, 1.83, None],
        "ill": ["secret-x", "secret-y", "secret-x", "secret-x"],
        "same": ["secret"] * 4,
        "nothing": pl.Series([None] * 4, dtype=pl.String),
        "weight": [1.0, 2.0, 0.0, -1.0],
        "gap": [1.0, None, 2.0, float("nan")],
        "tags": [["secret"], ["secret"], [], None],
    }
)
IDENTITY = (risk.k_anonymity, risk.uniqueness, risk.reidentification, risk.key_contributions)
ATTRIBUTE = (
    risk.l_diversity,
    risk.t_closeness,
    risk.alpha_k,
    risk.beta_likeness,
    risk.delta_disclosure,
)


def refused(kind, call, *words):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "secret" not in message
    assert "\n" not in message
    for word in words:
        assert word in message
    assert isinstance(caught.value, DiscreetError)


@pytest.mark.parametrize("measure", [*IDENTITY, *ATTRIBUTE])
def test_an_unknown_key_is_refused_with_its_near_miss(measure):
    refused(ColumnError, lambda: measure(Microdata(PEOPLE, sensitive="ill"), keys=["agge"]), "agge", "'age'")


@pytest.mark.parametrize("measure", ATTRIBUTE)
def test_an_unknown_or_missing_sensitive_column_is_refused(measure):
    data = Microdata(PEOPLE, keys="age")
    refused(ColumnError, lambda: measure(data, sensitive="il"), "'ill'")
    refused(ParameterError, lambda: measure(data), "sensitive")
    refused(ColumnError, lambda: measure(data, sensitive="age"), "'age'", "both a key and sensitive")
    refused(ColumnError, lambda: measure(data, sensitive="nothing"), "'nothing'", "no values")


@pytest.mark.parametrize("measure", [*IDENTITY, *ATTRIBUTE])
def test_keys_that_cannot_be_keys_are_refused(measure):
    data = Microdata(PEOPLE, identifiers="name", sensitive="ill")
    refused(ColumnError, lambda: measure(data, keys=["name"]), "'name'", "identifier")
    refused(ParameterError, lambda: measure(data), "keys")
    refused(ParameterError, lambda: measure(data, keys=[]), "keys")
    refused(ColumnError, lambda: measure(data, keys=["age", "age"]), "twice")
    refused(ColumnError, lambda: measure(data, keys=["nothing"]), "'nothing'", "no values")
    refused(ColumnError, lambda: measure(data, keys=["tags"]), "'tags'")


@pytest.mark.parametrize("measure", [*IDENTITY, *ATTRIBUTE])
def test_a_file_without_records_is_refused(measure):
    data = Microdata(PEOPLE.clear(), keys="age", sensitive="ill")
    refused(InputError, lambda: measure(data), "no records")


@pytest.mark.parametrize("measure", [risk.uniqueness, risk.key_contributions, *ATTRIBUTE])
def test_a_wildcard_is_refused_where_classes_must_not_overlap(measure):
    data = Microdata(PEOPLE, keys=["sex", "age"], sensitive="ill")
    refused(ParameterError, lambda: measure(data, missing="wildcard"), "category")
    refused(ParameterError, lambda: measure(data, missing="ignore"), "missing")


@pytest.mark.parametrize("measure", [*IDENTITY, *ATTRIBUTE])
def test_dropping_every_record_is_refused(measure):
    table = pl.DataFrame({"a": [1, None], "b": [None, 1], "ill": ["x", "y"]})
    data = Microdata(table, keys=["a", "b"], sensitive="ill")
    refused(ParameterError, lambda: measure(data, missing="drop"), "drop")


@pytest.mark.parametrize("column", ["weight", "gap"])
def test_weights_of_zero_or_below_or_missing_are_refused_and_counted(column):
    refused(ColumnError, lambda: engine.resolve_weight(Microdata(PEOPLE), column), f"'{column}'", "2")


def test_a_weight_that_is_text_is_refused():
    refused(ColumnError, lambda: engine.resolve_weight(Microdata(PEOPLE), "ill"), "'ill'", "numeric")
    refused(ColumnError, lambda: Microdata(PEOPLE, weight="ill"), "'ill'", "numeric")


def test_a_decimal_key_warns_and_a_whole_number_kept_as_float_does_not():
    with pytest.warns(DiscreetWarning, match="height"):
        found = risk.k_anonymity(Microdata(PEOPLE, keys="height"))
    assert any("height" in caveat for caveat in found.caveats)
    whole = PEOPLE.with_columns(pl.col("age").cast(pl.Float64))
    assert risk.k_anonymity(Microdata(whole, keys="age")).value == 1


def test_a_population_that_cannot_contain_the_file_is_refused():
    data = Microdata(PEOPLE, keys=["sex", "age"])
    for call in (
        lambda town: risk.k_map(data, town),
        lambda town: risk.delta_presence(data, town),
        lambda town: risk.reidentification(data, population=town),
    ):
        refused(ParameterError, lambda c=call: c(Microdata(PEOPLE.head(2))), "fewer records")
        refused(ColumnError, lambda c=call: c(Microdata(PEOPLE.drop("age"))), "'age'")
        coded = PEOPLE.with_columns(sex=pl.Series(["1", "2", "2", None]))
        refused(ColumnError, lambda c=call, t=coded: c(Microdata(t)), "'sex'", "recoding")
        typed = PEOPLE.with_columns(pl.col("age").cast(pl.String))
        refused(ColumnError, lambda c=call, t=typed: c(Microdata(t)), "'age'", "recoding")
    refused(ParameterError, lambda: risk.uniqueness(data, population_size=3), "population_size")
    refused(ParameterError, lambda: risk.k_map(data, Microdata(PEOPLE), missing="wildcard"), "wildcard")


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (risk.k_anonymity, {"threshold": 0}),
        (risk.reidentification, {"threshold": 2}),
        (risk.uniqueness, {"method": "guess"}),
        (risk.key_contributions, {"max_size": 0}),
        (risk.l_diversity, {"kind": "wide"}),
        (risk.l_diversity, {"kind": "recursive", "c": 0}),
        (risk.l_diversity, {"threshold": 0}),
        (risk.l_diversity, {"sensitive": "weight", "tolerance": 0}),
        (risk.l_diversity, {"sensitive": "weight", "groups": 0}),
        (risk.l_diversity, {"sensitive": "weight", "groups": [2, 1]}),
        (risk.alpha_k, {"alpha": 0}),
        (risk.alpha_k, {"values": ["absent"]}),
        (risk.t_closeness, {"distance": "far"}),
        (risk.t_closeness, {"ground": "wet"}),
        (risk.t_closeness, {"ground": "hierarchical"}),
        (risk.t_closeness, {"threshold": -1}),
        (risk.beta_likeness, {"threshold": -1}),
        (risk.delta_disclosure, {"absent": "maybe"}),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(measure, options):
    data = Microdata(PEOPLE, keys="age", sensitive="ill")
    refused(ParameterError, lambda: measure(data, **options))


@pytest.mark.parametrize("options", [{"groups": 2}, {"tolerance": 1.0}])
def test_bins_and_tolerance_are_for_numbers(options):
    data = Microdata(PEOPLE, keys="age", sensitive="ill")
    refused(ColumnError, lambda: risk.l_diversity(data, **options), "'ill'", next(iter(options)))


def test_one_record_is_measured():
    data = Microdata(PEOPLE.head(1), keys=["sex", "age"], sensitive="ill")
    for measure in (*IDENTITY, *ATTRIBUTE):
        found = measure(data)
        assert found.value is not None
        assert found.to_dict()
        assert "secret" not in str(found)
    assert risk.t_closeness(data).value == 0
    assert risk.key_contributions(data).figures["separation"] == 1


def test_one_class_mirrors_the_file():
    data = Microdata(PEOPLE, keys="same", sensitive=["ill", "age"])
    assert risk.k_anonymity(data).value == 4
    assert risk.t_closeness(data).value == pytest.approx(0, abs=1e-12)
    assert risk.beta_likeness(data).value == pytest.approx(0, abs=1e-12)
    assert risk.delta_disclosure(data).value == pytest.approx(0, abs=1e-12)


def test_a_sensitive_column_with_one_value_has_no_diversity_and_tells_nothing():
    data = Microdata(PEOPLE, keys="age", sensitive="same")
    assert risk.l_diversity(data).value == 1
    assert risk.l_diversity(data, kind="entropy").value == 1
    assert risk.alpha_k(data).value == 1
    assert risk.t_closeness(data).value == 0
    assert risk.t_closeness(data, distance="kl").value == 0


@pytest.mark.parametrize(
    "names", [("class_size", "records"), ("k0", "s"), ("N", "n"), ("record", "risk"), ("t", "l")]
)
def test_a_key_may_be_called_anything(names):
    table = pl.DataFrame({names[0]: [1, 1, 2, 2], names[1]: [1, 1, 1, 2], "ill": ["x", "y", "x", "x"]})
    data = Microdata(table, keys=names, sensitive="ill")
    for measure in (*IDENTITY, *ATTRIBUTE):
        found = measure(data)
        for name in found.detail:
            assert len(found.detail[name]) > 0
    assert risk.k_anonymity(data).detail["records"]["class_size"].to_list() == [2, 2, 1, 1]


def test_no_value_appears_in_what_a_measure_says():
    data = Microdata(PEOPLE, keys=["sex", "age"], sensitive=["ill", "same"])
    for measure in (*IDENTITY, *ATTRIBUTE):
        assert "secret" not in str(measure(data))
        assert "secret" not in str(measure(data).to_dict())
