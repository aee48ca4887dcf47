"""What does synthetic data give away about the people it was made from?

Replicated uniques (who can be singled out) and disclosed attributes (what would be learned, and rightly) of every
column, each beside the same figure for the original: the measures of Raab, Nowok and Dibben (2024), in percent as
their readers expect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, OfStudy, TwoFiles, measure
from discreet.core.citations import RAAB_2024, RAAB_NOWOK_DIBBEN_2024
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.findings import OfSynthesis
from discreet.core.results import Measure
from discreet.core.verdicts import Figure as FigureValue
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.risk import synthetic_pairs
from discreet.risk.attribute_disclosure import (
    Checked,
    Pair,
    against_holdout,
    learnable,
    pictures_of_targets,
    refuse_unknown,
)
from discreet.risk.disclosure_cells import COLUMNS, LARGEST_CELL, Exclusions
from discreet.risk.replicated_uniques import Which, identity_of, not_counted
from discreet.risk.synthetic_pairs import Groups

IDENTITY = ("UiO", "UiS", "UiOiS", "repU")


def _in_a_comparison(pair: TwoFiles) -> dict[str, Any]:
    return {"targets": list(pair.sensitive) or None}


@measure(
    room="risk",
    work="class-wise",
    question="What can be learned about every column from a synthetic file?",
    headline="of the people, worst column (DiSCO)",
    chapter="learned",
    place=7,
    leading=True,
    references=(
        RAAB_2024,
        RAAB_NOWOK_DIBBEN_2024,
    ),
    figures={
        "value": Figure(unit="percent", better="lower"),
        "repU": Figure(unit="percent", better="lower", summary=True),
        "DiSCO": Figure(unit="percent", better="lower", summary=True),
        "targets": Figure("Columns checked"),
        "flagged_targets": Figure("Columns with a warning"),
    },
    compare=OfPair(14, "risk", keys=True, sensitive=True, effort=2, settings=_in_a_comparison),
    study=OfStudy(8),
    pictures=pictures_of_targets,
    synthesis=OfSynthesis(by_donors=True),
    tells=(
        "grouped",
        "missing_keys_left_out",
    ),
)
def disclosure(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    targets: Annotated[str | Sequence[str], HoldsValues()] | None = None,
    *,
    keys: ColumnNames | None = None,
    groups_target: Annotated[Groups, Public()] = None,
    groups_keys: Annotated[Groups, Public()] = None,
    special_values: Annotated[Mapping[str, Sequence[float]], HoldsValues(by_column=True)] | None = None,
    missing_target: bool = True,
    missing_keys: bool | ColumnNames = True,
    exclude_values: Annotated[Mapping[str, Sequence[Any]], HoldsValues()] | None = None,
    exclude_pairs: Annotated[Mapping[str, Sequence[Pair]], HoldsValues()] | None = None,
    denom_lim: Annotated[int, AtLeast(1)] | None = None,
    exclude_over_denom: bool = False,
    denominator: Which = "released",
    thresh_1way: Annotated[tuple[float, float], Public()] = (50, 90),
    thresh_2way: Annotated[tuple[float, float], Public()] = (4, 80),
    holdout: Microdata | None = None,
    weight: ColumnName | None = None,
    precision: Annotated[Setting, Public()] = None,
) -> Measure:
    """What can be learned from synthetic data about the people it was made from, target by target?

    Identity: who is alone with their keys in both files. Attributes: for whom does the release show one value of
    the target for their keys, and is it right. Each figure stands beside the same one for the original. All
    shares are in percent.

    Also known as: DiSCO; disclosive in synthetic, correct in original; attribute disclosure of synthpop;
    multi.disclosure.

    Parameters
    ----------
    original, released
        The two files; several synthetic copies are given as a list and averaged.
    targets
        The columns an intruder wants to learn; the sensitive columns unless named. Where none has that role, every
        column of both files that is no key, identifier or weight.
    keys
        Key columns; those of the original unless named.
    groups_target, groups_keys
        Group numeric targets or keys into so many classes by the quantiles of all files together: one number, or
        one by column.
    special_values
        By grouped column: codes that mean "not applicable" and stay classes of their own.
    missing_target, missing_keys
        Whether a missing target, or a missing key (True, False, or the keys in question), may count.
    exclude_values, exclude_pairs
        By target: values, or ``(key, key value, target value)``, that never count as a disclosure.
    denom_lim, exclude_over_denom
        Cells with more than so many records (5 unless named) are reported, or never count.
    denominator
        Whose records of a cell are its denominator: the ``released`` ones or the ``original`` ones.
    thresh_1way, thresh_2way
        Count and percent above which the two checks for disclosures that anybody would have guessed speak up.
    holdout
        Original records that were not used for the synthesis: what is disclosed about them is general knowledge,
        and ``R`` is the risk beyond it.
    weight
        A survey weight of the original: the attribute shares then speak of the population.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Measure
        ``value`` is the highest ``DiSCO``. ``figures``: ``UiO``, ``UiS``, ``UiOiS``, ``repU`` (see
        `replicated_uniques`) and ``DiSCO``, ``targets``, ``flagged_targets``. ``detail``: ``targets``, one row a
        target with ``Dorig`` (disclosed by the original), ``Dsyn`` (released records in one-valued classes),
        ``iS`` (keys found in the release), ``DiS`` (of these, one-valued classes), ``DiSCO`` (and correct),
        ``DiSDiO`` (and disclosed by the original too), ``CAPd``, ``baseCAPd``, ``DCAP``, ``TCAP``, ``denom_max``,
        ``denom_mean``; ``companions``, further figures and the two checks; ``one_way``, ``two_way``,
        ``exclusions``; ``copies`` and ``holdout`` where they apply.

    How to read it
    --------------
    One row a column of the file, in percent: ``Dorig`` is what the original would disclose about people with
    those keys, ``DiSCO`` what the release discloses rightly. Start with the columns on top. ``repU`` is the
    share of people who are alone with their keys in both files, so that a released record seems to be them. A
    column whose disclosures are flagged as explained by one value or one key is usually no cause for alarm;
    exclude that value and look again.

    When not to trust it
    --------------------
    The same limits as `attribute_disclosure`: an intruder who believes the release, keys that must be chosen
    with care, numeric columns that need grouping. With many targets the worst one looks bad partly by chance.
    Columns that follow from the keys (relationship from marital status) are disclosed by any honest file.
    Several synthetic copies averaged hide that an intruder may combine them.

    Examples
    --------
    >>> original = Microdata(pl.DataFrame({"k": list("aab"), "t": list("xxy")}), keys="k")
    >>> release = Microdata(pl.DataFrame({"k": list("abb"), "t": list("xxy")}))
    >>> disclosure(original, release).detail["targets"].select("target", "Dorig", "iS", "DiS").row(0)
    ('t', 100.0, 100.0, 66.66666666666667)
    """
    keys = engine.resolve_keys(original, keys)
    columns, notes = learnable(original, released, targets, keys)
    files = synthetic_pairs.PairedFiles.of(
        original,
        released,
        keys,
        columns,
        groups_keys=groups_keys,
        groups_target=groups_target,
        special_values=special_values,
        weight=weight,
        precision=precision,
    )
    left_out = not_counted(missing_keys, files.keys)
    who = synthetic_pairs.mean_of(
        [identity_of(files, i, left_out, "original") for i in range(len(files.copies))]
    )
    by_copy: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    warnings: dict[str, list[str]] = {}
    checks: dict[str, list[pl.DataFrame]] = {"one_way": [], "two_way": [], "exclusions": []}
    held_out_rows: list[dict[str, Any]] = []
    refuse_unknown(exclude_values, exclude_pairs, columns)
    exclusions = Exclusions(
        missing_target=missing_target,
        missing_keys=left_out,
        denom_lim=denom_lim or LARGEST_CELL,
        exclude_over=exclude_over_denom,
        denominator=denominator,
        one_way=thresh_1way,
        two_way=thresh_2way,
    )
    for target in columns:
        values, pairs = (exclude_values or {}).get(target, ()), (exclude_pairs or {}).get(target, ())
        here = replace(
            exclusions, values=(values,) if isinstance(values, str) else tuple(values), pairs=tuple(pairs)
        )
        rows = []
        for i in range(len(files.copies)):
            result = Checked.of(files, target, i, here)
            rows.append(result.figures)
            by_copy.append({"target": target, "copy": i + 1, **result.figures})
            notes += [note for note in result.cells.joint.notes if note not in notes]
            if i == 0:
                first = result
                checks["one_way"].append(_named(target, first.one_way))
                checks["two_way"].append(_named(target, first.two_way))
                checks["exclusions"].append(_named(target, first.cells.excluded()))
        mean = synthetic_pairs.mean_of(rows)
        warnings[target] = synthetic_pairs.guessable(target, first.one_way, first.two_way, mean, here)
        means.append({"target": target, **mean})
        if holdout is not None:
            held_out_rows.append({"target": target, **against_holdout(files, holdout, target, here, mean)})
    table = pl.DataFrame(means, infer_schema_length=None).sort(
        "DiSCO", "target", descending=[True, False], nulls_last=True
    )
    worst = table.row(0, named=True)
    extra = [name for name in table.columns if name not in ("target", *COLUMNS)]
    tables: dict[str, Any] = {
        "targets": table.select("target", *COLUMNS),
        "companions": table.select("target", *extra),
        **{name: pl.concat(parts) for name, parts in checks.items()},
    }
    if len(files.copies) > 1:
        tables["copies"] = pl.DataFrame(by_copy, infer_schema_length=None)
    if held_out_rows:
        tables["holdout"] = pl.DataFrame(held_out_rows, infer_schema_length=None)
    flagged = [target for target in table["target"] if warnings[target]]
    figures: dict[str, FigureValue] = {
        **{name: who[name] for name in IDENTITY},
        "DiSCO": worst["DiSCO"],
        "targets": len(columns),
        "flagged_targets": len(flagged),
    }
    return Measure(
        name="disclosure",
        value=worst["DiSCO"],
        figures=figures,
        meaning=(
            f"{percent(who['UiO'] / 100)} of the people are alone with their keys in the original and "
            f"{percent(who['repU'] / 100)} again in the release. "
            + synthetic_pairs.meaning_of(worst["target"], worst, files.keys)
        ),
        caveats=[
            *(text for target in flagged for text in warnings[target]),
            *synthetic_pairs.key_caveats(files),
            *files.notes,
            *dict.fromkeys((*files.key_cells[0].notes, *notes)),
        ],
        parameters=synthetic_pairs.parameters_of(
            files,
            columns,
            exclusions,
            excluded_values={name: len(given) for name, given in (exclude_values or {}).items()},
            excluded_pairs={name: len(given) for name, given in (exclude_pairs or {}).items()},
            thresh_1way=thresh_1way,
            thresh_2way=thresh_2way,
            holdout_file=holdout is not None,
        ),
        detail=engine.tables_like(original, **tables),
    )


def _named(target: str, table: pl.DataFrame) -> pl.DataFrame:
    return table.select(pl.lit(target).alias("target"), pl.all())
