"""What did the protection cost, and what is left of the risk? An original and what was made of it, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet import engine
from discreet.core.errors import ColumnError, DiscreetError, ParameterError, unknown_name
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.requests import answer_of
from discreet.core.results import Measure, Release, Scenario
from discreet.core.verdicts import Acceptance, Verdict
from discreet.engine import Missing
from discreet.engine.precision import Setting
from discreet.microdata import Microdata, require_microdata
from discreet.pairs.side_by_side import check_precision
from discreet.policy import MAIN, Policy
from discreet.register import History
from discreet.workflow.aligning import AlignedFiles, in_memory
from discreet.workflow.assessment import about_file
from discreet.workflow.comparison_results import ComparedRelease, Comparison, worst_of
from discreet.workflow.earlier_releases import with_history
from discreet.workflow.pair_questions import PairCase, PairQuestion, as_ruled, by_name, chosen
from discreet.workflow.pairing import pair_of, with_roles_of
from discreet.workflow.policy_judgment import cases_of, check_policy, held_against

OneRelease = Microdata | Release | Sequence[Microdata]
_MISSING = ("category", "drop")
FEWEST = 1_000
"""Records of the smallest sample that says anything of a large file."""


def compare(
    original: Microdata,
    released: OneRelease | Mapping[str, OneRelease],
    *,
    keys: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    holdout: Microdata | None = None,
    policy: Policy | str | Path | None = None,
    columns: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    models: Any = None,
    measures: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None = None,
    ids: str | None = None,
    aligned: bool | None = None,
    missing: Missing = "category",
    precision: Setting = None,
    attacks: bool = False,
    rows: int | None = None,
    progress: bool = False,
    show_values: bool = False,
    accept: Sequence[Acceptance] = (),
    previous: Mapping[str, Microdata] | None = None,
    register: History | str | Path | None = None,
    seed: Seed = None,
) -> Comparison:
    """What did the protection cost, what is left of the risk, and what went wrong first?

    Every measure that fits is computed on the original and the release together: columns, tables and relations one by
    one, the files as a whole by a model that tries to tell them apart, and what an intruder learns about the people of
    the original. The files may differ in columns, their order and their types: what was done about it is said.

    Parameters
    ----------
    original
        The file before.
    released
        The file after: a release, a list of synthetic copies of one synthesis, or several releases by name,
        ``{"cart": s1, "copula": [s2, s3]}``, which are put side by side. What copies give away, and what is measured of
        one at a time, is shown of the worst, which is named.
    keys, sensitive
        What an intruder knows and wants to learn; those of the original unless named. Without keys only the distances
        between records speak of risk.
    holdout
        People of the same population who were not used to make the release: what is found out about them, too, is not
        the release's fault.
    policy
        A `Policy`, the path of a policy file or the name of a template. All its rules are judged, those about the
        release by itself too, on all columns and as the policy wants them measured.
    columns
        What to compare; every column but identifiers, weights and the like unless named.
    categorical
        Columns of numbers that are codes.
    models
        What users of the data would fit, for the chapter on specific utility: a formula (``"income ~ age + sex"``) or
        several by name; see `discreet.utility.compare_model`.
    measures
        Names of measures, to have only these; or ``{name: settings}`` to have the usual ones and change or add some,
        such as ``{"train_on_synthetic": {"target": "income"}}``.
    ids
        A column that links the records of both files.
    aligned
        Whether record i of the release is record i of the original. Found out from the values unless said.
    missing
        How missing keys count for guessing: ``category`` or ``drop``.
    precision
        How precisely numbers of the two files are compared where it is asked whether they are equal: ``detected`` (as
        both files have them), ``exact`` (to the last bit), a number of decimals, or one of these by column.
    attacks
        Also try what attackers could do (`discreet.attack`): single people out, link what is known about them, guess
        their secrets, recognize who is in the file. A hold-out makes the answers fair; without one they are too high.
    rows
        Queries (Polars, DuckDB, Spark) of more records than this are not collected: columns, tables, relations and
        classes are counted where the data is, costs that need records together are measured on a random sample of about
        so many, with an interval, and risks that a sample would hide are left out by name, but for equal records, which
        are counted over all. Unless given, that is done to queries of more than 100 million cells, with samples of
        100,000 records.
    accept
        Open rules of the policy that a named person takes responsibility for.
    previous
        Earlier releases of the same people, by name: what they and this one say together is judged too.
    register
        The register of what went out, into which a release that was read from a file is entered; one that lies beside
        the file of the original is asked without being named.
    seed
        For samples and permutations; 0 unless given, so that the same files give the same report.
    progress
        Show a progress bar on a terminal.
    show_values
        Show the levels of the cells that are worst in the result and the report.

    Returns
    -------
    Comparison
        With ``utility`` and ``risk`` (measures by name), ``verdict``, ``worst`` (what went wrong first), ``alignment``,
        ``releases``, ``side_by_side``, ``plot()`` (the risk-utility map), ``to_html(path)``, ``to_dict()``.

    How to read it
    --------------
    Begin with ``worst.sentences``, then look at columns (`margins`), pairs (`tabular`, `dependence`) and the file as a
    whole (`pmse`), in this order: a column that is wrong spoils every table it stands in. Hold releases against each
    other, not against 0. There is no total score on purpose: a release is good or bad *for something*.

    When not to trust it
    --------------------
    An original and its release are dependent, so that tests of equality do not hold: no p-value is given where it would
    be wrong. Standardized figures suppose a synthetic file; for a masked one, whose records are the original ones, the
    plain distances and `information_loss` tell. Large files are sampled for the slowest measures, which then say so.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"] * 20, "ill": ["yes", "no", "no", "no"] * 20})
    >>> found = compare(Microdata(people, keys="sex", sensitive="ill"), Microdata(people.reverse()))
    >>> found.worst.sentences[0]
    '100 % of the released records equal a real one in every compared column.'
    >>> round(found.risk["attribution"].figures["cap_released"], 3)
    0.75
    """
    require_microdata(original, "original")
    if missing not in _MISSING:
        raise ParameterError("missing must be 'category' or 'drop': classes of wildcards cannot be matched.")
    rules = None if policy is None else Policy.load(policy)
    releases = _releases(released)
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < FEWEST):
        raise ParameterError(f"rows must be a whole number of at least {FEWEST}.")
    original = _with_roles(original, keys, sensitive)
    synthetic = holdout is not None or any(len(copies) > 1 for copies in releases.values())
    synthetic = synthetic or (rules is not None and rules.is_for_nobodies)
    marks = [copy.metadata.checksum for copies in releases.values() for copy in copies]
    history = History.of(original, register, previous, without=marks, synthetic=synthetic)
    original = in_memory(original, rows)
    held = None
    if holdout is not None:
        require_microdata(holdout, "holdout")
        held = in_memory(holdout, rows)
    if rules:
        check_policy(rules)
    needed = list(dict.fromkeys(rule.measure for rule in rules.comparison)) if rules else []
    if held is None:
        # Without strangers their rules are open; whoever wants to see the attacks all the same asks for them.
        needed = [name for name in needed if not by_name()[name].needs.judged_by_holdout]
    questions = chosen(measures, needed, rules.parameters if rules else {}, attacks=attacks)
    if models is not None and not any(question.wants("formula") for question, *_ in questions):
        questions += chosen([name for name, one in by_name().items() if one.wants("formula")], (), {})
    check_precision(precision, original.columns)
    coded = _names(categorical, original, "categorical")
    if ids is not None:
        _check_ids(ids, original, releases)
    settled: dict[str, Any] = {
        "categorical": coded,
        "models": models,
        "ids": ids,
        "aligned": aligned,
        "missing": missing,
        "precision": precision,
        "rows": rows,
        "seed": seed,
    }
    wanted = None if columns is None else _names(columns, original, "columns")
    cases = {
        name: pair_of(original, copies, held, columns=wanted, **settled) for name, copies in releases.items()
    }
    if rules:
        cases = {name: as_ruled(case, rules.comparison) for name, case in cases.items()}
    work = [(name, item) for name in cases for item in questions]
    found: dict[str, dict[str, Measure]] = {name: {} for name in cases}
    skipped: dict[str, dict[str, str]] = {name: {} for name in cases}
    for name, (question, settings, asked_for) in track(work, description="Comparing", progress=progress):
        answer = answer_of(
            question, cases[name], settings, must=_must(asked_for and bool(settings), question, cases[name])
        )
        (skipped if isinstance(answer, str) else found)[name][question.name] = answer  # type: ignore[assignment]
    verdicts: dict[str, Verdict | None] = dict.fromkeys(cases)
    if rules is not None:
        verdicts = {
            name: _verdict(
                rules,
                original,
                releases[name],
                held,
                pair=cases[name],
                narrowed=wanted is not None,
                settled=settled,
                accept=accept,
                known=_as_ruled(rules, questions, found[name], skipped[name]),
            )
            for name in cases
        }
    for name in cases if history.earlier or history.lost else ():
        verdicts[name] = with_history(verdicts[name], history, releases[name][0], policy=rules, accept=accept)
    compared = {
        name: _release(
            name,
            cases[name],
            found=found[name],
            skipped=skipped[name],
            questions=questions,
            verdict=verdicts[name],
            show_values=show_values,
        )
        for name in cases
    }
    for copy in next(iter(releases.values())) if len(releases) == 1 else ():
        history.enter(history.kind, copy, verdict=next(iter(verdicts.values())))
    return Comparison(
        about={**about_file(original, original.roles.keys), "before": history.said},
        releases=compared,
        policy=rules,
        show_values=show_values,
    )


def _must(set_up: bool, question: PairQuestion, case: PairCase) -> tuple[type[DiscreetError], ...]:
    """Say which refusals end the comparison: all of a measure set up by hand, and a model that cannot be meant."""
    if set_up:
        return (DiscreetError,)
    whole = not case.files.alignment.only_original
    return (
        (ColumnError, ParameterError)
        if question.wants("formula") and case.models is not None and whole
        else ()
    )


def _release(
    name: str,
    case: PairCase,
    *,
    found: Mapping[str, Measure],
    skipped: Mapping[str, str],
    questions: Sequence[tuple[PairQuestion, dict[str, Any], bool]],
    verdict: Verdict | None,
    show_values: bool,
) -> ComparedRelease:
    alignment = case.files.alignment
    if case.whole is not None:
        alignment = replace(alignment, notes=(*alignment.notes, *_sampled_in_words(case, found)))
    sides = {question.name: question.side for question, *_ in questions}
    return ComparedRelease(
        name,
        utility={measure: held for measure, held in found.items() if sides[measure] == "utility"},
        risk={measure: held for measure, held in found.items() if sides[measure] == "risk"},
        alignment=alignment,
        worst=worst_of(found, alignment, show_values=show_values),
        verdict=verdict,
        skipped=skipped,
        about=_about((case.whole or case).files),
    )


def _sampled_in_words(case: PairCase, found: Mapping[str, Measure]) -> list[str]:
    """Say what was counted where the data is, and what was measured on a sample."""
    assert case.whole is not None
    sizes = zip(("original", "release"), case.sizes, case.whole.sizes, strict=True)
    drawn = " and ".join(f"{part:,} of {all_of:,} records of the {what}" for what, part, all_of in sizes)
    by: dict[bool, list[str]] = {True: [], False: []}
    for name, measure in found.items():
        by["sample" in measure.parameters].append(f"'{name}'")
    said = []
    if by[False]:
        said.append(f"Counted over all records, where the data is: {', '.join(by[False])}.")
    if by[True]:
        said.append(f"Measured on a random sample ({drawn}), each with an interval: {', '.join(by[True])}.")
    if case.sampled_only:
        listed = ", ".join(map(repr, case.sampled_only))
        said.append(
            f"Compared on the sample only, because all values could not be brought to one form: {listed}."
        )
    return said


def _as_ruled(
    policy: Policy,
    questions: Sequence[tuple[PairQuestion, dict[str, Any], bool]],
    found: Mapping[str, Measure],
    skipped: Mapping[str, str],
) -> Scenario:
    """Keep what was measured as a policy wants it: not what the user asked for with settings of their own."""
    usual = {
        question.name
        for question, settings, _ in questions
        if settings == dict(policy.parameters.get(question.name, {}))
    }
    return Scenario(
        MAIN,
        (),
        {name: held for name, held in found.items() if name in usual},
        {name: reason for name, reason in skipped.items() if name in usual},
    )


def _verdict(
    policy: Policy,
    original: Microdata,
    copies: Sequence[Microdata],
    holdout: Microdata | None,
    *,
    pair: PairCase,
    narrowed: bool,
    settled: Mapping[str, Any],
    known: Scenario,
    accept: Sequence[Acceptance],
) -> Verdict:
    """Judge one release by all rules; a policy is about all columns, whichever were asked for."""
    if narrowed:
        pair, known = pair_of(original, copies, holdout, **settled), Scenario(MAIN, (), {})
    alone = cases_of(
        [with_roles_of(original, copy) for copy in copies], missing=settled["missing"], seed=settled["seed"]
    )
    return held_against(policy, alone, pair, original=original, measured_pair=known, accept=accept)


def _about(files: AlignedFiles) -> dict[str, Any]:
    first = files.copies[0]
    return {
        "source": first.metadata.source,
        "checksum": first.metadata.checksum,
        "rows": engine.overview(first, ()).rows,
        "columns": len(first.columns),
        "copies": len(files.copies),
        "holdout": None if files.holdout is None else engine.overview(files.holdout, ()).rows,
    }


def _releases(released: Any) -> dict[str, list[Microdata]]:
    if not isinstance(released, Mapping):
        copies = _copies(released, "released")
        return {str(copies[0].metadata.source or "release"): copies}
    if not released:
        raise ParameterError("released is empty: give a release, a list of copies, or releases by name.")
    return {str(name): _copies(held, f"released['{name}']") for name, held in released.items()}


def _copies(released: Any, what: str) -> list[Microdata]:
    held = list(released) if isinstance(released, list | tuple) else [released]
    if not held:
        raise ParameterError(f"{what} is an empty list: give one release, or a list of copies.")
    copies = [one.data if isinstance(one, Release) else one for one in held]
    for copy in copies:
        require_microdata(copy, what)
    return copies


def _with_roles(original: Microdata, keys: Any, sensitive: Any) -> Microdata:
    if keys is None and sensitive is None:
        return original
    roles: dict[str, Any] = {}
    known = original.roles.keys if keys is None else _names(keys, original, "keys")
    roles["keys"] = known
    wanted = original.roles.sensitive if sensitive is None else _names(sensitive, original, "sensitive")
    # Who is named as known is no longer to be learned, unless both were said in this very call.
    roles["sensitive"] = tuple(name for name in wanted if name not in known) if sensitive is None else wanted
    return original.with_roles(**roles)


def _check_ids(ids: str, original: Microdata, releases: Mapping[str, Sequence[Microdata]]) -> None:
    """Refuse a linking column that one of the files lacks."""
    _names(ids, original, "ids")
    for name, copies in releases.items():
        if any(ids not in copy.schema for copy in copies):
            raise ColumnError(
                f"The release '{name}' has no column '{ids}', which was named in ids: it must be in both files."
            )


def _names(given: str | Sequence[str], original: Microdata, what: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(dict.fromkeys(given))
    for name in names:
        if name not in original.schema:
            raise ColumnError(f"{unknown_name(name, original.columns)} It was named in {what}.")
    return names
