"""Which draft of a synthesis keeps attackers out? Drafts are attacked and closed, and judged by other people then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import polars as pl

from discreet.core.progress import track
from discreet.microdata import Microdata
from discreet.synth import Fitted, Sequential
from discreet.utility.tabular import tabular
from discreet.workflow.attack_battery import Gains, attacked
from discreet.workflow.closing_steps import Closing

FEWEST = 100
_TRIES = 12
_LOOKS = 8
_LOOKING = 10_000  # where the seeds of looks begin, far from those of judgments


@dataclass(frozen=True, eq=False)
class Scene:
    """Who is learned from, who is attacked beside them, and with which random numbers."""

    used: Microdata
    first: Microdata
    second: Microdata
    secrets: tuple[str, ...]
    attacks: int
    rows: int | None
    root: int

    def draft(self, closing: Closing, chosen: Sequential, look: int) -> Try:
        """Fit, draw, and let a few attackers look for what is open.

        Every look asks other people of the file: some who happen to be easier to guess than those beside them would
        otherwise send every draft to the next step.
        """
        synthesizer = closing.applied(chosen)
        fitted = synthesizer.fit(self.used, seed=self.root)
        file: Any = fitted.sample(self.rows, seed=self.root)
        gains = attacked(
            self.used,
            file,
            self.first,
            secrets=self.secrets,
            attacks=max(self.attacks // 4, FEWEST),
            seed=self.root + _LOOKING + look,
        )
        return Try(closing, synthesizer, fitted, file, gains, distance_of(self.used, file))

    def judged(self, draft: Try) -> Try:
        """Draw anew and let all attackers try it, beside people they have not been held against before."""
        fresh = self.root + 1
        file: Any = draft.fitted.sample(self.rows, seed=fresh)
        gains = self.gains_of(file, fresh)
        return replace(draft, file=file, gains=gains, distance=distance_of(self.used, file), judged=True)

    def gains_of(self, file: Microdata, seed: int) -> Gains:
        """Let all attackers try a file, beside the people by whom no step was chosen."""
        return attacked(
            self.used,
            file,
            self.second,
            secrets=self.secrets,
            attacks=self.attacks,
            seed=seed,
            all_kinds=True,
        )


@dataclass(frozen=True, eq=False)
class Try:
    """A draft: how far it was closed, what was fitted and drawn, what attackers gained, and what it costs."""

    closing: Closing
    synthesizer: Sequential
    fitted: Fitted
    file: Microdata
    gains: Gains
    distance: float
    judged: bool = False


def distance_of(used: Microdata, file: Microdata) -> float:
    """Say how many records lie in other cells of the tables of two columns, on average."""
    price: Any = tabular(used, file).figures["mean_SPECKS"]
    return float(price or 0.0)


def closed(scene: Scene, chosen: Sequential, limit: float, *, progress: bool) -> tuple[list[Try], Try]:
    """Take step after step until the limit holds, or no step or look is left."""
    closing: Closing | None = Closing.none_yet(scene.used, chosen)
    tries: list[Try] = []
    for look in track(range(_TRIES), description="Closing to attackers", progress=progress):
        if closing is None:
            break
        draft = scene.draft(closing, chosen, look)
        tries.append(draft)
        # A gain that may as well be none, among few attacks, is left to the judgment, which has more of them.
        through = worth_a_step(draft.gains.past(limit).filter(pl.col("risk_low") > 0), draft)
        if not through.height:
            verdict = scene.judged(draft)
            tries[-1] = verdict
            through = worth_a_step(_open(verdict.gains, limit), verdict)
            if not through.height or sum(one.judged for one in tries) >= _LOOKS:
                break
        closing = closing.further(through)
    judged = [one for one in tries if one.judged]
    if not judged:
        least = min(range(len(tries)), key=lambda at: tries[at].gains.worst)
        tries[least] = scene.judged(tries[least])
        judged = [tries[least]]
    return tries, chosen_of(judged, limit)


def chosen_of(judged: Sequence[Try], limit: float) -> Try:
    """Choose what is shown to keep the limit, or else the cheapest that was found to, or else the least risk.

    Where the attacked people are too few to show a limit, ever dearer drafts only try for luck.
    """

    def rank(draft: Try) -> tuple[bool, bool, bool, float]:
        found = draft.gains.worst <= limit
        left = _open(draft.gains, limit).height > 0
        return not holds(draft.gains, limit), not found, left, draft.distance if found else draft.gains.top

    return min(judged, key=rank)


def _open(gains: Gains, limit: float) -> pl.DataFrame:
    """Give the ways that a step could still close.

    Where so few people were attacked that even no gain at all would hardly be shown, another step would show nothing
    either, and only a gain counts that was found for certain: one that may as well be none would send the synthesis
    from step to step by luck.
    """
    unsure = pl.col("way").is_in(gains.unsure(limit)["way"].implode())
    found = (pl.col("risk") > limit) & (pl.col("risk_low") > 0)
    return gains.past(limit, "risk_high").filter(~unsure | found)


def worth_a_step(through: pl.DataFrame, draft: Try) -> pl.DataFrame:
    """Leave out guessed columns whose own leaves are as wide as they get, unless they are guessed beyond any luck.

    Such a column costs all others their leaves, and one of several ways is above zero by luck in more than one of 20
    cases: here its interval must be so with all ways together.
    """
    ways = max(draft.gains.table.height, 1)
    beyond = NormalDist().inv_cdf(1 - 0.025 / ways) / NormalDist().inv_cdf(0.975)
    surely = pl.col("risk") - (pl.col("risk") - pl.col("risk_low")) * beyond > 0
    return through.filter(~pl.col("way").is_in(list(draft.closing.widest)) | surely)


def holds(gains: Gains, limit: float) -> bool:
    """Whether the upper ends of all intervals keep the limit."""
    return gains.table.height > 0 and gains.top <= limit


def frontier_of(tries: Sequence[Try], best: Try, limit: float) -> pl.DataFrame:
    """Put the tries side by side."""
    return pl.DataFrame(
        {
            "step": [" ".join(one.closing.said) or "as given" for one in tries],
            "risk": [one.gains.worst for one in tries],
            "risk_high": [one.gains.top for one in tries],
            "worst_attack": [foremost(one.gains) for one in tries],
            "distance": [one.distance for one in tries],
            "judged": [one.judged for one in tries],
            "keeps": [one.judged and holds(one.gains, limit) for one in tries],
            "chosen": [one is best for one in tries],
        },
        schema_overrides={"worst_attack": pl.String},
    )


def foremost(gains: Gains) -> str | None:
    """Name the way of attacking with the highest upper end."""
    table = gains.table.sort("risk_high", descending=True)
    return table["attack"][0] if table.height else None
