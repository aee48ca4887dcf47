"""Coarse grid first, then local improvement: which recipe passes at the lowest loss?

Hundreds of recipes are forecast; the few that promise most are tried. Around the best that passed, single codings are
made finer or coarser and tried again, as long as that helps and the budget lasts. The path depends on the file, the
policy and the seed, not on the clock or the number of processes, unless a time limit cuts it short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from discreet.workflow.suggesting.forecast import Forecast
from discreet.workflow.suggesting.recipes import ALONG, NOTHING, REGROUP, SUPPRESS, Frame, Recipe
from discreet.workflow.suggesting.trying import Laboratory
from discreet.workflow.trials import Trial

_HEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)
_BATCH = 4
_MOST_KEYS_TO_HIDE = 12
_HOPELESS = 1.35  # a recipe whose forecast is this many times the lowest loss is not tried
_WORK_A_UNIT = {SUPPRESS: 1_500_000, REGROUP: 5_000_000, ALONG: 5_000_000, NOTHING: 10_000_000}


@dataclass(frozen=True)
class Budget:
    """How many recipes may be forecast, and how much may be spent on trying them: one unit is a small file's trial."""

    forecasts: int
    units: float
    seconds: float | None = None


BUDGETS = {"quick": Budget(60, 10), "normal": Budget(150, 26), "thorough": Budget(1000, 200)}


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

    def run(self) -> None:
        """Explore until the budget is spent or nothing better is in sight."""
        self.attempt([Recipe(finish=NOTHING)])
        if self.best is not None or not self.frame.keys:
            return
        companies = self.frame.aims.companies()
        hide = self.may_hide
        starts = sorted((self.descended(k, hide=hide) for k in companies), key=self.forecast.loss)
        self.attempt(
            [
                Recipe(finish=REGROUP, k=companies[0]),
                Recipe(finish=ALONG, k=companies[0]),
                _regrouped(starts[0], companies[0]),
                _regrouped(starts[0], companies[0], along=True),
            ]
        )
        self.attempt(starts[:1])
        self.learn()
        self.attempt(self._others(sorted(starts, key=self.forecast.loss), companies))
        if self.best is None:
            self.attempt(self._stronger(companies))
        self._improve()
        if self.best is None:
            self._erase()

    def _improve(self) -> None:
        while self.spendable:
            fresh = self._neighbours()
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
        """Whether another recipe may be tried."""
        return self.spent < self.budget.units and not self.laboratory.out_of_time

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
            batch = [recipe for recipe in batch if self._promising(recipe)]
            plans = {self.named(recipe): recipe.plan(self.frame) for recipe in batch}
            found = {trial.name: trial for trial in self.laboratory.run(plans, self.lowest)}
            self.tried |= {recipe: found[name] for recipe in batch if (name := self.named(recipe)) in found}
            self.spent += sum(self._price(recipe) for recipe in batch)

    def named(self, recipe: Recipe) -> str:
        """Name a trial; the same recipe is another trial once columns may be erased."""
        return f"{named(recipe)}{', erasing' if self.laboratory.bench.may_erase else ''}"

    def _promising(self, recipe: Recipe) -> bool:
        if self.forecast.of_columns(recipe) >= self.lowest:
            return False
        return recipe.finish != SUPPRESS or self.forecast.loss(recipe) < _HOPELESS * self.lowest

    def _price(self, recipe: Recipe) -> float:
        work = self.forecast.records * max(1, len(self.frame.keys)) ** 2
        return 1 + work / _WORK_A_UNIT[recipe.finish]

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

    def descended(self, k: int, *, hide: bool) -> Recipe:
        """Find a recipe with this company that a forecast calls cheap: the best of a grid, then single changes."""
        grid = [replace(self._at_height(height, k), hide=hide) for height in _HEIGHTS]
        best = min(grid, key=self.forecast.loss)
        spent = self.forecast.asked
        improved = True
        while improved:
            improved = False
            for column in self.frame.movable:
                if self.forecast.asked > spent + self.budget.forecasts:
                    return best
                better = min(self._moves(best, column), key=self.forecast.loss, default=best)
                if self.forecast.loss(better) < self.forecast.loss(best) - 1e-9:
                    best, improved = better, True
        return best

    def _at_height(self, height: float, k: int) -> Recipe:
        recipe = Recipe(k=k)
        for column in self.frame.keys:
            recipe = recipe.with_rung(column, round(height * self._top(column)))
        return recipe

    def _top(self, column: str) -> int:
        return min(self.limits.get(column, 10**6), len(self.frame.ladders[column]) - 1)

    def _moves(self, recipe: Recipe, column: str) -> Iterator[Recipe]:
        """Change the coding of one column: a key by a step or two, a sensitive column to any other coding."""
        at, top = recipe.rung(column), self._top(column)
        near = (at - 1, at + 1, at - 2, at + 2) if column in self.frame.keys else range(top + 1)
        for place in near:
            if 0 <= place <= top and place != at:
                yield recipe.with_rung(column, place)

    def _others(self, starts: Sequence[Recipe], companies: Sequence[int]) -> list[Recipe]:
        """Suppress with more or less company, and regroup instead, from the file as it is and from coarser codings."""
        found = [*starts[:3], replace(starts[0], hide=False), Recipe(finish=REGROUP, k=companies[1])]
        found += [
            _regrouped(start, companies[1], along=along) for start in starts[:2] for along in (True, False)
        ]
        return [*found, Recipe(finish=ALONG, k=companies[1])]

    def _stronger(self, companies: Sequence[int]) -> list[Recipe]:
        """Try more company and coarser codings where nothing has passed."""
        hide = self.may_hide
        found = [Recipe(finish=REGROUP, k=k) for k in companies[2:4]]
        found += [
            _regrouped(self._at_height(height, 2), companies[1], along=along)
            for height in (0.3, 0.6)
            for along in (True, False)
        ]
        found += [replace(self._at_height(height, companies[2]), hide=hide) for height in (0.5, 0.75, 1.0)]
        return found

    def _neighbours(self) -> list[Recipe]:
        """Change one coding, or the company, of the best recipe and of one that costs less and nearly passes."""
        found = []
        for center in self._centers():
            others = [other for column in self.frame.movable for other in self._moves(center, column)]
            companies = self.frame.aims.companies()
            at = companies.index(center.k) if center.k in companies else 0
            others += [replace(center, k=k) for k in companies[max(0, at - 1) : at + 2] if k != center.k]
            fresh = [r for r in others if r not in self.tried and self._promising(r)]
            found.append(sorted(fresh, key=self.forecast.loss)[:_BATCH])
        # By turns, so that both get their part of what is left.
        return [recipe for pair in zip_longest(*found) for recipe in pair if recipe is not None][:_BATCH]

    def _centers(self) -> list[Recipe]:
        missed = [
            recipe
            for recipe, trial in self.tried.items()
            if trial.miss is not None and (trial.loss or 0.0) < self.lowest and recipe.finish != NOTHING
        ]
        near = sorted(missed, key=lambda r: (round(self.tried[r].miss or 0.0, 2), self.tried[r].loss or 0.0))
        chosen = [*([self.best] if self.best else []), *near[: 1 if self.best else 2]]
        return chosen or [self._at_height(0.5, self.frame.aims.k)]


def _regrouped(recipe: Recipe, k: int, *, along: bool = False) -> Recipe:
    return replace(recipe, finish=ALONG if along else REGROUP, k=k, hide=False)


def named(recipe: Recipe) -> str:
    """Name a recipe briefly: what is coarsened, and how it ends; different recipes have different names."""
    coarser = ", ".join(f"{column} {rung}" for column, rung in recipe.rungs) or "no coarser column"
    ends = {SUPPRESS: "suppress to", REGROUP: "regroup to", ALONG: "regroup along the codings to"}
    end = f"{ends[recipe.finish]} {recipe.k}" if recipe.finish in ends else "no more"
    return f"{coarser}; {end}{', hide' if recipe.hide else ''}"
