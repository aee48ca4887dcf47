"""How far must a synthesis keep from the data so that attackers gain no more than a limit, and what does that cost?

People are set aside in two groups. The generator learns from the others; the attacks of `discreet.attack` are run on
what it draws, against the first group, and what lets them through is closed where it is cheapest (`closing_steps`). A
draft that passes is drawn anew and judged with other attacks against the second group, whom no step was chosen by: the
limit holds where the upper ends of all intervals keep it there. The file that was judged is
handed back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.attack_battery import Gains
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata, require_microdata
from discreet.pairs.side_by_side import names_checked
from discreet.synth import Fitted, Sequential
from discreet.synth.synthesizer import seed_of
from discreet.workflow.attacked_drafts import FEWEST, Scene, closed, distance_of, foremost, frontier_of, holds

DEFAULT_LIMIT = 0.05
ENOUGH_RECORDS = 2_000


@dataclass(frozen=True, eq=False)
class SynthesisWithinRisk:
    """A synthetic file, what attackers gained from it, and what every try cost.

    Attributes
    ----------
    file
        The synthetic file: the first that keeps the limit, or the one with the least risk where none does.
    holds
        Whether the upper ends of the intervals of all attacks keep the limit, against people no step was chosen by.
    gains
        What every attacker gained from the file, one line each.
    risks
        The answers of the attacks, by name.
    frontier
        One line a try: what was done, the highest risk and upper end, the way that gained most, and the price
        (``distance``: how many records lie in other cells of the tables of two columns, on average). ``judged`` tells
        whether people were asked whom no step was chosen by.
    steps
        What was done to get there, in plain sentences.
    fitted, synthesizer
        The model it was drawn from, and its parameters (without the limit).
    used, set_aside
        The people the model learned from, and those the file was judged by.
    limit
        The limit.
    rows, drawn_by, scene
        How many records the file has (None: as the model has it), the seed that drew it, and who was attacked how.
    """

    file: Microdata
    holds: bool
    gains: Gains
    frontier: pl.DataFrame
    steps: tuple[str, ...]
    fitted: Fitted
    synthesizer: Sequential
    used: Microdata
    set_aside: Microdata
    limit: float
    rows: int | None
    drawn_by: int
    scene: Scene

    @property
    def risks(self) -> Mapping[str, Measure]:
        """The answers of the attacks, by name."""
        return self.gains.answers

    @property
    def lines(self) -> tuple[str, ...]:
        """All there is to say, for people: what was done, what attackers gain, and the price."""
        return (*self.steps, self.verdict, *self.gains.notes, self.price)

    @property
    def verdict(self) -> str:
        """Whether the limit is kept, in a sentence."""
        limit, table = percent(self.limit), self.gains.table
        if not table.height:
            return f"No attack could be tried, so that nothing is shown about the limit of {limit}."
        top = table.sort("risk_high", descending=True).row(0, named=True)
        highest = f"{percent(max(top['risk_high'], 0.0))}, by {top['attack']}"
        if self.holds:
            return (
                f"The file keeps the limit of {limit}: of {table.height} ways of attacking none gains more, and the "
                f"highest upper end of their 95 % intervals is {highest}."
            )
        if self.gains.worst <= self.limit:
            return (
                f"The limit of {limit} is not shown to hold: no way of attacking gained more (at most "
                f"{percent(max(self.gains.worst, 0.0))}), but a risk of up to {highest} cannot be ruled out"
                f"{' with so few people' if self.gains.unsure(self.limit).height else ''}."
            )
        worst = table.sort("risk", descending=True).row(0, named=True)
        if not self.gains.past(self.limit).filter(pl.col("risk_low") > 0).height:
            return (
                f"The limit of {limit} is not shown to hold: {worst['attack']} gains {percent(worst['risk'])} "
                f"({percent(worst['risk_low'])} to {percent(worst['risk_high'])}), which may be nothing and may be too "
                "much. More people set aside would tell."
            )
        return (
            f"The file does not keep the limit of {limit}: {worst['attack']} gains {percent(worst['risk'])} "
            f"({percent(max(worst['risk_low'], 0.0))} to {percent(worst['risk_high'])})."
        )

    @property
    def price(self) -> str:
        """What it cost, in a sentence."""
        first = self.frontier["distance"][0]
        chosen = self.frontier.filter(pl.col("chosen"))["distance"][0]
        aside = engine.overview(self.used, ()).rows
        return (
            f"The price: {percent(chosen)} of the records lie in other cells of the tables of two columns, on average "
            f"({percent(first)} without any step); the model learned from {aside:,} records."
        )

    def of_files(self, files: Sequence[Microdata], done: Sequence[str] = ()) -> SynthesisWithinRisk:
        """Judge other files of the same people, of which the worst counts; those that were judged are not judged again.

        Each is judged by the same people, with attacks of its own.
        """
        found = self
        for number, file in enumerate(files):
            if engine.collect(file).equals(engine.collect(self.file), null_equal=True):
                continue
            again = self.scene.gains_of(file, self.scene.root + 2 + number)
            line = pl.DataFrame(
                {
                    "step": " ".join((*self.steps, *done)) or "as given",
                    "risk": again.worst,
                    "risk_high": again.top,
                    "worst_attack": foremost(again),
                    "distance": distance_of(self.used, file),
                    "judged": True,
                    "keeps": holds(again, self.limit),
                    "chosen": True,
                },
                schema=self.frontier.schema,
            )
            if again.top >= found.gains.top or found is self:
                before = self.frontier.with_columns(chosen=pl.lit(False))
                found = replace(
                    self,
                    file=file,
                    gains=again,
                    holds=holds(again, self.limit),
                    frontier=pl.concat([before, line]),
                )
        return found

    def to_html(self, path: str | Path) -> Path:
        """Write the page: the limit, what every attacker gained, every try and its price."""
        from discreet.report.short_reports import write_risk_limit_report

        return write_risk_limit_report(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but records, ready for JSON."""
        return {
            "limit": self.limit,
            "holds": self.holds,
            "steps": list(self.steps),
            "verdict": self.verdict,
            "price": self.price,
            "notes": list(self.gains.notes),
            "attacks": self.gains.table.to_dicts(),
            "frontier": self.frontier.to_dicts(),
        }


@checked
def synthesize_within_risk(
    data: Microdata,
    risk_limit: float | None = None,
    *,
    synthesizer: Sequential | None = None,
    control: Microdata | None = None,
    secrets: Sequence[str] | None = None,
    set_aside: float = 0.3,
    attacks: int = 8_000,
    n: int | None = None,
    progress: bool = False,
    seed: Seed = None,
) -> SynthesisWithinRisk:
    """Synthesize a file from which attackers gain no more than a limit, and say what that cost.

    Parameters
    ----------
    data
        The file.
    risk_limit
        The most that an attacker may gain beyond the people who were set aside; that of the synthesizer unless given,
        or else 0.05.
    synthesizer
        How it is synthesized to begin with; `Sequential` unless given.
    control
        People of the same population who are not in the file. Without them some of the file are set aside, and the
        model learns from the others, since only such a model can be attacked.
    secrets
        The columns that must not be guessed; the sensitive ones unless named, or else all.
    set_aside
        The share of the people who are set aside where there is no control.
    attacks
        How many attacks of each kind judge a draft, as far as there are people; a quarter of them look for steps. A low
        limit takes many to be shown.
    n
        Records of the synthetic file; as many as the data have unless given.
    progress
        Show a progress bar on a terminal.
    seed
        The same seed gives the same file.

    Returns
    -------
    SynthesisWithinRisk
        The file, whether the limit holds, the answers of the attackers and the frontier of risk and cost.

    When not to trust it
    --------------------
    Other attacks than these exist, and each of the intervals holds in 95 % of the cases by itself. Where several drafts
    had to be judged, the last had the better luck of several; ``frontier`` counts them.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> people = pl.DataFrame({"age": rng.integers(18, 90, 1200), "sex": rng.choice(["f", "m"], 1200)})
    >>> found = synthesize_within_risk(Microdata(people), 0.5, secrets=["sex"], attacks=100, seed=1)
    >>> found.limit, found.frontier.columns[:3]
    (0.5, ['step', 'risk', 'risk_high'])
    """
    require_microdata(data)
    chosen = Sequential() if synthesizer is None else synthesizer
    limit = risk_limit if risk_limit is not None else chosen.risk_limit
    limit = DEFAULT_LIMIT if limit is None else limit
    if not 0 < limit < 1 or not 0 < set_aside < 1:
        raise ParameterError("risk_limit and set_aside must be shares between 0 and 1.")
    if attacks < FEWEST:
        raise ParameterError(f"attacks must be at least {FEWEST}: fewer show nothing.")
    root = seed_of(seed)
    used, first, second = _parted(data, control, set_aside, root)
    named = tuple(names_checked(data, secrets, "secrets")) if secrets else ()
    rows = engine.overview(data, ()).rows if n is None and not _keeps(chosen) else n
    scene = Scene(used, first, second, named, attacks, rows, root)
    tries, best = closed(scene, replace(chosen, risk_limit=None), limit, progress=progress)
    return SynthesisWithinRisk(
        file=best.file,
        holds=holds(best.gains, limit),
        gains=best.gains,
        frontier=frontier_of(tries, best, limit),
        steps=best.closing.said,
        fitted=best.fitted,
        synthesizer=best.synthesizer,
        used=used,
        set_aside=second,
        limit=limit,
        rows=rows,
        drawn_by=root + 1,
        scene=scene,
    )


def usual_limit(data: Microdata) -> float | None:
    """Give the limit that is kept where nobody named one.

    None for files of fewer than 2,000 records: those who could be set aside are too few to show anything.
    """
    return DEFAULT_LIMIT if engine.overview(data, ()).rows >= ENOUGH_RECORDS else None


def _keeps(chosen: Sequential) -> bool:
    """Whether columns are kept as they are, so that a file has the records of the people it was made from."""
    methods = chosen.method.values() if isinstance(chosen.method, Mapping) else (chosen.method,)
    return any(method in ("keep", "") for method in methods if isinstance(method, str))


def _parted(
    data: Microdata, control: Microdata | None, set_aside: float, root: int
) -> tuple[Microdata, Microdata, Microdata]:
    """Divide the people: those the model learns from, those by whom steps are chosen, those by whom it is judged."""
    rng = generator(root, "set aside")
    whole = data if control is None else control
    table = engine.collect(whole, whole.columns)
    order = rng.permutation(table.height)
    aside = table.height if control is not None else int(table.height * set_aside)
    left = engine.overview(data, ()).rows - (0 if control is not None else aside)
    looking = aside // 3
    if min(looking, left) < FEWEST:
        raise ParameterError(
            f"Of {engine.overview(data, ()).rows:,} records {left:,} would be used, and {aside:,} people set aside in "
            f"two groups, {looking:,} in one: each part needs {FEWEST} at least for the attacks to say anything."
        )
    parts = [
        whole.with_frame(engine.in_kind(whole, table[np.sort(rows)]))
        for rows in (order[aside:], order[:looking], order[looking:aside])
    ]
    return (data if control is not None else parts[0], parts[1], parts[2])
