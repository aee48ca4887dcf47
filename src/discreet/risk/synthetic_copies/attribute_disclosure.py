"""What can be learned about one column from a synthetic file?

Disclosed attributes (what would be learned, and rightly), beside the same figure for the original: the measures of
Raab, Nowok and Dibben (2024), in percent as their readers expect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, measure
from discreet.core.citations import RAAB_2024, RAAB_NOWOK_DIBBEN_2024
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.engine.attribution_counts import carry_scores
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.risk.synthetic_copies.disclosure_setup import (
    Checked,
    Pair,
    against_holdout,
    exclusions_of,
)
from discreet.risk.synthetic_copies.disclosure_table import DisclosureCells, Exclusions
from discreet.risk.synthetic_copies.disclosure_words import guessable, key_caveats, meaning_of, parameters_of
from discreet.risk.synthetic_copies.paired_files import Groups, PairedFiles, mean_of
from discreet.risk.synthetic_copies.replicated_uniques import (
    Which,
    identity_of,
    not_counted,
)


@measure(
    work="class-wise",
    question="What can be learned about one column from a synthetic file?",
    headline="of the people (DiSCO)",
    chapter="learned",
    place=8,
    references=(
        RAAB_2024,
        RAAB_NOWOK_DIBBEN_2024,
    ),
    figures={
        "value": Figure(unit="percent", better="lower"),
        "Dorig": Figure("Told for certain by the original (Dorig)", unit="percent"),
        "Dsyn": Figure("Released records told for certain (Dsyn)", unit="percent"),
        "iS": Figure("Key values of the original that the release has (iS)", unit="percent"),
        "DiS": Figure("Told for certain by the release (DiS)", unit="percent"),
        "DiSDiO": Figure("Told rightly by release and original alike (DiSDiO)", unit="percent"),
        "CAPd": Figure("Right guesses from the original (CAPd)", unit="percent"),
        "baseCAPd": Figure("Right guesses without either file", unit="percent"),
        "DCAP": Figure("Right guesses from the release (DCAP)", unit="percent"),
        "TCAP": Figure("Right among those the release tells for certain (TCAP)", unit="percent"),
        "denom_max": Figure("Largest group that tells for certain"),
        "denom_mean": Figure("Mean group that tells for certain"),
        "CAPs": Figure("Right guesses within the release (CAPs)", unit="percent"),
        "DCAP_scaled": Figure("DCAP between the guess without and with the original", unit="percent"),
        "TCAP_scaled": Figure("TCAP between the guess without and with the original", unit="percent"),
        "DCAP_matched": Figure("Right guesses from the release, matched people only", unit="percent"),
        "TCAP_conditional": Figure("TCAP, matched people only", unit="percent"),
    },
)
@checked
def attribute_disclosure(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    target: str,
    *,
    keys: Sequence[str] | None = None,
    groups_target: int | None = None,
    groups_keys: Groups = None,
    special_values: Mapping[str, Sequence[float]] | None = None,
    missing_target: bool = True,
    missing_keys: bool | Sequence[str] = True,
    exclude_values: Sequence[Any] = (),
    exclude_pairs: Sequence[Pair] = (),
    denom_lim: int | None = None,
    exclude_over_denom: bool = False,
    denominator: Which = "released",
    thresh_1way: tuple[float, float] = (50, 90),
    thresh_2way: tuple[float, float] = (4, 80),
    holdout: Microdata | None = None,
    compat: Literal["synthpop"] | None = None,
    weight: str | None = None,
    precision: Setting = None,
) -> Measure:
    """For how many people would the release disclose one attribute, and rightly?

    A release discloses the target of a person when everyone in it with the person's keys has the same value. In
    percent of the original records.

    Parameters
    ----------
    original, released, keys, groups_keys, special_values, missing_keys, missing_target, denom_lim, \
    exclude_over_denom, denominator, thresh_1way, thresh_2way, holdout, weight, precision
        As in `disclosure`.
    target
        The column an intruder wants to learn.
    groups_target
        Group a numeric target into so many classes.
    exclude_values
        Target values that never count as a disclosure.
    exclude_pairs
        ``(key, key value, target value)`` that never counts as a disclosure.
    compat
        ``"synthpop"``: the exclusions also empty the tables of the identity figures, as that package does.

    Returns
    -------
    Measure
        ``value`` is ``DiSCO``. ``figures``: those of `disclosure` and the columns of its tables ``targets`` and
        ``companions`` for this target, ``records_over_denom`` and, with a hold-out file, ``DiSCO_control``,
        ``DCAP_control``, ``R`` and ``R_DCAP``. ``detail``: ``records``, ``one_way``, ``two_way``, ``exclusions``
        and, for several, ``copies``.

    How to read it
    --------------
    ``DiSCO`` is the percentage of people for whom the release shows one single value for their keys, and the
    right one; ``Dorig`` is the same for the original. A DiSCO well below Dorig means that synthesis protects;
    ``DiSDiO`` counts those who were at risk in the original as well. Look at the checks: where one value or
    one key explains most disclosures, they are what anybody would have guessed, and you can exclude them.
    ``denom_max`` says how large the groups are that disclose something; large ones often tell a fact about
    the population and not about a person.

    When not to trust it
    --------------------
    It believes an intruder who trusts synthetic data blindly; one who knows that records are made up is less
    sure. More keys or finer keys make more groups of one and a higher figure: keep the keys to what can be
    known. A numeric target hardly ever agrees to the last digit, so group it (``groups_target``) or the
    result is falsely low. Without a hold-out file you cannot tell what comes from the person's own record and
    what from the population; give one if you have it.

    Examples
    --------
    >>> original = Microdata(pl.DataFrame({"k": list("aab"), "t": list("xxy")}), keys="k")
    >>> release = Microdata(pl.DataFrame({"k": list("abb"), "t": list("xxy")}))
    >>> round(attribute_disclosure(original, release, "t").value, 1)
    66.7
    """
    keys = engine.resolve_keys(original, keys)
    engine.resolve_sensitive(original, [target], keys)
    files = PairedFiles.of(
        original,
        released,
        keys,
        [target],
        groups_keys=groups_keys,
        groups_target=groups_target,
        special_values=special_values,
        weight=weight,
        precision=precision,
    )
    if compat not in (None, "synthpop"):
        raise ParameterError("compat must be 'synthpop' or None.")
    left_out = not_counted(missing_keys, files.keys)
    exclusions = exclusions_of(
        exclude_values,
        exclude_pairs,
        missing_target=missing_target,
        missing_keys=left_out,
        denom_lim=denom_lim,
        exclude_over=exclude_over_denom,
        denominator=denominator,
    )
    results = [
        Checked.of(files, target, i, exclusions, thresh_1way=thresh_1way, thresh_2way=thresh_2way)
        for i in range(len(files.copies))
    ]
    rows: list[dict[str, Any]] = []
    for i, result in enumerate(results):
        who = result.thinned_identity() if compat else identity_of(files, i, left_out, "original")
        rows.append({**who, **result.figures})
    figures = mean_of(rows)
    if holdout is not None:
        figures |= against_holdout(files, holdout, target, exclusions, figures)
    first = results[0]
    tables: dict[str, Any] = {
        "records": lambda: _flag_records(files, target, exclusions),
        "one_way": lambda: engine.like(original, first.one_way),
        "two_way": lambda: engine.like(original, first.two_way),
        "exclusions": lambda: engine.like(original, first.cells.excluded()),
    }
    if len(rows) > 1:
        tables["copies"] = lambda: engine.like(original, pl.DataFrame(rows).with_row_index("copy", offset=1))
    return Measure(
        name="attribute_disclosure",
        value=figures["DiSCO"],
        figures=figures,
        meaning=meaning_of(target, figures, files.keys),
        caveats=[
            *guessable(
                target, first.one_way, first.two_way, figures, exclusions=exclusions, most=thresh_2way[1]
            ),
            *key_caveats(files),
            *files.notes,
            *dict.fromkeys((*files.key_cells[0].notes, *first.cells.joint.notes)),
        ],
        parameters=parameters_of(
            files,
            [target],
            exclusions,
            excluded_values=len(exclusions.values),
            excluded_pairs=len(exclusions.pairs),
            thresh_1way=thresh_1way,
            thresh_2way=thresh_2way,
            holdout_file=holdout is not None,
            compat=compat,
        ),
        detail=Detail(**tables),
    )


def _flag_records(files: PairedFiles, target: str, exclusions: Exclusions) -> Any:
    exact = files.exact(target)
    joint, position = files.grouped(exact, target)
    flags = DisclosureCells.of(joint, files.keys, exclusions).flags()
    return carry_scores(files.links[0], exact, (target,), flags[position])
