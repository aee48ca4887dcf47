"""The thresholds of an organisation, set once and held against every file.

A policy is a list of rules, each on one figure of one measure, read from TOML::

    name = "Scientific use file"
    description = "Files for accredited researchers under contract."

    [rules]
    k_anonymity = { at_least = 3, why = "nobody is alone or in a pair" }
    "reidentification.share_above_threshold" = { at_most = 0.05 }

    [parameters.reidentification]
    threshold = 0.2

    [comparison]
    "replicated_uniques.repU" = { at_most = 1, why = "few are alone in both files (in percent)" }
    "attribution.learned" = { at_most = 0.2 }
    "tabular.mean_S_pMSE" = { at_most = 10, why = "tables of the release say what those of the original say" }

A rule named ``measure`` holds for the headline value, ``measure.figure`` for another figure. ``at_least`` and
``at_most`` may stand together. ``[parameters.measure]`` says how a measure is to be computed. The rules under
``[rules]`` are about a file by itself, those under ``[comparison]`` about a release held against its original. One
function judges all of them, `discreet.judge`, and every door calls it: whoever has the original too (`compare`,
`search`, a release report, ``protect --policy``) judges both tables, `assess` only the first.

``[intruder]`` says what others may know of a person beside the keys, for the rules that ask who is found by it::

    [intruder]
    knows = ["keys", "dates", "places", "missing", "amounts"]

``[budget]`` sets the privacy budget of a data source: ``epsilon``, ``delta``, ``adjacency``, ``unit``. It judges no
file; `discreet.dp.Ledger.of_policy` and ``discreet budget open --policy`` open ledgers with it.

A file *meets* the policy when every rule was judged and holds. A rule that could not be checked (no sensitive column
was named, the figure is undefined) counts as not met. A rule that needs something that is not there (the original, a
population file) is *not judged here*: the verdict names it and what would judge it, and clears nothing until that is
done.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from discreet.core.cards import Figure, card_of
from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.files.untrusted import read_toml
from discreet.core.results import Measure, Scenario
from discreet.core.verdicts import Check, Unjudged
from discreet.core.wording import title_of, worded, words_at

_FIELDS = ("name", "description", "rules", "comparison", "parameters", "outputs", "budget", "intruder")
_MAY_KNOW = "may_know"  # the parameter of measures that ask who is found by it
_KNOWS = ("keys", "dates", "places", "missing", "amounts")
_BUDGET = {
    "adjacency": ("add-remove", "replace"),
    "unit": ("record", "person", "household", "contributor"),
}
LARGEST_DELTA = 0.1
"""The largest delta that a budget may have.

Publishing one of n records, drawn at random, as it is has an epsilon of 0 and a delta of 1/n: a tenth allows that for a
file of ten. Above it epsilon says nothing, because delta alone pays for releases that anybody would call leaks: with a
delta of 0.9 an epsilon of 2 may truthfully be counted as 0.
"""
DELTA_TOO_LARGE = (
    f"delta of a budget must be {LARGEST_DELTA:g} or less. It is the chance that nothing is promised at all, and "
    "should be well below one in the number of records, e.g. 1e-6; with a large one an open leak counts as nothing."
)


@dataclass(frozen=True)
class Rule:
    """One limit on one figure of one measure."""

    measure: str
    figure: str = "value"
    at_least: float | None = None
    at_most: float | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """The rule as it is named in TOML: its measure, and the figure unless it is the headline value."""
        return self.measure if self.figure == "value" else f"{self.measure}.{self.figure}"

    @property
    def limit(self) -> str:
        """The limit in words.

        Examples
        --------
        >>> Rule("k_anonymity", at_least=3).limit, Rule("uniqueness", at_most=0.05).limit
        ('at least 3', 'at most 5 %')
        """
        parts = []
        if self.at_least is not None:
            parts.append(f"at least {self._worded(self.at_least)}")
        if self.at_most is not None:
            parts.append(f"at most {self._worded(self.at_most)}")
        return " and ".join(parts)

    @property
    def said(self) -> Figure | None:
        """What the card of the measure says of the figure."""
        card = card_of(self.measure)
        return card.figure(self.figure) if card else None

    @property
    def is_attack(self) -> bool:
        """Whether it holds what an attack achieves; this is said first."""
        card = card_of(self.measure)
        return card is not None and card.chapter == "attackers"

    @property
    def fault(self) -> str:
        """Why no file could break the rule, or none could keep it; empty where it is a rule.

        Examples
        --------
        >>> Rule("k_anonymity", at_most=5).fault
        'more is better here, so that at_most protects nobody. Use at_least.'
        >>> Rule("uniqueness", at_most=5).fault
        'it is a share between 0 and 1, and 5 is not: write 5 percent as 0.05.'
        >>> Rule("k_anonymity", at_least=5).fault
        ''
        """
        said = self.said
        if said is None:
            return ""
        for limit, name, better, instead in (
            (self.at_most, "at_most", "higher", "at_least"),
            (self.at_least, "at_least", "lower", "at_most"),
        ):
            if limit is None:
                continue
            if not math.isfinite(limit):
                return f"{name} is infinite, so that it limits nothing. Name a number."
            if said.better == better and (self.at_least is None or self.at_most is None):
                what = "more" if better == "higher" else "less"
                return f"{what} is better here, so that {name} protects nobody. Use {instead}."
            if said.unit and not 0 <= limit <= said.most:
                kind = (
                    "a share between 0 and 1"
                    if said.unit == "share"
                    else "a number of percent between 0 and 100"
                )
                hint = (
                    f": write {limit:g} percent as {limit / 100:g}"
                    if said.unit == "share" and 1 < limit <= 100
                    else ""
                )
                return f"it is {kind}, and {limit:g} is not{hint}."
            if (name == "at_most" and limit >= said.most) or (name == "at_least" and limit <= said.least):
                return f"every file keeps {name} = {limit:g}. Name a number that some file breaks."
        return ""

    def check(self, scenario: Scenario, *, table: str = "rules") -> Check | Unjudged:
        """Hold the rule against the measures of one scenario; ``table`` is where the rule stands in its policy.

        Where the card names an interval for the figure, the rule fails when all of the interval is beyond the limit,
        holds when all of it keeps the limit, and is not decided otherwise.
        """
        what = f"{title_of(self.measure)}{self._figure_in_words()}"
        where = "" if scenario.name == MAIN else f" in {_where(scenario.name)}"
        actual, gap = self._found(scenario)
        measure = scenario.measures.get(self.measure)
        if gap or measure is None:
            passed, reason = None, f"{what} could not be checked{where}: {gap}"
        else:
            low, high = self._interval(measure, actual)
            between = "" if low == high else f" ({self._worded(low)} to {self._worded(high)})"
            reason = f"{what} is {self._worded(actual)}{between}{where} (policy: {self.limit})"
            passed = self._holds(low) and self._holds(high)
            if low != high and not passed and not self._broken(low, high):
                return self._undecided(measure, (low, float(actual), high), f"{what}{between}", table)
        left_out = 0 if measure is None else int(measure.figures.get("all_suppressed") or 0)
        return Check(
            self.measure, self.figure, scenario.name, self.limit, actual, passed, reason, table, left_out
        )

    def _interval(self, measure: Measure, actual: float) -> tuple[float, float]:
        """Give the ends between which the figure may be: anywhere, where the card names ends that are not there."""
        said = self.said
        if said is None or said.interval is None:
            return actual, actual
        ends = [measure.figures.get(name) for name in said.interval]
        low, high = (
            float(end) if isinstance(end, int | float) else usual
            for end, usual in zip(ends, (said.least, said.most), strict=True)
        )
        return min(low, actual), max(high, actual)

    def _broken(self, low: float, high: float) -> bool:
        """Whether no number between the two keeps the limit."""
        return (self.at_least is not None and high < self.at_least) or (
            self.at_most is not None and low > self.at_most
        )

    def _undecided(
        self, measure: Measure, found: tuple[float, float, float], what: str, table: str
    ) -> Unjudged:
        """Say that the interval crosses the limit, and how many people it would take to know."""
        low, actual, high = found
        limit = self.at_most if self.at_most is not None and high > self.at_most else self.at_least
        assert limit is not None
        card, said = card_of(self.measure), self.said
        of_use = card is not None and card.compare is not None and card.compare.side == "utility"
        tries, middle = (
            (measure.figures.get(name) for name in (said.tries, said.middle)) if said else (None,) * 2
        )
        center = float(middle) if isinstance(middle, int | float) else actual
        apart, end = abs(limit - center), high if center <= limit else low
        needs, done = "more people to be decided", "were compared" if of_use else "were attacked"
        if isinstance(tries, int | float) and tries and apart > 0:
            people = _rounded_up(tries * max(((end - center) / apart) ** 2, 1.0))
            needs = (
                f"about {people:,} people to be decided ({tries:,.0f} {done})"
                if people <= _MOST_PEOPLE
                else f"more people than can be had: the limit is too near ({tries:,.0f} {done})"
            )
        advice = (
            "so few people differ by as much by chance: a file of more people would tell"
            if of_use
            else "attack more people, and hold them against as many who were not used"
        )
        return Unjudged(
            self.name,
            self.limit,
            needs,
            f"{what} crosses the limit: {advice}",
            table,
            "" if of_use else "discreet compare ORIGINAL RELEASE --policy POLICY --holdout MORE_PEOPLE",
            decided=False,
            actual=actual,
            low=low,
            high=high,
        )

    def _worded(self, number: float) -> str:
        # A policy may be read before anything was measured: the card says whether its figures are shares.
        card_of(self.measure)
        return worded(self.figure, number, measure=self.measure)

    def _figure_in_words(self) -> str:
        if self.figure == "value":
            return ""
        said = words_at("rule", self.figure, measure=self.measure)
        return f" ({said or self.figure.replace('_', ' ')})"

    def _found(self, scenario: Scenario) -> tuple[Any, str]:
        measure = scenario.measures.get(self.measure)
        if measure is None:
            return None, scenario.skipped.get(self.measure, "it is not computed on one file alone")
        if self.figure != "value" and self.figure not in measure.figures:
            return None, unknown_name(self.figure, ["value", *measure.figures], what="figure").rstrip(".")
        actual = measure.value if self.figure == "value" else measure.figures[self.figure]
        if actual is None and self.said and self.said.interval:
            actual = measure.figures.get(self.said.interval[1])
        return actual, "" if isinstance(actual, int | float) else "the figure is undefined for this file"

    def _holds(self, actual: float) -> bool:
        return (self.at_least is None or actual >= self.at_least or _equal(actual, self.at_least)) and (
            self.at_most is None or actual <= self.at_most or _equal(actual, self.at_most)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as it stands in TOML."""
        limits = {"at_least": self.at_least, "at_most": self.at_most, "why": self.why or None}
        return {name: value for name, value in limits.items() if value is not None}


@dataclass(frozen=True)
class Budget:
    """The privacy budget that an organisation allows a data source; `discreet.dp.Ledger` says what each entry means."""

    epsilon: float
    delta: float = 0.0
    adjacency: str = "add-remove"
    unit: str = "record"

    @classmethod
    def from_dict(cls, stated: Any, origin: str) -> Budget:
        """Read the table ``[budget]`` of a policy."""
        known = ("epsilon", "delta", "adjacency", "unit")
        if not isinstance(stated, Mapping) or "epsilon" not in stated:
            raise ParameterError(f"In {origin}: the budget is a table, [budget], with an epsilon.")
        for name, value in stated.items():
            if name not in known:
                raise ParameterError(
                    f"In {origin}: {unknown_name(str(name), known, what='entry of the budget')}"
                )
            if name in _BUDGET:
                if value not in _BUDGET[name]:
                    raise ParameterError(
                        f"In {origin}: {name} of the budget must be one of {', '.join(map(repr, _BUDGET[name]))}."
                    )
            elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ParameterError(f"In {origin}: {name} of the budget must be a number.")
        made = cls(**stated)
        if not made.epsilon > 0 or not 0 <= made.delta < 1:
            raise ParameterError(
                f"In {origin}: the budget needs an epsilon above 0 and a delta from 0 to below 1."
            )
        if made.delta > LARGEST_DELTA:
            raise ParameterError(f"In {origin}: {DELTA_TOO_LARGE}")
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the budget as it stands in TOML."""
        return {"epsilon": self.epsilon, "delta": self.delta, "adjacency": self.adjacency, "unit": self.unit}


@dataclass(frozen=True)
class Policy:
    """The thresholds of an organisation.

    Examples
    --------
    >>> policy = Policy("Ours", rules=[Rule("k_anonymity", at_least=5)])
    >>> Policy.from_dict(policy.to_dict()) == policy
    True
    >>> Policy.templates()
    ('public-use-file', 'safe-setting', 'scientific-use-file', 'synthetic-file', 'three-attackers')
    """

    name: str
    description: str = ""
    rules: tuple[Rule, ...] = ()
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    comparison: tuple[Rule, ...] = ()
    budget: Budget | None = None
    intruder: tuple[str, ...] | None = None
    """What others may know of a person; the parameters of the measures that ask it say it too."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "comparison", tuple(self.comparison))
        if self.intruder is not None:
            told = {name: self._told(name, self.intruder) for name in _asking_what_is_known(self.comparison)}
            object.__setattr__(self, "parameters", {**self.parameters, **told})
        if not self.rules and not self.comparison:
            raise ParameterError(
                f"The policy '{self.name}' has no rules, so every file would meet it. Add one."
            )

    @classmethod
    def load(cls, source: str | Path | Policy) -> Policy:
        """Read a policy from a TOML file, or take a template by its name."""
        if isinstance(source, Policy):
            return source
        if not isinstance(source, str | Path):
            raise ParameterError(
                f"A policy is a Policy, the path of a file or the name of a template, not a {type(source).__name__}. "
                "Make one from a dictionary with Policy.from_dict(…)."
            )
        if str(source) in cls.templates():
            return cls.from_dict(tomllib.loads(_templates()[str(source)]), origin=str(source))
        path = Path(source)
        if not path.is_file():
            raise InputError(
                f"There is no policy file '{path.name or source}' there, and no template of that name. "
                f"Templates: {', '.join(cls.templates())}."
            )
        return cls.from_dict(read_toml(path, "policy file"), origin=path.name)

    @classmethod
    def templates(cls) -> tuple[str, ...]:
        """Name the policies that ship with the package."""
        return tuple(sorted(_templates()))

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, origin: str = "policy") -> Policy:
        """Make a policy from the content of a TOML file."""
        for name in document:
            if name not in _FIELDS:
                raise ParameterError(f"In {origin}: {unknown_name(name, _FIELDS, what='entry')}")
        parameters = document.get("parameters", {})
        if not isinstance(parameters, Mapping) or not all(
            isinstance(v, Mapping) for v in parameters.values()
        ):
            raise ParameterError(f"In {origin}: parameters are tables of their own, [parameters.measure].")
        return cls(
            name=str(document.get("name", origin)),
            description=str(document.get("description", "")),
            rules=_stated_rules(document, "rules", origin),
            parameters={name: dict(values) for name, values in parameters.items()},
            comparison=_stated_rules(document, "comparison", origin),
            budget=Budget.from_dict(document["budget"], origin) if "budget" in document else None,
            intruder=_stated_intruder(document, origin),
        )

    @property
    def is_for_nobodies(self) -> bool:
        """Whether attackers decide it: it is for synthetic files, whose records are nobody's."""
        return any(rule.is_attack for rule in self.comparison)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as it stands in TOML."""
        return {
            "name": self.name,
            "description": self.description,
            "rules": {rule.name: rule.to_dict() for rule in self.rules},
            **(
                {"comparison": {rule.name: rule.to_dict() for rule in self.comparison}}
                if self.comparison
                else {}
            ),
            **({"intruder": {"knows": list(self.intruder)}} if self.intruder is not None else {}),
            "parameters": self._stated_parameters(),
            **({"budget": self.budget.to_dict()} if self.budget else {}),
        }

    def _told(self, measure: str, knows: tuple[str, ...]) -> dict[str, Any]:
        return {**self.parameters.get(measure, {}), _MAY_KNOW: list(knows)}

    def _stated_parameters(self) -> dict[str, dict[str, Any]]:
        """Give the parameters without what the intruder says already."""
        stated = {name: dict(values) for name, values in self.parameters.items()}
        for name in _asking_what_is_known(self.comparison) if self.intruder is not None else ():
            stated[name].pop(_MAY_KNOW, None)
        return {name: values for name, values in stated.items() if values or not self.parameters[name]}


MAIN = "all keys"
_MOST_PEOPLE = 10_000_000


def _where(scenario: str) -> str:
    return scenario if scenario.startswith("copy ") else f"scenario '{scenario}'"


def _rounded_up(number: float) -> int:
    """Round a number of people up to two digits that count."""
    step = 10 ** max(int(math.log10(max(number, 1))) - 1, 0)
    return int(math.ceil(number / step) * step)


def _stated_rules(document: Mapping[str, Any], table: str, origin: str) -> tuple[Rule, ...]:
    stated = document.get(table, {})
    if not isinstance(stated, Mapping):
        raise ParameterError(f"In {origin}: {table} are a table, [{table}], with one line a rule.")
    rules = []
    for name, limits in stated.items():
        if not isinstance(limits, Mapping):
            raise ParameterError(
                f"In {origin}: the rule '{name}' must be written as {name} = {{ at_least = … }} "
                "or { at_most = … }."
            )
        measure, _, figure = name.partition(".")
        rules.append(_rule(measure, figure or "value", limits, origin))
    return tuple(rules)


def _stated_intruder(document: Mapping[str, Any], origin: str) -> tuple[str, ...] | None:
    """Read the table ``[intruder]``, which a rule must ask about."""
    if "intruder" not in document:
        return None
    stated = document["intruder"]
    if not isinstance(stated, Mapping) or set(stated) != {"knows"} or not isinstance(stated["knows"], list):
        raise ParameterError(
            f'In {origin}: the intruder is a table, [intruder], with one line such as knows = ["keys", "dates"].'
        )
    knows = tuple(stated["knows"])
    for name in knows:
        if name not in _KNOWS:
            raise ParameterError(
                f"In {origin}, [intruder]: {unknown_name(str(name), _KNOWS, what='knowledge')}"
            )
    if not knows:
        raise ParameterError(
            f"In {origin}: the intruder knows nothing, so that every file is safe from them. Leave [intruder] out."
        )
    asking = _asking_what_is_known(_stated_rules(document, "comparison", origin))
    if not asking:
        raise ParameterError(
            f"In {origin}: no rule asks whether the intruder finds anybody. Add one under [comparison], or leave "
            "[intruder] out."
        )
    if any(_MAY_KNOW in document.get("parameters", {}).get(name, {}) for name in asking):
        raise ParameterError(f"In {origin}: say what the intruder knows once, under [intruder].")
    return knows


def _asking_what_is_known(rules: Sequence[Rule]) -> list[str]:
    """Name the measures of rules that ask what an intruder finds by what they know."""
    cards = {rule.measure: card_of(rule.measure) for rule in rules}
    return [name for name, card in cards.items() if card is not None and _MAY_KNOW in card.takes.settings]


def _rule(measure: str, figure: str, limits: Mapping[str, Any], origin: str) -> Rule:
    known = ("at_least", "at_most", "why")
    for name in limits:
        if name not in known:
            raise ParameterError(f"In {origin}, rule '{measure}': {unknown_name(name, known, what='entry')}")
    bounds = {name: limits[name] for name in ("at_least", "at_most") if name in limits}
    if not bounds:
        raise ParameterError(f"In {origin}: the rule '{measure}' sets no limit. Give at_least or at_most.")
    for name, value in bounds.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise ParameterError(f"In {origin}: {name} of the rule '{measure}' must be a number.")
    if len(bounds) > 1 and bounds["at_least"] > bounds["at_most"]:
        raise ParameterError(
            f"In {origin}: the rule '{measure}' asks for at least more than it allows at most, which no file can "
            "meet. Mend one of the two."
        )
    return Rule(measure, figure, why=str(limits.get("why", "")), **bounds)


def _equal(actual: float, limit: float) -> bool:
    """Take two numbers for one that differ only by the order in which an engine added up."""
    return math.isclose(actual, limit, rel_tol=1e-9, abs_tol=1e-12)


def _templates() -> dict[str, str]:
    folder = files("discreet") / "policies"
    return {
        item.name.removesuffix(".toml"): item.read_text(encoding="utf-8")
        for item in folder.iterdir()
        if item.name.endswith(".toml")
    }
