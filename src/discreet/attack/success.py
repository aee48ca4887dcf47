"""Whom does an attack try, how much of its success is owed to the release, and how sure is that?

An attack is run three times: against people who are in the file, against people like them who are not (the holdout),
and blindly. What it achieves against the holdout it would achieve without anybody's record; only what goes beyond is
risk: ``(attack - holdout) / (1 - holdout)``, the share of the people still unharmed by general knowledge whom the
release harms.

Rates have Wilson intervals. The risk is one minus a ratio of two failure rates, and its interval recovers the
uncertainty of both from their own intervals (Donner and Zou's MOVER), so that a small holdout widens it as a small
attack does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import polars as pl

from discreet.core.arrays import Flags
from discreet.core.cards import Figure
from discreet.core.errors import ParameterError
from discreet.core.findings import FIRST, Beside, Caveat, Finding, OfSynthesis, OfWorst, code_of
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

if TYPE_CHECKING:
    from discreet.attack.victims import Victims

__all__ = [
    "FEW",
    "RISK_FIGURES",
    "WOULD_GIVE",
    "Excess",
    "Tally",
    "Trial",
    "excess",
    "harmless",
    "measured",
    "paired",
    "put_together",
    "trials_table",
    "warnings_of",
    "worst_at",
    "worst_trial",
]

Way = TypeVar("Way", bound=str)

FEW = 100
"""Below this many tries a rate is hardly more than an anecdote; it is printed with its interval and a warning."""

NO_CONTROL = "no control"
FEW_TRIES = "few tries"
WEAK_ATTACK = "weak attack"
SURE_CONTROL = "sure control"

_HARDLY_ANYBODY = 0.02
_KNOWN_OF_ALL = 0.95
_RARE = 0.9
_OTHER_PEOPLE = 0.05

_Z = 1.959963984540054  # 95 % of a normal law lies within this many standard deviations

REFERENCE = (
    "Giomi, M., Boenisch, F., Wehmeyer, C. and Tasnádi, B. (2023). A unified framework for quantifying privacy risk in "
    "synthetic data. Proceedings on Privacy Enhancing Technologies 2023(2), 312–328. doi:10.56553/popets-2023-0055"
)
OPINION = (
    "Article 29 Data Protection Working Party (2014). Opinion 05/2014 on anonymisation techniques. WP216."
)
INTERVALS = (
    "Donner, A. and Zou, G. Y. (2012). Closed-form confidence intervals for functions of the normal mean and standard "
    "deviation. Statistical Methods in Medical Research 21(4), 347–359. doi:10.1177/0962280210383082"
)

RISK_FIGURES: Mapping[str, Figure] = {
    "value": Figure(
        "Risk beyond the holdout",
        unit="share",
        better="lower",
        summary=True,
        words={"rule": "risk"},
        interval=("risk_at_least", "risk_at_most"),
        middle="open_risk",
        tries="open_attacks",
    ),
    "attack_rate": Figure("Successes against people in the file", unit="share", better="lower"),
    "control_rate": Figure("Successes against people not in the file", unit="share"),
    "baseline_rate": Figure("Successes of a blind guess", unit="share"),
    "risk": Figure(
        "Risk beyond the holdout",
        unit="share",
        better="lower",
        words={"rule": "risk beyond the holdout"},
        interval=("risk_at_least", "risk_at_most"),
        middle="open_risk",
        tries="open_attacks",
    ),
    "risk_low": Figure("Risk, lower end of the 95 % interval", unit="share", better="lower"),
    "risk_high": Figure(
        "Risk, upper end of the 95 % interval",
        unit="share",
        better="lower",
        summary=True,
        words={"rule": "risk, upper end of its interval"},
    ),
    "risk_at_least": Figure(
        "Risk that is sure: of the surest way of attacking, jointly over all", unit="share", better="lower"
    ),
    "risk_at_most": Figure(
        "Risk that cannot be ruled out: of any way of attacking", unit="share", better="lower"
    ),
    "open_risk": Figure("Risk of the way of attacking of which least is known", unit="share"),
    "open_attacks": Figure("Attacks of this way"),
    "attacks": Figure("Attacks against people in the file"),
    "control_attacks": Figure("Attacks against people not in the file"),
}
"""What every attack tells, for its card."""


@dataclass(frozen=True)
class Tally:
    """How often an attack was tried, and how often it succeeded.

    ``hits`` need not be whole (a blind guess succeeds by an expected number), nor need ``tries``: an estimate may be
    worth fewer tries than were made.

    Examples
    --------
    >>> Tally.of(np.array([True, False, False, False])).rate
    0.25
    >>> [round(end, 3) for end in Tally(10, 100).interval]
    [0.055, 0.174]
    """

    hits: float
    tries: float

    def __post_init__(self) -> None:
        if not (self.tries > 0 and 0 <= self.hits <= self.tries):
            raise ParameterError("A tally needs at least one try, and no more hits than tries.")

    @classmethod
    def of(cls, hits: Flags) -> Tally:
        """Count the successes of attacks that each hit or missed."""
        return cls(float(np.count_nonzero(hits)), float(len(hits)))

    def worth(self, times: float) -> Tally:
        """Count what is known as surely as if so many times the tries had been made."""
        return Tally(self.hits * times, self.tries * times)

    @property
    def rate(self) -> float:
        """The share of tries that succeeded."""
        return self.hits / self.tries

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the rate (Wilson's), which is never empty, not even at no hits or only hits."""
        return self.interval_among(1)

    def interval_among(self, many: int) -> tuple[float, float]:
        """Give an interval so wide that those of ``many`` rates hold all together in 95 % (Bonferroni's way)."""
        z = _Z if many == 1 else float(NormalDist().inv_cdf(1 - 0.025 / many))
        square = z * z
        middle = (self.hits + square / 2) / (self.tries + square)
        half = z * math.sqrt(self.hits * (1 - self.rate) + square / 4) / (self.tries + square)
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        high = 1.0 if self.hits == self.tries else min(1.0, middle + half)
        return low, high


class Excess(NamedTuple):
    """The risk beyond the holdout with its 95 % interval; all None where the holdout leaves nothing to go beyond."""

    risk: float | None
    low: float | None
    high: float | None


class Trial(NamedTuple):
    """One way of attacking: what it achieved against people in the file, against others, and blindly."""

    attack: Tally
    holdout: Tally | None
    baseline: Tally | float
    alike: float = 1.0
    """How many times surer the comparison is because both groups are alike in what a blind guess finds."""
    shifted: float = 0.0
    """By how much the blind guess makes strangers more successful than people in the file."""
    reach: float = 1.0
    """The share of people whom all tries of this way could harm, where they are all that can be made."""

    @classmethod
    def of_guesses(
        cls, attack: Flags, holdout: Flags | None, blind: Flags, others_blind: Flags | None
    ) -> Trial:
        """Count guesses, and hold them against the blind guess about the same people.

        Where a secret is rare, whoever guesses "no" is right about nearly everybody, and the two groups differ by how
        many rare people each happens to have. What the blind guess explains of success is that chance, and is taken out
        of the comparison (analysis of covariance, its slope pooled within the groups).
        """
        rates = Tally.of(attack), None if holdout is None else Tally.of(holdout), Tally.of(blind)
        if holdout is None or others_blind is None:
            return cls(*rates)
        hits, luck = (
            np.concatenate([own - own.mean() for own in (pair[0].astype(float), pair[1].astype(float))])
            for pair in ((attack, holdout), (blind, others_blind))
        )
        spread = float(luck @ luck)
        slope = float(hits @ luck) / spread if spread > 0 else 0.0
        left = hits - slope * luck
        # As if a few more had been guessed otherwise than blindly: no difference seen is no proof of none.
        alike = max(1.0, float(hits @ hits) / (float(left @ left) + _Z**2))
        return cls(*rates, alike, slope * float(others_blind.mean() - blind.mean()))

    @property
    def blind(self) -> float:
        """The rate of the blind guess."""
        return self.baseline.rate if isinstance(self.baseline, Tally) else float(self.baseline)

    def figures(self, many: int = 1) -> dict[str, float | None]:
        """What every attack tells, by the names of its figures."""
        found = self.beyond(many)
        return {
            "attack_rate": self.attack.rate,
            "control_rate": None if self.holdout is None else self.holdout.rate,
            "baseline_rate": self.blind,
            "risk": found.risk,
            "risk_low": found.low,
            "risk_high": found.high,
            "attacks": round(self.attack.tries),
            "control_attacks": 0 if self.holdout is None else round(self.holdout.tries),
        }

    def beyond(self, many: int = 1) -> Excess:
        """Give the risk beyond the holdout, or beyond the blind guess where there is none."""
        if self.holdout is None:
            return excess(self.attack, self.blind, many)
        if self.holdout.rate >= 1:
            return Excess(None, None, None)
        tries = self.holdout.tries
        level = Tally(min(max(self.holdout.hits - self.shifted * tries, 0.0), tries), tries)
        if level.rate >= 1:
            level = self.holdout
        return excess(self.attack.worth(self.alike), level.worth(self.alike), many)

    @property
    def is_no_secret(self) -> bool:
        """Whether nearly every stranger falls to it, and not because one answer fits nearly everybody."""
        return (
            self.holdout is not None
            and self.holdout.interval[0] >= _KNOWN_OF_ALL
            and (self.holdout.rate >= 1 or self.blind < _RARE)
        )

    def at_most(self, many: int = 1) -> float:
        """Give the risk that cannot be ruled out, by this way alone.

        It is all there is where the holdout is plainly of other people, also when this is one of many ways.
        """
        high, surely = self.beyond().high, self.beyond(many).high
        return 1.0 if high is None or surely is None or surely < -_OTHER_PEOPLE else max(high, 0.0)


def paired(hits: Flags, others: Flags) -> float:
    """Say how many times surer two rates can be compared that were found with the same tries.

    Tries that succeed or fail together tell nothing about the difference: only the others count.

    Examples
    --------
    >>> paired(np.array([True, False] * 50), np.array([True, False] * 50)) > 5
    True
    >>> paired(np.array([True, False] * 50), np.array([True, True, False, False] * 25))
    1.0
    """
    apart = float(np.mean(hits) + np.mean(others) - 2 * np.mean(hits & others))
    alone = float(np.mean(hits) * (1 - np.mean(hits)) + np.mean(others) * (1 - np.mean(others)))
    spread = apart - float(np.mean(hits) - np.mean(others)) ** 2 + _Z**2 / len(hits)
    return max(1.0, alone / spread)


def least_known(ways: Mapping[str, Trial], settled: Collection[str] = ()) -> Trial | None:
    """Give the way of which most cannot be ruled out; ``settled`` are about what is no secret.

    A way that can be tried on hardly anybody counts together with all others: how often it succeeds would stay open in
    a file of any size. Where it is sure to succeed, it is still sure.
    """
    left = [way for name, way in ways.items() if not way.is_no_secret and name not in settled]
    wide = [way for way in left if way.reach >= _HARDLY_ANYBODY]
    if wide and len(wide) < len(left):
        left = [*wide, _added(left)]
    return max(left, key=lambda way: way.at_most(len(ways)), default=None)


def is_open(ways: Mapping[str, Trial], jointly: int) -> bool:
    """Whether nothing is sure and little can be ruled out, so that more attacks would tell."""
    many, open_way = len(ways) * jointly, least_known(ways)
    sure = max((one.beyond(many).low or 0.0 for one in ways.values()), default=0.0)
    return sure <= SURELY and open_way is not None and open_way.at_most(len(ways)) > OPEN


OPEN, SURELY = 0.08, 0.1
"""A risk of which more than the one cannot be ruled out is open, unless more than the other is sure already."""


def worst_trial(trials: Mapping[str, Trial]) -> str:
    """Name the way of attacking whose risk is surest: the highest lower end; one without a risk only where all are."""

    def surely(name: str) -> float:
        found = trials[name].beyond(len(trials)).low
        return -math.inf if found is None else found

    return max(trials, key=surely)


def trials_table(trials: Mapping[str, Trial], *, heading: str) -> pl.DataFrame:
    """Put the ways of attacking side by side, each with its own 95 % interval."""
    rows = [{heading: name, **trial.figures()} for name, trial in trials.items()]
    kinds = dict.fromkeys(("control_rate", "risk", "risk_low", "risk_high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None).drop("control_attacks")


def excess(attack: Tally, holdout: Tally | float, many: int = 1) -> Excess:
    """Which part of the attack's success goes beyond that of the holdout?

    Parameters
    ----------
    attack
        Tries against people in the file.
    holdout
        Tries against people who are not in it, or a rate that is known for certain.
    many
        How many intervals are to hold all together, where this one is the worst of several.

    Examples
    --------
    >>> [round(number, 3) for number in excess(Tally(300, 1000), Tally(125, 1000))]
    [0.2, 0.162, 0.237]
    >>> [round(number, 3) for number in excess(Tally(100, 1000), Tally(100, 1000))]
    [0.0, -0.03, 0.029]
    >>> excess(Tally(10, 10), Tally(10, 10))
    Excess(risk=None, low=None, high=None)
    """
    rate, (low, high) = (
        (holdout.rate, holdout.interval_among(many))
        if isinstance(holdout, Tally)
        else (holdout, (holdout, holdout))
    )
    if rate >= 1:
        return Excess(None, None, None)
    missed, left = 1 - attack.rate, 1 - rate
    fewest, most_hits = attack.interval_among(many)
    least = _smallest_ratio((missed, 1 - most_hits), (left, 1 - low))
    most = _largest_ratio((missed, 1 - fewest), (left, 1 - high))
    return Excess(1 - missed / left, 1 - most, 1 - least)


def _smallest_ratio(above: tuple[float, float], below: tuple[float, float]) -> float:
    """Give the lower end of ``above / below`` (Donner and Zou 2012), each a rate and the end of it that counts.

    The published form divides by a difference that can be zero; multiplied out, it does not.
    """
    product, numerator, divisor = _parts(above, below)
    whole = product + math.sqrt(max(product * product - numerator * divisor, 0.0))
    return numerator / whole if whole > 0 else 0.0


def _largest_ratio(above: tuple[float, float], below: tuple[float, float]) -> float:
    """Give the upper end of ``above / below`` in the same way."""
    product, numerator, divisor = _parts(above, below)
    return (product + math.sqrt(max(product * product - numerator * divisor, 0.0))) / divisor


def _parts(above: tuple[float, float], below: tuple[float, float]) -> tuple[float, float, float]:
    (rate, end), (other, other_end) = above, below
    return rate * other, end * (2 * rate - end), other_end * (2 * other - other_end)


def measured(
    name: str,
    trials: Mapping[str, Trial] | Trial,
    *,
    doing: str | Callable[[str], str],
    jointly: int = 1,
    settled: Collection[str] = (),
    figures: Mapping[str, Any] | None = None,
    caveats: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Measure:
    """Turn the ways in which an attack was tried into the answer that every attack gives: that of the surest.

    ``risk_at_least`` is sure with 5 % error over all ways (and over ``jointly`` attacks) together. ``risk_at_most`` is
    the highest of the upper ends of all ways, each its own: whoever says that no way achieves more errs only if every
    single one of these is wrong. See `least_known` for ways that can be tried on hardly anybody.

    Parameters
    ----------
    name
        The name of the attack.
    trials
        What each way of attacking achieved against people in the file, against people who are not in it, and blindly (a
        rate where it is known). Without a holdout the risk is what goes beyond the blind guess, which is too much where
        the release teaches something about people in general, and a caveat says so.
    doing
        What the attacker does to a person, to follow "An attacker …": ``"singles a person out"``; or what makes it from
        the name of the way.
    jointly
        Over how many attacks what is sure holds together.
    settled
        Ways of finding out what another way finds out about nearly every stranger.
    figures
        Further figures, after those of every attack.
    caveats, parameters, detail
        As in `discreet.core.results.Measure`; warnings about few tries and weak attacks are added here.

    Examples
    --------
    >>> trial = Trial(Tally(300, 1000), Tally(125, 1000), 0.1)
    >>> found = measured("inference", trial, doing="guesses a person's income")
    >>> found.figures["attack_rate"], found.figures["control_rate"], round(found.value, 3)
    (0.3, 0.125, 0.2)
    >>> found.meaning.partition(". ")[2]
    'The risk that the release adds is 20 % (16.2 % to 23.7 %).'
    """
    ways = {"": trials} if isinstance(trials, Trial) else trials
    worst = worst_trial(ways)
    trial, many = ways[worst], len(ways)
    found = trial.beyond(many)
    known = [way for way, one in ways.items() if one.is_no_secret or way in settled]
    sure = max(
        (low for one in ways.values() if (low := one.beyond(many * jointly).low) is not None), default=0.0
    )
    open_way = least_known(ways, settled)
    ends = {
        "risk_at_least": max(sure, 0.0),
        "risk_at_most": 0.0 if open_way is None else open_way.at_most(many),
        "open_risk": None if open_way is None else open_way.beyond().risk,
        "open_attacks": 0 if open_way is None else round(open_way.attack.tries),
    }
    return Tried(
        name=name,
        value=found.risk,
        figures={**trial.figures(many), **ends, **(figures or {})},
        meaning=_in_words(
            doing if isinstance(doing, str) else doing(worst),
            trial.attack,
            trial.holdout,
            trial.blind,
            found,
        ),
        caveats=[*caveats, *warnings_of(*trial[:3]), *_known_of_all(known if many > 1 else [])],
        parameters={**(parameters or {}), **({"jointly": jointly} if jointly > 1 else {})},
        detail=detail if detail is not None else Detail(),
        trials=ways,
        settled=tuple(settled),
        told_again=partial(measured, name, doing=doing, jointly=jointly, parameters=parameters),
    )


def harmless(name: str, why: str, victims: Victims, parameters: Mapping[str, Any]) -> Measure:
    """Answer for an attack that has nothing to work with, because of what the release does not say: no risk."""
    nothing = dict.fromkeys(("risk", "risk_low", "risk_high", "risk_at_least", "risk_at_most"), 0.0)
    told = {figure: nothing.get(figure) for figure in RISK_FIGURES if figure != "value"}
    return Measure(
        name=name,
        value=0.0,
        figures={**told, "attacks": 0, "control_attacks": 0},
        meaning=why,
        caveats=victims.caveats,
        parameters=parameters,
    )


@dataclass(frozen=True, repr=False)
class Tried(Measure):
    """The answer of an attack with the trials behind it, so that several can be put together."""

    trials: Mapping[str, Trial] = field(default_factory=dict)
    settled: tuple[str, ...] = ()
    told_again: Callable[..., Measure] | None = None


def put_together(answers: Sequence[Measure], *, caveats: Sequence[str] = ()) -> Measure:
    """Add up the trials of several runs of one attack, each against people of its own.

    Examples
    --------
    >>> once = measured("linkability", Trial(Tally(10, 100), Tally(5, 100), 0.0), doing="links")
    >>> put_together([once, once]).figures["attacks"]
    200
    """
    runs = [answer for answer in answers if isinstance(answer, Tried) and answer.told_again is not None]
    if not runs:
        return replace(answers[0], caveats=[*caveats, *answers[0].caveats])
    ways = dict.fromkeys(way for run in runs for way in run.trials)
    trials = {way: _added([run.trials[way] for run in runs if way in run.trials]) for way in ways}
    settled = [way for way in ways if all(way in run.settled for run in runs)]
    told_again = runs[0].told_again
    assert told_again is not None
    said = dict.fromkeys(
        caveat for run in runs for caveat in run.caveats if code_of(caveat) not in _ABOUT_RATES
    )
    return told_again(trials, settled=settled, caveats=[*caveats, *said])


def _added(trials: Sequence[Trial]) -> Trial:
    """Add trials up; what a blind guess explains is counted at the least of them."""

    def whole(tallies: Sequence[Tally]) -> Tally:
        return Tally(sum(one.hits for one in tallies), sum(one.tries for one in tallies))

    others = [one.holdout for one in trials if one.holdout is not None]
    blind = [one.baseline for one in trials if isinstance(one.baseline, Tally)]
    return Trial(
        whole([one.attack for one in trials]),
        whole(others) if len(others) == len(trials) else None,
        whole(blind) if len(blind) == len(trials) else float(np.mean([one.blind for one in trials])),
        min(one.alike for one in trials),
        float(np.average([one.shifted for one in trials], weights=[one.attack.tries for one in trials])),
    )


_ABOUT_RATES = (FEW_TRIES, NO_CONTROL, SURE_CONTROL, WEAK_ATTACK)


def _known_of_all(ways: Sequence[str]) -> list[str]:
    if not ways:
        return []
    listed = ", ".join(map(repr, ways[:5])) + (f" and {len(ways) - 5} more" if len(ways) > 5 else "")
    return [
        Caveat(
            f"What is found about nearly every stranger follows from other columns and is no secret: {listed}.",
            code=SURE_CONTROL,
        )
    ]


_WORTH_SAYING = 0.05


def _what_was_found(found: Measure, beside: Beside) -> Iterator[Finding]:
    """Say first what an attack is sure to find; without a holdout it is said last, since anybody may fall to it."""
    sure = found.figures.get("risk_at_least")
    if isinstance(sure, int | float) and sure > _WORTH_SAYING:
        controlled = found.figures.get("control_rate") is not None
        start = (
            "" if controlled else "Without people who were not used nobody knows whether it is the release: "
        )
        yield Finding("attack", FIRST * (1 + sure) if controlled else 0.5, f"{start}{found.meaning}")


def worst_at(order: int) -> OfWorst:
    """Give what every attack contributes to *What went wrong first*, for its card."""
    return OfWorst(order, _what_was_found, looks_for="attacks")


WOULD_GIVE = OfSynthesis(
    by_donors=True,
    would_give="the columns that the attack uses would have to be coarser or left out, or drawn from larger groups",
)
"""What can be done about a synthetic file that an attack succeeds against, for its card."""


def _in_words(doing: str, attack: Tally, holdout: Tally | None, blind: float, found: Excess) -> str:
    against = (
        ""
        if holdout is None
        else f", in {percent(holdout.rate)} of {round(holdout.tries):,} on people who are not in it,"
    )
    said = (
        f"An attacker {doing} in {percent(attack.rate)} of {round(attack.tries):,} attacks on people in the file"
        f"{against} and in {percent(blind)} by blind guess."
    )
    if found.risk is None or found.low is None or found.high is None:
        return f"{said} What the release adds cannot be told apart."
    if found.high < 0:
        return (
            f"{said} It succeeds more surely against people not in the file: they may be of another population, "
            "and then nothing is known of the risk."
        )
    if found.low <= 0:
        return (
            f"{said} That the release adds nothing cannot be ruled out, nor can a risk of up to "
            f"{percent(max(found.high, 0.0))}."
        )
    return (
        f"{said} The risk that the release adds is {percent(found.risk)} ({percent(found.low)} to "
        f"{percent(found.high)})."
    )


def warnings_of(attack: Tally, holdout: Tally | None, baseline: Tally | float) -> list[str]:
    """Say what keeps the rates of an attack from being believed: few tries, no holdout, one that all fall to."""
    tries = min(attack.tries, math.inf if holdout is None else holdout.tries)
    said = (
        (
            tries < FEW,
            f"The rates rest on {round(tries):,} attacks, fewer than {FEW}: read the interval, not the number.",
            FEW_TRIES,
        ),
        (
            holdout is None,
            "There is no holdout: what can be said of anybody, in the file or not, counts as risk here. People who "
            "were not used to make the release tell the two apart (holdout=…).",
            NO_CONTROL,
        ),
        (
            holdout is not None and holdout.rate >= 1,
            "The attack succeeds against everybody who is not in the file, so there is nothing left that the release "
            "could add; the risk is undefined, not zero.",
            SURE_CONTROL,
        ),
        (
            attack.interval[0] <= Trial(attack, holdout, baseline).blind,
            "The attack does no better than a blind guess: that it failed says little about what a better one would "
            "achieve.",
            WEAK_ATTACK,
        ),
    )
    return [Caveat(sentence, code=code) for holds, sentence, code in said if holds]


def chosen_ways(given: Way | Sequence[Way] | None, every: tuple[Way, ...]) -> tuple[Way, ...]:
    """List the ways of attacking that were asked for, each once; all of them unless some were."""
    if given is None:
        return every
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
