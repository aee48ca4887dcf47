"""What does a measure that needs records say of files larger than memory? Of a stated sample, with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError, InputError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import KeyedDraws, Seed, generator
from discreet.core.results import Measure
from discreet.core.value_gate import keep_in_documents
from discreet.core.wording import shown
from discreet.microdata import Microdata

SAMPLED = 100_000
"""Records of the sample that is drawn of a query that is too large to hold."""
_GROUPS = 10
_T_OF_GROUPS = 2.262
"""The 97.5 percent point of Student's t with one degree of freedom fewer than groups."""
_ENOUGH = 200


@checked
def on_sample(
    measure: Callable[..., Measure],
    original: Microdata,
    released: Microdata,
    *,
    rows: int = 100_000,
    ids: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: Seed = None,
) -> Measure:
    """What does a measure say of a random sample of two files, and how far off may that be?

    For measures that look at records together (`information_loss`, `pmse`, `transport`, …) and files that are too large
    to be held. Every record has the same chance. Where the files have as many records as each other, or a column links
    them, the same records are drawn from both. How far the headline is off is told by leaving out a tenth of the sample
    at a time (jackknife).

    Parameters
    ----------
    measure
        A measure of `discreet.utility`. Measures of risk are refused: a rare person is seldom in a sample.
    original, released
        The file before and after; queries are not collected beyond the sample.
    rows
        Records of the sample, about.
    ids
        A column that links the records of both files. Spark, which keeps no order, needs it.
    settings
        What else the measure is given.
    seed
        Same files, same seed: same sample.

    Returns
    -------
    Measure
        What the measure says of the sample. ``parameters["sample"]`` has ``records``, ``of_records``, ``low`` and
        ``high``, the interval of the headline (95 in 100 times); a caveat says it in words.

    Examples
    --------
    >>> from discreet.protect import Band
    >>> from discreet.utility import information_loss
    >>> people = Microdata(pl.LazyFrame({"age": [i * 37 % 90 for i in range(20_000)]}), keys="age")
    >>> banded = Band(widths={"age": 10}).apply(people).data
    >>> found = on_sample(information_loss, people, banded, rows=2_000, seed=1)
    >>> whole = information_loss(people, banded).value
    >>> found.parameters["sample"]["low"] < whole < found.parameters["sample"]["high"]
    True
    """
    if not getattr(measure, "__module__", "").startswith("discreet.utility"):
        raise ParameterError(
            "on_sample takes measures of discreet.utility. A sample understates risk: measures of risk count classes, "
            "and take queries as they are."
        )
    if rows < _ENOUGH:
        raise ParameterError(
            f"rows must be at least {_ENOUGH}: a smaller sample has no interval to speak of."
        )
    sample, many = drawn_pair(original, released, rows, ids=ids, seed=seed)
    given = {**(settings or {}), **({"ids": ids} if ids is not None else {})}
    return of_sample(measure, measure(*sample, **given), sample, many, given)


class SampleNote(TypedDict):
    """What a measure tells of the sample it was asked about."""

    records: int
    of_records: int
    low: float | None
    high: float | None


keep_in_documents("sample", SampleNote)


def of_sample(
    measure: Callable[..., Measure],
    found: Measure,
    sample: tuple[Microdata, Microdata],
    many: tuple[int, int],
    settings: Mapping[str, Any],
) -> Measure:
    """Say of how many records the answer of a sample is, and how far off its headline may be for that reason."""

    def without(own: int) -> Measure:
        return measure(*(without_tenth(data, own, settings.get("ids")) for data in sample), **settings)

    sizes = [(engine.overview(data, ()).rows, all_of) for data, all_of in zip(sample, many, strict=True)]
    return with_interval(found, without, sizes)


def drawn_pair(
    original: Microdata, released: Microdata, rows: int, *, ids: str | None, seed: Seed
) -> tuple[tuple[Microdata, Microdata], tuple[int, int]]:
    """Draw a random sample of two files, of linked ones the same records; and count the records of each file.

    Queries that are known by a sample keep it.
    """
    files = (original, released)
    for data in files:
        need_known([ids], data.schema, "It was named in ids.")
    many = (engine.overview(original, ()).rows, engine.overview(released, ()).rows)
    known = engine.sample_of(original), engine.sample_of(released)
    if known[0] is not None and known[1] is not None:
        return (known[0], known[1]), many
    draws = KeyedDraws.of(int(generator(seed, "sample of a measure").integers(2**63)), "records")
    key = () if ids is None else (ids,)
    # Linked files share the chance, so that they share the records.
    linked = ids is not None or many[0] == many[1]
    shares = [min(1.0, rows / max(max(many) if linked else count, 1)) for count in many]
    tables = [
        engine.record_sample(data, share, draws, key=key, purpose="the sample of a measure")
        for data, share in zip(files, shares, strict=True)
    ]
    if min(table.height for table in tables) < _ENOUGH:
        raise InputError(
            f"The sample has fewer than {_ENOUGH} records. Raise rows, or measure the whole files."
        )
    return (original.with_frame(tables[0]), released.with_frame(tables[1])), many


def without_tenth(data: Microdata, own: int, ids: str | None = None) -> Microdata:
    """Leave out one tenth of a sample, numbered from 0; records that a column links fall into the same one."""
    table = engine.whole_frame(data)
    numbers = (
        engine.record_numbers(table, (ids,))
        if ids is not None and ids in table.columns
        else np.arange(table.height, dtype=np.uint64)
    )
    tenths = KeyedDraws.of(0, "tenths of a sample").integers(numbers, _GROUPS)
    return data.with_frame(table.filter(pl.Series(tenths != own)))


def with_interval(
    found: Measure, without: Callable[[int], Measure] | None, sizes: Sequence[tuple[int, int]]
) -> Measure:
    """Say that a measure is of a sample, and how far off its headline may be for that reason.

    Parameters
    ----------
    found
        What the sample says.
    without
        Measures the sample again without a tenth of it; None where the headline of a sample is another than that of the
        file, because it depends on the number of records.
    sizes
        The records of the sample, and of the file: those that are named first.
    """
    records, of_records = sizes[0]
    left = max(0.0, 1 - min(drawn / all_of for drawn, all_of in sizes))
    values: list[float] = []
    for own in range(_GROUPS if without else 0):
        assert without is not None
        try:
            value = without(own).value
        except DiscreetError:
            break
        if value is not None:
            values.append(float(value))
    low = high = None
    told = (
        "How far off it is could not be told."
        if without
        else "It depends on the number of records: hold it against that of as large a sample of another release."
    )
    if found.value is not None and len(values) == _GROUPS:
        spread = math.sqrt((_GROUPS - 1) / _GROUPS * float(((np.array(values) - np.mean(values)) ** 2).sum()))
        # What is left of the file beyond the sample makes the difference.
        off = _T_OF_GROUPS * spread * math.sqrt(left)
        low, high = float(found.value) - off, float(found.value) + off
        told = f"That of the whole file lies between {shown(low)} and {shown(high)} (95 in 100 times)."
    sample = {"records": records, "of_records": of_records, "low": low, "high": high}
    said = (
        f"Measured on a random sample of {records:,} of {of_records:,} records: the headline is {shown(found.value)}. "
        f"{told}"
    )
    return replace(found, caveats=[said, *found.caveats], parameters={**found.parameters, "sample": sample})


_HALVINGS = 6
_HALVED = 4_000  # records of a file that are halved
_ONE_MORE = 2.015 * math.sqrt(1 + 1 / _HALVINGS)
"""How far one more draw may lie from the mean of those before, in their spreads (Student's t, one-sided 95 %)."""


def beyond_chance(
    measure: Callable[..., Measure],
    files: tuple[Microdata, Microdata],
    settings: Mapping[str, Any],
    value: float | None,
) -> dict[str, float | int | None]:
    """Give how far apart two samples of one law are by chance (in 95 of 100 cases at most), and what is beyond that.

    Halves of a file of n records are twice as far apart as two files of n, in the mean of their squares, and each of
    the two files adds its part. No chance is granted where halves are too small to be measured.
    """
    chance, many = 0.0, [engine.overview(data, ()).rows for data in files]
    if any(engine.is_lazy(data) for data in files):
        files, _ = drawn_pair(*files, _HALVED, ids=None, seed=0)
    for data, rows in zip(files, many, strict=True):
        table = engine.whole_frame(data)
        rng, usual = generator(0, "halves of a file"), list[float]()
        # The same halves in whatever order records and columns stand.
        names = sorted(settings["columns"])
        texts = table.select(pl.col(names).cast(pl.String)).with_row_index("·place")
        by_value = texts.sort(names)["·place"].to_numpy()
        for _ in range(_HALVINGS):
            chosen = by_value[rng.permutation(table.height)[:_HALVED]]
            halves = [data.with_frame(table[part]) for part in (chosen[::2], chosen[1::2])]
            with suppress(DiscreetError):
                found = measure(*halves, **settings).value
                usual += [] if found is None else [float(found)]
        if len(usual) < _HALVINGS:
            chance = 0.0
            break
        most = float(np.mean(usual)) + _ONE_MORE * float(np.std(usual, ddof=1))
        chance = math.hypot(chance, most / 2 * math.sqrt(min(table.height, _HALVED) / rows))
    beyond = None if value is None else max(value - chance, 0.0)
    return {"by_chance": chance, "beyond_chance": beyond, "records": min(many)}
