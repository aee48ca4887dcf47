"""Numbers that stand in a file as texts, with a few codes among them: ``"1200"``, ``"-45"``, ``"N"``.

A code keeps a whole column of numbers from being read as such. Here the column is split into what it is: a state
(an ordinary number, which code, or missing) and a number, and drawn values are written as the file writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import ColumnError
from discreet.synth.forms import NumberForm, decimals_of
from discreet.synth.variables import Variable


def way_of_writing(texts: pl.Series) -> str | None:
    """Say how numbers are written, so that they can be written again; None where there is no one way.

    Examples
    --------
    >>> [way_of_writing(pl.Series(t)) for t in (["1", "-20"], ["1.5", "2"], ["1.50", "2.00"], ["007", "1"])]
    ['whole', 'shortest', 'decimals 2', None]
    """
    numbers = as_read(texts)
    if not len(texts) or numbers.null_count():
        return None
    places = decimals_of(numbers.to_numpy())
    ways = ["whole", "float", "shortest", *([f"decimals {places}"] if places else [])]
    ways += [f"decimals {more}" for more in range((places or 0) + 1, (places or 0) + 4)]
    for way in ways:
        if way == "whole" and places != 0:
            continue
        if bool((as_written(numbers, way) == texts).all()):
            return way
    return None


def as_read(texts: pl.Series) -> pl.Series:
    """Read texts as numbers; what is none is missing."""
    numbers = texts.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite().fill_null(True), None)


def as_written(numbers: pl.Series, way: str) -> pl.Series:
    """Write numbers as texts.

    Examples
    --------
    >>> as_written(pl.Series([1.5, 2.0]), "shortest").to_list()
    ['1.5', '2']
    """
    if way == "whole":
        return numbers.cast(pl.Float64).round(0).cast(pl.Int64).cast(pl.String)
    texts = numbers.cast(pl.Float64).cast(pl.String)
    if way == "shortest":
        return texts.str.replace(r"\.0$", "")
    if way.startswith("decimals "):
        return _with_places(numbers.cast(pl.Float64), int(way.removeprefix("decimals ")))
    return texts


def _with_places(numbers: pl.Series, places: int) -> pl.Series:
    units = (pl.col("n").abs() * 10**places).round(0).cast(pl.Int64)
    sign = pl.when((pl.col("n") < 0) & (units > 0)).then(pl.lit("-")).otherwise(pl.lit(""))
    after = (units % 10**places).cast(pl.String).str.zfill(places)
    written = pl.concat_str(sign, (units // 10**places).cast(pl.String), pl.lit("."), after)
    return numbers.to_frame("n").select(written.alias("n")).to_series().rename(numbers.name)


@dataclass(frozen=True, eq=False)
class WrittenNumberForm(NumberForm):
    """A column of texts that are numbers, but for the codes.

    Attributes
    ----------
    texts
        The codes; ``fixed`` has a place for each.
    way
        How numbers are written.
    """

    texts: tuple[str, ...] = ()
    way: str = "whole"

    @classmethod
    def of_texts(
        cls, series: pl.Series, *, codes: Sequence[Any] = (), missing: bool = False
    ) -> WrittenNumberForm:
        """Read the form off a column; every text is a number or one of the codes."""
        texts = tuple(dict.fromkeys(str(code) for code in codes))
        distinct = series.drop_nulls().unique()
        ordinary = distinct.filter(~distinct.is_in(pl.Series(texts, dtype=pl.String).implode()))
        numbers = as_read(ordinary)
        unread = int(series.is_in(ordinary.filter(numbers.is_null()).implode()).sum())
        if unread:
            raise ColumnError(
                f"Column '{series.name}' stands under special_codes and is text, so all else in it must be numbers; in "
                f"{unread:,} records it is not. Name all its codes, or take it out of special_codes."
            )
        way = way_of_writing(ordinary) if len(ordinary) else "whole"
        if way is None:
            raise ColumnError(
                f"Column '{series.name}' holds numbers that are written in several ways or with leading zeros, and "
                "would not come back as they were. Convert it to numbers, or take it out of special_codes to have it "
                "taken for a category."
            )
        found = numbers.to_numpy()
        return cls(
            series.name,
            series.dtype,
            tuple(float(place) for place in range(len(texts))),
            missing or series.null_count() > 0,
            (),
            0 if way == "whole" else decimals_of(found),
            float(found.min()) if len(found) else 0.0,
            float(found.max()) if len(found) else 0.0,
            texts=texts,
            way=way,
        )

    def split(self, series: pl.Series) -> tuple[Variable, ...]:
        """Return the column as variables: its state, where it has more than one, and its value."""
        plain = series.rename("text")
        numbers = as_read(plain)
        states = np.zeros(len(plain), dtype=np.int32)
        for place, text in enumerate(self.texts):
            states[(plain == text).fill_null(False).to_numpy()] = self.n_ordinary + place
        missing = plain.is_null().to_numpy()
        if self.has_missing:
            states[missing] = self.n_states - 1
        if (numbers.is_null().to_numpy() & (states < self.n_ordinary)).any():
            raise ColumnError(
                f"Column '{self.name}' has texts that are neither numbers nor codes of the fitted file. Fit the model "
                "to the file that holds them."
            )
        return self.variables(states, numbers.fill_null(0.0).to_numpy())

    def joined(self, parts: Sequence[Array]) -> pl.Series:
        """Turn drawn states and values into texts."""
        values = np.asarray(parts[-1], dtype=np.float64)
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0  # no negative zero
        texts = as_written(pl.Series(values), self.way)
        if len(parts) == 2:
            for place, text in enumerate(self.texts):
                texts = texts.set(pl.Series(parts[0] == self.n_ordinary + place), text)
            if self.has_missing:
                texts = texts.set(pl.Series(parts[0] == self.n_states - 1), None)
        return texts.cast(self.dtype).rename(self.name)

    def state(self) -> dict[str, Any]:
        """Return the form for a model file."""
        return {**super().state(), "form": "written", "texts": list(self.texts), "way": self.way}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> WrittenNumberForm:
        """Make the form again."""
        return cls(
            state["name"],
            state["empty"].dtype,
            tuple(state["fixed"]),
            state["has_missing"],
            (),
            state["decimals"],
            state["low"],
            state["high"],
            texts=tuple(state["texts"]),
            way=state["way"],
        )
