"""What is known about the columns of a file that nobody has seen: names, allowed values, published margins.

It also puts numbers and level positions back into a data frame with readable labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal, get_args

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.microdata import Metadata, Microdata

Kind = Literal["nominal", "ordered", "integer", "numeric", "weight"]


@dataclass(frozen=True)
class Variable:
    """One line of a codebook.

    Parameters
    ----------
    name
        Name of the column.
    kind
        ``nominal`` or ``ordered`` (one of ``levels``), ``integer`` or ``numeric`` (a number within ``range``),
        or ``weight``: a column for calibrated weights, see `Raking`.
    levels
        Allowed values of a nominal or ordered variable, in order.
    range
        Smallest and largest value of an integer or numeric variable.
    shares
        Published distribution ``{value: share}`` of a nominal, ordered or integer variable. A level that is left
        out gets what is missing to one.
    quantiles
        Published quantiles ``{share: value}`` of an integer or numeric variable.
    unit
        Printing unit of the shares, e.g. 0.001; taken from the shares as they are written unless named.
    label, labels
        What the variable and its values mean, in words.

    Examples
    --------
    >>> Variable("SEX", levels=[1, 2], shares={1: 0.45, 2: 0.55}).position(2)
    1
    """

    name: str
    kind: Kind = "nominal"
    levels: Sequence[Any] = ()
    range: Sequence[float] | None = None
    shares: Mapping[Any, float] = field(default_factory=dict)
    quantiles: Mapping[float, float] = field(default_factory=dict)
    unit: float | None = None
    label: str = ""
    labels: Mapping[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if self.kind not in get_args(Kind):
            raise ParameterError(
                f"Variable '{self.name}': {unknown_name(self.kind, get_args(Kind), what='kind')}"
            )
        if self.is_categorical:
            self._check_levels()
        elif self.is_number:
            self._check_range()
        self._check_shares()

    @property
    def is_categorical(self) -> bool:
        """Whether the values come from a list."""
        return self.kind in ("nominal", "ordered")

    @property
    def is_number(self) -> bool:
        """Whether the values come from a range."""
        return self.kind in ("integer", "numeric")

    @property
    def low(self) -> float:
        """The smallest allowed number."""
        return float(self.range[0]) if self.range is not None else math.nan

    @property
    def high(self) -> float:
        """The largest allowed number."""
        return float(self.range[1]) if self.range is not None else math.nan

    def position(self, value: Any) -> int:
        """Find a level by its value, or by its text as it stands in a TOML key."""
        for place, level in enumerate(self.levels):
            if level == value and isinstance(level, bool) == isinstance(value, bool):
                return place
        texts = [str(level) for level in self.levels]
        if str(value) in texts:
            return texts.index(str(value))
        raise ParameterError(f"Variable '{self.name}': {unknown_name(str(value), texts, what='level')}")

    def level_shares(self) -> tuple[Floats, Flags]:
        """Return the share of every level, and which were published; the rest is spread over those that were not."""
        shares = np.full(len(self.levels), np.nan)
        for value, share in self.shares.items():
            shares[self.position(value)] = share
        published = ~np.isnan(shares)
        if not published.all():
            rest = max(0.0, 1.0 - float(shares[published].sum()))
            shares[~published] = rest / (~published).sum()
        return shares, published

    def share_unit(self) -> float:
        """The printing unit of the shares."""
        return self.unit or printed_unit(self.shares.values())

    def level_numbers(self) -> Floats:
        """The levels as numbers, for a model that uses them so."""
        try:
            return np.array([float(level) for level in self.levels])
        except (TypeError, ValueError):
            raise ParameterError(
                f"The levels of '{self.name}' are not numbers. Name a level in brackets: '{self.name}[…]'."
            ) from None

    def bands(self) -> Floats:
        """The edges between which a number may move without changing a published quantile."""
        inner = [float(value) for share, value in sorted(self._quantiles().items()) if 0 < share < 1]
        return np.array([self.low, *inner, self.high])

    def draw_numbers(self, chance: Floats) -> Floats:
        """Turn uniform chances into values of the published distribution, or of the range where there is none."""
        if self.shares:
            values = np.array([float(value) for value in self.shares])
            steps = np.cumsum([float(share) for share in self.shares.values()])
            places = np.searchsorted(steps / steps[-1], chance, side="right")
            return values[np.minimum(places, len(values) - 1)]
        top = self.high + (1 if self.kind == "integer" else 0)
        known = {0.0: self.low, 1.0: top} | {q: v for q, v in self._quantiles().items() if 0 < q < 1}
        at = sorted(known)
        drawn = np.interp(chance, at, [known[share] for share in at])
        if self.kind == "integer":
            drawn = np.floor(drawn)
        return np.asarray(np.clip(drawn, self.low, self.high))

    def to_dict(self) -> dict[str, Any]:
        """Return what was said about the variable, ready for TOML."""
        given: dict[str, Any] = {"name": self.name, "kind": self.kind}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in given or value is None or value in ("", (), {}):
                continue
            if isinstance(value, Mapping):
                value = {str(key): entry for key, entry in value.items()}
            given[item.name] = list(value) if isinstance(value, tuple | list) else value
        return given

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Variable:
        """Read a variable as it stands in TOML."""
        known = [item.name for item in fields(cls)]
        for name in entries:
            if name not in known:
                raise ParameterError(f"In the codebook: {unknown_name(name, known, what='entry')}")
        if "name" not in entries:
            raise ParameterError('A variable of the codebook has no name. Write name = "…".')
        return cls(**entries)

    def _quantiles(self) -> dict[float, float]:
        return {float(share): float(value) for share, value in self.quantiles.items()}

    def _check_levels(self) -> None:
        if len(self.levels) < 2:
            raise ParameterError(f"Variable '{self.name}' needs at least two levels: levels=[…].")
        if len({str(level) for level in self.levels}) < len(self.levels):
            raise ParameterError(f"Variable '{self.name}' names a level twice.")
        if self.quantiles or self.range is not None:
            raise ParameterError(
                f"Variable '{self.name}' is {self.kind}: it has levels and shares, no range or quantiles."
            )
        for value in (*self.shares, *self.labels):
            self.position(value)

    def _check_range(self) -> None:
        if self.range is None or len(self.range) != 2 or not self.low < self.high:
            raise ParameterError(f"Variable '{self.name}' needs its range: range=(smallest, largest).")
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            raise ParameterError(f"The range of '{self.name}' must be two finite numbers.")
        object.__setattr__(self, "range", tuple(self.range))
        quantiles = sorted(self._quantiles().items())
        values = [self.low, *(value for _, value in quantiles), self.high]
        if any(not 0 <= share <= 1 for share, _ in quantiles) or values != sorted(values):
            raise ParameterError(
                f"The quantiles of '{self.name}' must be written {{share: value}}, with shares between 0 and 1 and "
                "values that rise with them inside the range."
            )
        if self.shares and (self.quantiles or self.kind == "numeric"):
            raise ParameterError(
                f"Variable '{self.name}': shares by value are for integers without quantiles; "
                "give quantiles={share: value} alone."
            )
        try:
            inside = all(self.low <= float(value) <= self.high for value in self.shares)
        except (TypeError, ValueError):
            inside = False
        if not inside:
            raise ParameterError(f"The shares of '{self.name}' must be for values inside its range.")

    def _check_shares(self) -> None:
        if any(not 0 <= share <= 1 for share in self.shares.values()):
            raise ParameterError(
                f"The shares of '{self.name}' must lie between 0 and 1; divide percentages by 100."
            )
        total = sum(self.shares.values())
        slack = len(self.shares) * self.share_unit() / 2 + 1e-9 if self.shares else 0.0
        complete = not self.is_categorical or len(self.shares) == len(self.levels)
        if self.shares and (total > 1 + slack or (complete and total < 1 - slack)):
            raise ParameterError(
                f"The shares of '{self.name}' add up to {total:.4f}, further from 1 than rounding explains. "
                "Mend them, or name the printing unit: unit=…."
            )


@dataclass(frozen=True)
class Codebook:
    """The variables of a file, in the order of its columns.

    Examples
    --------
    >>> book = Codebook([Variable("SEX", levels=["m", "f"]), Variable("AGE", "integer", range=(16, 90))])
    >>> book.names, book["AGE"].kind
    (('SEX', 'AGE'), 'integer')
    """

    variables: Sequence[Variable]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        names = [variable.name for variable in self.variables]
        if not self.columns:
            raise ParameterError("The codebook is empty. Describe at least one variable.")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ColumnError(f"The codebook describes '{twice[0]}' twice.")
        if sum(variable.kind == "weight" for variable in self.variables) > 1:
            raise ParameterError("The codebook has two weight variables; a file has one.")

    @property
    def columns(self) -> tuple[Variable, ...]:
        """The variables that are made up: all but the weight."""
        return tuple(variable for variable in self.variables if variable.kind != "weight")

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(variable.name for variable in self.columns)

    @property
    def weight(self) -> str | None:
        """The name of the weight column, where there is one."""
        return next((variable.name for variable in self.variables if variable.kind == "weight"), None)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Variable:
        return self.columns[self.index(name)]

    def index(self, name: str) -> int:
        """Return the place of a variable among the columns."""
        if name not in self.names:
            raise ColumnError(
                f"{unknown_name(name, self.names, what='variable')} It must be in the codebook."
            )
        return self.names.index(name)


def printed_unit(values: Iterable[float]) -> float:
    """Return the unit of the last digit that any of the figures shows.

    Trailing zeros are lost in a number, so the figure with most digits speaks for the others of its table.

    Examples
    --------
    >>> printed_unit([0.25, 0.065]), printed_unit([12, 7])
    (0.001, 1.0)
    """
    digits = [
        -int(Decimal(repr(float(value))).normalize().as_tuple().exponent)
        for value in values
        if math.isfinite(value)
    ]
    return float(Decimal(1).scaleb(-max([0, *digits])))


# From numbers and level positions back to a data frame with readable labels.


def frame_of(codebook: Codebook, file: Floats) -> pl.DataFrame:
    """Write the levels and numbers in their own types."""
    return pl.DataFrame([_series(variable, file[:, place]) for place, variable in enumerate(codebook)])


def file_of(codebook: Codebook, frame: pl.DataFrame) -> Floats:
    """Read a frame of the codebook back into numbers and level positions."""
    parts = []
    for variable in codebook:
        series = frame[variable.name]
        if variable.is_number:
            parts.append(series.cast(pl.Float64).to_numpy())
            continue
        known = [str(level) for level in variable.levels]
        text = series.cast(pl.String)
        parts.append(text.replace_strict(known, list(range(len(known))), return_dtype=pl.Float64).to_numpy())
    return np.column_stack(parts)


def empty_file(codebook: Codebook) -> Microdata:
    """Return a file without records that knows what its columns and values mean."""
    metadata = Metadata(
        column_labels={variable.name: variable.label for variable in codebook if variable.label},
        value_labels={
            variable.name: {
                variable.levels[variable.position(value)] if variable.is_categorical else value: label
                for value, label in variable.labels.items()
            }
            for variable in codebook
            if variable.labels
        },
    )
    frame = frame_of(codebook, np.zeros((0, len(codebook.columns))))
    if codebook.weight:
        return Microdata(
            frame.with_columns(pl.Series(codebook.weight, [], dtype=pl.Float64)),
            weight=codebook.weight,
            metadata=metadata,
        )
    return Microdata(frame, metadata=metadata)


def _series(variable: Variable, values: Floats) -> pl.Series:
    if variable.kind == "integer":
        return pl.Series(variable.name, np.rint(values).astype(np.int64))
    if variable.is_number:
        return pl.Series(variable.name, values)
    levels = pl.Series(variable.name, list(variable.levels))
    if levels.dtype == pl.String:
        levels = levels.cast(pl.Enum(levels))
    return levels.gather(values.astype(np.int64))
