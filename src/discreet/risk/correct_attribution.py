"""How often would an intruder guess a sensitive value right from the release?

Correct attribution probability (CAP) at record, class and file level, and its relatives DCAP, TCAP and WEAP:
one set of counts of keys by target in two files stands under all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import polars as pl

from discreet import engine
from discreet.core import charts
from discreet.core.cards import Figure, OfFile, OfPair, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public, Share
from discreet.core.findings import Beside, Finding, Headline, MapAxis, OfReleases, OfSynthesis, OfWorst
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import check_precision, stated_precision
from discreet.risk import attribution_attack
from discreet.risk.attribution_scores import Guess, Unmatched, cell_scores, chances
from discreet.risk.equivalence_classes import Partition, company_caveats
from discreet.risk.value_classes import Source, Spec, Strategy, classes_of_columns, coarsened

_ABOVE_GUESSING = 0.2
_LAST = 0.6  # what anybody of their kind gives away is said after all that comes from people's own records


def _guessed_right(found: Measure, beside: Beside) -> Iterator[Finding]:
    right, blind = found.figures.get("cap_released"), found.figures.get("baseline")
    if isinstance(right, float) and isinstance(blind, float) and right - blind >= _ABOVE_GUESSING:
        column, matched = _easiest_to_guess(found), found.figures.get("matched_share")
        named = "the sensitive value" if column is None else f"'{column}'"
        some = f" ({percent(matched)} of all people)" if isinstance(matched, float) and matched < 1 else ""
        usual, beyond = (found.figures.get(name) for name in ("cap_by_chance", "learned_beyond_chance"))
        others = (
            f", and {percent(usual)} from other people with the same keys" if isinstance(usual, float) else ""
        )
        yield Finding(
            "guessed right",
            1 + 2 * (right - blind) if beyond else _LAST,
            f"Who looks a person up by the keys guesses {named} right for {percent(right)} of those who can be looked "
            f"up{some}, against {percent(blind)} without the release{others}.",
        )


def _guesses_in_words(found: Measure) -> str:
    """Say what the share of right guesses is about, and what it must be held against."""
    column, blind = _easiest_to_guess(found), found.figures.get("baseline")
    said = ["Of the sensitive column that is easiest to guess" if column is None else f"Of '{column}'"]
    if isinstance(blind, int | float):
        said.append(f"{percent(blind)} without the release")
    matched = found.figures.get("matched_share")
    some = ""
    if isinstance(matched, int | float) and matched != 1:
        some = f" {percent(matched)} of the people can be looked up."
    return f"{'; '.join(said)}.{some}"


def _easiest_to_guess(found: Measure) -> str | None:
    """Name the sensitive column that the headline is about."""
    first = next(iter(charts.rows_of(found, "variables")), {}).get("sensitive")
    return None if first is None else str(first)


_MOST_ROWS = 15
_GUESSES = {
    "cap_released": "From the release",
    "cap_original": "From the original",
    "baseline": "Without either",
}
_OWN_GUESSES = {"cap_original": "With this file", "baseline": "Without it"}


def _pictures(found: Measure, show_values: bool) -> Iterator[charts.Chart]:
    rows = charts.rows_of(found, "variables", "sensitive", "cap_original", "baseline")
    axis = "Share of people whose value an intruder who knows the keys guesses right"
    present = [name for name in _GUESSES if any(charts.finite(row.get(name)) for row in rows)]
    words = _GUESSES if "cap_released" in present else _OWN_GUESSES
    if len(rows) == 1 and len(present) > 1:
        yield charts.Bars(
            title="How often an intruder guesses right",
            labels=tuple(words[name] for name in present),
            values=tuple(charts.number(rows[0][name]) or 0.0 for name in present),
            axis=axis,
            at_risk=tuple(name == "cap_released" for name in present),
            horizontal=True,
        )
    elif len(rows) > 1 and present:
        kept = sorted(rows, key=lambda row: -(charts.number(row[present[0]]) or 0))[:_MOST_ROWS]
        yield charts.Dots(
            title=f"How often an intruder guesses right{charts.part_shown(kept, rows)}",
            series=tuple(words[name] for name in present),
            rows=tuple(
                charts.Row(str(row["sensitive"]), tuple(charts.number(row[name]) for name in present))
                for row in kept
            ),
            axis=axis,
        )
    yield from _surface(found)


def _surface(found: Measure) -> Iterator[charts.Chart]:
    """Draw how the share of right guesses hangs on the intervals: a grid, or a line where one side has none."""
    cells = {
        (row["key_intervals"], row["target_intervals"]): charts.number(row["cap_released"])
        for row in charts.rows_of(found, "surface", "key_intervals", "target_intervals", "cap_released")
    }
    up, across = (
        sorted({place[side] for place in cells}, key=lambda many: (many is not None, many)) for side in (0, 1)
    )
    if len(set(cells.values())) < 2:
        return
    title = "How often the guess is right, by how exactly things are known"
    if min(len(up), len(across)) == 1:
        steps, what = (across, "the column that is guessed") if len(up) == 1 else (up, "each key")
        places = [step for step in steps if step is not None]
        line = [cells.get((up[0], step) if len(up) == 1 else (step, across[0])) for step in places]
        yield charts.Lines(
            title=title,
            places=tuple(map(float, places)),
            lines=(charts.Line("From the release", tuple(line)),),
            axis=f"Share of guesses that are right, upwards, by the number of intervals of {what}",
        )
        return
    yield charts.Grid(
        title=title,
        # Where no key (or not the target) is a number, there is one line without a number of intervals.
        row_labels=tuple("" if key is None else f"{key:g}" for key in reversed(up)),
        column_labels=tuple("" if target is None else f"{target:g}" for target in across),
        values=tuple(tuple(cells.get((key, target)) for target in across) for key in reversed(up)),
        axis="Percent of guesses that are right; the stronger the color, the more",
        across="intervals of the column that is guessed",
        up="intervals of each key",
    )


@measure(
    room="risk",
    work="class-wise",
    question="How often can a sensitive value be guessed from the keys?",
    headline="of the guesses are right",
    chapter="learned",
    place=2,
    leading=True,
    references=(
        "Elliot, M. (2014). Final report on the disclosure risk associated with the synthetic data "
        "produced by the SYLLS team. University of Manchester.",
        "Taub, J., Elliot, M., Pampaka, M. and Smith, D. (2018). Differential correct attribution "
        "probability for synthetic data: an exploration. Privacy in Statistical Databases, Lecture Notes "
        "in Computer Science 11126.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "cap_original": Figure(
            "Right guesses from the original",
            unit="share",
            better="lower",
            words={"scenarios": "Right guesses", "change": "Sensitive values guessed right from the keys"},
        ),
        "cap_released": Figure(
            "Right guesses from the release",
            unit="share",
            better="lower",
            summary=True,
            words={"rule": "right guesses from the release"},
        ),
        "dcap": Figure("Right guesses from the release (DCAP)", unit="share"),
        "tcap": Figure("Right among those the release tells for certain (TCAP)", unit="share"),
        "tcap_released": Figure("TCAP, of released records", unit="share"),
        "tcap_conditional": Figure("TCAP, of the people it tells for certain", unit="share"),
        "tcap_ratio": Figure("Told rightly, over all that is told", unit="share"),
        "weap_share": Figure("Released records that tell for certain (WEAP)", unit="share"),
        "gain": Figure("Gain"),
        "worst_gain": Figure("Largest gain for one group"),
        "cap_change": Figure("Change from original to release"),
        "cap_min": Figure("Worst change for one person"),
        "cap_within_released": Figure("Right guesses about released records", unit="share"),
        "baseline": Figure("Right guesses without the file", unit="share"),
        "baseline_majority": Figure("Right if the commonest value is always guessed", unit="share"),
        "matched_records": Figure("People who can be looked up in the release"),
        "learned": Figure("More than a blind guess", unit="share", aim="learned"),
        "cap_by_chance": Figure("Right guesses if the release were new people", unit="share"),
        "learned_beyond_chance": Figure(
            "More than the other people with the same keys tell",
            unit="share",
            aim="learned",
            words={"rule": "more guessed right than the other people with the same keys tell"},
        ),
        "cap_as_it_was": Figure("Right guesses from the original before it was coarsened", unit="share"),
    },
    assess=OfFile(19, sensitive=True, slow=True),
    compare=OfPair(13, "risk", at_once=True, keys=True, sensitive=True, effort=1),
    worst=OfWorst(9, _guessed_right),
    pictures=_pictures,
    releases=OfReleases(
        7,
        {"cap_released": "Right guesses"},
        headline=Headline("cap_released", "of the guesses are right", _guesses_in_words),
        best_at=("cap_released", "hiding sensitive values"),
        axis=MapAxis(
            "cap_released",
            "sensitive values guessed right",
            order=1,
            original="cap_original",
            guessing="baseline",
        ),
    ),
    synthesis=OfSynthesis(
        by_donors=True,
        helped_by="larger groups",
        would_give="keys would have to be fewer or coarser, or a sensitive column coarser or left out",
    ),
)
def attribution(
    original: Microdata,
    released: Microdata | Sequence[Microdata] | None = None,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    unmatched: Unmatched = "exclude",
    baseline: Literal["matched", "all"] | None = None,
    intervals: Annotated[Mapping[str, Spec], Public()] | None = None,
    strategy: Strategy = "equal_frequency",
    edges_from: Source | None = None,
    tolerance: float | Annotated[Mapping[str, float], Public()] | None = None,
    guess: Guess = "proportional",
    knows: Annotated[Mapping[Any, float], HoldsValues()] | None = None,
    membership: Annotated[float, Share()] = 1.0,
    fallback: Annotated[float, Share()] | None = None,
    together: bool = False,
    missing: Partition = "category",
    weight: ColumnName | None = None,
    surface: Annotated[int, AtLeast(1)] = 10,
    replicates: Annotated[int, AtLeast(0)] = 0,
    precision: Annotated[Setting, Public()] = None,
    seed: Seed = None,
) -> Measure:
    """How often is an intruder right who looks up a person's keys in the release and guesses the target?

    The intruder knows the keys of a person in the original, finds the released records with the same keys and
    draws one of their target values. The chance that it is the true one is the person's correct attribution
    probability (Elliot 2014; Taub et al. 2018); its mean over the people is a probability too. It is set beside
    the chance if the original itself were released, and beside guessing without any key.

    Also known as: CAP; correct attribution probability; DCAP; differential correct attribution probability; TCAP;
    targeted correct attribution probability; GCAP; WEAP; within-equivalence-class attribution probability.

    Parameters
    ----------
    original, released
        The two files. Several synthetic copies are given as a list; figures are then means over the copies.
        Without a release only the original is measured.
    keys, sensitive
        Key and target columns; those of the original unless named.
    unmatched
        What a person counts whose keys nobody in the release has. ``exclude``: left out of the mean. ``zero``:
        a wrong guess. ``nearest``: the intruder looks at the released records that differ in the fewest keys
        (generalized CAP).
    baseline
        Whether ``cap_original`` is a mean over the ``matched`` people or over ``all``; by default over the same
        people as ``cap_released``.
    intervals
        By column: a number of intervals, their edges, or a map ``{value: label}`` where the release is coarser.
    strategy
        ``equal_frequency`` or ``equal_length``, for columns given a number of intervals.
    edges_from
        Whose values set those intervals; the released ones for targets and both files' for keys unless named.
    tolerance
        A guess of a numeric target at most this far off counts as right; one number, or one by column.
    guess
        ``proportional``: a value drawn from the class. ``majority``: its most frequent value.
    knows
        Background knowledge: ``{key values: chance}`` for classes in which the intruder guesses right with that
        chance whatever the release says.
    membership, fallback
        The chance that the person is in the file at all, and the chance of a right guess if not; one over the
        number of target values unless named.
    together
        Guess all sensitive columns at once instead of one by one.
    missing
        ``category`` or ``drop``, for missing key values. A missing target counts as a value.
    weight
        A survey weight of the original: the means then speak of the population.
    surface
        Largest number of intervals in ``detail["surface"]``.
    replicates
        Bootstrap replicates over the original records, for an interval around ``cap_released``.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.
    seed
        Seed of the bootstrap.

    Returns
    -------
    Measure
        ``value`` is ``cap_released`` of the target that is guessed best (``cap_original`` without a release).
        ``figures``, as fractions: ``cap_original``, ``cap_released``, ``dcap`` (the plain proportional guess),
        ``tcap`` (released class has one target value, and it is right), ``tcap_conditional`` (of the people
        shown such a class), ``tcap_released`` (mean over released records with WEAP 1), ``tcap_ratio`` (share of
        the key combinations with WEAP 1 that are true of everyone), ``weap_share`` (released records with
        WEAP 1), ``gain`` (``cap_original`` less ``cap_released``: above 0 the release is safer than the
        original), ``worst_gain`` (the same for the worst class), ``learned`` (``cap_released`` less
        ``baseline``, for the sensitive column with most of it), ``cap_by_chance`` (the same guess from the other people
        of the original with the same keys, as new people would give), ``learned_beyond_chance`` (``cap_released`` less
        ``cap_by_chance``, for the column with most of it; 0 where chance gives as much once in a hundred times),
        ``cap_as_it_was`` (from the original before intervals or the coarser labels of the release; None where it is
        ``cap_original``), ``cap_change`` and ``cap_min`` (the opposite
        signs, as first published), ``cap_within_released``, ``baseline`` (guessing without keys),
        ``baseline_majority``, ``matched_share``, ``matched_records``; with replicates ``cap_released_low``,
        ``cap_released_high``. ``detail``: ``variables``, ``copies``, and of the worst target ``classes``,
        ``records`` and, for continuous columns, ``surface``.

    How to read it
    --------------
    ``cap_released`` is how often an intruder who knows the keys guesses the sensitive value right from the
    release; ``cap_original`` how often they would with the original itself; ``baseline`` how often without
    either. A release close to the baseline gives nothing away, one close to the original protects nobody.
    Where people with the same keys are alike, anybody of their kind gives them away (``cap_by_chance``); only what goes
    beyond comes from their own records.

    ``worst_gain`` below 0 means that for some group the release makes guessing *easier* than the original
    would. ``tcap`` counts only the people about whom the release speaks with certainty, which is where an
    intruder would act.

    When not to trust it
    --------------------
    For a value that most people have (no capital gains) any guess is right most of the time: compare with
    ``baseline_majority``. People whose keys do not occur in the release are left out by default;
    ``unmatched="zero"`` counts them as failures, and the two published definitions differ in just this. For
    numbers the result depends on the intervals; ``detail["surface"]`` shows how much. It is about this file's
    people: a release that teaches a true fact about the population (smokers fall ill) raises it without
    naming anyone. ``learned_beyond_chance`` leaves such facts out, and with them groups whose members all have one
    value: these are for `l_diversity`. People who are alone with their keys have no others; what the smallest groups
    tell is taken for them, and a blind guess where there are none.

    Examples
    --------
    >>> original = Microdata(
    ...     pl.DataFrame({"sex": ["m", "m", "f", "f"], "test": ["p", "p", "p", "n"]}), keys="sex", sensitive="test"
    ... )
    >>> release = Microdata(pl.DataFrame({"sex": ["m", "f", "f", "f"], "test": ["p", "p", "n", "n"]}))
    >>> risk = attribution(original, release)
    >>> risk.value, round(risk.figures["worst_gain"], 4)
    (0.75, -0.1667)
    """
    keys = engine.resolve_keys(original, keys)
    columns = engine.resolve_sensitive(original, sensitive, keys)
    weight = None if weight is None else engine.resolve_weight(original, weight)
    copies = attribution_attack.as_copies(released, keys, columns)
    targets = [columns] if together else [(column,) for column in columns]
    classes, notes = classes_of_columns(
        original, copies, keys, columns, intervals=intervals, strategy=strategy, edges_from=edges_from
    )
    attack = attribution_attack.Attack(
        unmatched=unmatched,
        baseline=baseline or ("matched" if unmatched == "exclude" and copies else "all"),
        tolerances=attribution_attack.checked_tolerances(
            original, columns, tolerance, together=together, guess=guess, unmatched=unmatched
        ),
        guess=guess,
        knows=dict(knows or {}),
        membership=membership,
        fallback=fallback,
        classes=classes,
        strategy=strategy,
        edges_from=edges_from,
        many=len(targets) * max(len(copies), 1),
    )
    check_precision(precision, original.columns)
    links = [
        attribution_attack.Link(engine.shared_classes(original, copy, keys, missing, precision), attack)
        for copy in copies
    ]
    rows = []
    for target in targets:
        for i, link in enumerate(links):
            aimed = link.aim(target, weight)
            row = {"sensitive": " + ".join(target), "copy": i + 1, **aimed.figures()}
            if replicates:
                row |= aimed.bootstrap(replicates, generator(seed, "attribution", *target, str(i)))
            rows.append(row)
            notes += [note for note in aimed.joint.notes if note not in notes]
        if not links:
            rows.append(
                {"sensitive": " + ".join(target), "copy": 0, **_alone(original, keys, target, attack)}
            )
    by_copy = pl.DataFrame(rows, infer_schema_length=None)
    headline = "cap_released" if copies else "cap_original"
    variables = (
        by_copy.group_by("sensitive", maintain_order=True)
        .agg(pl.exclude("copy").mean())
        .sort(headline, "sensitive", descending=[True, False], nulls_last=True)
    )
    worst = variables.row(0, named=True)
    target = next(target for target in targets if " + ".join(target) == worst["sensitive"])
    figures = {name: worst[name] for name in variables.columns if name != "sensitive"}
    if len(copies) == 1:
        figures["matched_records"] = int(worst["matched_records"])
    if copies:
        figures["learned"] = variables.select((pl.col("cap_released") - pl.col("baseline")).max()).item()
        figures["learned_beyond_chance"] = variables["learned_beyond_chance"].max()
        figures["cap_as_it_was"] = _before_coarsening(original, keys, target, attack)
    return Measure(
        name="attribution",
        value=worst[headline],
        figures=figures,
        meaning=_meaning({**figures, **worst}, keys, bool(copies), unmatched),
        caveats=[*_caveats(original, keys, columns, attack, worst=worst, copies=copies), *notes],
        parameters={
            "keys": list(keys),
            "sensitive": list(columns),
            "copies": len(copies),
            "unmatched": unmatched,
            "baseline": attack.baseline,
            "intervals": sorted(classes),
            "strategy": strategy,
            "edges_from": edges_from,
            "tolerance": tolerance,
            "guess": guess,
            "knows": len(attack.knows),
            "membership": membership,
            "fallback": fallback,
            "together": together,
            "missing": missing,
            "weight": weight,
            "replicates": replicates,
            "precision": stated_precision(
                precision, {name: grid.words for link in links for name, grid in link.shared.grids.items()}
            ),
        },
        detail=attribution_attack.attribution_tables(
            original,
            keys,
            target,
            links,
            variables=variables,
            by_copy=by_copy,
            weight=weight,
            surface=surface,
            released=copies[0] if copies else None,
        ),
    )


def _alone(
    original: Microdata, keys: Sequence[str], target: tuple[str, ...], attack: attribution_attack.Attack
) -> dict[str, Any]:
    joint = engine.original_only(original, keys, target)
    if any(column in attack.classes for column in (*keys, *target)):
        joint, _ = coarsened(joint, keys, target, attack.classes)
    tolerance = attack.tolerances.get(target[0])
    scores = cell_scores(joint, tolerance=tolerance)
    counted = replace(attack, unmatched="exclude", baseline="all")
    figures = counted.summed(joint, scores, chances(joint, scores, "proportional"), tolerance)
    known = ("cap_original", "baseline", "baseline_majority")
    return {name: figure if name in known else None for name, figure in figures.items()}


def _before_coarsening(
    original: Microdata, keys: Sequence[str], target: tuple[str, ...], attack: attribution_attack.Attack
) -> float | None:
    """Guess from the original as it was, where it has been brought to the coarseness of the release."""
    before = original.memory.get("as_it_was", original)
    if before is original and not any(column in attack.classes for column in (*keys, *target)):
        return None
    numbers = [name for name in attack.tolerances if before.schema[name].is_numeric()]
    exact = attribution_attack.Attack(tolerances={name: attack.tolerances[name] for name in numbers})
    found: float | None = _alone(before, keys, target, exact)["cap_original"]
    return found


def _meaning(worst: dict[str, Any], keys: Sequence[str], released: bool, unmatched: Unmatched) -> str:
    known = ", ".join(f"'{key}'" for key in keys)
    target, own, base = worst["sensitive"], worst["cap_original"], worst["baseline"]
    if not released:
        return (
            f"If this file itself were released, an intruder who knows {known} would guess '{target}' right for "
            f"{percent(own)} of the people, against {percent(base)} without knowing anything."
        )
    if worst["cap_released"] is None:
        return (
            f"Nobody of the original shares all of {known} with a released record, so nothing can be guessed."
        )
    who = "people who can be looked up in the release" if unmatched == "exclude" else "people"
    before = worst["cap_as_it_was"]
    against = (
        f"{percent(own)} if the original itself were released"
        if before is None
        else f"{percent(own)} with the original made as coarse as the release, {percent(before)} of all with the "
        "original as it is"
    )
    return (
        f"An intruder who knows {known} and guesses '{target}' from the release would be right for "
        f"{percent(worst['cap_released'])} of the {who}, against {against} and {percent(base)} without knowing "
        f"anything. Other people with the same keys tell it for {percent(worst['cap_by_chance'])}; what the release "
        f"tells of the person beyond that is {percent(worst['learned_beyond_chance'])}."
    )


def _caveats(
    original: Microdata,
    keys: Sequence[str],
    columns: Sequence[str],
    attack: attribution_attack.Attack,
    *,
    worst: dict[str, Any],
    copies: list[Microdata],
) -> list[str]:
    caveats = company_caveats(original, keys, classes=False)
    if (
        engine.counted_unit(original) is not None
        and engine.head_count(original) < engine.overview(original, ()).rows
    ):
        caveats.append(
            "Somebody with several values counts once with each of them, and a guess as right where it names one: what "
            "is learned of such people is more than is shown."
        )
    floats = engine.seldom_repeated(original, [key for key in keys if key not in attack.classes])
    if floats:
        caveats.append(engine.float_key_caveat(floats))
    rough = [
        column
        for column in columns
        if original.schema[column].is_float() and column not in (*attack.classes, *attack.tolerances)
    ]
    if rough:
        named = ", ".join(f"'{column}'" for column in rough)
        caveats.append(
            f"{named} holds decimal numbers: a guess that is off by a little counts as wrong, which hides risk. "
            "Give intervals or a tolerance."
        )
    if attack.classes or attack.tolerances:
        caveats.append(
            "The figures depend on the intervals and tolerances; compare releases only with the same ones, over the "
            "whole of detail['surface']."
        )
    gap = worst.get("matched_share")
    if copies and attack.unmatched == "exclude" and gap is not None and gap < 1:
        caveats.append(
            f"{percent(1 - gap)} of the people have keys that no released record has and are left out of the mean; "
            "with unmatched='zero' they count as wrong guesses."
        )
    if worst.get("worst_gain") is not None and worst["worst_gain"] < -1e-12 <= worst["gain"]:
        caveats.append(
            "On the whole the release is no easier to guess from than the original, but for some classes it is: see "
            "the first rows of detail['classes']."
        )
    if original.roles.weight:
        caveats.append("Survey weights are not used: every record counts as one person.")
    return caveats
