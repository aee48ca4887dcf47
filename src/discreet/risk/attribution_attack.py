"""What an intruder does with two files: look up a person's keys in the release and guess the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.results import Detail
from discreet.core.wording import type_name
from discreet.microdata import Microdata
from discreet.risk import attribution_scores
from discreet.risk.value_classes import Classes, Source, Strategy, coarsened, edges_of, overlapping

_SURE = 0.01


@dataclass(frozen=True)
class Attack:
    """What the intruder does and knows, and how the guesses are counted."""

    unmatched: attribution_scores.Unmatched = "exclude"
    baseline: str = "matched"
    tolerances: Mapping[str, float] = field(default_factory=dict)
    guess: attribution_scores.Guess = "proportional"
    knows: Mapping[Any, float] = field(default_factory=dict)
    membership: float = 1.0
    fallback: float | None = None
    classes: Mapping[str, Classes] = field(default_factory=dict)
    strategy: Strategy = "equal_frequency"
    edges_from: Source | None = None
    many: int = 1

    def summed(
        self,
        joint: engine.JointCounts,
        scores: attribution_scores.CellScores,
        chance: Floats,
        tolerance: float | None = None,
    ) -> dict[str, Any]:
        """Sum up how often guesses with these chances are right."""
        return attribution_scores.summary(
            joint, scores, chance, unmatched=self.unmatched, baseline=self.baseline, tolerance=tolerance
        )

    def chances(self, joint: engine.JointCounts, scores: attribution_scores.CellScores) -> Floats:
        """Give the chance of a right guess in each cell, with what the intruder knows beside the release."""
        return self._knowing(joint, scores, attribution_scores.chances(joint, scores, self.guess))

    def beyond_chance(
        self, joint: engine.JointCounts, scores: attribution_scores.CellScores, found: Mapping[str, Any]
    ) -> dict[str, float | None]:
        """Say how many of the guesses would be right if the release were new people, and what is learned beyond that.

        Nothing is where chance gives as much once in a hundred times, over all the columns that are guessed.
        """
        from scipy import stats

        if found["cap_released"] is None:
            return {"cap_by_chance": None, "learned_beyond_chance": 0.0}
        others = attribution_scores.chances_by_others(joint, scores, self.guess)
        blind = found["baseline" if self.guess == "proportional" else "baseline_majority"]
        usual, unsure = attribution_scores.by_chance(joint, scores, others, blind)
        usual = self._knowing(joint, scores, usual)
        mass = np.where(joint.original > 0, joint.mass, 0.0)
        linked = mass[scores.matched].sum()
        people = linked if self.unmatched == "exclude" else mass.sum()
        right = float((usual * mass)[scores.matched].sum() / people)
        beyond = found["cap_released"] - right
        sure = stats.norm.isf(_SURE / self.many) * unsure * self.membership * linked / people
        return {"cap_by_chance": right, "learned_beyond_chance": float(beyond) if beyond > sure else 0.0}

    def _knowing(
        self, joint: engine.JointCounts, scores: attribution_scores.CellScores, chance: Floats
    ) -> Floats:
        if self.membership < 1:
            values = int(joint.value_inside.sum())
            other = 1 / values if self.fallback is None else self.fallback
            chance = self.membership * chance + (1 - self.membership) * other
        for values_known, sure in self.knows.items():
            chance = np.where(_is_class(joint, values_known)[joint.owners] & scores.matched, sure, chance)
        return chance


@dataclass(frozen=True)
class Link:
    """An original and one release, their classes numbered alike."""

    shared: engine.SharedClasses
    attack: Attack

    def aim(self, target: tuple[str, ...], weight: str | None = None) -> Aimed:
        """Count keys by one target and put the cells into the classes of the user."""
        exact = engine.joint_counts(self.shared, target, weight)
        joint, position = exact, np.arange(len(exact.owners))
        if any(column in self.attack.classes for column in (*self.shared.keys, *target)):
            joint, position = coarsened(exact, self.shared.keys, target, self.attack.classes)
        joint = overlapping(joint, self.shared.keys)
        tolerance = self.attack.tolerances.get(target[0])
        scores = attribution_scores.cell_scores(
            joint, tolerance=tolerance, nearest=self.attack.unmatched == "nearest"
        )
        return Aimed(self, target, exact, joint, position, scores, tolerance)


@dataclass(frozen=True)
class Aimed:
    """A link and one target: the counted cells and what is guessed right in each."""

    link: Link
    target: tuple[str, ...]
    exact: engine.JointCounts
    joint: engine.JointCounts
    position: Integers
    scores: attribution_scores.CellScores
    tolerance: float | None

    def figures(self) -> dict[str, Any]:
        """The figures of attribution, by name."""
        attack, joint, scores = self.link.attack, self.joint, self.scores
        found = attack.summed(joint, scores, attack.chances(joint, scores), self.tolerance)
        return {**found, **attack.beyond_chance(joint, scores, found)}

    def bootstrap(self, replicates: int, random: np.random.Generator) -> dict[str, float | None]:
        """Redraw the original records and say between which values ``cap_released`` stays 95 times in 100."""
        chance = np.nan_to_num(self.link.attack.chances(self.joint, self.scores))
        count = self.joint.original
        each = np.divide(self.joint.mass, count, out=np.zeros(len(count)), where=count > 0)
        people = each if self.link.attack.unmatched != "exclude" else each * self.scores.matched
        drawn = [random.multinomial(count.sum(), count / count.sum()) for _ in range(replicates)]
        means = [(draw * people * chance).sum() / total for draw in drawn if (total := (draw * people).sum())]
        low, high = np.quantile(means, [0.025, 0.975]) if means else (np.nan, np.nan)
        return {"cap_released_low": float(low), "cap_released_high": float(high)}

    def cells(self) -> pl.DataFrame:
        """List the cells of the original with their counts and chances, the worst for privacy first."""
        joint, scores = self.joint, self.scores
        table = pl.concat(
            [
                joint.class_labels[joint.owners],
                joint.value_labels[joint.values],
                pl.DataFrame(
                    {
                        "original": joint.original,
                        "original_class": scores.size_original,
                        "released": scores.hits_released,
                        "released_class": scores.size_released,
                        "cap_original": attribution_scores.own_chances(scores),
                        "cap_released": self.link.attack.chances(joint, scores),
                    }
                ),
            ],
            how="horizontal",
        )
        found = table.with_columns(pl.col("cap_original", "cap_released").fill_nan(None)).with_columns(
            gain=pl.col("cap_original") - pl.col("cap_released")
        )
        return found.filter(pl.col("original") > 0).sort("gain", nulls_last=True, maintain_order=True)

    def records(self) -> Any:
        """Give every original record its chances, in the kind of frame that came in."""
        table = pl.DataFrame(
            {
                "cap_original": attribution_scores.own_chances(self.scores),
                "cap_released": self.link.attack.chances(self.joint, self.scores),
                "matched": self.scores.matched,
            }
        ).with_columns(pl.col("cap_original", "cap_released").fill_nan(None))
        return engine.carry_scores(self.link.shared, self.exact, self.target, table[self.position])


def as_copies(
    released: Microdata | Sequence[Microdata] | None, keys: Sequence[str], targets: Sequence[str]
) -> list[Microdata]:
    """Return the released files as a list, checked: not empty, with the columns that are needed."""
    copies = [] if released is None else [released] if isinstance(released, Microdata) else list(released)
    if released is not None and not copies:
        raise ParameterError("released is an empty list. Give at least one released file.")
    for copy in copies:
        engine.must_be_released(copy, keys, "key")
        engine.must_be_released(copy, targets, "target")
        counted = engine.overview(copy, (*keys, *targets))
        for column in (*keys, *targets):
            if counted.missing[column] == counted.rows:
                raise ColumnError(
                    f"Column '{column}' has no values at all in the released file, so nothing can be looked up or "
                    "guessed from it. Leave it out, or check how the file was read."
                )
    return copies


def checked_tolerances(
    original: Microdata,
    columns: Sequence[str],
    tolerance: float | Mapping[str, float] | None,
    *,
    together: bool,
    guess: attribution_scores.Guess,
    unmatched: attribution_scores.Unmatched,
) -> dict[str, float]:
    """Return the tolerance of each target, refused where it makes no sense."""
    if guess == "majority" and (tolerance is not None or unmatched == "nearest"):
        raise ParameterError(
            "guess='majority' needs whole classes: it goes with neither a tolerance nor unmatched='nearest'. "
            "Use guess='proportional', or intervals."
        )
    if tolerance is None:
        return {}
    by_column = (
        dict(tolerance) if isinstance(tolerance, Mapping) else dict.fromkeys(columns, float(tolerance))
    )
    if together and len(columns) > 1:
        raise ParameterError(
            "tolerance is for one target at a time; leave together=True out, or use intervals."
        )
    for column, allowed in by_column.items():
        if column not in columns:
            raise ParameterError(f"tolerance names '{column}', which is not sensitive here.")
        if not original.schema[column].is_numeric():
            raise ColumnError(
                f"tolerance is for numbers, and '{column}' is {type_name(original.schema[column])}. Give it by column: "
                "tolerance={'income': 100}."
            )
        if allowed < 0:
            raise ParameterError(
                "tolerance must not be negative; it is in the units of the sensitive column."
            )
    return by_column


def _is_class(joint: engine.JointCounts, values: Any) -> Flags:
    """Find the classes with some key values, compared by their text."""
    wanted = values if isinstance(values, tuple) else (values,)
    if len(wanted) != joint.class_labels.width:
        raise ParameterError(
            f"knows names {len(wanted)} key values where there are {joint.class_labels.width} keys. "
            "Give one value a key, in their order."
        )
    found = np.ones(joint.class_labels.height, dtype=bool)
    for series, value in zip(joint.class_labels, wanted, strict=True):
        found &= engine.as_text(series).eq_missing(None if value is None else str(value)).to_numpy()
    return found


def attribution_tables(
    original: Microdata,
    keys: Sequence[str],
    target: tuple[str, ...],
    links: list[Link],
    *,
    variables: pl.DataFrame,
    by_copy: pl.DataFrame,
    weight: str | None,
    surface: int,
    released: Microdata | None,
) -> Detail:
    """Tables of an attack: by column, by copy, by class and by record, each made when it is asked for."""
    tables: dict[str, Any] = {"variables": variables}
    if len(links) > 1:
        tables["copies"] = by_copy
    if not links:
        return engine.tables_like(original, **tables)

    def classes() -> pl.DataFrame:
        found = links[0].aim(target, weight).cells()
        names = {f"k{i}": key for i, key in enumerate(keys)} | {f"s{i}": t for i, t in enumerate(target)}
        taken = set(found.columns) - set(names)
        return found.rename({n: f"{c} (value)" if c in taken else c for n, c in names.items()})

    tables["classes"] = classes
    tables["records"] = lambda: links[0].aim(target, weight).records()
    attack = links[0].attack
    banded = [
        key
        for key in keys
        if (attack.classes[key].edges if key in attack.classes else original.schema[key].is_float())
    ]
    # A release may hold labels where the original has numbers; such a column has no intervals.
    files = [original, *([] if released is None else [released])]
    continuous = len(target) == 1 and all(data.schema[target[0]].is_numeric() for data in files)
    if banded or continuous:
        tables["surface"] = lambda: attribution_surface(
            engine.joint_counts(links[0].shared, target, weight),
            keys,
            target[0] if continuous else None,
            banded,
            attack,
            surface,
        )
    return engine.tables_like(original, **tables)


# How do attribution figures change with the width of the intervals? One row a pair of interval numbers.


def attribution_surface(  # noqa: PLR0917
    exact: engine.JointCounts,
    keys: Sequence[str],
    target: str | None,
    banded: Sequence[str],
    attack: Attack,
    most: int,
) -> pl.DataFrame:
    """Measure attribution with every pair of interval numbers up to ``most``.

    ``banded`` keys and the target, where it is a number, are put into 1, 2, … intervals; all else stays as it is.
    The records are counted once: each pair merges the counted cells.
    """
    fixed = {column: drawn for column, drawn in attack.classes.items() if column not in (*banded, target)}
    rows: list[dict[str, Any]] = []
    for j1 in range(1, most + 1) if banded else [None]:
        drawn = {
            key: _drawn(exact, f"k{keys.index(key)}", attack.edges_from or "pooled", j1 or 1, attack.strategy)
            for key in banded
        }
        narrowed, _ = coarsened(exact, keys, (), {**fixed, **drawn})
        for j2 in range(1, most + 1) if target else [None]:
            joint = narrowed
            if target:
                source = attack.edges_from or "released"
                here = {target: _drawn(exact, "s0", source, j2 or 1, attack.strategy)}
                joint, _ = coarsened(narrowed, (), (target,), here)
            scores = attribution_scores.cell_scores(joint, nearest=attack.unmatched == "nearest")
            figures = attack.summed(joint, scores, attribution_scores.chances(joint, scores, "proportional"))
            kept = ("cap_original", "cap_released", "gain", "worst_gain", "matched_share")
            rows.append(
                {"key_intervals": j1, "target_intervals": j2} | {name: figures[name] for name in kept}
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _drawn(exact: engine.JointCounts, name: str, source: Source, count: int, strategy: Strategy) -> Classes:
    """Draw the intervals of one column from the counted cells."""
    labels, position = (
        (exact.class_labels, exact.owners) if name.startswith("k") else (exact.value_labels, exact.values)
    )
    numbers = labels[name].cast(pl.Float64).to_numpy()[position]
    counts = {"original": exact.original, "released": exact.released}.get(
        source, exact.original + exact.released
    )
    used = (counts > 0) & ~np.isnan(numbers)
    return Classes(edges=edges_of(np.repeat(numbers[used], counts[used]), count, strategy))
