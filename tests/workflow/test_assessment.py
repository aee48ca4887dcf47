import json

import polars as pl
import pytest

from discreet import Microdata, Policy, assess, datasets, risk
from discreet.core.errors import ColumnError, DiscreetError, InputError, ParameterError
from discreet.policy import Rule
from discreet.workflow import inspect

PEOPLE = pl.DataFrame(
    {
        "name": [f"person {i}" for i in range(8)],
        "sex": ["f", "f", "f", "f", "m", "m", "m", None],
        "age": [30, 30, 40, 40, 30, 30, 30, 30],
        "ill": ["y", "n", "y", "y", "n", "n", "y", "n"],
    }
)


def people(**roles):
    return Microdata(PEOPLE, **({"keys": ["sex", "age"], "sensitive": "ill", "identifiers": "name"} | roles))


def test_every_first_floor_measure_stands_under_its_function_name():
    document = assess(people()).to_dict()
    for name in ("k_anonymity", "l_diversity", "t_closeness", "uniqueness", "reidentification"):
        assert {"value", "figures", "meaning", "caveats"} <= set(document[name])
    json.dumps(document, allow_nan=False)


def test_without_a_policy_there_is_no_verdict():
    found = assess(people())
    assert found.verdict is None
    assert "No policy" in found.line


def test_the_verdict_says_why_the_policy_is_not_met():
    found = assess(people(), "public-use-file")
    assert not found.verdict.meets
    assert "k-anonymity is 1 (policy: at least 10)" in found.line


def test_measures_that_do_not_fit_are_left_out_with_the_reason():
    found = assess(people(sensitive=None))
    assert found.main.skipped["l_diversity"] == "no sensitive column was named"
    assert found.main.skipped["k_map"] == "no population file was given"
    with pytest.raises(ParameterError, match="left out: no sensitive column"):
        found["l_diversity"]


def test_each_scenario_is_measured_and_judged():
    found = assess(people(), "safe-setting", scenarios={"neighbor": ["sex"]})
    assert list(found.scenarios) == ["all keys", "neighbor"]
    neighbor = found.scenarios["neighbor"].measures["k_anonymity"]
    assert (neighbor.value, neighbor.figures["all_suppressed"]) == (3, 1)
    assert {check.scenario for check in found.verdict.checks} == {"all keys", "neighbor"}


def test_a_scenario_that_knows_the_sensitive_column_leaves_it_out_of_the_secrets():
    found = assess(people(), scenarios={"doctor": ["sex", "ill"]})
    assert "l_diversity" in found.scenarios["doctor"].skipped


def test_scenarios_alone_make_the_first_one_the_main_one():
    assert assess(people(keys=None), scenarios={"neighbor": ["sex"]}).main.name == "neighbor"


def test_key_values_stay_in_the_house_unless_asked_for():
    assert "values" not in assess(people()).main.riskiest[0]
    assert assess(people(), show_values=True).main.riskiest[0]["values"] == {"sex": None, "age": 30}
    assert "person 1" not in assess(people(), show_values=True).to_json()


def test_missing_as_wildcard_leaves_out_what_needs_classes():
    found = assess(people(), missing="wildcard")
    assert found["k_anonymity"].value == 2
    assert "wildcard" in found.main.skipped["uniqueness"]


def test_policy_parameters_reach_the_measures():
    policy = Policy(
        "p", rules=[Rule("k_anonymity", at_least=2)], parameters={"l_diversity": {"kind": "entropy"}}
    )
    assert assess(people(), policy)["l_diversity"].parameters["kind"] == "entropy"


def test_an_unknown_policy_parameter_is_refused():
    policy = Policy("p", rules=[Rule("k_anonymity", at_least=2)], parameters={"l_diversity": {"kindd": 1}})
    with pytest.raises(ParameterError, match="'kind'"):
        assess(people(), policy)


def test_a_population_file_brings_journalist_risk_and_presence():
    population = Microdata(pl.concat([PEOPLE, PEOPLE, PEOPLE]))
    found = assess(people(), population=population)
    assert found["reidentification"].figures["journalist_max"] == pytest.approx(1 / 3)
    assert found["delta_presence"].value == pytest.approx(1 / 3)


def test_advice_names_the_identifiers_to_drop():
    assert "'name'" in assess(people()).advice[0]


@pytest.mark.parametrize(
    ("data", "scenarios"),
    [
        (people(keys=None), None),
        (people(), {"nobody": []}),
        (people(), {"all keys": ["sex"]}),
        (Microdata(PEOPLE.clear(), keys="sex"), None),
    ],
)
def test_what_cannot_be_assessed_is_refused(data, scenarios):
    with pytest.raises(DiscreetError):
        assess(data, scenarios=scenarios)


def test_an_unknown_key_in_a_scenario_is_refused():
    with pytest.raises(ColumnError, match="'sex'"):
        assess(people(), scenarios={"x": ["sexx"]})


def test_adult_is_measured_as_a_direct_count_says():
    data = datasets.adult()
    sizes = data.frame.group_by(data.roles.keys).len()["len"]
    found = assess(data)
    assert found["k_anonymity"].value == sizes.min() == 1
    assert found["uniqueness"].figures["unique_records"] == (sizes == 1).sum()
    assert found["reidentification"].figures["expected_matches"] == pytest.approx(len(sizes))


def test_the_report_is_written_whole(tmp_path):
    path = assess(people(), "safe-setting").to_html(tmp_path / "report.html")
    text = path.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "person 1" not in text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["eager", "lazy", "pandas", "pyarrow"])
def test_a_name_that_polars_takes_for_a_pattern_stands_for_its_own_column(kind):
    frame = pl.DataFrame({"a": [1, 2, 3, 4], "^a$": [1, 1, 2, 2], "*": [0, 0, 0, 0]})
    as_given = {"eager": frame, "lazy": frame.lazy(), "pyarrow": frame.to_arrow()}
    native = frame.to_pandas() if kind == "pandas" else as_given[kind]
    found = assess(Microdata(native, keys=["^a$", "*"]))
    assert found["k_anonymity"].value == 2
    assert found["uniqueness"].figures["classes"] == 2


def test_weights_that_add_up_to_no_more_than_the_file_leave_the_population_open():
    data = Microdata(PEOPLE.with_columns(w=pl.lit(0.5)), keys=["sex", "age"], weight="w")
    found = assess(data)
    assert "--population-size" in found.main.skipped["population"]
    assert "individual" in found.measures
    assert "population" in assess(data, population_size=80).measures


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"rules": {"k_anonimity": {"at_least": 3}}}, "Did you mean 'k_anonymity'"),
        (
            {"rules": {"k_anonymity": {"at_least": 3}}, "parameters": {"k_anonimity": {"threshold": 3}}},
            "Did you mean 'k_anonymity'",
        ),
        (
            {"rules": {"k_anonymity": {"at_least": 3}}, "parameters": {"k_anonymity": {"threshold": "x"}}},
            "threshold must be a",
        ),
    ],
)
def test_a_slip_in_a_policy_is_bad_input_and_not_a_verdict(document, words):
    with pytest.raises(ParameterError, match=words):
        assess(people(), Policy.from_dict(document))


def test_a_rule_about_two_files_cannot_be_met_by_one():
    found = assess(people(), Policy("Ours", rules=[Rule("neighbors", at_most=0.99)]))
    assert "not computed on one file alone" in found.line


def test_the_riskiest_classes_stand_in_one_order_whatever_the_order_of_the_records():
    frame = pl.DataFrame({"age": [i % 40 for i in range(60)], "sex": ["f", "m", None] * 20})
    lists = [
        assess(
            Microdata(frame.sample(fraction=1, shuffle=True, seed=seed), keys=["age", "sex"]),
            show_values=True,
        ).main.riskiest
        for seed in range(4)
    ]
    assert all(rows == lists[0] for rows in lists)
    assert [row["class_size"] for row in lists[0]] == sorted(row["class_size"] for row in lists[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"data": PEOPLE}, r"discreet\.Microdata\(frame"),
        ({"data": "people.csv"}, r"discreet\.read\(path"),
        ({"population": PEOPLE}, "population must be Microdata"),
        ({"population_size": "100"}, "whole number of people"),
        ({"population_size": float("nan")}, "whole number of people"),
        ({"scenarios": ["sex"]}, "mapping of names to keys"),
        ({"policy": {"rules": {}}}, "Policy.from_dict"),
    ],
)
def test_what_is_not_what_it_should_be_is_refused_with_the_way_out(arguments, words):
    with pytest.raises(ParameterError, match=words):
        assess(**({"data": people()} | arguments))


def test_a_measure_refuses_a_bare_frame_as_well():
    with pytest.raises(ParameterError, match=r"discreet\.Microdata\(frame"):
        risk.k_anonymity(PEOPLE, keys=["sex"])


def test_data_without_columns_has_nothing_to_inspect():
    with pytest.raises(InputError, match="no columns"):
        inspect(pl.DataFrame())


def test_a_measure_that_cannot_choose_its_column_is_left_out_with_the_reason():
    people = pl.DataFrame(
        {
            "key": [i % 3 for i in range(60)],
            "meter": [i // 4 for i in range(60)],
            "hour": [1, 2, 3, 4] * 15,
            "power": [float(i) for i in range(60)],
            "heat": [float(i % 7) for i in range(60)],
        }
    )
    roles = {"keys": ["key"], "contributor": "meter", "time": "hour"}
    found = assess(Microdata(people, **roles, sensitive=["power", "heat"])).main
    assert "k_anonymity" in found.measures
    assert "2 sensitive columns" in found.skipped["series"]
    assert "series" in assess(Microdata(people, **roles, sensitive="power")).main.measures
    reading = Policy.from_dict(
        {
            "name": "meters",
            "parameters": {"series": {"reading": "heat"}},
            "rules": {"uniqueness": {"at_most": 0.99}},
        }
    )
    assert (
        "series"
        in assess(Microdata(people, **roles, sensitive=["power", "heat"]), policy=reading).main.measures
    )
