"""Which steps does a synthetic file need to meet a policy, and does it meet it then?

A tree draws values of real people, and some synthetic records are alone with the keys of somebody who is alone too. The
steps that help are few: blur the numbers that nearly everybody has for themselves, drop records that are alone, draw
what is sensitive, and then everything, from larger groups. They are taken one after the other, only as far as the
verdict asks for them, and `judge` has the last word.

What attacks find is judged by people who were not used. Where nobody was set aside, the same synthesizer is fitted to
each of two halves of the people and attacked with the other half as strangers (cross-fitting).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.success import put_together
from discreet.core.cards import card_of
from discreet.core.errors import DiscreetError
from discreet.core.findings import OfSynthesis
from discreet.core.randomness import Seed, generator
from discreet.core.requests import answer_of
from discreet.core.results import Measure, Step
from discreet.core.verdicts import Acceptance, Verdict
from discreet.microdata import Microdata, require_microdata
from discreet.policy import Policy
from discreet.register import History
from discreet.synth import Fitted, Sequential, Synthesizer
from discreet.synth.column_forms import as_numbers
from discreet.synth.methods.tree_donors import Cart
from discreet.synth.release_preparation import without_single_records
from discreet.synth.smoothing import own_values
from discreet.synth.synthesizer import seed_of
from discreet.workflow.pair_questions import as_ruled, by_name
from discreet.workflow.pairing import pair_of
from discreet.workflow.policy_judgment import judge
from discreet.workflow.synthesis_within_risk import SynthesisWithinRisk, synthesize_within_risk

_SENSITIVE_LEAVES = (25, 100)
_LARGER_LEAVES = (15, 40)
_SPARE = 1.03
_ELSE = "the columns it speaks of would have to be coarser or left out, or the limit wider"


@dataclass(frozen=True, eq=False)
class SynthesisForPolicy:
    """Synthetic files and how far they meet a policy.

    Attributes
    ----------
    files
        The synthetic files, finished.
    verdicts
        What the policy says of each.
    steps
        What was done beyond what was asked for, in plain sentences.
    logs
        What finishing did to each file.
    fitted, synthesizer
        The model they were drawn from, and the parameters it was fitted with in the end.
    within
        What attackers gained from the files, where a limit was set to it.
    """

    files: tuple[Microdata, ...]
    verdicts: tuple[Verdict, ...]
    steps: tuple[str, ...]
    logs: tuple[tuple[Step, ...], ...]
    fitted: Fitted
    synthesizer: Synthesizer
    within: SynthesisWithinRisk | None = None

    @property
    def meets(self) -> bool | None:
        """Whether all files meet the policy; None where something is left to judge."""
        found = [verdict.meets for verdict in self.verdicts] or [None]
        return False if False in found else None if None in found else True

    @property
    def crossed(self) -> bool:
        """Whether attacks were judged by cross-fitting."""
        return _CROSS_FITTED in self.steps

    @property
    def lines(self) -> tuple[str, ...]:
        """All there is to say, for people: what was done, what the policy says, what would have to give."""
        attacked = () if self.within is None else self.within.lines
        return (
            *attacked,
            *self.steps,
            *(verdict.line for verdict in self.verdicts),
            *self.would_have_to_give,
        )

    @property
    def would_have_to_give(self) -> tuple[str, ...]:
        """What stands in the way of the policy after all steps, and what would have to give."""
        failed = {check.measure: check for v in self.verdicts for check in v.checks if check.passed is False}
        return tuple(
            f"No step was enough for this rule: {check.reason}. To meet it, {_help_for(measure).would_give or _ELSE}."
            for measure, check in failed.items()
        )


def synthesize_for_policy(
    data: Microdata,
    policy: Policy | str | Path | None,
    synthesizer: Synthesizer | None = None,
    *,
    n: int | None = None,
    copies: int = 1,
    progress: bool = False,
    accept: Sequence[Acceptance] = (),
    seed: Seed = None,
) -> SynthesisForPolicy:
    """Synthesize a file and take the steps that a policy asks for.

    Parameters
    ----------
    data
        The file, with keys and sensitive columns.
    policy
        A `Policy`, the path of a policy file or the name of a template, usually ``"synthetic-file"``; None where only
        attackers are to be kept out.
    synthesizer
        How it is synthesized to begin with; `Sequential` unless given. Where it has a ``risk_limit``, that is kept
        before the policy is asked (see `discreet.workflow.synthesis_within_risk`), and the files are attacked again in
        the end.
    n, copies, seed, progress
        As in `Fitted.sample`.
    accept
        Open rules of the policy that a named person takes responsibility for.

    Returns
    -------
    SynthesisForPolicy
        The files, what was done to them and what the policy says. If no step helps, the files that break fewest rules;
        the verdicts say which stand in the way, and ``would_have_to_give`` what the user can do about them.

    Examples
    --------
    >>> import polars as pl
    >>> ages = [20 + number % 7 for number in range(400)]
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 200, "age": ages, "ill": [True, False, False, False] * 100})
    >>> data = Microdata(people, keys=["sex", "age"], sensitive="ill")
    >>> found = synthesize_for_policy(data, "synthetic-file", seed=1)
    >>> found.verdicts[0].outcome, found.steps[0].partition(":")[0]
    ('open', 'Judged by cross-fitting')
    """
    require_microdata(data)
    rules = None if policy is None else Policy.load(policy)
    root = seed_of(seed)
    chosen: Synthesizer = Sequential() if synthesizer is None else synthesizer
    within, learned, fitted = None, data, None
    if isinstance(chosen, Sequential) and chosen.risk_limit is not None:
        within = synthesize_within_risk(data, synthesizer=chosen, n=n, progress=progress, seed=root)
        chosen, learned, fitted, n = within.synthesizer, within.used, within.fitted, within.rows
    drawing = _Drawing(
        data, learned, n, copies, root if within is None else within.drawn_by, progress, tuple(accept)
    )
    if within is not None:
        drawing = replace(drawing, strangers=within.set_aside)
    found = _tried(drawing, rules, chosen, (), fitted)
    best = found
    if found.meets is False:
        for done, fresh in _stages(data, chosen, found):
            found = _tried(drawing, rules, fresh, done)
            best = found if len(_failed(found)) < len(_failed(best)) else best
            if best.meets is not False or not _is_by_donors(best):
                break
    return best if within is None else replace(best, within=within.of_files(best.files, best.steps))


def _stages(
    data: Microdata, chosen: Synthesizer, found: SynthesisForPolicy
) -> Iterator[tuple[tuple[str, ...], Synthesizer]]:
    """Yield further ways to synthesize, each farther from the data, and all that was done to get there."""
    if not isinstance(chosen, Sequential) or not _is_by_donors(found):
        return
    done: tuple[str, ...] = ()
    blurred = _to_be_blurred(data, chosen)
    if blurred:
        before: dict[str, Any] = {
            step.name: step.smoothing for step in chosen.plan(data).steps if step.smoothing
        }
        weaker = sorted({before[name] for name in blurred if name in before})
        chosen = replace(chosen, smoothing={**before, **dict.fromkeys(blurred, "adaptive")})
        instead = f" 'adaptive' in place of {_named(weaker)}" if weaker else ""
        done = (
            f"Numbers that nearly every record has for itself were blurred (smoothing{instead}): {_named(blurred)}.",
        )
        yield done, chosen
    if any(_help_for(measure).helped_by == "larger groups" for measure in _failed(found)):
        for leaf in _SENSITIVE_LEAVES:
            columns = _drawn_from_less(data, chosen, leaf)
            if columns:
                chosen = with_leaves(chosen, columns, leaf)
                looked_up = (
                    f"What looking a person up would tell was drawn from groups of at least {leaf} records (min_leaf): "
                    f"{_named(columns)}.",
                )
                yield (*done, *looked_up), chosen
                done = (*done, *looked_up) if leaf == _SENSITIVE_LEAVES[-1] else done
    for leaf in _LARGER_LEAVES:
        options = {name: dict(own) for name, own in (chosen.method_options or {}).items()}
        if not _is_grown(chosen) or options.get("cart", {}).get("min_leaf", 0) >= leaf:
            return
        options["cart"] = {**options.get("cart", {}), "min_leaf": leaf}
        chosen = replace(chosen, method_options=options)
        yield (*done, f"Values were drawn from groups of at least {leaf} records (min_leaf)."), chosen


def _named(columns: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in columns)


def _is_grown(chosen: Sequential) -> bool:
    """Whether columns that nothing else is said about are drawn by a tree."""
    return (chosen.otherwise if isinstance(chosen.method, Mapping) else chosen.method) == "cart"


def _drawn_from_less(data: Microdata, chosen: Sequential, leaf: int) -> list[str]:
    """Name the sensitive columns that trees draw from groups that may be smaller than this."""
    steps = {step.name: step.method for step in chosen.plan(data).steps}
    drawn = {name: steps.get(name) for name in data.roles.sensitive}
    return [name for name, way in drawn.items() if isinstance(way, Cart) and way.min_leaf < leaf]


def with_leaves(chosen: Sequential, columns: Sequence[str], leaf: int) -> Sequential:
    """Let trees draw some columns from groups of at least so many records."""
    options = (chosen.method_options or {}).get("cart", {})
    ways = dict(chosen.method) if isinstance(chosen.method, Mapping) else {}
    for name in columns:
        given = ways.get(name)
        ways[name] = (
            replace(given, min_leaf=leaf)
            if isinstance(given, Cart)
            else Cart(**{**options, "min_leaf": leaf})
        )
    otherwise = chosen.otherwise if isinstance(chosen.method, Mapping) else chosen.method
    return replace(chosen, method=ways, otherwise=otherwise)


def _to_be_blurred(data: Microdata, chosen: Sequential) -> list[str]:
    """Name the numbers of donors that are mostly one record's own and not blurred as strongly as can be.

    Only the adaptive way leaves nobody of the largest next to their own number.
    """
    numbers = [name for name, kind in data.schema.items() if kind.is_numeric()]
    steps = {step.name: step for step in chosen.plan(data).steps}
    table = engine.collect(data, numbers) if numbers else None
    found = []
    for name in numbers:
        assert table is not None
        drawn = name in steps and steps[name].method.gives_observed_values
        if (
            drawn
            and steps[name].smoothing != "adaptive"
            and own_values(as_numbers(table[name]).drop_nulls().to_numpy())
        ):
            found.append(name)
    return found


@dataclass(frozen=True, eq=False)
class _Drawing:
    """The file that is judged against, the part of it that models learn from, and what is drawn from them."""

    data: Microdata
    learned: Microdata
    n: int | None
    copies: int
    root: int
    progress: bool
    accept: tuple[Acceptance, ...] = ()
    strangers: Microdata | None = None

    def verdict(self, file: Microdata, policy: Policy, attacked: Mapping[str, Measure] | None) -> Verdict:
        """Judge a file; with what attacks found where the rest holds."""
        return judge(
            file, policy, self.data, crossed=attacked, accept=self.accept, register=History(), seed=self.root
        )


def _by_strangers(
    policy: Policy, used: Microdata, file: Microdata, strangers: Microdata, seed: int
) -> dict[str, Measure]:
    """Attack one file with people who were not used, as the rules of a policy ask for it."""
    known = by_name()
    names = dict.fromkeys(rule.measure for rule in policy.comparison)
    asked = [known[name] for name in names if known[name].needs.without == _CROSS_FIT]
    if not asked:
        return {}
    case = as_ruled(pair_of(used, [file], strangers, seed=seed), policy.comparison)
    answers = {one.name: answer_of(one, case, policy.parameters.get(one.name, {})) for one in asked}
    return {name: answer for name, answer in answers.items() if isinstance(answer, Measure)}


def _crossed(policy: Policy, drawing: _Drawing, chosen: Synthesizer) -> dict[str, Measure]:
    """Fit the synthesizer to each half of the people, and attack it with the other half; both runs together."""
    if not any(rule.measure in _cross_fitted() for rule in policy.comparison):
        return {}
    halves = _halves(drawing.data, drawing.root)
    runs: list[dict[str, Measure]] = []
    for used, others in (halves, halves[::-1]):
        seed = drawing.root + 1 + len(runs)
        try:
            file: Any = chosen.fit(used, seed=seed).sample(seed=seed)
        except DiscreetError:
            # What half of the people is too few for leaves the rules open.
            return {}
        runs.append(_by_strangers(policy, used, file, others, seed))
    return {
        name: put_together([run[name] for run in runs], caveats=[_CROSS_FITTED])
        for name in runs[0]
        if name in runs[1]
    }


def _cross_fitted() -> set[str]:
    return {name for name, one in by_name().items() if one.needs.without == _CROSS_FIT}


def _halves(data: Microdata, root: int) -> list[Microdata]:
    """Divide the people into two halves; whoever lives together or has several records stays together."""
    table, who = engine.collect(data, data.columns), engine.groups_together(data)
    people = np.unique(who)
    first = np.isin(who, generator(root, "halves").permutation(people)[: len(people) // 2])
    return [data.with_frame(engine.in_kind(data, table.filter(pl.Series(side)))) for side in (first, ~first)]


_CROSS_FIT = "cross-fit"
_CROSS_FITTED = (
    "Judged by cross-fitting: the same synthesizer was fitted to each half of the people and attacked with the other "
    "half as strangers. A model of half the people follows each of them at least as closely as one of all."
)


def _tried(
    drawing: _Drawing,
    policy: Policy | None,
    chosen: Synthesizer,
    done: tuple[str, ...],
    fitted: Fitted | None = None,
) -> SynthesisForPolicy:
    """Synthesize, drop lookalikes where the policy asks for it, and judge."""
    data, root = drawing.data, drawing.root
    if fitted is None:
        fitted = chosen.fit(drawing.learned, seed=root, progress=drawing.progress)
    drawn: Any = fitted.sample(drawing.n, copies=drawing.copies, seed=root, progress=drawing.progress)
    files: list[Microdata] = []
    verdicts: list[Verdict] = []
    logs: list[tuple[Step, ...]] = []
    steps = list(done)
    log: tuple[Step, ...]
    shown: dict[str, Measure] | None = None
    for number, made in enumerate(drawn if isinstance(drawn, list) else [drawn]):
        file, log = made, ()
        if policy is None:
            files.append(file)
            logs.append(log)
            continue
        verdict = drawing.verdict(file, policy, None)
        broken = [check.measure for check in verdict.checks if check.passed is False]
        if any(_help_for(measure).helped_by == "other records" for measure in broken):
            file, log = _without_lookalikes(made, data, fitted, root + number)
            verdict = drawing.verdict(file, policy, None)
            gone = sum(step.removed_records for step in log)
            steps.append(
                f"{gone:,} records that are alone with their keys in the synthetic file were removed, whoever is in "
                "the original, and others drawn for them."
            )
        if verdict.meets is not False:
            if drawing.strangers is not None:
                shown = _by_strangers(policy, drawing.learned, file, drawing.strangers, root)
            elif shown is None:
                shown = _crossed(policy, drawing, chosen)
                steps += [_CROSS_FITTED] if shown else []
            verdict = drawing.verdict(file, policy, shown) if shown else verdict
        files.append(file)
        verdicts.append(verdict)
        logs.append(tuple(log))
    return SynthesisForPolicy(tuple(files), tuple(verdicts), tuple(steps), tuple(logs), fitted, chosen)


def _without_lookalikes(
    made: Microdata, data: Microdata, fitted: Fitted, seed: int
) -> tuple[Microdata, tuple[Step, ...]]:
    """Drop all records that are alone with their keys in the synthetic file, and draw as many others.

    Dropping only those that are somebody's would prove of everybody else that they are not in the original.
    """
    real = _with_unit(data, fitted)
    unit, keys = real.roles.household, [name for name in real.roles.keys if name in made.columns]
    wanted = engine.overview(made, ()).rows
    kept, step = without_single_records(made, keys, unit)
    left = engine.overview(kept, ()).rows
    if fitted.keeps_records or not left:
        return kept, (step,)
    more: Any = fitted.sample(int(wanted * wanted / left * _SPARE) + 1, seed=seed)
    # Records are drawn one like the other, so that the first of them are a file of their own. Of more records more are
    # left: the most that leave no more than were wanted.
    places = pl.DataFrame({"at": np.arange(engine.overview(more, ()).rows)})
    if unit:
        places = places.with_columns(u=engine.collect(more, [unit])[unit]).select(
            pl.col("at").max().over("u")
        )

    def of_first(many: int) -> tuple[Microdata, Step]:
        first = more.with_frame(engine.rebuilt(more, {}, keep=places["at"] < many))
        return without_single_records(first, keys, unit)

    def fits(many: int) -> bool:
        return engine.overview(of_first(many)[0], ()).rows <= wanted

    most = bisect_left(range(wanted, places.height + 1), 1, key=lambda many: 0 if fits(many) else 1)
    finished, step = of_first(wanted + most - 1 if most else wanted)
    return finished, (step,)


def _with_unit(data: Microdata, fitted: Fitted) -> Microdata:
    """Let records that were drawn together go together, also where nobody declared that they belong together."""
    plan = getattr(fitted, "plan", None)
    unit = None if plan is None else plan.settings.get("together")
    return data if unit is None or data.roles.household else data.with_roles(household=unit)


def _failed(found: SynthesisForPolicy) -> list[str]:
    return [check.measure for verdict in found.verdicts for check in verdict.checks if check.passed is False]


def _is_by_donors(found: SynthesisForPolicy) -> bool:
    return any(_help_for(measure).by_donors for measure in _failed(found))


def _help_for(measure: str) -> OfSynthesis:
    card = card_of(measure)
    return (card.synthesis if card else None) or OfSynthesis()
