"""Does this release meet the policy? The one function that judges; every door calls it.

A policy has rules about a file by itself (``[rules]``) and about a release and its original (``[comparison]``).
`judge` measures only what the rules need, all of them where the original is there. What needs something that was not
given (the original, a population file, a model) is named in ``verdict.unjudged``, and the verdict is then neither
*meets* nor *does not meet* (``verdict.meets`` is None) unless a rule has failed already.

A verdict is about the two files as they stand: the columns, the settings of the policy, records linked only where the
files show it. What a door knows besides (which records a plan removed) or shows besides (other settings of a measure)
does not change it, so that the same release gets the same verdict everywhere.

Doors that have measured already pass what they found to `held_against`, which measures only the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from discreet.core.cards import measure_names
from discreet.core.errors import DiscreetError, ParameterError, unknown_name
from discreet.core.randomness import Seed
from discreet.core.requests import answer_of
from discreet.core.results import Measure, Release, Scenario
from discreet.core.verdicts import Acceptance, Check, Unjudged, Verdict
from discreet.engine import Missing
from discreet.microdata import Microdata, require_microdata
from discreet.policy import MAIN, Policy, Rule
from discreet.register import History
from discreet.workflow import pair_questions, questions
from discreet.workflow.beside_rules import NEW_COLUMNS, NO_ROLE, PERSON, beside_rules
from discreet.workflow.earlier_releases import EARLIER, with_history
from discreet.workflow.pair_questions import PairCase, PairQuestion
from discreet.workflow.pairing import pair_of, with_roles_of
from discreet.workflow.questions import ORIGINAL, WHOSE, Case, Lack, intruder_cases

_AFTER_FAILURE = "no further look"
_SLOW = 3


def judge(
    released: Microdata | Release | Sequence[Microdata],
    policy: Policy | str | Path,
    original: Microdata | None = None,
    *,
    holdout: Microdata | None = None,
    population: Microdata | None = None,
    population_size: int | None = None,
    models: Any = None,
    ids: str | None = None,
    missing: Missing = "category",
    stop_at_failure: bool = False,
    measured: Mapping[str, Scenario] | None = None,
    labels: pl.DataFrame | None = None,
    crossed: Mapping[str, Measure] | None = None,
    accept: Sequence[Acceptance] = (),
    previous: Mapping[str, Microdata] | None = None,
    register: History | str | Path | None = None,
    seed: Seed = None,
) -> Verdict:
    """Does this release meet the policy?

    Parameters
    ----------
    released
        The file to be released, what a treatment made, or the copies of one synthesis.
    policy
        A `Policy`, the path of a policy file or the name of a template.
    original
        The file before; without it the rules under ``[comparison]`` are not judged. With it the roles are those of the
        original, for the columns that the release still has.
    holdout
        People of the same population who were not used to make the release.
    population, population_size
        For rules on measures that need them.
    models
        What users would fit, for rules on `compare_model`.
    ids
        A column of both files that links their records.
    missing
        How missing key values count: ``category``, ``wildcard`` or ``drop``; wildcards only for the file by itself.
    seed
        For samples and permutations; 0 unless given.
    stop_at_failure
        Judge the quick rules first and stop at the first that does not hold, as a search over many plans wants it.
        Whether the policy is met comes out the same.
    measured
        What an assessment of the release found with this policy and the same settings (its ``scenarios``), so that it
        need not be measured again.
    labels
        The released values of each original record, one row a record of the original, where whoever made the release
        still knows them: they say which values a label stands for in a release whose records were removed or reordered.
    crossed
        What whoever made the release found by cross-fitting, for rules that need people who were not used; asked only
        where there is no holdout.
    accept
        Open rules that a named person takes responsibility for; what failed cannot be accepted.
    previous
        Earlier releases of the same people, by name: what they and this one say together is judged too.
    register
        The register of what went out; one that lies beside the file of the original is asked without being named.

    Returns
    -------
    Verdict
        ``meets`` (True, False, or None while something is left to judge), ``line``, ``checks``, ``unjudged``.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"] * 20, "ill": ["yes", "no", "no", "no"] * 20})
    >>> data = Microdata(people, keys="sex", sensitive="ill")
    >>> judge(data, "safe-setting").line
    "Meets what could be judged here of policy 'Safe setting' (2 checks passed); not judged here: 3 rules that need ..."
    >>> judge(data, "safe-setting", data).line
    "Meets policy 'Safe setting' (5 checks passed)."
    """
    rules = Policy.load(policy)
    check_policy(rules)
    copies = _copies(released)
    if original is not None:
        require_microdata(original, "original")
        copies = [with_roles_of(original, copy) for copy in copies]
    pair: PairCase | str | None = None
    if original is not None and rules.comparison:
        try:
            pair = pair_of(
                original, copies, holdout, models=models, ids=ids, missing=missing, seed=seed, labels=labels
            )
        except DiscreetError as error:
            pair = str(error)
    alone = cases_of(
        copies, population=population, population_size=population_size, missing=missing, seed=seed
    )
    verdict = held_against(
        rules,
        alone,
        pair,
        original=original,
        measured=measured,
        crossed=crossed,
        stop_at_failure=stop_at_failure,
        accept=accept,
    )
    marks = [copy.metadata.checksum for copy in copies]
    synthetic = rules.is_for_nobodies or len(copies) > 1 or holdout is not None or crossed is not None
    history = History.of(original, register, previous, without=marks, synthetic=synthetic)
    for copy in copies:
        verdict = with_history(verdict, history, copy, policy=rules, accept=accept) or verdict
        history.enter(history.kind, copy, verdict=verdict)
    return verdict


def held_against(
    policy: Policy,
    alone: Mapping[str, Case | str],
    pair: PairCase | str | None = None,
    *,
    original: Microdata | None = None,
    measured: Mapping[str, Scenario] | None = None,
    measured_pair: Scenario | None = None,
    crossed: Mapping[str, Measure] | None = None,
    stop_at_failure: bool = False,
    accept: Sequence[Acceptance] = (),
) -> Verdict:
    """Hold every rule of a policy against the cases of a release, and measure what was not measured yet.

    Parameters
    ----------
    policy
        The rules; `check_policy` must have passed them.
    alone
        The cases of the file by itself by scenario (see `cases_of`), or why there is none.
    pair
        The file and its original, why they could not be brought together, or None where there is no original.
    original
        The file before, where there is one: it tells names of people from pseudonyms.
    measured, measured_pair
        What a door has measured with the parameters of the policy, so that it is not measured again.
    crossed
        What cross-fitting found, for rules that need a holdout where there is none.
    stop_at_failure
        Judge the quick rules first and stop at the first that does not hold.
    accept
        Open rules that a person accepts.
    """
    _check_acceptances(policy, accept)
    if isinstance(pair, PairCase):
        pair = pair_questions.as_ruled(pair, policy.comparison)
    bench = _Bench(policy, alone, pair, measured or {}, measured_pair, crossed or {}, _gone(original, pair))
    rules = [("rules", rule) for rule in policy.rules] + [("comparison", rule) for rule in policy.comparison]
    rules.sort(key=lambda named: not named[1].is_attack)
    found: dict[tuple[str, Rule], list[Check | Unjudged]] = {}
    failed = False
    for table, rule in sorted(rules, key=_effort) if stop_at_failure else rules:
        left_aside = failed and stop_at_failure
        judged = [_left_aside(table, rule)] if left_aside else bench.judged(table, rule)
        found[table, rule] = [bench.without_what_is_gone(rule, one) for one in judged]
        failed = failed or any(isinstance(one, Check) and not one.passed for one in found[table, rule])
    beside = beside_rules(policy, alone, pair, original)
    in_order = [
        *(one for one in beside if isinstance(one, Check) or one.rule == PERSON),
        *(one for named in rules for one in found[named]),
        *(one for one in beside if isinstance(one, Unjudged) and one.rule != PERSON),
    ]
    verdict = Verdict(
        policy.name,
        tuple(one for one in in_order if isinstance(one, Check)),
        tuple(one for one in in_order if isinstance(one, Unjudged)),
    )
    return verdict.accepting(accept)


def _check_acceptances(policy: Policy, accept: Sequence[Acceptance]) -> None:
    """Refuse to accept what the policy does not ask."""
    known = [
        *(rule.name for rule in (*policy.rules, *policy.comparison)),
        NEW_COLUMNS,
        NO_ROLE,
        PERSON,
        EARLIER,
    ]
    for one in accept:
        if one.rule not in known:
            raise ParameterError(f"In accept: {unknown_name(one.rule, known, what='rule of this policy')}")


@dataclass
class _Bench:
    """The cases of one release and what has been measured on them."""

    policy: Policy
    alone: Mapping[str, Case | str]
    pair: PairCase | str | None
    measured: Mapping[str, Scenario]
    measured_pair: Scenario | None
    crossed: Mapping[str, Measure] = field(default_factory=dict)
    gone: str = ""
    _answers: dict[tuple[str, str], Measure | str] = field(default_factory=dict)

    def judged(self, table: str, rule: Rule) -> Iterator[Check | Unjudged]:
        """Hold one rule against every scenario, or against the original."""
        if table == "comparison":
            yield self._against_original(rule)
            return
        for name, case in self.alone.items():
            question = questions.by_name().get(rule.measure)
            lacking = question.input_lacking(case) if question and isinstance(case, Case) else None
            if not lacking and question and question.needs.counts_company:
                lacking = _nobody_knows_whose(case)
            if lacking:
                yield _unjudged(rule, lacking, table)
            else:
                yield rule.check(self._scenario(name, rule.measure, partial(self._ask, case, rule.measure)))

    def without_what_is_gone(self, rule: Rule, found: Check | Unjudged) -> Check | Unjudged:
        """Leave a rule open that cannot be checked, because the release has left out all that it is about."""
        if not (self.gone and isinstance(found, Check) and found.passed is None):
            return found
        return Unjudged(
            rule.name,
            rule.limit,
            f"{self.gone}, which the release does not have",
            "the other rules look at what is in it; let a person accept this one (accept=…, --accept)",
            found.table,
        )

    def _against_original(self, rule: Rule) -> Check | Unjudged:
        table, pair = "comparison", self.pair
        if pair is None:
            return _unjudged(rule, ORIGINAL, table)
        question, settings = (
            pair_questions.by_name()[rule.measure],
            self.policy.parameters.get(rule.measure, {}),
        )
        lacking = question.input_lacking(pair, settings) if isinstance(pair, PairCase) else None
        if not lacking and question.side == "risk" and isinstance(pair, PairCase):
            lacking = WHOSE if any(copy.lost_roles for copy in pair.files.copies) else None
        if lacking and question.needs.judged_by_holdout and rule.measure in self.crossed:
            found = {rule.measure: self.crossed[rule.measure]}
            return rule.check(Scenario(MAIN, (), found, {}), table=table)
        if lacking:
            return _unjudged(rule, lacking, table)
        if isinstance(pair, PairCase) and len(pair.files.copies) > 1 and question.side == "risk":
            copies = range(len(pair.files.copies))
            return _worst(rule, [self._of_copy(rule, question, pair, place) for place in copies])
        asked = self._scenario(
            table,
            rule.measure,
            lambda: pair if isinstance(pair, str) else answer_of(question, pair, settings),
        )
        check = rule.check(replace(asked, name=MAIN), table=table)
        return check if isinstance(pair, str) else self._if_guessed(rule, question, pair, check)

    def _of_copy(self, rule: Rule, question: PairQuestion, pair: PairCase, place: int) -> Check | Unjudged:
        """Hold a rule on risk against one copy by itself: one copy that is the original is not averaged away."""
        name = f"copy {place + 1}"
        settings = self.policy.parameters.get(rule.measure, {})
        if (name, rule.measure) not in self._answers:
            self._answers[name, rule.measure] = answer_of(question, pair.of_copy(place), settings)
        answer = self._answers[name, rule.measure]
        found = {} if isinstance(answer, str) else {rule.measure: answer}
        skipped = {rule.measure: answer} if isinstance(answer, str) else {}
        check = rule.check(Scenario(name, (), found, skipped), table="comparison")
        return self._if_guessed(rule, question, pair.of_copy(place), check)

    def _if_guessed(
        self, rule: Rule, question: PairQuestion, pair: PairCase, found: Check | Unjudged
    ) -> Check | Unjudged:
        """Leave a rule open that holds, but would not if labels were exchanged as they can only be guessed to be."""
        if question.side != "risk" or not (isinstance(found, Check) and found.passed):
            return found
        for reading in pair.readings if pair.whole is None else ():
            if reading.sure:
                continue
            answer = answer_of(question, reading.case, self.policy.parameters.get(rule.measure, {}))
            known = {} if isinstance(answer, str) else {rule.measure: answer}
            other = rule.check(Scenario(found.scenario, (), known), table="comparison")
            if known and not (isinstance(other, Check) and other.passed):
                return Unjudged(
                    rule.name,
                    rule.limit,
                    f"to know which values its labels stand for (it would not hold if {reading.how}, which is a guess)",
                    "write the labels of the original into the release, and compare again",
                    command="discreet compare ORIGINAL RELEASE_WITH_ITS_LABELS --policy POLICY",
                    decided=False,
                )
        return found

    def _scenario(self, name: str, measure: str, ask: Callable[[], Measure | str]) -> Scenario:
        """Give what was found in a scenario; what nobody has asked yet is asked now, once."""
        known = self.measured_pair if name == "comparison" else self.measured.get(name)
        if known is not None and (measure in known.measures or measure in known.skipped):
            return known
        if (name, measure) not in self._answers:
            self._answers[name, measure] = ask()
        answer = self._answers[name, measure]
        if isinstance(answer, str):
            return Scenario(name, (), {}, {measure: answer})
        return Scenario(name, (), {measure: answer})

    def _ask(self, case: Case | str, measure: str) -> Measure | str:
        question = questions.by_name().get(measure)
        if question is None:
            return "it is not computed on one file alone"
        if isinstance(case, str):
            return case
        return answer_of(question, case, self.policy.parameters.get(measure, {}))


def _gone(original: Microdata | None, pair: PairCase | str | None) -> str:
    """Name what the original has, rules ask about, and a release has left out altogether."""
    if original is None or not isinstance(pair, PairCase):
        return ""
    shown = pair.files.copies[0].schema
    parts = {
        "a key": original.roles.keys,
        "a sensitive column": original.roles.sensitive,
    }
    gone = [what for what, names in parts.items() if names and not any(name in shown for name in names)]
    return " and ".join([*gone, *(["a second column"] if len(pair.files.columns) < 2 else [])])


def _worst(rule: Rule, checks: Sequence[Check | Unjudged]) -> Check | Unjudged:
    """Give the copy that decides: one that fails, else one that is open, else the one nearest to the limit."""

    def rank(one: Check | Unjudged) -> tuple[int, float]:
        if isinstance(one, Unjudged):
            return 1, 0.0
        actual = float(one.actual) if isinstance(one.actual, int | float) else math.inf
        return (2 if one.passed else 0), (-actual if rule.at_least is None else actual)

    return min(checks, key=rank)


def _nobody_knows_whose(case: Case | str) -> Lack | None:
    """Say what is lacking to judge the company in a file that once knew whose its records are and no longer does."""
    return None if isinstance(case, str) or not case.data.lost_roles else WHOSE


def cases_of(copies: Sequence[Microdata], **settings: Any) -> dict[str, Case | str]:
    """Make the case of each copy by itself: the main scenario, or why it cannot be measured."""
    found: dict[str, Case | str] = {}
    for place, copy in enumerate(copies, 1):
        name = MAIN if len(copies) == 1 else f"copy {place}"
        if copy.roles.keys:
            found[name] = next(iter(intruder_cases(copy, **settings).values()))
        else:
            found[name] = "the file has no column that was named as a key"
    return found


def check_policy(policy: Policy) -> None:
    """Refuse a policy that names a measure or a parameter that nobody offers: its rule could never hold."""
    from discreet import risk, utility

    alone, pairs = questions.by_name(), pair_questions.by_name()
    offered = [name for room in (risk, utility) for name in dir(room) if name[0].islower()]
    offered += [name for name in measure_names() if name not in offered]
    for name in (*(rule.measure for rule in policy.rules), *policy.parameters):
        if name not in offered:
            raise ParameterError(f"In policy '{policy.name}': {unknown_name(name, offered, what='measure')}")
    for rule in policy.comparison:
        if rule.measure not in pairs:
            raise ParameterError(
                f"In policy '{policy.name}', under [comparison]: "
                f"{unknown_name(rule.measure, pairs, what='measure of a comparison')}"
            )
        settings = policy.parameters.get(rule.measure, {})
        where = f"The policy, under [parameters.{rule.measure}]"
        pairs[rule.measure].check_parameters(settings, where)
    for rule in policy.rules:
        if rule.measure in alone:
            alone[rule.measure].check_parameters(policy.parameters.get(rule.measure, {}))
    for rule in (*policy.rules, *policy.comparison):
        if fault := rule.fault:
            raise ParameterError(f"In policy '{policy.name}', rule '{rule.name}': {fault}")
    for rule in policy.rules:
        settings = policy.parameters.get(rule.measure, {})
        if (
            settings
            and rule.measure in alone
            and _holds_always(rule, repr(sorted(settings.items())), settings)
        ):
            raise ParameterError(
                f"In policy '{policy.name}', rule '{rule.name}': with the settings under [parameters.{rule.measure}] "
                "even a file in which everybody is alone keeps it. Change them."
            )


_HELD: dict[tuple[Rule, str], bool] = {}


def _holds_always(rule: Rule, said: str, settings: Mapping[str, Any]) -> bool:
    """Whether a rule holds for a file in which every person is alone with their keys; ``said`` are its settings."""
    if (rule, said) not in _HELD:
        people = pl.DataFrame({"key": range(60), "secret": range(60)})
        case = next(iter(intruder_cases(Microdata(people, keys="key", sensitive="secret")).values()))
        answer = answer_of(questions.by_name()[rule.measure], case, settings)
        found = None if isinstance(answer, str) else rule.check(Scenario(MAIN, (), {rule.measure: answer}))
        _HELD[rule, said] = isinstance(found, Check) and bool(found.passed)
    return _HELD[rule, said]


def _copies(released: Any) -> list[Microdata]:
    held = list(released) if isinstance(released, list | tuple) else [released]
    if not held:
        raise ParameterError("released is an empty list: give one release, or a list of copies.")
    copies = [one.data if isinstance(one, Release) else one for one in held]
    for copy in copies:
        require_microdata(copy, "released")
    return copies


def _unjudged(rule: Rule, lack: Lack, table: str) -> Unjudged:
    return Unjudged(rule.name, rule.limit, lack.needs, lack.way_out, table, lack.command)


def _left_aside(table: str, rule: Rule) -> Unjudged:
    return Unjudged(rule.name, rule.limit, _AFTER_FAILURE, "another rule does not hold", table)


def _effort(named: tuple[str, Rule]) -> int:
    """Say how long a rule takes, roughly: counts of classes before tables, tables before models."""
    table, rule = named
    if table == "comparison":
        return pair_questions.by_name()[rule.measure].needs.effort
    question = questions.by_name().get(rule.measure)
    return _SLOW if question is not None and question.needs.slow else 0
