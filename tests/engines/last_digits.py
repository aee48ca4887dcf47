"""Print the figures of measures to the last bit; run in fresh processes by `test_last_digits`."""

import json
import sys

import numpy as np
import polars as pl

from discreet import Microdata, risk, utility


def people(rows, seed):
    rng = np.random.default_rng(seed)
    towns = np.minimum(rng.zipf(1.6, rows), 200)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "town": [f"t{number}" for number in towns],
            "sex": rng.choice(["f", "m"], rows),
            "job": rng.choice(list("abcdef"), rows),
            "pay": rng.lognormal(8, 1, rows).round(2),
            "w": rng.lognormal(2, 0.7, rows),
        }
    )


def figures():
    before, roles = people(4_000, 1), {"keys": ["age", "town", "sex"], "sensitive": "job", "weight": "w"}
    after = before.with_columns(pl.col("age") // 5 * 5)[np.random.default_rng(2).permutation(before.height)]
    data, released = Microdata(before, **roles), Microdata(after, **roles)
    town = Microdata(people(20_000, 3), keys=roles["keys"])
    found = [
        risk.reidentification(data, population=town),
        risk.known_population(data, population=town),
        risk.isolation(data),
        risk.special_uniques(data),
        risk.individual(data),
        risk.attribution(data, released, weight="w"),
        utility.information_loss(data, released, aligned=False),
        utility.margins(data, released),
        utility.tabular(data, released),
        utility.population_tables(data, released, by=["age", "sex"]),
    ]
    told = {}
    for one in found:
        for name, number in {"value": one.value, **one.figures}.items():
            told[f"{one.name}.{name}"] = number.hex() if isinstance(number, float) else repr(number)
    for name in ("tables", "distances"):
        table = pl.DataFrame(found[6].detail[name])
        told[name] = [
            number.hex() for column in table.select(pl.col(pl.Float64)) for number in column.drop_nulls()
        ]
    return told


json.dump(figures(), sys.stdout)
