"""For how many people is a released record nearer than any other person?

Epsilon-identifiability (Yoon, Drumright and van der Schaar 2020), with the value that fresh draws would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.cards import Figure, measure
from discreet.core.constraints import ColumnNames, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.numerics.mutual_information import count_entropy
from discreet.pairs.side_by_side import check_categorical, column_caveats, compared_columns, tables_of
from discreet.risk.equivalence_classes import records_only

Weights = Literal["entropy", "none"] | Mapping[str, float]


@measure(
    room="risk",
    title="Identifiability",
    headline="of the people have a released record nearer than anybody else",
    chapter="found",
    work="whole-file",
    place=21,
    references=(
        "Yoon, J., Drumright, L. N. and van der Schaar, M. (2020). Anonymization through data synthesis "
        "using generative adversarial networks (ADS-GAN). IEEE Journal of Biomedical and Health "
        "Informatics 24(8), 2378–2388.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "epsilon_identifiability": Figure("Share identifiable (epsilon)", unit="share"),
        "epsilon_baseline": Figure("Identifiable by chance alone", unit="share"),
        "epsilon_excess": Figure("Identifiable beyond chance", better="lower", summary=True),
        "identified": Figure("People identified"),
        "records": Figure("People"),
        "duplicates": Figure("People with a twin in the original"),
    },
)
def identifiability(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    weights: Annotated[Weights, Public()] = "entropy",
    scale: Literal["range", "none"] = "range",
    progress: bool = False,
) -> Measure:
    """For how many people is a released record nearer than any other person?

    A person is identified when the nearest released record is strictly nearer than the nearest other original
    record. Numbers are in units of their range in the original, categories are 0/1 columns, and differences are
    multiplied by the column's weight: by default one over its entropy, so that rare values weigh more.

    Also known as: epsilon-identifiability; identifiability score.

    Parameters
    ----------
    original, released
        The two files.
    columns, categorical, scale, progress
        As in `shared_neighbors`.
    weights
        ``entropy``, ``none``, or a number by column.

    Returns
    -------
    Measure
        ``value`` is the share of people identified. ``figures``: ``epsilon_identifiability``,
        ``epsilon_baseline`` (m/(m+n-1): what m fresh draws would give against n people), ``epsilon_excess``
        (above the baseline), ``identified``, ``records``, ``duplicates`` (people with a twin in the original; never
        counted as identified). ``detail``: ``records``, ``variables`` (weights).

    How to read it
    --------------
    Read it against ``epsilon_baseline``, not alone: as many fresh real records as people would be nearest for about
    half of them. An excess clearly above 0 says that the generator keeps closer to its people than other people of the
    same population are. Below 0 it keeps away from them, often because it is no good likeness.

    When not to trust it
    --------------------
    The baseline holds for continuous data without ties; where many people are twins of others it is too high. A share
    below it clears nobody: a few copied records do not move it. Distances of many columns are all alike, and the
    nearest record is then nearest by chance.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 30, 40, 50], "pay": [1.0, 2.0, 3.0, 9.0]})
    >>> copies = pl.DataFrame({"age": [20, 31, 40, 90], "pay": [1.0, 2.1, 3.0, 0.0]})
    >>> identifiability(Microdata(people), Microdata(copies)).figures["identified"]
    3
    """
    compared = compared_columns(original, [released], columns)
    names = compared.names
    ours, theirs = tables_of([original, released], names)
    space, used = identifying_space(
        ours, theirs, categorical=check_categorical(names, categorical), weights=weights, scale=scale
    )
    found = identified(space, ours, theirs, progress=progress)
    return Measure(
        name="identifiability",
        value=found.share,
        figures={
            "epsilon_identifiability": found.share,
            "epsilon_baseline": found.baseline,
            "epsilon_excess": found.share - found.baseline,
            "identified": int(found.flags.sum()),
            "records": ours.height,
            "duplicates": found.duplicates,
        },
        meaning=(
            f"For {int(found.flags.sum()):,} of {ours.height:,} people ({percent(found.share)}) a released record is "
            f"nearer than any other person of the original; if the release were made of fresh people it would be "
            f"about {percent(found.baseline)}, so {verdict(found.share - found.baseline)}."
        ),
        caveats=[
            *records_only(original),
            *compared.caveats,
            *identifiability_caveats(found),
            *column_caveats(space, (ours, theirs), names),
        ],
        parameters={
            "columns": list(names),
            "categorical": list(categorical),
            "weights": weights if isinstance(weights, str) else dict(weights),
            "scale": scale,
        },
        detail=engine.tables_like(
            original,
            records={
                "record": np.arange(ours.height),
                "to_released": found.to_released,
                "to_original": found.to_original,
                "identified": found.flags,
            },
            variables={"column": list(used), "weight": list(used.values())},
        ),
    )


@dataclass(frozen=True)
class Identified:
    """The people for whom a released record is nearer than any other person."""

    flags: Flags
    to_released: Floats
    to_original: Floats
    baseline: float

    @property
    def share(self) -> float:
        """The share of people identified."""
        return float(self.flags.mean())

    @property
    def duplicates(self) -> int:
        """People with a twin in the original."""
        return int((self.to_original == 0).sum())


def identified(
    space: MixedSpace,
    ours: pl.DataFrame,
    theirs: pl.DataFrame,
    *,
    others: Floats | None = None,
    progress: bool = False,
) -> Identified:
    """Hold the nearest released record of each person against the nearest other person.

    ``others``, the distances to the nearest other person, can be handed in when they are known already.
    """
    if ours.height < 2:
        raise ParameterError("The original has one record; identifiability needs at least two.")
    points, released = space.place(ours), space.place(theirs)
    if others is None:
        others = nearest(space, points, progress=progress, description="Person to person").distance[:, 0]
    found = nearest(space, points, released, progress=progress, description="Person to release")
    across = found.distance[:, 0]
    fresh = theirs.height / (theirs.height + ours.height - 1)
    return Identified(across < others * (1 - 1e-12), across, others, fresh)


def identifying_space(
    ours: pl.DataFrame,
    *others: pl.DataFrame,
    categorical: Sequence[str],
    weights: Weights = "entropy",
    scale: Literal["range", "none"] = "range",
) -> tuple[MixedSpace, dict[str, float]]:
    """Fit the weighted Euclidean space of the measure; a column of zero entropy is dropped."""
    if isinstance(weights, str):
        used = {
            name: 1.0 if weights == "none" else _one_over(column_entropy(ours[name], name in categorical))
            for name in ours.columns
        }
    else:
        for name in weights:
            if name not in ours.columns:
                raise ColumnError(
                    f"weights names '{name}', which is not among the columns that are compared."
                )
        used = {name: float(weights.get(name, 1.0)) for name in ours.columns}
    squared = {name: weight**2 for name, weight in used.items()}
    space = MixedSpace.fit(
        ours, *others, distance="euclidean", scale=scale, categorical=categorical, weights=squared
    )
    if not space.columns:
        raise ColumnError("No column of the original varies, so no two records can be told apart.")
    return space, used


def column_entropy(column: pl.Series, as_category: bool = False) -> float:
    """Entropy (nats) of the values of a column; numbers in bins of the width of Freedman and Diaconis.

    Missing is a value. Where that width is zero (more than half of the values are the same), Sturges' rule is
    used; a column with no more distinct values than bins is counted value by value.

    Examples
    --------
    >>> round(column_entropy(pl.Series(["a", "b", "a", "b"])), 4)
    0.6931
    """
    if (column.dtype.is_numeric() or column.dtype.is_temporal()) and not as_category:
        known = column.drop_nulls().to_physical().cast(pl.Float64)
        if known.n_unique() > 1:
            values = known.to_numpy()
            quartiles = np.quantile(values, [0.25, 0.75])
            width = 2 * (quartiles[1] - quartiles[0]) / len(values) ** (1 / 3)
            bins = np.ptp(values) / width if width > 0 else np.log2(len(values)) + 1
            bins = int(min(np.ceil(bins), len(values)))
            if known.n_unique() > bins:
                counts = np.histogram(values, bins=max(bins, 1))[0].astype(np.float64)
                return count_entropy(np.append(counts, column.null_count()))
    return count_entropy(column.unique_counts().to_numpy().astype(np.float64))


def identifiability_caveats(found: Identified) -> list[str]:
    """Say when the share must not be trusted."""
    caveats = [
        "Read it against its baseline, not alone: with as many released records as people about half are 'identified' "
        "by chance. The baseline holds for continuous data without ties.",
    ]
    if found.duplicates:
        caveats.append(
            f"{found.duplicates:,} people have a twin in the original and can never count as identified; the "
            "baseline is too high by about their share."
        )
    return caveats


def verdict(excess: float) -> str:
    """Put the distance from the baseline into words."""
    if excess > 0.02:
        return "the release keeps closer to these people than chance would"
    return "there is no sign that the release keeps closer to these people than chance would"


def _one_over(entropy: float) -> float:
    return 1 / entropy if entropy > 0 else 0.0
