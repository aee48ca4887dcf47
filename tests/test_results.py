import json

import numpy as np
import pytest

from discreet.core.errors import ParameterError
from discreet.core.results import Detail, Measure, Release, Step


def test_a_measure_is_ready_for_json_whatever_numbers_it_holds():
    measure = Measure(
        "x",
        np.float64("nan"),
        {"many": np.int64(3), "endless": float("inf"), "yes": np.bool_(True)},
        "",
        parameters={"keys": ("a", "b"), "bins": None},
    )
    assert measure.value is None
    document = json.loads(json.dumps(measure.to_dict(), allow_nan=False))
    assert document["figures"] == {"many": 3, "endless": "inf", "yes": True}
    assert document["parameters"] == {"keys": ["a", "b"], "bins": None}


def test_a_measure_prints_its_meaning_and_caveats():
    text = str(Measure("k_anonymity", 3, {"classes": 1200}, "Plain words.", ["Beware."]))
    assert "k-anonymity: 3" in text
    assert "1,200" in text
    assert "Plain words." in text
    assert "Beware." in text


def test_a_measure_escapes_html_in_a_notebook():
    assert "<script>" not in Measure("x", 1, {"<script>": 1}, "<script>")._repr_html_()


def test_a_detail_table_is_made_once_and_only_when_asked_for():
    made = []
    detail = Detail(classes=lambda: made.append(1) or "table")
    assert made == []
    assert detail["classes"] == detail["classes"] == "table"
    assert made == [1]


def test_an_unknown_detail_table_is_refused_with_its_near_miss():
    with pytest.raises(ParameterError, match="'classes'"):
        Detail(classes=lambda: 1)["clases"]


def test_the_public_log_keeps_seeds_in_the_house():
    release = Release(None, (Step("Noise", {"level": 0.1}, {"pay": 5}, internal={"seed": 42}),))
    assert "42" not in json.dumps(release.to_dict())
    assert release.to_dict(internal=True)["steps"][0]["internal"] == {"seed": 42}
