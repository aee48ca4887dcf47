"""Records drawn until there are enough that keep the rules and meet what was asked for."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.randomness import Seed
from discreet.microdata import Microdata
from discreet.synth.forms import CategoryForm, NumberForm
from discreet.synth.synthesizer import Fitted, Stream
from discreet.synth.whole_records.preparing import Blueprint

_MOST_AT_ONCE = 200_000
_MOST_TRIES = 200


class FittedRecords(Fitted):
    """A model of whole records.

    Attributes
    ----------
    left_out
        Columns that the synthetic file does not have, and why.
    notes
        What the user should know about the fit.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        blueprint: Blueprint,
        max_rounds: int = 100,
        left_out: Mapping[str, str] | None = None,
        notes: Sequence[str] = (),
        weighted: bool = False,
    ) -> None:
        super().__init__(like, rows)
        self.blueprint = blueprint
        self.max_rounds = max_rounds
        self.left_out = dict(left_out or {})
        self.notes = tuple(notes)
        self.weighted = weighted
        self.combining_rule = "pseudo-likelihood" if weighted else "simple"
        self._given: dict[str, Any] = {}

    @abstractmethod
    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Draw the variables of n records.

        ``wanted`` says of some categories which codes were asked for; a model that can, draws those. Whatever is not
        as asked is thrown away afterwards.
        """

    def sample(
        self,
        n: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        copies: int = 1,
        progress: bool = False,
        seed: Seed = None,
        **in_parts: Any,
    ) -> Any:
        """Draw synthetic files.

        Parameters
        ----------
        n
            Number of records; as many as the original has unless given.
        given
            What all records shall have: ``{"sex": "f"}``, several values as a list, a range of a number as
            ``(low, high)``; None stands for missing.
        copies
            Number of files, each drawn anew.
        progress
            Show how far it is, on a terminal.
        seed
            Same model, same seed: same bytes out.
        **in_parts
            For files larger than memory: ``to``, ``rows_per_part``, ``workers``, ``cluster`` and ``resume`` of
            `Fitted.sample`.
        """
        if given and (in_parts.get("workers", 1) != 1 or in_parts.get("cluster") is not None):
            raise ParameterError(
                "Other processes do not know what is given. Draw with workers=1, and no cluster."
            )
        for name in given or {}:
            if name not in self.blueprint.schema:
                raise ColumnError(f"{unknown_name(name, self.blueprint.schema)} It was named under given.")
        self._given = dict(given or {})
        try:
            return super().sample(n, copies=copies, progress=progress, seed=seed, **in_parts)
        finally:
            self._given = {}

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw records, again and again until there are n that keep the rules and are as asked."""
        wanted = self._wanted()
        kept: list[pl.DataFrame] = []
        have, drawn, size = 0, 0, n
        for number in range(max(self.max_rounds, 1)):
            frame = self.blueprint.joined(self.propose(size, stream.child(f"round {number}"), wanted))
            drawn += frame.height
            fit = self._fits(frame)
            if fit is not None:
                frame = frame.filter(pl.Series(fit))
            kept.append(frame)
            have += frame.height
            if have >= n:
                return pl.concat(kept).head(n) if len(kept) > 1 else kept[0].head(n)
            if drawn >= _MOST_TRIES * n and not have:
                break
            rate = max(have / drawn, 1 / drawn)
            size = min(max(math.ceil(1.1 * (n - have) / rate), 100), _MOST_AT_ONCE)
        return self._short(pl.concat(kept), n, drawn, stream)

    def _short(self, kept: pl.DataFrame, n: int, drawn: int, stream: Stream) -> pl.DataFrame:
        """Refuse, or fill up where only a part was found."""
        if self._given:
            raise ParameterError(
                f"Only {kept.height:,} of {drawn:,} drawn records are as given asks and keep the constraints; {n:,} "
                "are wanted. Ask for fewer records, widen given, or raise max_rounds."
            )
        lacking = n - kept.height
        rest = self.blueprint.joined(self.propose(lacking, stream.child("rest"), {}))
        warnings.warn(
            f"{lacking:,} of {n:,} records break a constraint still, after {self.max_rounds} rounds. Raise max_rounds, "
            "or see with check_rules which rule it is.",
            DiscreetWarning,
            stacklevel=2,
        )
        return pl.concat([kept, rest])

    def _fits(self, frame: pl.DataFrame) -> Flags | None:
        """Say which records keep the rules and are as asked; None where nothing is asked."""
        if not self._given and not self.blueprint.constraints:
            return None
        fit = np.ones(frame.height, dtype=np.bool_)
        if self.blueprint.constraints:
            fit &= ~self.blueprint.broken(frame).to_numpy()
        for name, asked in self._given.items():
            fit &= _as_asked(frame[name], asked)
        return fit

    def _wanted(self) -> dict[str, Flags]:
        """Turn what was asked of categories into their codes."""
        wanted: dict[str, Flags] = {}
        for name, asked in self._given.items():
            form = self.blueprint.forms.get(name)
            if isinstance(form, CategoryForm):
                levels = form.levels.cast(form.dtype)
                codes = np.append(
                    _as_asked(levels, asked), [_asks_missing(asked)] if form.has_missing else []
                )
                wanted[name] = codes.astype(np.bool_)
                if not wanted[name].any():
                    raise ParameterError(
                        f"No value of column '{name}' that the model knows is as given asks."
                    )
            elif isinstance(form, NumberForm) and isinstance(asked, tuple) and asked[0] > asked[1]:
                raise ParameterError(f"given asks for a range of '{name}' that ends before it begins.")
        return wanted


def _asks_missing(asked: Any) -> bool:
    return asked is None or (isinstance(asked, list) and None in asked)


def _as_asked(series: pl.Series, asked: Any) -> Flags:
    """Say of each value whether it is one of those asked for."""
    plain = series.cast(pl.String) if isinstance(series.dtype, pl.Categorical | pl.Enum) else series
    try:
        if isinstance(asked, tuple) and len(asked) == 2:
            found = plain.is_between(asked[0], asked[1]).fill_null(False)
        else:
            listed = asked if isinstance(asked, list) else [asked]
            values = pl.Series(
                [value for value in listed if value is not None], dtype=plain.dtype, strict=True
            )
            found = plain.is_in(values.implode()).fill_null(False)
            if _asks_missing(asked):
                found |= plain.is_null()
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ParameterError(
            f"given asks for values of another type than column '{series.name}' has. Write them in its type."
        ) from error
    return found.to_numpy()
