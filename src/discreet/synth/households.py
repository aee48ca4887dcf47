"""A wrapper that lets any generator of records keep households: one row a household, one model a size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import made_from, method
from discreet.core.randomness import Seed
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata, require_microdata
from discreet.synth.column_forms import columns_named
from discreet.synth.household_surveys import SurveyHouseholds
from discreet.synth.saved_models import stored
from discreet.synth.sequential.sequential import Sequential
from discreet.synth.sequential.whole_units import same_within
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

_LARGEST = 8


@method(
    aim="records",
    work="whole-file",
    references=(
        "Templ, M., Meindl, B., Kowarik, A. and Dupriez, O. (2017). Simulation of synthetic complex data: the R "
        "package simPop. Journal of Statistical Software 79(10), 1–38. doi:10.18637/jss.v079.i10",
    ),
)
@dataclass(frozen=True)
class Households(Synthesizer):
    """How can a generator that knows only records draw whole households?

    The numbers of households are never shown to a generator. With ``way="wide"`` every household is one record, with
    the columns of its first, second, third member side by side, and each size has a model of its own: size, membership,
    what members share and how they relate to each other hold. ``way="two-level"`` draws households with their first
    member and then the others, given these; it goes with `Sequential` only and needs fewer households of each size.

    Also known as: simPop households; synthetic households.

    Parameters
    ----------
    by
        The generator.
    way
        ``"wide"`` or ``"two-level"``.
    min_households
        Sizes with fewer households learn from larger ones too, whose members after the last that is needed are left
        out.

    When not to use it
    ------------------
    Do not use it where households are large: the wide record of eight members has eight times the columns. Weights are
    used by generators that use them, once for each household.

    Examples
    --------
    >>> frame = pl.DataFrame({"home": [n // 2 for n in range(80)], "area": [n // 2 % 3 for n in range(80)],
    ...                       "age": [n % 2 * 30 + n % 7 for n in range(80)]})
    >>> made = Households(Sequential()).fit(Microdata(frame, household="home"), seed=1).sample(seed=1).frame
    >>> made.group_by("home").len()["len"].unique().to_list(), made.group_by("home").n_unique()["area"].max()
    ([2], 1)
    """

    by: Synthesizer = field(default_factory=Sequential)
    way: Literal["wide", "two-level"] = "wide"
    min_households: Annotated[int, AtLeast(2)] = 30

    def __post_init__(self) -> None:
        if isinstance(self.by, Mapping):
            given = dict(self.by)
            made = Synthesizer.named(str(given.pop("synthesizer", "sequential")), given)
            object.__setattr__(self, "by", made)
        if isinstance(self.by, Households) or not self.by.needs_data:
            raise ParameterError("by must be a generator that learns from records, e.g. Sequential().")
        if self.way == "two-level" and not isinstance(self.by, Sequential):
            raise ParameterError(
                "way='two-level' draws members given others, which only Sequential can: use 'wide'."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        given: dict[str, Any] = {"by": {"synthesizer": self.by.name, **self.by.to_dict()}}
        if self.way != "wide":
            given["way"] = self.way
        if self.min_households != 30:
            given["min_households"] = self.min_households
        return given

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Self:
        """Make it from the content of a plan file."""
        return made_from(cls, "households", parameters)

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> Fitted:
        """Fit one model a size of household, or the generator of households itself."""
        require_microdata(data)
        if self.way == "two-level":
            return self.by.fit(data, progress=progress, seed=seed)
        survey = SurveyHouseholds.of(data, different_weights="mean")
        household, weight = str(data.roles.household), data.roles.weight
        frame = survey.frame
        gone = {household, weight, *data.roles.identifiers, data.roles.person}
        columns = [name for name in frame.columns if name not in gone]
        if not columns:
            raise ParameterError("There is nothing to synthesize beside the household.")
        shared = same_within(frame, household, columns)
        own = [name for name in columns if name not in shared]
        sizes = survey.size
        stream = Stream(seed_of(seed), "households", seeded=seed is not None)
        models: dict[int, Fitted] = {}
        counted = [name for name in shared if _counts(frame[name], survey)]
        for size, rows in _groups(sizes, self.min_households).items():
            wide = _wide(frame, survey, rows, size, [n for n in shared if n not in counted], own)
            roles: dict[str, Any] = {}
            if weight is not None:
                wide = wide.with_columns(pl.Series("weight of the household", survey.weight[rows]))
                roles = {"weight": "weight of the household"}
            if wide.width - len(roles) < 2:
                wide = wide.with_columns(pl.Series("discreet nothing", np.arange(wide.height) % 2))
            inner = Microdata(wide, **roles)
            models[size] = self.by.fit(inner, seed=int(stream(str(size)).integers(2**62)))
        shares = {size: float(survey.weight[sizes == size].sum()) for size in np.unique(sizes).tolist()}
        kept = [name for name in data.columns if name == household or name in columns]
        return FittedHouseholds(
            empty_like(data.with_roles(weight=None), columns_named(frame, kept)),
            frame.height,
            household=household,
            shared=[name for name in shared if name not in counted],
            counted=counted,
            own=own,
            models=models,
            shares=shares,
        )


@stored("fitted-households")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedHouseholds(Fitted):
    """Households that were fitted, one model a size."""

    household: str
    shared: list[str]
    counted: list[str]
    own: list[str]
    models: Mapping[int, Fitted]
    shares: Mapping[int, float]

    def __post_init__(self) -> None:
        self.numbered_units = self.household

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw households, size by size, with about ``n`` members in all."""
        sizes = np.array(sorted(self.shares))
        chances = np.array([self.shares[size] for size in sizes.tolist()])
        chances = chances / chances.sum()
        homes = max(1, round(n / float((sizes * chances).sum())))
        numbers = np.floor(chances * homes + stream("sizes").random()).astype(np.int64)
        if not numbers.sum():
            numbers[int(chances.argmax())] = 1
        parts, before = [], 0
        for size, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
            if not number:
                continue
            model = self.models[min((own for own in self.models if own >= size), default=max(self.models))]
            made = engine.collect(
                model.sample(int(number), seed=int(stream("size", str(size)).integers(2**62)))
            )
            made = made.head(number)
            parts.append(self._long(made, size, before))
            before += made.height
        return pl.concat(parts, how="vertical_relaxed")

    def _long(self, wide: pl.DataFrame, size: int, before: int) -> pl.DataFrame:
        """Take households apart into their members."""
        homes = pl.Series(self.household, np.arange(before + 1, before + wide.height + 1))
        members = [
            pl.DataFrame(
                {
                    self.household: homes,
                    **{name: pl.Series(np.full(wide.height, size)) for name in self.counted},
                    **{name: wide[name] for name in self.shared},
                    **{name: wide[_member(name, place)].rename(name) for name in self.own},
                }
            )
            for place in range(size)
        ]
        return pl.concat(members, how="vertical_relaxed").sort(self.household, maintain_order=True)

    def _in_kind(self, frame: pl.DataFrame) -> Microdata:
        types = engine.collect(self.like).schema
        return super()._in_kind(frame.with_columns(pl.col(name).cast(types[name]) for name in frame.columns))


def _member(name: str, place: int) -> str:
    return f"{name}, member {place + 1}"


def _counts(series: pl.Series, survey: SurveyHouseholds) -> bool:
    """Whether a column holds the number of members."""
    if not series.dtype.is_integer() or series.null_count():
        return False
    return bool((series.to_numpy() == np.repeat(survey.size, survey.size)).all())


def _groups(sizes: Any, least: int) -> dict[int, Any]:
    """Say which households the model of a size learns from: those of the size, and larger ones where it has too few.

    Of a larger household the members that are too many are left out; the largest sizes borrow from none.
    """
    groups = {}
    for size in np.unique(sizes).tolist():
        if size > _LARGEST * 4:
            raise ColumnError(
                f"There are households of {size} members, too many for one record each. Use way='two-level'."
            )
        rows = np.flatnonzero(sizes == size)
        if len(rows) < least:
            rows = np.flatnonzero(sizes >= size)
        if len(rows) < 2:
            rows = np.repeat(rows, 2)
        groups[size] = rows
    return groups


def _wide(  # noqa: PLR0917
    frame: pl.DataFrame, survey: SurveyHouseholds, rows: Any, size: int, shared: list[str], own: list[str]
) -> pl.DataFrame:
    """Put the members of households side by side."""
    first = survey.first[rows]
    made = {name: frame[name].gather(first) for name in shared}
    for place in range(size):
        made |= {_member(name, place): frame[name].gather(first + place) for name in own}
    return pl.DataFrame({name: series.rename(name) for name, series in made.items()})
