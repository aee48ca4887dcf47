"""How much of a file larger than memory can a synthesizer learn from? A random sample of stated size, and its fit.

A synthesizer looks at its records together. Of a query that is too large, as many records are drawn as the memory
allows: each with the same chance, or, of a survey, in proportion to what it weighs, so that who stands for many people
is learned from rather than who stands for few. Whoever belongs together (a household, the records of a person) is drawn
together.
The draw belongs to the record, so that the same seed gives the same sample on every engine. What a sample of that size
cannot show is said.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import KeyedDraws, Seed
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.synth.column_forms import listed
from discreet.synth.synthesizer import Fitted, Synthesizer, seed_of

TIMES_THE_RECORDS = 10
"""How much memory learning takes, in times the records alone: codes, trees and copies of columns."""
_LOOKED_AT = 10_000
_A_FEW = 20
"""Records of a stratum that a sample has at least, about, where weights make up for it."""
_WEIGHED = ("use", "regenerate")
_TOGETHER = ("household", "person", "contributor")

Design = Literal["equal", "weight"]


@dataclass(frozen=True, eq=False)
class FittingSample:
    """The records that a synthesizer learns from.

    Attributes
    ----------
    data
        The sample, in memory, with the roles of the file.
    rows, of_rows
        Its records, and those of the file.
    together
        The column whose records were drawn together, if there is one.
    weight
        The column whose weights were divided by the chances of their records, if they were.
    in_proportion
        Whether the chances were in proportion to the weights.
    certain
        Records that weigh so much that they were taken for certain.
    effective
        How many records of equal weight the sample is worth.
    strata, strata_lost
        How many strata the file has, and how many of them have no record in the sample.
    within
        Whether every stratum was given chances of a few records at least, and its weights their sum.
    """

    data: Microdata
    rows: int
    of_rows: int
    together: str | None = None
    weight: str | None = None
    in_proportion: bool = False
    certain: int = 0
    effective: float | None = None
    strata: int = 0
    strata_lost: int = 0
    within: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole file."""
        return self.rows == self.of_rows

    @property
    def meaning(self) -> str:
        """Say how the sample was drawn and what it cannot show."""
        if self.is_whole:
            return f"All {self.of_rows:,} records were learned from."
        share = self.rows / self.of_rows
        # A group of g records is missed with chance (1 - share)^g: below one in a hundred from here on.
        seen = math.ceil(math.log(0.01) / math.log1p(-share)) if share < 1 else 1
        error = 1.96 * 0.5 / math.sqrt(self.effective or self.rows) * math.sqrt(1 - share)
        light = " of average weight (or more lighter ones)" if self.in_proportion else ""
        return (
            f"The model was learned from a random sample of {self.rows:,} of {self.of_rows:,} records "
            f"({percent(share)}), drawn with {self._chances}. Shares are off by up to {percent(error)} for that "
            f"reason alone (95 in 100 times), and what fewer than {seen:,} records{light} have may be missing "
            f"altogether.{self._of_strata}"
        )

    @property
    def _of_strata(self) -> str:
        """Say what became of the strata."""
        if not self.strata:
            return ""
        how = (
            f" Each of the {self.strata:,} strata had chances of about {_A_FEW} records at least (or all it has), and "
            "the weights of each add up to what they do in the file."
            if self.within
            else f" The file has {self.strata:,} strata, which had no say in the draw."
        )
        lost = (
            f" {self.strata_lost:,} of them have no record in the sample, and are lost."
            if self.strata_lost
            else ""
        )
        return f"{how}{lost}"

    @property
    def _chances(self) -> str:
        """Say with which chances records were drawn, and what became of their weights."""
        together = f", all of a '{self.together}' or none" if self.together else ""
        if self.weight is None:
            return f"equal chances{together}"
        divided = "; weights were divided by the chances, so that they stand for the same population"
        if not self.in_proportion:
            return f"equal chances{together}{divided}"
        certain = f" ({self.certain:,} that weigh most for certain)" if self.certain else ""
        return f"chances in proportion to '{self.weight}'{certain}{divided}"


@checked
def fitting_sample(
    data: Microdata,
    *,
    memory: float | None = None,
    rows: int | None = None,
    design: Design = "equal",
    record_key: str | Sequence[str] | None = None,
    seed: Seed = None,
) -> FittingSample:
    """How many records of a file can a synthesizer learn from here? Draw that many.

    Parameters
    ----------
    data
        The file; a query is not collected beyond the sample.
    memory
        Gigabytes that learning may take; half of what the machine has unless given. Learning is taken to need ten times
        the memory of the records alone.
    rows
        Instead of ``memory``: how many records, about.
    design
        ``"equal"``: every record has the same chance, and weights stay as they are. ``"weight"``: chances are in
        proportion to the role ``weight``, those who weigh most are certain, and weights are divided by the chances, so
        that they add up to what those of the file add up to. Of every stratum (role ``strata``) about 20 records are
        drawn at least, and its weights add up to what they do in the file. Records that are drawn together have equal
        chances then too, whatever their stratum, and their weights are divided alike.
    record_key
        Columns that tell the records apart, where their place does not: Spark needs it.
    seed
        Same file, same seed: same sample, on every engine.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.LazyFrame({"age": range(1000), "sex": ["f", "m"] * 500}))
    >>> fitting_sample(people, memory=1).rows
    1000
    >>> 60 < fitting_sample(people, rows=100, seed=1).rows < 140
    True
    """
    for what, value in (("memory", memory), ("rows", rows)):
        if value is not None and not value > 0:
            raise ParameterError(f"{what} must be above 0.")
    if memory is not None and rows is not None:
        raise ParameterError("Give memory (gigabytes) or rows (records), not both.")
    of_rows = engine.overview(data, ()).rows
    wanted = rows if rows is not None else _affordable(data, of_rows, memory)
    together = next((str(getattr(data.roles, role)) for role in _TOGETHER if getattr(data.roles, role)), None)
    if wanted >= of_rows:
        whole = data.with_frame(engine.whole_frame(data)) if engine.is_lazy(data) else data
        return FittingSample(whole, of_rows, of_rows)
    key = listed(record_key)
    draws = KeyedDraws.of(seed_of(seed), "fitting sample")
    if key and together is None:
        engine.check_record_key(data, key, purpose="the sample to learn from")
    weight = _design_weight(data) if design == "weight" else None
    by = weight if together is None else None
    chance = wanted / of_rows if by is None else engine.chance_by_unit(data, by, wanted)
    # Chances that differ need weights to make up for it, and people who are drawn together have one chance.
    least = _A_FEW if weight is not None and together is None else 0.0
    strata = (
        engine.Strata.of(data, data.roles.strata, chance, by=by, weight=weight, least=least)
        if data.roles.strata
        else None
    )
    frame = engine.record_sample(
        data,
        chance,
        draws,
        key=key,
        together=together,
        by=by,
        within=strata if least else None,
        purpose="the sample to learn from",
    )
    if frame.height < 2:
        raise ParameterError(
            f"A sample of about {wanted:,} records is too small to learn from. Allow more memory, or more rows."
        )
    told = FittingSample(data.with_frame(frame), frame.height, of_rows, together)
    place = np.zeros(frame.height, dtype=np.int64) if strata is None else strata.places(frame)
    if strata is not None:
        told = replace(
            told, strata=len(strata.records), strata_lost=len(strata.records) - len(np.unique(place))
        )
    if weight is None:
        return told
    before = frame[weight].cast(pl.Float64).to_numpy()
    chances = np.full(frame.height, chance) if by is None else before * chance
    chances = chances if strata is None else chances * strata.raised[place]
    divided = before / np.minimum(chances, 1.0)
    if strata is not None:
        # What each stratum adds up to is known.
        reached = np.bincount(place, weights=divided, minlength=len(strata.records))
        divided *= (strata.mass / np.where(reached > 0, reached, 1.0))[place]
    # The chances give the right sum on average; what the file adds up to is known.
    divided *= engine.total(data, weight) / divided.sum()
    return replace(
        told,
        data=data.with_frame(frame.with_columns(pl.Series(weight, divided))),
        weight=weight,
        in_proportion=by is not None,
        certain=int((before * chance >= 1).sum()) if by else 0,
        effective=float(divided.sum() ** 2 / (divided * divided).sum()),
        within=strata is not None and least > 0,
    )


def fit_on_sample(
    synthesizer: Synthesizer,
    data: Microdata,
    *,
    memory: float | None = None,
    rows: int | None = None,
    design: Design | None = None,
    record_key: str | Sequence[str] | None = None,
    progress: bool = False,
    seed: Seed = None,
) -> Fitted:
    """Learn from as much of a file as the memory allows; the model draws as many records as the file has.

    What was learned from, and what that cannot show, is in ``fitted.learned_from``. A guarantee of differential privacy
    is not claimed for a model that was learned from a sample.

    Parameters
    ----------
    synthesizer
        What is to be fitted.
    data, memory, rows, record_key, seed
        See `fitting_sample`.
    design
        See `fitting_sample`; ``"weight"`` where the file has weights and the synthesizer uses them to stand for the
        population, else ``"equal"``, unless given.
    progress
        Show how far it is, on a terminal.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.synth import Independent
    >>> people = Microdata(pl.LazyFrame({"age": range(1000), "sex": ["f", "m"] * 500}))
    >>> fitted = fit_on_sample(Independent(), people, rows=200, seed=1)
    >>> fitted.rows, "random sample" in fitted.learned_from
    (1000, True)
    """
    root = seed_of(seed)
    weighs = data.roles.weight is not None and getattr(synthesizer, "weights", "ignore") in _WEIGHED
    chosen: Design = design or ("weight" if weighs else "equal")
    if chosen == "weight" and not weighs:
        raise ParameterError(
            "design='weight' takes a file with a weight and a synthesizer that uses it to stand for the population: "
            "others would take the sample for the file. Give the role weight, or leave design out."
        )
    sample = fitting_sample(data, memory=memory, rows=rows, design=chosen, record_key=record_key, seed=root)
    fitted = synthesizer.fit(sample.data, progress=progress, seed=None if seed is None else root)
    fitted.learned_from = sample.meaning
    if sample.is_whole:
        return fitted
    if fitted.keeps_records:
        raise ParameterError(
            "Some columns are kept as they are, so that the model needs every record of the file. Synthesize those "
            "columns too, or fit to the whole file."
        )
    fitted.rows = sample.of_rows
    if fitted.guarantee is not None:
        fitted.guarantee, fitted.private = None, None
        fitted.why_none = "the model was learned from a sample, for which no guarantee was proved."
    return fitted


def _design_weight(data: Microdata) -> str:
    """Name the weight that chances are in proportion to; refuse weights that can be none."""
    weight = data.roles.weight
    if weight is None:
        raise ParameterError(
            "design='weight' draws in proportion to the weight, and the file has no column of that role. Name it with "
            "weight=…, or draw with design='equal'."
        )
    missing = engine.overview(data, [weight]).missing[weight]
    least, most = engine.extremes(data, weight)
    if missing or not (0 <= least <= most < math.inf) or most == 0:
        raise ColumnError(
            f"The weight '{weight}' is missing, negative, infinite or zero throughout in some records or all, so that "
            "no chances can be in proportion to it. Mend it, or draw with design='equal'."
        )
    return weight


def _affordable(data: Microdata, rows: int, memory: float | None) -> int:
    """How many records a synthesizer can learn from in so many gigabytes."""
    limit = (
        memory * 10**9 if memory is not None else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    )
    few = engine.collect(engine.scan(data, {f"c{i}": n for i, n in enumerate(data.columns)}).head(_LOOKED_AT))
    each = max(few.estimated_size() / max(few.height, 1), 1.0)
    return min(rows, int(limit / (TIMES_THE_RECORDS * each)))
