"""What can be learned about one column from a synthetic file?

Disclosed attributes (what would be learned, and rightly), beside the same figure for the original: the measures of
Raab, Nowok and Dibben (2024), in percent as their readers expect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, measure
from discreet.core.charts import Chart, Dots, Row, figure_bars, finite, number, part_shown, rows_of
from discreet.core.citations import RAAB_2024, RAAB_NOWOK_DIBBEN_2024
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.results import Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.risk import synthetic_pairs
from discreet.risk.disclosure_cells import LARGEST_CELL, REASONS, DisclosureCells, Exclusions, identity_shares
from discreet.risk.replicated_uniques import Which, identity_of, not_counted
from discreet.risk.synthetic_pairs import Groups

_MOST_ROWS = 15


def pictures_of_targets(found: Measure, show_values: bool) -> Iterator[Chart]:
    """Draw what is told for certain about each column, or about the one that was asked about."""
    rows = rows_of(found, "targets", "target", "Dorig", "DiSCO")
    if rows:
        rows = sorted(rows, key=lambda row: -(number(row["DiSCO"]) or 0))
        kept = rows[:_MOST_ROWS]
        yield Dots(
            title=f"What can be learned about each column{part_shown(kept, rows)}",
            series=("From the release, rightly (DiSCO)", "From the original (Dorig)"),
            rows=tuple(
                Row(str(row["target"]), (_hundredth(row["DiSCO"]), _hundredth(row["Dorig"]))) for row in kept
            ),
            axis="Share of people whose value is told for certain by their keys",
        )
    elif {"Dorig", "DiSCO"} <= found.figures.keys():
        told = {"Dorig": "From the original", "DiSCO": "From the release, rightly"}
        yield from figure_bars(
            found,
            told,
            "What can be learned about the column",
            "Share of people whose value is told for certain by their keys",
            risky=("DiSCO",),
            percent=True,
        )


def _hundredth(value: object) -> float | None:
    """Turn a percentage into a share."""
    return float(value) / 100 if finite(value) else None


@measure(
    room="risk",
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
    pictures=pictures_of_targets,
    tells=(
        "grouped",
        "missing_keys_left_out",
    ),
)
def attribute_disclosure(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    target: ColumnName,
    *,
    keys: ColumnNames | None = None,
    groups_target: int | None = None,
    groups_keys: Annotated[Groups, Public()] = None,
    special_values: Annotated[Mapping[str, Sequence[float]], HoldsValues(by_column=True)] | None = None,
    missing_target: bool = True,
    missing_keys: bool | ColumnNames = True,
    exclude_values: Annotated[Sequence[Any], HoldsValues()] = (),
    exclude_pairs: Annotated[Sequence[Pair], HoldsValues()] = (),
    denom_lim: Annotated[int, AtLeast(1)] | None = None,
    exclude_over_denom: bool = False,
    denominator: Which = "released",
    thresh_1way: Annotated[tuple[float, float], Public()] = (50, 90),
    thresh_2way: Annotated[tuple[float, float], Public()] = (4, 80),
    holdout: Microdata | None = None,
    compat: Literal["synthpop"] | None = None,
    weight: ColumnName | None = None,
    precision: Annotated[Setting, Public()] = None,
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
    files = synthetic_pairs.PairedFiles.of(
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
    left_out = not_counted(missing_keys, files.keys)
    exclusions = Exclusions(
        (exclude_values,) if isinstance(exclude_values, str) else tuple(exclude_values),
        tuple(exclude_pairs),
        missing_target,
        left_out,
        denom_lim or LARGEST_CELL,
        exclude_over_denom,
        denominator,
        thresh_1way,
        thresh_2way,
    )
    results = [Checked.of(files, target, i, exclusions) for i in range(len(files.copies))]
    rows: list[dict[str, Any]] = []
    for i, result in enumerate(results):
        who = result.thinned_identity() if compat else identity_of(files, i, left_out, "original")
        rows.append({**who, **result.figures})
    figures = synthetic_pairs.mean_of(rows)
    if holdout is not None:
        figures |= against_holdout(files, holdout, target, exclusions, figures)
    first = results[0]
    tables: dict[str, Any] = {
        "records": lambda: _flag_records(files, target, exclusions),
        "one_way": first.one_way,
        "two_way": first.two_way,
        "exclusions": first.cells.excluded,
    }
    if len(rows) > 1:
        tables["copies"] = pl.DataFrame(rows).with_row_index("copy", offset=1)
    return Measure(
        name="attribute_disclosure",
        value=figures["DiSCO"],
        figures=figures,
        meaning=synthetic_pairs.meaning_of(target, figures, files.keys),
        caveats=[
            *synthetic_pairs.guessable(target, first.one_way, first.two_way, figures, exclusions),
            *synthetic_pairs.key_caveats(files),
            *files.notes,
            *dict.fromkeys((*files.key_cells[0].notes, *first.cells.joint.notes)),
        ],
        parameters=synthetic_pairs.parameters_of(
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
        detail=engine.tables_like(original, **tables),
    )


def _flag_records(files: synthetic_pairs.PairedFiles, target: str, exclusions: Exclusions) -> Any:
    exact = files.exact(target)
    joint, position = files.grouped(exact, target)
    flags = DisclosureCells.of(joint, files.keys, exclusions).flags()
    return engine.carry_scores(files.links[0], exact, (target,), flags[position])


# What the disclosure measures are to be computed on: the targets, the exclusions and the checked cells.


Pair = tuple[str, Any, Any]


@dataclass(frozen=True)
class Checked:
    """The cells of one target and copy, with the two checks and the figures."""

    cells: DisclosureCells
    one_way: pl.DataFrame
    two_way: pl.DataFrame
    figures: Mapping[str, Any]

    @classmethod
    def of(
        cls, files: synthetic_pairs.PairedFiles, target: str, copy: int, exclusions: Exclusions
    ) -> Checked:
        """Count, decide and check one target in the original and one copy."""
        joint, _ = files.cells(target, copy)
        cells = DisclosureCells.of(joint, files.keys, exclusions)
        one, two = cells.one_way(exclusions.one_way), cells.two_way(exclusions.two_way)
        over = cells.correct & (cells.sizes > exclusions.denom_lim)
        figures = {
            **cells.shares(),
            "one_way_flag": int(one["flagged"].sum()),
            "two_way_pairs": two.height,
            "records_over_denom": int(joint.original[over].sum()),
        }
        return cls(cells, one, two, figures)

    def thinned_identity(self) -> dict[str, Any]:
        """Count the uniques on tables from which the excluded cells were emptied, as synthpop does."""
        joint, reason = self.cells.joint, self.cells.reason_both
        kept = (reason == 0) | (reason == len(REASONS))
        sizes = [
            np.bincount(
                joint.owners, weights=np.where(kept, counts, 0), minlength=joint.class_labels.height
            ).astype(np.int64)
            for counts in (joint.original, joint.released)
        ]
        return identity_shares(sizes[0], sizes[1], (int(joint.original.sum()), int(joint.released.sum())))


def learnable(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    targets: str | Sequence[str] | None,
    keys: Sequence[str],
) -> tuple[tuple[str, ...], list[str]]:
    """Return the targets: those named, else the sensitive columns, else all that can be learned from both files."""
    if targets is not None:
        return engine.resolve_sensitive(original, targets, keys), []
    sensitive = [column for column in original.roles.sensitive if column not in keys]
    copies = [released] if isinstance(released, Microdata) else list(released)
    taken = (*keys, *original.roles.identifiers, original.roles.weight)
    found = sensitive or [column for column in original.columns if column not in taken]
    shared = [column for column in found if all(column in copy.schema for copy in copies)]
    empty = [
        column
        for column in shared
        for data in (original, *copies)
        if engine.overview(data, [column]).missing[column] == engine.overview(data, [column]).rows
    ]
    notes = (
        []
        if sensitive
        else ["No column has the role of a sensitive one, so every column beside the keys is a target."]
    )
    lost = [column for column in found if column not in shared or column in empty]
    if lost:
        named = ", ".join(f"'{column}'" for column in lost)
        notes.append(f"{named} is not in both files, or empty in one, and was left out of the targets.")
    columns = tuple(column for column in shared if column not in empty)
    if not columns:
        raise ColumnError(
            "The two files have no sensitive column, or none beside the keys, in common: there is no target to learn. "
            "Name some with targets=[…]."
        )
    return columns, notes


def refuse_unknown(
    values: Mapping[str, Any] | None, pairs: Mapping[str, Any] | None, columns: Sequence[str]
) -> None:
    """Refuse exclusions that are not given by target, or for a column that is none."""
    for name, given in (("exclude_values", values), ("exclude_pairs", pairs)):
        for target in given or {}:
            if target not in columns:
                raise ParameterError(f"{name} names '{target}', which is not one of the targets.")


def specific_risk(training: float, holdout: float) -> float:
    """How much is disclosed about the people in the file beyond what is about anybody?

    ``(training - holdout) / (1 - holdout)``, both as fractions (Giomi et al. 2023).

    Examples
    --------
    >>> round(specific_risk(0.3450, 0.2130), 4), round(specific_risk(0.4928, 0.3130), 4)
    (0.1677, 0.2617)
    """
    if holdout >= 1:
        raise ParameterError(
            "Everything about the held-out records is disclosed, so no risk specific to the file can be told apart."
        )
    return (training - holdout) / (1 - holdout)


def against_holdout(
    files: synthetic_pairs.PairedFiles,
    holdout: Microdata,
    target: str,
    exclusions: Exclusions,
    figures: Mapping[str, Any],
) -> dict[str, float]:
    """Measure the same for people who were not used, and what goes beyond it."""
    for column in (*files.keys, target):
        if column not in holdout.schema:
            raise ColumnError(
                f"The hold-out file has no column '{column}'. It needs the keys and the targets."
            )
    held_out = files.with_original(holdout)
    shares = [
        DisclosureCells.of(
            held_out.cells(target, i)[0], files.keys, replace(exclusions, strict=False)
        ).shares()
        for i in range(len(files.copies))
    ]
    mean = synthetic_pairs.mean_of(shares)
    return {
        "DiSCO_control": mean["DiSCO"],
        "R": specific_risk(figures["DiSCO"] / 100, mean["DiSCO"] / 100),
        "DCAP_control": mean["DCAP"],
        "R_DCAP": specific_risk(figures["DCAP"] / 100, mean["DCAP"] / 100),
    }
