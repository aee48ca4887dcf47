"""Assessments made by hand, the way `discreet.assess` hands them over."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from discreet.core.results import Assessment, Detail, Measure, Scenario
from discreet.core.verdicts import Check, Unjudged, Verdict

HOSTILE = "<script>alert('column')</script>"
SECRET = "SECRET-VALUE"

_KEYS = ("age", "sex", "race", "marital-status", HOSTILE)


def classes(keys: tuple[str, ...] = _KEYS, count: int = 400) -> pl.DataFrame:
    """One row a class, with key values that must never show."""
    random = np.random.default_rng(7)
    size = np.ceil(random.lognormal(1.2, 1.6, count)).astype(int)
    guess = np.where(size == 1, 1.0, 0.5 + 0.5 * random.beta(1, 3, count))
    return pl.DataFrame(
        {
            **{key: [f"{SECRET}-{place % 9}" for place in range(count)] for key in keys},
            "class_size": size,
            "risk": 1 / size,
            "l": np.where(size == 1, 1, 1 + (random.random(count) > 0.2)).astype(int),
            "best_guess": guess,
            "t": np.clip(guess - 0.24, 0, 0.76),
        }
    )


def sizes(table: pl.DataFrame) -> pl.DataFrame:
    """Fold classes into their size distribution."""
    return (
        table.group_by("class_size")
        .agg(pl.len().alias("classes"), pl.col("class_size").sum().alias("records"))
        .sort("class_size")
    )


def measures(
    keys: tuple[str, ...] = _KEYS, *, sensitive: tuple[str, ...] = ("income",)
) -> dict[str, Measure]:
    """Build the measures of one scenario."""
    table = classes(keys)
    figures = ["class_size", "risk"]
    rows, alone = int(table["class_size"].sum()), int((table["class_size"] == 1).sum())
    size_detail: dict[str, Any] = {
        "sizes": lambda: sizes(table),
        "classes": lambda: table.select(*keys, *figures),
        "records": lambda: 1 / 0,
    }
    parameters = {"keys": list(keys), "missing": "category"}
    contributions = pl.DataFrame(
        {
            "key": list(keys),
            "distinct": [73, 2, 5, 7, 41][: len(keys)],
            "distinction": [0.0015, 0.00004, 0.0001, 0.00014, 0.0009][: len(keys)],
            "separation": [0.98, 0.44, 0.26, 0.66, 0.19][: len(keys)],
            "k_without": [2, 1, 1, 1, 1][: len(keys)],
            "unique_share_without": [0.004, 0.031, 0.029, 0.017, 0.012][: len(keys)],
        }
    )
    spread = np.linspace(0.2, 0.9, len(sensitive))
    variables = pl.DataFrame(
        {"sensitive": list(sensitive), "l": [1] * len(sensitive), "t": spread, "best_guess": spread}
    )
    found = [
        Measure(
            "uniqueness",
            alone / rows,
            {
                "pue": alone / table.height,
                "unique_share": alone / rows,
                "unique_records": alone,
                "classes": table.height,
                "rfue": None,
            },
            f"{alone} of {rows} records are the only one with their combination of key values.",
            ["A record that is unique in the file need not be unique in the population."],
            parameters,
            Detail(**size_detail),
        ),
        Measure(
            "k_anonymity",
            1,
            {
                "k": 1,
                "classes": table.height,
                "records": rows,
                "records_below_3": alone + 30,
                "records_below_5": alone + 90,
            },
            "The rarest combination of key values belongs to one record.",
            ["k says nothing about what can be learned from a group whose members all have the same value."],
            parameters,
            Detail(**size_detail),
        ),
        Measure(
            "reidentification",
            1.0,
            {
                "prosecutor_max": 1.0,
                "prosecutor_mean": table.height / rows,
                "journalist_max": None,
                "journalist_mean": None,
                "marketer": table.height / rows,
                "share_above_threshold": 0.0873,
                "expected_matches": float(table.height),
                "threshold": 0.2,
            },
            f"An intruder who knows that a person is in the file finds them with a chance of up to 100 %; "
            f"{table.height} correct matches are expected if every record is tried.",
            [
                "Errors and age of the data lower the true chance.",
                "No population file was given: the journalist figures are missing.",
            ],
            {**parameters, "threshold": 0.2},
            Detail(**size_detail),
        ),
        Measure(
            "l_diversity",
            1,
            {"l": 1, "classes_below": 81, "records_below": 402, "best_guess": 1.0},
            "In 81 groups everyone has the same sensitive value.",
            ["The kind 'distinct' counts values; it does not bound the best guess."],
            {**parameters, "sensitive": list(sensitive), "kind": "distinct"},
            Detail(
                variables=lambda: variables,
                classes=lambda: table.select(*keys, "class_size", "l", "best_guess"),
            ),
        ),
        Measure(
            "t_closeness",
            float(table["t"].max()),
            {"t": float(table["t"].max()), "distance": "equal"},
            "The sensitive values of one group are 0.76 away from those of the whole file.",
            [],
            {**parameters, "sensitive": list(sensitive), "distance": "equal", "hierarchy": {SECRET: "rich"}},
            Detail(variables=lambda: variables, classes=lambda: table.select(*keys, "class_size", "t")),
        ),
        Measure(
            "key_contributions",
            0.0015,
            {"keys": len(keys), "best_key": "age"},
            "Dropping 'age' would help most: 0.4 % of the records would then be alone.",
            [],
            parameters,
            Detail(
                variables=lambda: contributions,
                sets=lambda: pl.DataFrame(
                    {
                        "keys": ["age", "age, sex"],
                        "size": [1, 2],
                        "distinction": [0.0015, 0.003],
                        "separation": [0.98, 0.99],
                    }
                ),
            ),
        ),
    ]
    return {measure.name: measure for measure in found}


def assessment(
    outcome: str = "fail",
    *,
    show_values: bool = False,
    advice: bool = True,
    sensitive: tuple[str, ...] = ("income",),
) -> Assessment:
    """Build an assessment whose verdict is ``pass``, ``fail``, ``open`` or ``none``."""
    neighbor = _KEYS[:3]
    masked = [
        {"rank": 1, **dict.fromkeys(_KEYS, SECRET if show_values else "•••"), "class_size": 1, "risk": 1.0},
        {"rank": 2, **dict.fromkeys(_KEYS, SECRET if show_values else "•••"), "class_size": 1, "risk": 1.0},
        {"rank": 3, **dict.fromkeys(_KEYS, SECRET if show_values else "•••"), "class_size": 2, "risk": 0.5},
    ]
    scenarios = {
        "journalist": Scenario(
            "journalist",
            _KEYS,
            measures(_KEYS, sensitive=sensitive),
            {"k_map": "no population file was given.", "delta_presence": "no population file was given."},
            masked,
        ),
        "neighbor": Scenario("neighbor", neighbor, measures(neighbor, sensitive=sensitive)),
    }
    passed: dict[str, tuple[bool | None, bool | None]] = {
        "pass": (True, True),
        "fail": (False, None),
        "open": (True, None),
    }
    verdict = None
    if outcome != "none":
        first, second = passed[outcome]
        verdict = Verdict(
            "scientific use file",
            (
                Check(
                    "k_anonymity",
                    "k",
                    "journalist",
                    "at least 3",
                    1 if first is False else 5,
                    first,
                    "the smallest group (k) is 1, at least 3 is asked for",
                ),
                Check(
                    "uniqueness",
                    "unique_share",
                    "neighbor",
                    "at most 5 %",
                    0.0312,
                    True,
                    "3.1 % of the records are alone",
                ),
                *(
                    []
                    if outcome == "open"
                    else [
                        Check(
                            "k_map",
                            "k",
                            "journalist",
                            "at least 5",
                            None if second is None else 9,
                            second,
                            "k-map needs a population file",
                        )
                    ]
                ),
            ),
            (Unjudged("k_map.k", "at least 5", "a population file", "assess it with --population", "rules"),)
            if outcome == "open"
            else (),
        )
    return Assessment(
        about={
            "source": f"adult {HOSTILE}.csv" if outcome == "fail" else "adult_train.csv.gz",
            "rows": 48842,
            "columns": 15,
            "roles": {"keys": list(_KEYS), "sensitive": list(sensitive), "weight": "fnlwgt"},
            "missing": {"age": 0.0, "sex": 0.0, "race": 0.0, HOSTILE: 0.0175, "income": 0.00001},
            "engine": "polars",
            "checksum": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "created": "2025-03-04T10:11:12+00:00",
            "versions": {"discreet": "0.1.0", "polars": "2.1.0", "python": "3.11.2"},
            "reading": {"separator": ",", "missing_tokens": ["?"]},
        },
        scenarios=scenarios,
        verdict=verdict,
        advice=[
            "Group 'age' into five-year bands: it tells people apart more than any other key.",
            "Suppress the country for the 312 records that are alone because of it.",
            "Assess the file again after each step.",
        ]
        if advice
        else [],
        show_values=show_values,
    )
