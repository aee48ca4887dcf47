"""Which recipe passes at the lowest loss? Hundreds are forecast, a few are tried, and the best is judged.

A start is found by forecasts alone, from what a careful person would begin with: the fewest groups too small that a
coarser coding is worth. It is tried on the file, and so are its neighbors, as long as that promises to help and the
budget lasts. The path depends on the file, the policy and the seed, not on the clock or the number of processes,
unless a time limit cuts it short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from discreet.core.progress import tell, track
from discreet.core.verdicts import Verdict
from discreet.core.wording import percent
from discreet.workflow.recipe_forecast import Forecast
from discreet.workflow.recipe_trials import COSTLIER, Laboratory, Made, felt
from discreet.workflow.recipes import Frame, Recipe
from discreet.workflow.trials import Trial

_HEIGHTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_BATCH = 2
_MOST_KEYS_TO_HIDE = 12
_SWAPPED = 1.25  # a coarsening that costs up to so many times as much is proposed instead of swaps
_HOPELESS = 1.3  # a recipe whose forecast is this many times the lowest loss is not tried
_NEAR = 1.1  # and around the best that passes, one whose forecast is so many times that of the best
_MANY_CELLS = 200_000  # with more, a trial takes long and fewer are made
_FEWEST, _FEWEST_FORECASTS = 2, 50
_MANY_KEYS = 10  # with more, suppression takes ever longer
_JUDGED = 3  # so many recipes in a row are judged before others are tried


@dataclass(frozen=True)
class Budget:
    """How many recipes may be forecast, and how many tried: the same file gets the same plan on every machine."""

    forecasts: int
    trials: int
    seconds: float | None = None

    def on(self, records: int, columns: int, keys: int) -> Budget:
        """Forecast and try fewer recipes of a large file, and of one with many keys."""
        part = min(1.0, _MANY_CELLS / max(1, records * columns)) * min(1.0, (_MANY_KEYS / max(1, keys)) ** 2)
        forecasts = max(min(_FEWEST_FORECASTS, self.forecasts), round(self.forecasts * part))
        return replace(
            self, forecasts=forecasts, trials=max(min(_FEWEST, self.trials), round(self.trials * part))
        )


BUDGETS = {"quick": Budget(60, 3), "normal": Budget(100, 8), "thorough": Budget(600, 40)}


@dataclass
class Explorer:
    """Looks for the recipe that passes at the lowest loss."""

    frame: Frame
    forecast: Forecast
    laboratory: Laboratory
    budget: Budget
    limits: dict[str, int] = field(default_factory=dict)
    tried: dict[Recipe, Trial] = field(default_factory=dict)
    spent: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    _bar: list[Iterator[int]] = field(default_factory=list, repr=False)

    def run(self) -> tuple[Recipe, list[Made]] | None:
        """Explore until the budget is spent, nothing better is in sight or somebody interrupts, and judge the best."""
        try:
            self._explore()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            tell("Interrupted: the best plan so far is judged.")
            return self._judge()
        winner = self._judge()
        if winner is None and self.frame.keys and not self.laboratory.out_of_time:
            self._give_up_more()
            self._improve(self.budget.trials, stronger=True)
            winner = self._judge()
        return winner

    def _explore(self) -> None:
        plain = replace(self.base, k=max(2, self.frame.aims.k))
        if not self.frame.keys or not self.forecast.exposure(plain).cells:
            self.attempt([self.base])
        if self.best is None and self.frame.keys:
            for start in sorted(self._starts(), key=self._forecast):
                if self._forecast(start) < _HOPELESS * self.lowest:
                    self.attempt([start])
            self._improve(self.budget.trials)

    def _give_up_more(self) -> None:
        """Let plans leave nothing of a column, and leave out those in which too few differ from all others."""
        hard = self.frame.hard
        if hard:
            self.frame = self.frame.without(hard, "in every group nearly everybody has one value of it")
            sensitive = {name: values for name, values in self.forecast.sensitive.items() if name not in hard}
            forecast = self.forecast
            self.forecast = Forecast(self.frame, sensitive, forecast.weights, forecast.associations)
        bench = self.laboratory.bench
        self.laboratory.bench = replace(bench, may_erase=True, left_out=(*bench.left_out, *hard))
        self.spent = 0
        self.tried = {} if hard else {recipe: t for recipe, t in self.tried.items() if t.failed is None}
        self.attempt(sorted(self._starts(), key=self._forecast))

    def _starts(self) -> list[Recipe]:
        """Descend by forecasts: with groups as large as asked for, hiding what breaks a model, or swapping it away."""
        companies = self.frame.aims.companies()
        plain = self._descended_from([replace(self.base, k=k) for k in companies[:2]])
        found = [plain]
        if self.frame.aims.models and len(self.frame.keys) <= _MOST_KEYS_TO_HIDE:
            found.append(
                self._descended_from([replace(self.base, k=k, hide=True) for k in companies[:3]], plain)
            )
        if len(self.frame.swaps) > 1:
            swapping = [replace(self.base, k=k, swap=1) for k in self._swap_companies]
            found.append(self._descended_from(swapping, plain))
        return list(dict.fromkeys(found))

    def _descended_from(self, likes: Sequence[Recipe], also: Recipe | None = None) -> Recipe:
        grid = [self._at_height(height, like) for like in likes for height in _HEIGHTS]
        grid += [replace(like, rungs=also.rungs) for like in likes if also is not None]
        return self.descended(min(grid, key=self._forecast))

    @property
    def base(self) -> Recipe:
        """What every recipe begins with: the codings without which no class could meet the models."""
        needed = [(column, min(place, self._top(column))) for column, place in self.frame.needed]
        return Recipe(rungs=tuple((column, place) for column, place in needed if place))

    @property
    def _swap_companies(self) -> tuple[int, ...]:
        """Class sizes for which there are enough values in the file to deal out, from the smallest that may do."""
        companies = self.frame.aims.companies()
        least = max(self.frame.company_for_swaps, companies[0])
        return tuple(dict.fromkeys((least, *(k for k in companies if k > least))))[:4]

    def _improve(self, until: int, *, stronger: bool = False) -> None:
        while self.spendable and self.spent < until:
            fresh = self._neighbors(stronger=stronger)
            if not fresh:
                break
            self.attempt(fresh)

    def _judge(self) -> tuple[Recipe, list[Made]] | None:
        """Apply the best recipes afresh and judge them, the best first, until one meets the policy."""
        bench = self.laboratory.bench
        for _ in range(_JUDGED):
            best = self.best
            if best is None:
                return None
            stages = bench.staged(best.plan(self.frame))
            verdict = bench.judged(stages[-1])
            trial = bench.judged_as(self.tried[best], verdict)
            self.tried[best], self.verdicts[trial.name] = trial, verdict
            if trial.meets:
                return best, stages
            if trial.meets is None:  # what is open can be judged by nobody here, whatever the plan
                self.tried[best] = replace(trial, meets=False, reasons=(trial.not_judged,))
        return None

    @property
    def spendable(self) -> bool:
        """Whether another recipe may be tried."""
        return self.spent < self.budget.trials and not self.laboratory.out_of_time

    @property
    def best(self) -> Recipe | None:
        """The recipe that analysts feel least, of those that pass what was judged of them."""
        passing = [r for r, t in self.tried.items() if t.meets is not False and t.not_judged != COSTLIER]
        return min(passing, key=self._felt) if passing else None

    def _felt(self, recipe: Recipe) -> float:
        """Give what analysts feel; values of other people are handed around only where that costs much less."""
        return felt(self.tried[recipe]) * (_SWAPPED if recipe.swap else 1.0)

    def _forecast(self, recipe: Recipe) -> float:
        return self.forecast.loss(recipe) * (_SWAPPED if recipe.swap else 1.0)

    @property
    def lowest(self) -> float:
        """What analysts feel of the best."""
        best = self.best
        return float("inf") if best is None else self._felt(best)

    def attempt(self, recipes: Sequence[Recipe]) -> None:
        """Try recipes in batches of one size, whatever the number of processes."""
        waiting = [recipe for recipe in dict.fromkeys(recipes) if recipe not in self.tried]
        while waiting and self.spendable:
            batch, waiting = waiting[:_BATCH], waiting[_BATCH:]
            before = self.lowest
            plans = {self._named(recipe): recipe.plan(self.frame) for recipe in batch}
            found = {trial.name: trial for trial in self.laboratory.run(plans, before)}
            self.tried |= {recipe: found[name] for recipe in batch if (name := self._named(recipe)) in found}
            self._count(len(batch))
            self._learn(batch)
            if self.lowest < before and self.laboratory.progress and (best := self.best):
                loss = percent(self.tried[best].loss or 0.0)
                tell(
                    f"A plan that costs {loss} passes what is quickly judged; not judged beside the original yet."
                )

    def _count(self, trials: int) -> None:
        """Note how many plans were tried, for whoever waits."""
        if not self._bar:
            self._bar.append(
                track(
                    range(self.budget.trials + 1),
                    description="Trying plans",
                    progress=self.laboratory.progress and self.budget.seconds is None,
                )
            )
            next(self._bar[0], None)
        for _ in range(trials):
            next(self._bar[0], None)
        self.spent += trials

    def _named(self, recipe: Recipe) -> str:
        """Name a trial; the same recipe is another trial once more columns may be left out."""
        return f"{recipe.name}{', giving up more' if self.laboratory.bench.may_erase else ''}"

    def _learn(self, recipes: Sequence[Recipe]) -> None:
        """Correct the forecast by what was found: how many cells a record in a small group really lost."""
        for recipe in recipes:
            trial = self.tried.get(recipe)
            if trial is None or trial.loss is None or recipe.hide or recipe.k == 1:
                continue
            hidden = trial.loss - self.forecast.of_columns(recipe) - self.forecast.exposure(recipe).moved
            predicted = self.forecast.hidden(recipe)
            if predicted > 1e-6 and hidden > 1e-6:
                self.forecast.correct(hidden / predicted)

    def descended(self, best: Recipe) -> Recipe:
        """Change one coding, the group size or the swaps after the other as long as a forecast calls that cheaper."""
        until = self.forecast.asked + self.budget.forecasts
        improved = True
        while improved:
            improved = False
            for column in (None, *self.frame.movable):
                if self.forecast.asked > until:
                    return best
                moves = self._strengths(best) if column is None else self._moves(best, column)
                better = min(moves, key=self._forecast, default=best)
                if self._forecast(better) < self._forecast(best) - 1e-9:
                    best, improved = better, True
        return best

    def _at_height(self, height: float, like: Recipe) -> Recipe:
        recipe = replace(self.base, k=like.k, hide=like.hide, swap=like.swap)
        for column in (*self.frame.keys, *self.frame.known):
            place = max(self.base.rung(column), round(height * self._top(column)))
            recipe = recipe.with_rung(column, place)
        return recipe

    def _top(self, column: str) -> int:
        return min(self.limits.get(column, 10**6), len(self.frame.ladders[column]) - 1)

    def _moves(self, recipe: Recipe, column: str) -> Iterator[Recipe]:
        """Change the coding of one column by a step or two."""
        at, top, least = recipe.rung(column), self._top(column), self.base.rung(column)
        for place in (at - 1, at + 1, at - 2, at + 2):
            if least <= place <= top:
                yield recipe.with_rung(column, place)

    def _strengths(self, recipe: Recipe) -> list[Recipe]:
        """Ask for smaller or larger groups, and for fewer or more swaps."""
        companies = self._swap_companies if recipe.swap else self.frame.aims.companies()
        found = [replace(recipe, k=k) for k in companies if k != recipe.k]
        levels = range(1, len(self.frame.swaps)) if recipe.swap else ()
        return found + [replace(recipe, swap=swap) for swap in levels if abs(swap - recipe.swap) == 1]

    def _neighbors(self, *, stronger: bool) -> list[Recipe]:
        """Change one coding, the group size or the swaps of the best recipe, or of the one that came nearest."""
        center = self.best or self._nearest or self._at_height(_HEIGHTS[-2], self.base)
        found = self._strengths(center)
        if not center.swap and len(self.frame.swaps) > 1:
            found += [replace(center, k=k, swap=1) for k in self._swap_companies]
        if stronger:
            found += [self._at_height(height, center) for height in _HEIGHTS[2:]]
        found += [other for column in self.frame.movable for other in self._moves(center, column)]
        bound = (
            _HOPELESS * self.lowest if self.best is None else _NEAR * max(self.lowest, self._forecast(center))
        )
        fresh = [one for one in found if one not in self.tried and self._forecast(one) < bound]
        # Where nothing passes yet, larger groups and more swaps come before finer codings.
        if self.best is None:
            fresh = [one for one in fresh if self._is_stronger(one, center)] or fresh
        return sorted(fresh, key=self._forecast)[:_BATCH]

    def _is_stronger(self, one: Recipe, center: Recipe) -> bool:
        more = (one.k, one.swap) > (center.k, center.swap)
        return more or sum(place for _, place in one.rungs) > sum(place for _, place in center.rungs)

    @property
    def _nearest(self) -> Recipe | None:
        missed = [recipe for recipe, trial in self.tried.items() if trial.miss is not None]
        return min(missed, key=lambda r: (self.tried[r].miss or 0.0, self._felt(r)), default=None)
