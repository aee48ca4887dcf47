"""How far must a synthesis keep from the data so that attackers gain no more than a limit, and what does that cost?

Part of the file is set aside. The generator learns from the rest, the attacks of `discreet.attack` are run on what it
draws, and what lets them through is closed where it is cheapest: first numbers are blurred, then the secrets that are
guessed are drawn from larger groups, then everything is. Every try is kept, so that the frontier of risk and cost can
be seen, and the file that is handed back is the one that was attacked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.releases.inference import inference
from discreet.attack.releases.singling_out import singling_out
from discreet.errors import ParameterError
from discreet.microdata import Microdata, require_microdata
from discreet.pairs.columns import names_checked
from discreet.parameters import checked
from discreet.randomness import Seed, generator
from discreet.results import Measure, percent
from discreet.synth import Fitted, Sequential
from discreet.synth.methods.tree_donors import Cart
from discreet.synth.synthesizer import seed_of
from discreet.utility.tables import tabular
from discreet.workflow.synthesis_for_policy import with_leaves

_SECRET_LEAVES = (60, 200)
_ALL_LEAVES = (20, 60, 200)
_FEWEST = 100


@dataclass(frozen=True, eq=False)
class SynthesisWithinRisk:
    """A synthetic file, what attackers gained from it, and what every try cost.

    Attributes
    ----------
    file
        The synthetic file: the first that keeps the limit, or the one with the least risk where none does.
    holds
        Whether no attack gains more than the limit from it.
    surely
        Whether that is so for the upper ends of the intervals as well.
    risks
        The answers of the attacks, by name.
    frontier
        One line a try: what was done, the risks, their upper ends, and the price (``distance``: how many records lie in
        other cells of the tables of two columns, on average).
    steps
        What was done to get there, in plain sentences.
    fitted, synthesizer
        The model it was drawn from, and its parameters.
    set_aside
        The people who were not used.
    """

    file: Microdata
    holds: bool
    surely: bool
    risks: Mapping[str, Measure]
    frontier: pl.DataFrame
    steps: tuple[str, ...]
    fitted: Fitted
    synthesizer: Sequential
    set_aside: Microdata
    limit: float

    @property
    def lines(self) -> tuple[str, ...]:
        """All there is to say, for people: what was done, what attackers gain, and the price."""
        worst = max(_gain(found) for found in self.risks.values())
        top = max(_upper(found) for found in self.risks.values())
        kept = "keeps" if self.holds else "does not keep"
        sure = (
            ""
            if self.surely or not self.holds
            else f"; a risk of up to {percent(max(top, 0.0))} cannot be ruled out"
        )
        first, last = self.frontier["distance"][0], self._price
        return (
            *self.steps,
            f"The file {kept} the limit of {percent(self.limit)}: the attackers that were tried gain "
            f"{percent(max(worst, 0.0))} at most{sure}.",
            f"The price: {percent(last)} of the records lie in other cells of the tables of two columns, on average; "
            f"{percent(first)} without any step.",
        )

    @property
    def _price(self) -> float:
        chosen = self.frontier.filter(pl.col("chosen"))
        return float(chosen["distance"][0])


@checked
def synthesize_within_risk(
    data: Microdata,
    risk_limit: float = 0.1,
    *,
    synthesizer: Sequential | None = None,
    secrets: Sequence[str] | None = None,
    set_aside: float = 0.3,
    attacks: int = 2_000,
    seed: Seed = None,
) -> SynthesisWithinRisk:
    """Synthesize a file from which attackers gain no more than a limit, and say what that cost.

    Parameters
    ----------
    data
        The file.
    risk_limit
        The most that singling out and inference may gain beyond the people who were set aside.
    synthesizer
        How it is synthesized to begin with; `Sequential` unless given.
    secrets
        The columns that must not be guessed; the sensitive ones unless named, or else all.
    set_aside
        The share of the people who are not used, for the attacks to be held against. The synthetic file is drawn from a
        model of the others, since only that was attacked.
    attacks
        How many attacks of each kind are run on every try.
    seed
        The same seed gives the same file.

    Returns
    -------
    SynthesisWithinRisk
        The file, whether the limit holds, the answers of the attackers and the frontier of risk and cost.

    When not to trust it
    --------------------
    The steps were chosen by the attacks that they are judged by, so that the risk of the chosen file is slightly
    flattered; and other attacks than these exist.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> people = pl.DataFrame({"age": rng.integers(18, 90, 600), "sex": rng.choice(["f", "m"], 600)})
    >>> found = synthesize_within_risk(Microdata(people), 0.4, secrets=["sex"], attacks=200, seed=1)
    >>> found.holds, found.frontier.columns[0]
    (True, 'step')
    """
    require_microdata(data)
    if not 0 < risk_limit < 1 or not 0 < set_aside < 1:
        raise ParameterError("risk_limit and set_aside must be shares between 0 and 1.")
    table = engine.collect(data, data.columns)
    aside = int(table.height * set_aside)
    if min(aside, table.height - aside) < _FEWEST:
        raise ParameterError(
            f"Of {table.height:,} records, {aside:,} would be set aside: both parts need {_FEWEST} at least for the "
            "attacks to say anything."
        )
    root = seed_of(seed)
    order = generator(root, "set aside").permutation(table.height)
    used, others = (
        data.with_frame(engine.in_kind(data, table[np.sort(rows)])) for rows in (order[aside:], order[:aside])
    )
    named = tuple(names_checked(data, secrets, "secrets")) if secrets else tuple(data.roles.sensitive)
    tries: list[_Try] = []
    for done, chosen in _stages(used, synthesizer or Sequential(), named, tries, risk_limit):
        tries.append(_tried(used, others, chosen, done, secrets=named, attacks=attacks, root=root))
        if tries[-1].worst <= risk_limit:
            break
    best = min(
        tries, key=lambda one: (one.worst > risk_limit, one.worst if one.worst > risk_limit else one.distance)
    )
    return SynthesisWithinRisk(
        file=best.file,
        holds=best.worst <= risk_limit,
        surely=max(_upper(found) for found in best.risks.values()) <= risk_limit,
        risks=best.risks,
        frontier=_frontier(tries, best),
        steps=best.done,
        fitted=best.fitted,
        synthesizer=best.synthesizer,
        set_aside=others,
        limit=risk_limit,
    )


@dataclass(frozen=True, eq=False)
class _Try:
    done: tuple[str, ...]
    synthesizer: Sequential
    fitted: Fitted
    file: Microdata
    risks: Mapping[str, Measure]
    distance: float

    @property
    def worst(self) -> float:
        return max(_gain(found) for found in self.risks.values())

    def guessed(self, limit: float) -> list[str]:
        """Name the secrets that are guessed beyond the limit."""
        table = engine.collect(Microdata(self.risks["inference"].detail["secrets"]), ["secret", "risk"])
        return table.filter(pl.col("risk") > limit)["secret"].unique(maintain_order=True).to_list()


def _gain(found: Measure) -> float:
    """Give the highest risk of all ways that were tried; what succeeds against everybody alike is no gain."""
    return _highest(found, "risk")


def _upper(found: Measure) -> float:
    """Give the highest of the upper ends of their intervals."""
    return _highest(found, "risk_high")


def _highest(found: Measure, figure: str) -> float:
    ways = found.detail["searches" if "searches" in found.detail else "secrets"]
    table = engine.collect(Microdata(ways), [figure])
    highest: Any = table[figure].max()
    return 0.0 if highest is None else float(highest)


def _stages(
    data: Microdata, chosen: Sequential, secrets: Sequence[str], tries: Sequence[_Try], limit: float
) -> Iterator[tuple[tuple[str, ...], Sequential]]:
    """Yield ways to synthesize, each farther from the data; what comes next depends on what got through."""
    yield (), chosen
    done: tuple[str, ...] = ()
    steps = {step.name: step for step in chosen.plan(data).steps}
    numbers = [
        name
        for name, kind in data.schema.items()
        if kind.is_numeric() and name in steps and steps[name].method.gives_observed_values
    ]
    if numbers:
        chosen = replace(chosen, smoothing=dict.fromkeys(numbers, "adaptive"))
        done = (f"Numbers were blurred (smoothing 'adaptive'): {', '.join(map(repr, numbers))}.",)
        yield done, chosen
    grown = [name for name, step in steps.items() if isinstance(step.method, Cart) and name in data.schema]
    widened: dict[str, int] = {}
    for leaf in _SECRET_LEAVES:
        guessed = [name for name in tries[-1].guessed(limit) if name in grown]
        if guessed:
            chosen = with_leaves(chosen, guessed, leaf)
            widened |= dict.fromkeys(guessed, leaf)
            yield (*done, *_in_words(widened)), chosen
    for leaf in _ALL_LEAVES:
        narrower = [name for name in grown if widened.get(name, 0) < leaf]
        if narrower:
            chosen = with_leaves(chosen, narrower, leaf)
            widened |= dict.fromkeys(narrower, leaf)
            yield (*done, *_in_words(widened)), chosen


def _in_words(widened: Mapping[str, int]) -> tuple[str, ...]:
    """Say which columns are drawn from groups of how many records."""
    return tuple(
        f"Drawn from groups of at least {leaf} records (min_leaf): "
        + ", ".join(repr(name) for name, own in widened.items() if own == leaf)
        + "."
        for leaf in sorted(set(widened.values()), reverse=True)
    )


def _tried(
    used: Microdata,
    others: Microdata,
    chosen: Sequential,
    done: tuple[str, ...],
    *,
    secrets: Sequence[str],
    attacks: int,
    root: int,
) -> _Try:
    fitted = chosen.fit(used, seed=root)
    file: Any = fitted.sample(seed=root)
    risks = {
        "singling_out": singling_out(used, file, control=others, attacks=min(attacks, 1_000), seed=root),
        "inference": inference(
            used,
            file,
            secret=list(secrets) or None,
            control=others,
            attacks=attacks,
            method="nearest",
            seed=root,
        ),
    }
    price: Any = tabular(used, file).figures["mean_SPECKS"]
    return _Try(done, chosen, fitted, file, risks, float(price or 0.0))


def _frontier(tries: Sequence[_Try], best: _Try) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "step": [one.done[-1] if one.done else "as given" for one in tries],
            **{f"{name}_risk": [_gain(one.risks[name]) for one in tries] for name in best.risks},
            **{f"{name}_risk_high": [_upper(one.risks[name]) for one in tries] for name in best.risks},
            "distance": [one.distance for one in tries],
            "chosen": [one is best for one in tries],
        }
    )
