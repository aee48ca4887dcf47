"""What do attackers gain from one synthetic file? Several of them, each beside people who were not used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from discreet import engine
from discreet.attack.attribute_inference import inference
from discreet.attack.linkability_attack import linkability
from discreet.attack.membership_inference import membership
from discreet.attack.singling_out_attack import singling_out
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.synth.preflighting.column_kinds import are_labels

_ABOUT = {
    "univariate": "singling out by one column",
    "greedy": "singling out by several columns",
    "tree": "singling out those who stand out",
    "linkability": "linking two files",
    "membership": "recognizing who is in the file",
}
BY_NUMBERS = ("univariate",)
BY_WHOLE_RECORDS = ("linkability", "membership")
"""Ways of attacking that look at single numbers, and those that look at records as a whole."""
_SHOWABLE = 1 / (1 + 0.8416 / 1.96)  # of the limit; 0.8416: four fifths of a normal law
_SHARED = 10  # records of a code, on average
_NOBODY_ALONE = "No description fits one record of the file alone, so that nobody can be singled out by it."


@dataclass(frozen=True, eq=False)
class Gains:
    """What every attacker gained from one file.

    Attributes
    ----------
    answers
        The answers of the attacks, by name.
    table
        One line a way of attacking: ``way`` (its short name; the column for a secret), ``attack``, ``risk``,
        ``risk_low``, ``risk_high``.
    notes
        What could not be tried.
    """

    answers: Mapping[str, Measure]
    table: pl.DataFrame
    notes: tuple[str, ...] = field(default=())

    @property
    def worst(self) -> float:
        """The highest risk of all ways."""
        return _highest(self.table, "risk")

    @property
    def top(self) -> float:
        """The highest of the upper ends of their intervals."""
        return _highest(self.table, "risk_high")

    def past(self, limit: float, figure: str = "risk") -> pl.DataFrame:
        """Give the ways that gain more than the limit."""
        return self.table.filter(pl.col(figure) > limit)

    def unsure(self, limit: float) -> pl.DataFrame:
        """Give the ways whose intervals are so wide that luck decides whether even no risk is shown to keep the limit.

        Where nothing at all is gained, an interval that reaches this far beyond its middle stays below the limit in
        four of five cases, and a wider one in fewer.
        """
        return self.table.filter(pl.col("risk_high") - pl.col("risk").clip(0) > _SHOWABLE * limit)


def _highest(table: pl.DataFrame, figure: str) -> float:
    highest = table[figure].max()
    return 0.0 if highest is None else float(highest)  # type: ignore[arg-type]


def attacked(
    used: Microdata,
    file: Microdata,
    others: Microdata,
    *,
    secrets: Sequence[str],
    attacks: int,
    seed: int,
    all_kinds: bool = False,
) -> Gains:
    """Run the attackers: singling out and inference, and with ``all_kinds`` linking and recognizing as well.

    Parameters
    ----------
    used, file, others
        The people that the model learned from, what it drew, and people it has not seen.
    secrets
        The columns to be guessed; sensitive ones, or else all, where none are named.
    attacks
        How many attacks of each kind are tried.
    seed
        Which people are attacked, and how.
    """
    answers: dict[str, Measure] = {}
    notes: list[str] = []
    given: dict[str, Any] = {
        "holdout": others,
        "attacks": attacks,
        "categorical": labels_among(used),
        "seed": seed,
    }
    alone = singling_out(used, file, **given)
    if "searches" in alone.detail:
        answers["singling_out"] = alone
    else:
        notes.append(_NOBODY_ALONE)
    several = len(file.columns) > 1
    if several:
        answers["inference"] = inference(used, file, secret=list(secrets) or None, method="nearest", **given)
    if several and all_kinds:
        answers["linkability"] = linkability(used, file, **given)
        answers["membership"] = membership(used, file, method="distance", **given)
    # What has nothing to work with gains nothing, and tried no way.
    tables = [
        _lines(name, found)
        for name, found in answers.items()
        if name != "inference" or "secrets" in found.detail
    ]
    table = pl.concat(tables) if tables else pl.DataFrame(schema=_SCHEMA)
    notes += [
        f"What the file adds to {way} cannot be told apart: it succeeds against everybody."
        for way in table.filter(pl.col("risk").is_null())["attack"]
    ]
    return Gains(answers, table.drop_nulls("risk"), tuple(notes))


def labels_among(data: Microdata) -> tuple[str, ...]:
    """Name the columns of numbers that are rather codes than amounts, as the preflight of a synthesis sees it.

    A code is shared: numbers that fewer than ten records have, on average, are amounts whatever they look like.
    """
    numbers = [name for name, dtype in data.schema.items() if dtype.is_numeric()]
    table = engine.collect(data, numbers) if numbers else pl.DataFrame()
    distinct = {name: table[name].unique() for name in numbers}
    return tuple(
        name
        for name, values in distinct.items()
        if len(values) * _SHARED <= table.height and are_labels(values)
    )


_SCHEMA = {
    "way": pl.String,
    "attack": pl.String,
    "risk": pl.Float64,
    "risk_low": pl.Float64,
    "risk_high": pl.Float64,
}


def _lines(name: str, found: Measure) -> pl.DataFrame:
    if name == "inference":
        ways = engine.collect(Microdata(found.detail["secrets"])).rename({"secret": "way"})
        told = pl.concat_str(pl.lit("guessing '"), pl.col("way"), pl.lit("'"))
    elif name == "singling_out":
        ways = engine.collect(Microdata(found.detail["searches"])).rename({"search": "way"})
        told = pl.col("way").replace_strict(_ABOUT)
    else:
        figures = {figure: [found.figures[figure]] for figure in ("risk", "risk_low", "risk_high")}
        ways = pl.DataFrame({"way": [name], **figures})
        told = pl.col("way").replace_strict(_ABOUT)
    return ways.with_columns(told.alias("attack")).select(
        pl.col(column).cast(kind) for column, kind in _SCHEMA.items()
    )
