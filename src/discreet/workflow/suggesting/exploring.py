"""Coarse grid first, then local improvement: which recipe passes at the lowest loss?

Hundreds of recipes are forecast; the few that promise most are tried. Around the best that passed, single codings are
made finer or coarser and tried again, as long as that helps and the budget lasts. The path depends on the file, the
policy and the seed, not on the clock or the number of processes, unless a time limit cuts it short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from discreet.workflow.suggesting.forecast import Forecast
from discreet.workflow.suggesting.recipes import NOTHING, REGROUP, SUPPRESS, Frame, Recipe
from discreet.workflow.suggesting.trying import Laboratory
from discreet.workflow.trials import Trial

_HEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)
_BATCH = 4


@dataclass(frozen=True)
class Budget:
    """How many recipes may be forecast and tried."""

    forecasts: int
    trials: int
    seconds: float | None = None


BUDGETS = {"quick": Budget(60, 8), "normal": Budget(150, 24), "thorough": Budget(1000, 100)}


@dataclass
class Explorer:
    """Looks for the recipe that passes at the lowest loss."""

    frame: Frame
    forecast: Forecast
    laboratory: Laboratory
    budget: Budget
    limits: dict[str, int] = field(default_factory=dict)
    tried: dict[Recipe, Trial] = field(default_factory=dict)

    def run(self) -> None:
        """Explore until the budget is spent or nothing better is in sight."""
        self.attempt([Recipe(finish=NOTHING)])
        if self.best is not None or not self.frame.keys:
            return
        companies = self.frame.aims.companies()
        hide = bool(self.frame.aims.models)
        first = self.descended(companies[0], hide=hide)
        self.attempt([Recipe(finish=REGROUP, k=companies[0]), first])
        self.learn()
        starts = [self.descended(k, hide=hide) for k in companies[:3]]
        self.attempt(self._others(starts, companies))
        if self.best is None:
            self.attempt(self._stronger(companies))
        while self.spendable:
            fresh = self._neighbours()
            if not fresh:
                break
            self.attempt(fresh)

    @property
    def spendable(self) -> bool:
        """Whether another recipe may be tried."""
        return len(self.tried) < self.budget.trials and not self.laboratory.out_of_time

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
        """Try recipes in batches of one size, whatever the number of processes."""
        waiting = [recipe for recipe in dict.fromkeys(recipes) if recipe not in self.tried]
        while waiting and self.spendable:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            batch = [r for r in batch if self.forecast.of_columns(r) < self.lowest]
            batch = batch[: self.budget.trials - len(self.tried)]
            plans = {named(recipe): recipe.plan(self.frame) for recipe in batch}
            found = {trial.name: trial for trial in self.laboratory.run(plans, self.lowest)}
            self.tried |= {recipe: found[named(recipe)] for recipe in batch if named(recipe) in found}

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
        at = recipe.rung(column)
        for step in (-1, 1, -2, 2):
            if 0 <= at + step <= self._top(column):
                yield recipe.with_rung(column, at + step)

    def _others(self, starts: Sequence[Recipe], companies: Sequence[int]) -> list[Recipe]:
        """Suppress with more company, and regroup instead, from the file as it is and from coarser codings."""
        found = [*starts, *(replace(start, hide=False) for start in starts)]
        found += [Recipe(finish=REGROUP, k=companies[1])]
        found += [replace(starts[0], finish=REGROUP, k=companies[0], hide=False)]
        return found

    def _stronger(self, companies: Sequence[int]) -> list[Recipe]:
        """Try more company and coarser codings where nothing has passed."""
        hide = bool(self.frame.aims.models)
        found = [self.descended(k, hide=hide) for k in companies[3:]]
        found += [Recipe(finish=REGROUP, k=k) for k in companies[2:5]]
        found += [
            replace(self._at_height(height, k), hide=hide)
            for height in (0.5, 0.75, 1.0)
            for k in companies[:2]
        ]
        found += [replace(self._at_height(height, companies[1]), finish=REGROUP) for height in (0.5, 0.75)]
        return found

    def _neighbours(self) -> list[Recipe]:
        """Change one coding, or the company, of the best recipe; the most promising first."""
        best = self.best
        if best is None:
            ranked = sorted(self.tried, key=lambda r: (len(self.tried[r].reasons), self.tried[r].loss or 1.0))
            best = ranked[0] if ranked else self._at_height(0.5, self.frame.aims.k)
        found = [other for column in self.frame.movable for other in self._moves(best, column)]
        companies = self.frame.aims.companies()
        at = companies.index(best.k) if best.k in companies else 0
        found += [replace(best, k=k) for k in companies[max(0, at - 1) : at + 2] if k != best.k]
        fresh = [r for r in found if r not in self.tried and self.forecast.of_columns(r) < self.lowest]
        return sorted(fresh, key=self.forecast.loss)[:_BATCH]


def named(recipe: Recipe) -> str:
    """Name a recipe briefly: what is coarsened, and how it ends."""
    coarser = ", ".join(f"{column} {rung}" for column, rung in recipe.rungs) or "no coarser column"
    end = {SUPPRESS: f"suppress to {recipe.k}", REGROUP: f"regroup to {recipe.k}"}.get(
        recipe.finish, "no more"
    )
    return f"{coarser}; {end}{', hide' if recipe.hide else ''}"
