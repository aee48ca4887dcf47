"""Coarse grid first, then local improvement: which recipe passes at the lowest loss?

Hundreds of recipes are forecast; the few that promise most are tried. Around the best that passed, single codings are
made finer or coarser and tried again, as long as that helps and the budget lasts. The path depends on the file, the
policy and the seed, not on the clock or the number of processes, unless a time limit cuts it short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from discreet.workflow.recipe_forecast import Forecast
from discreet.workflow.recipe_trials import Laboratory
from discreet.workflow.recipes import ALONG, GATHER, NOTHING, REGROUP, SUPPRESS, Frame, Recipe
from discreet.workflow.trials import Trial

_HEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)
_BATCH = 4
_MOST_KEYS_TO_HIDE = 12
_VISITS = 2  # so often the neighbors of a recipe that fails are tried
_HOPELESS = 1.35  # a recipe whose forecast is this many times the lowest loss is not tried
_DEAR = 6  # a recipe that takes more than this part of the budget is tried only where the forecast calls it the best
_NEAR_MISS = 0.5
_MANY_RECORDS, _LEAST_PART = (
    1_000,
    0.25,
)  # from so many records on the whole budget is spent, and this part always
_NOT_JUDGED = 0.15  # the part of judging that a trial takes that is not judged: its loss is measured
# What a trial costs, about, in seconds of one processor: by cell to judge, by hidden record and pair of keys, by cell
# of a key to regroup and by sensitive cell that may be swapped.
_FIXED, _A_CELL, _A_HIDDEN_RECORD, _A_REGROUPED_CELL, _A_SWAPPED_CELL = 0.6, 6e-6, 8e-6, 3e-6, 1.4e-5


@dataclass(frozen=True)
class Budget:
    """How many recipes may be forecast, and how much may be spent on trying them.

    A unit is about a second of one processor, as reckoned from the size of the file, not from the clock: the same file
    gets the same plan on every machine.
    """

    forecasts: int
    units: float
    seconds: float | None = None

    def on(self, records: int) -> Budget:
        """Spend less on a small file: a trial takes nearly as long there, and there is less to gain."""
        return replace(self, units=self.units * min(1.0, max(_LEAST_PART, records / _MANY_RECORDS)))


BUDGETS = {"quick": Budget(60, 12), "normal": Budget(80, 44), "thorough": Budget(1000, 400)}


@dataclass
class Explorer:
    """Looks for the recipe that passes at the lowest loss."""

    frame: Frame
    forecast: Forecast
    laboratory: Laboratory
    budget: Budget
    limits: dict[str, int] = field(default_factory=dict)
    tried: dict[Recipe, Trial] = field(default_factory=dict)
    spent: float = 0.0
    visits: dict[Recipe, int] = field(default_factory=dict)
    anything: bool = False

    def run(self) -> None:
        """Explore until the budget is spent or nothing better is in sight."""
        self.attempt([Recipe(finish=NOTHING)])
        if self.best is not None or not self.frame.keys:
            return
        companies = self.frame.aims.companies()
        self.attempt(self._quick(companies))
        self._improve(self.spent + (self.budget.units - self.spent) / (4 if self.best else 2))
        starts = sorted(self._starts(companies), key=self.forecast.loss)
        self.attempt(starts[:1])
        self.learn()
        self._improve(self.spent + (self.budget.units - self.spent) / 3)
        self.attempt(self._others(sorted(starts, key=self.forecast.loss), companies))
        if self.best is None:
            self.anything = True
            self.attempt(self._stronger(companies))
        self._improve()
        if self.best is None:
            self._erase()

    def _quick(self, companies: Sequence[int]) -> list[Recipe]:
        """Gather or regroup the file as it is, which takes little time and often passes."""
        plain = [replace(self.base, finish=REGROUP, k=k) for k in companies[:2]]
        if not self.may_swap:
            gathered = [replace(self.base, finish=GATHER, k=k, hide=self.may_hide) for k in companies[:2]]
            return [*gathered, *plain, replace(self.base, finish=ALONG, k=companies[0])]
        k = self.swap_companies[0]
        return [
            *(replace(self.base, finish=finish, k=k, swap=1) for finish in (GATHER, ALONG, REGROUP)),
            *plain,
        ]

    def _starts(self, companies: Sequence[int]) -> list[Recipe]:
        """Descend by forecasts with more and less company: hiding what breaks a model, or swapping it away."""
        if not self.may_swap:
            return [self.descended(replace(self.base, k=k, hide=self.may_hide)) for k in companies]
        levels = range(1, min(3, len(self.frame.swaps)))
        return [
            self.descended(replace(self.base, k=k, swap=s)) for s in levels for k in self.swap_companies[:2]
        ]

    @property
    def base(self) -> Recipe:
        """What every recipe begins with: the codings without which no class could meet the models."""
        needed = [(column, min(place, self._top(column))) for column, place in self.frame.needed]
        return Recipe(rungs=tuple((column, place) for column, place in needed if place))

    @property
    def may_swap(self) -> bool:
        """Whether sensitive values may be swapped between classes."""
        return len(self.frame.swaps) > 1

    @property
    def swap_companies(self) -> tuple[int, ...]:
        """Class sizes for which there are enough values in the file to deal out, from the smallest that may do."""
        least = max(
            self.frame.company_for_swaps, self.frame.aims.companies()[1 if self.frame.aims.k < 5 else 0]
        )
        return (least, *(k for k in self.frame.aims.companies() if k > least))

    def _improve(self, until: float | None = None) -> None:
        while self.spendable and (until is None or self.spent < until):
            fresh = self._neighbors()
            if not fresh:
                break
            self.attempt(fresh)

    def _erase(self) -> None:
        """Let plans leave nothing of a column, the last resort: those that were refused for it, and what is near."""
        refused = [recipe for recipe, trial in self.tried.items() if trial.failed is not None]
        bench = self.laboratory.bench
        self.laboratory.bench = replace(bench, may_erase=True)
        self.budget = replace(self.budget, units=self.spent + self.budget.units / 2)
        for recipe in refused:
            del self.tried[recipe]
        self.attempt(sorted(refused, key=lambda recipe: recipe.finish == SUPPRESS))
        self._improve()

    @property
    def may_hide(self) -> bool:
        """Whether records of classes that break a model may lose their keys; with many keys that takes too long."""
        return bool(self.frame.aims.models) and len(self.frame.keys) <= _MOST_KEYS_TO_HIDE

    @property
    def spendable(self) -> bool:
        """Whether another recipe may be tried; the winner will have to be applied and judged once more."""
        return self.spent + self._closing < self.budget.units and not self.laboratory.out_of_time

    @property
    def _closing(self) -> float:
        best = self.best
        return 0.0 if best is None else 2 * self._price(best)

    @property
    def best(self) -> Recipe | None:
        """The recipe that passes at the lowest loss."""
        passing = [recipe for recipe, trial in self.tried.items() if trial.meets and trial.loss is not None]
        return min(passing, key=lambda recipe: self.tried[recipe].loss or 0.0) if passing else None

    @property
    def lowest(self) -> float:
        """The lowest loss among those that pass."""
        best = self.best
        return float("inf") if best is None else float(self.tried[best].loss or 0.0)

    def attempt(self, recipes: Sequence[Recipe]) -> None:
        """Try recipes in batches of one size, whatever the number of processes; what cannot win is left out."""
        waiting = [recipe for recipe in dict.fromkeys(recipes) if recipe not in self.tried]
        while waiting and self.spendable:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            batch = self._affordable([recipe for recipe in batch if self._promising(recipe)])
            plans = {self.named(recipe): recipe.plan(self.frame) for recipe in batch}
            found = {trial.name: trial for trial in self.laboratory.run(plans, self.lowest)}
            self.tried |= {recipe: found[name] for recipe in batch if (name := self.named(recipe)) in found}
            self.spent += sum(self._took(recipe) for recipe in batch)

    def _took(self, recipe: Recipe) -> float:
        """Say what a trial took of its price: one that was not judged takes less."""
        trial = self.tried.get(recipe)
        if trial is None or trial.meets or trial.miss is not None:
            return self._price(recipe)
        return self._treating(recipe) + _NOT_JUDGED * self._judging

    def _affordable(self, recipes: Sequence[Recipe]) -> list[Recipe]:
        """Keep those that fit into what is left to spend, and the first in any case."""
        kept: list[Recipe] = []
        left = self.budget.units - self.spent - self._closing
        for recipe in recipes:
            left -= self._price(recipe)
            if left >= 0 or not kept:
                kept.append(recipe)
        return kept

    def named(self, recipe: Recipe) -> str:
        """Name a trial; the same recipe is another trial once columns may be erased."""
        return f"{named(recipe)}{', erasing' if self.laboratory.bench.may_erase else ''}"

    def _promising(self, recipe: Recipe) -> bool:
        """Say whether a recipe may win; what takes long must be forecast to win, and not against near misses only."""
        if self.forecast.of_columns(recipe) >= self.lowest:
            return False
        if recipe.finish != SUPPRESS:
            return True
        dear = self._price(recipe) > self.budget.units / _DEAR
        bound = self.lowest
        if self.best is None and not self.anything:
            near = [trial.loss for trial in self.tried.values() if (trial.miss or 1.0) < _NEAR_MISS]
            bound = min([loss for loss in near if loss is not None], default=bound)
        return self.forecast.loss(recipe) < (1.0 if dear else _HOPELESS) * bound

    def _price(self, recipe: Recipe) -> float:
        return self._treating(recipe) + self._judging

    @property
    def _judging(self) -> float:
        return _FIXED + _A_CELL * self.forecast.records * len(self.forecast.weights)

    def _treating(self, recipe: Recipe) -> float:
        records, keys = self.forecast.records, len(self.frame.keys)
        swapped = {column for model in self.frame.swaps[recipe.swap] for column in model.columns}
        swaps = _A_SWAPPED_CELL * records * len(swapped)
        if recipe.finish == SUPPRESS:
            treated = self.forecast.exposure(recipe).small + recipe.hide * records
            return swaps + _A_HIDDEN_RECORD * treated * keys**2
        return swaps + _A_REGROUPED_CELL * records * keys * (recipe.finish != NOTHING)

    def learn(self) -> None:
        """Correct the forecast by what was found: how many cells a record without company really lost."""
        for recipe, trial in self.tried.items():
            if recipe.finish != SUPPRESS or trial.loss is None or recipe.hide:
                continue
            hidden = trial.loss - self.forecast.of_columns(recipe)
            predicted = self.forecast.loss(recipe) - self.forecast.of_columns(recipe)
            if predicted > 1e-6 and hidden > 1e-6:
                self.forecast.correct(hidden / predicted)
                return

    def descended(self, like: Recipe) -> Recipe:
        """Find a recipe with this company and end that a forecast calls cheap: the best of a grid, then improved."""
        grid = [replace(like, rungs=self._at_height(height, like.k).rungs) for height in _HEIGHTS]
        best = min(grid, key=self.forecast.loss)
        spent = self.forecast.asked
        improved = True
        while improved:
            improved = False
            for column in self._movable(best):
                if self.forecast.asked > spent + self.budget.forecasts:
                    return best
                better = min(self._moves(best, column), key=self.forecast.loss, default=best)
                if self.forecast.loss(better) < self.forecast.loss(best) - 1e-9:
                    best, improved = better, True
        return best

    def _at_height(self, height: float, k: int) -> Recipe:
        recipe = replace(self.base, k=k)
        for column in self.frame.keys:
            recipe = recipe.with_rung(column, round(height * self._top(column)))
        return recipe

    def _top(self, column: str) -> int:
        return min(self.limits.get(column, 10**6), len(self.frame.ladders[column]) - 1)

    def _movable(self, recipe: Recipe) -> list[str]:
        """Name the columns whose coding may change; what is swapped between classes is not exchanged as well."""
        ladders = self.frame.ladders
        return [name for name in self.frame.movable if not recipe.swap or ladders[name].what != "exchange"]

    def _moves(self, recipe: Recipe, column: str) -> Iterator[Recipe]:
        """Change the coding of one column: a key by a step or two, a sensitive column to any other coding."""
        at, top = recipe.rung(column), self._top(column)
        least = self.base.rung(column)
        near = (at - 1, at + 1, at - 2, at + 2) if column in self.frame.keys else range(top + 1)
        for place in near:
            if least <= place <= top and place != at:
                yield recipe.with_rung(column, place)

    def _others(self, starts: Sequence[Recipe], companies: Sequence[int]) -> list[Recipe]:
        """Suppress with more or less company, and regroup instead, from the file as it is and from coarser codings."""
        found = [*starts[:2], replace(starts[0], hide=False)]
        plain = (
            [self.descended(replace(self.base, k=companies[1], hide=self.may_hide))] if self.may_swap else []
        )
        for start in [*plain, *starts[:2]]:
            k = self.swap_companies[0] if start.swap else companies[1]
            found += [_regrouped(start, k, along=along) for along in (True, False)]
        return [*found, replace(self.base, finish=ALONG, k=companies[1])]

    def _stronger(self, companies: Sequence[int]) -> list[Recipe]:
        """Try more company and coarser codings where nothing has passed."""
        hide = self.may_hide
        found = []
        if self.may_swap:
            strongest, k = len(self.frame.swaps) - 1, self.swap_companies[0]
            found += [replace(self._at_height(height, k), swap=strongest) for height in (1.0, 0.5)]
        found += [replace(self.base, finish=REGROUP, k=k) for k in companies[2:4]]
        found += [
            _regrouped(self._at_height(height, 2), companies[1], along=along)
            for height in (0.3, 0.6)
            for along in (True, False)
        ]
        found += [replace(self._at_height(height, companies[2]), hide=hide) for height in (0.5, 0.75, 1.0)]
        return found

    def _neighbors(self) -> list[Recipe]:
        """Change one coding, or the company, of the best recipe and of one that costs less and nearly passes."""
        found = []
        for center in self._centers():
            self.visits[center] = self.visits.get(center, 0) + 1
            others = [
                *self._other_strengths(center),
                *(other for column in self.frame.movable for other in self._moves(center, column)),
            ]
            fresh = [r for r in others if r not in self.tried and self._promising(r)]
            found.append(sorted(fresh, key=lambda r: self._expected(r, center))[:_BATCH])
        # By turns, so that both get their part of what is left.
        return [recipe for pair in zip_longest(*found) for recipe in pair if recipe is not None][:_BATCH]

    def _other_strengths(self, center: Recipe) -> Iterator[Recipe]:
        """Ask for more or less company, and for fewer swaps where it passes or more where it does not."""
        companies = self.swap_companies if center.swap else self.frame.aims.companies()
        at = companies.index(center.k) if center.k in companies else 0
        yield from (replace(center, k=k) for k in companies[max(0, at - 1) : at + 2] if k != center.k)
        if center.swap:
            more = -1 if self.tried[center].meets else 1
            yield from (
                replace(center, swap=level)
                for level in (center.swap + more, center.swap + 2 * more)
                if 0 < level < len(self.frame.swaps)
            )

    def _expected(self, recipe: Recipe, center: Recipe) -> float:
        """Say what a neighbor is expected to cost: by forecast, or by what its center lost in each column.

        Where groups have codings of their own, a column that loses much in them gains by a coarser coding that costs
        little. Another company or another strength of swaps is asked first: the center says whether that may help.
        """
        if recipe.finish == SUPPRESS or not self.tried[center].losses:
            return self.forecast.loss(recipe)
        if recipe.rungs == center.rungs:
            return -1.0
        trial = self.tried[center]
        expected = trial.loss or 0.0
        for column in {name for name, _ in {*recipe.rungs} ^ {*center.rungs}}:
            ladder, lost = self.frame.ladders[column], trial.losses.get(column, 0.0)
            before, after = ladder.rungs[center.rung(column)], ladder.rungs[recipe.rung(column)]
            detail = math.log(max(2, after.labels)) / math.log(max(2, before.labels))
            expected += self.forecast.weights.get(column, 0.0) * (
                after.loss + detail * max(0.0, lost - before.loss) - lost
            )
        return expected

    def _centers(self) -> list[Recipe]:
        missed = [
            recipe
            for recipe, trial in self.tried.items()
            if trial.miss is not None
            and (trial.loss or 0.0) < self.lowest
            and recipe.finish != NOTHING
            and self.visits.get(recipe, 0) < _VISITS
        ]
        near = sorted(missed, key=lambda r: (round(self.tried[r].miss or 0.0, 2), self.tried[r].loss or 0.0))
        chosen = [*([self.best] if self.best else []), *near[: 1 if self.best else 2]]
        return chosen or [self._at_height(0.5, self.frame.aims.k)]


def _regrouped(recipe: Recipe, k: int, *, along: bool = False) -> Recipe:
    return replace(recipe, finish=ALONG if along else REGROUP, k=k, hide=False)


def named(recipe: Recipe) -> str:
    """Name a recipe briefly: what is coarsened, and how it ends; different recipes have different names."""
    coarser = ", ".join(f"{column} {rung}" for column, rung in recipe.rungs) or "no coarser column"
    ends = {
        SUPPRESS: "suppress to",
        REGROUP: "regroup to",
        ALONG: "regroup along the codings to",
        GATHER: "gather by",
    }
    end = f"{ends[recipe.finish]} {recipe.k}" if recipe.finish in ends else "no more"
    also = f"{', hide' if recipe.hide else ''}{f', swap {recipe.swap}' if recipe.swap else ''}"
    return f"{coarser}; {end}{also}"
