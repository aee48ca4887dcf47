"""Can rebuilt records be tied to people, or does it only look so?

A link is provable when one rebuilt record and one person of an outside list stand alone in a combination. Any other
link is a draw. Confirming a link by the identifier that it was given is circular: it shows that the outside list holds
real people, and nothing about the link.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent


@checked
def putative_links(
    reconstructed: pl.DataFrame,
    external: pl.DataFrame,
    *,
    on: ColumnNames,
    identifier: ColumnName,
    truth: pl.DataFrame | None = None,
    confirm: ColumnNames = (),
    unit: ColumnName | None = None,
    policy: Literal["unique_only", "all_random"] = "unique_only",
    seed: Seed = None,
) -> Measure:
    """How many rebuilt records can be tied to a person, and how many of these ties can be proved?

    Also known as: putative re-identification; confirmed re-identification.

    Parameters
    ----------
    reconstructed
        The rebuilt records.
    external
        An outside list of people with the columns ``on`` and an identifier.
    on
        The columns on which they are linked, the place among them.
    identifier
        The identifier in the outside list, and in ``truth``.
    truth
        The confidential file, one row a person, with the identifier, ``on`` and ``confirm``.
    confirm
        Columns that were rebuilt and are not in ``on``: what a link would reveal.
    unit
        The column of the place, whose most frequent value is what a guesser would say; the whole file without it.
    policy
        ``unique_only`` links only where one record and one person stand alone; ``all_random`` also draws.
    seed
        For the draws.

    Returns
    -------
    Measure
        ``value`` is the share of rebuilt records with a provable link. ``figures``: ``records``, ``unique_share`` (of
        the outside list), ``putative_rate``, ``provable_rate``, ``random_precision`` (expected share of draws that are
        right, where both sides hold the same people); with a truth also ``circular_rate``, ``correct_rate``,
        ``new_accuracy``, ``baseline_accuracy``, ``gain`` and ``gain_off_mode``.

    How to read it
    --------------
    ``provable_rate`` is what an intruder can be sure of. A high ``putative_rate`` with a low provable one means
    guesses. ``gain`` says how much more often a provable link gets a new attribute right than guessing the most
    frequent value of the place would: only this is information about the person.

    When not to trust it
    --------------------
    The outside list may be out of date or incomplete: being alone in it is not being alone in the world.
    ``circular_rate`` is shown as a warning, and is no measure of risk.

    Examples
    --------
    >>> women = pl.DataFrame({"sex": ["f"] * 10})
    >>> people = women.with_row_index("id")
    >>> found = putative_links(women, people, on=["sex"], identifier="id", policy="all_random", seed=1)
    >>> found.figures["putative_rate"], found.figures["provable_rate"], found.figures["random_precision"]
    (1.0, 0.0, 0.1)
    """
    need_known([*on, *confirm], reconstructed.columns, before="reconstructed: ")
    need_known([*on, identifier], external.columns, before="external: ")
    if not reconstructed.height:
        raise ParameterError("reconstructed has no records: there is nothing to link.")
    keys = list(on)
    records = reconstructed.with_row_index("record").with_columns(
        pl.len().over(keys).alias("records_here"), pl.int_range(pl.len()).over(keys).alias("place_here")
    )
    rng = generator(seed, "tables/links")
    people = (
        external.select(*keys, identifier)
        .with_columns(draw=pl.Series(rng.random(external.height)))
        .sort("draw", maintain_order=True)
        .with_columns(
            pl.len().over(keys).alias("people_here"), pl.int_range(pl.len()).over(keys).alias("place_here")
        )
        .drop("draw")
    )
    linked = records.join(
        people, on=[*keys, "place_here"], how="left", nulls_equal=True, maintain_order="left"
    )
    alone = (pl.col("records_here") == 1) & (pl.col("people_here") == 1)
    linked = linked.with_columns(provable=alone.fill_null(False))
    drawn = linked[identifier].is_not_null() if policy == "all_random" else linked["provable"]
    n = reconstructed.height
    here = people.group_by(keys).agg(pl.len().alias("·k"))
    figures: dict[str, float | int | None] = {
        "records": n,
        "unique_share": float((here["·k"] == 1).sum() / max(external.height, 1)),
        "putative_rate": float(drawn.sum() / n),
        "provable_rate": float(linked["provable"].sum() / n),
        "random_precision": float(here.height / max(external.height, 1)),
    }
    caveats = []
    if truth is not None:
        figures |= _confirmed(linked.filter(drawn), truth, keys, identifier, list(confirm), unit)
        caveats.append(
            "circular_rate compares identifiers that the link itself copied from the outside list: it would be high "
            "for any list of real people, and is no measure of risk."
        )
    return Measure(
        name="putative_links",
        value=figures["provable_rate"],
        figures=figures,
        meaning=(
            f"{percent(figures['putative_rate'])} of {n:,} rebuilt records can be given a person of the outside list, "
            f"but only {percent(figures['provable_rate'])} provably: they stand alone on both sides."
        ),
        caveats=caveats,
        parameters={"on": keys, "policy": policy, "confirm": list(confirm)},
    )


def _confirmed(  # noqa: PLR0917
    links: pl.DataFrame,
    truth: pl.DataFrame,
    keys: list[str],
    identifier: str,
    confirm: list[str],
    unit: str | None,
) -> dict[str, float | int | None]:
    """Hold links against the truth: the circular way, and the ways that say something."""
    need_known([*keys, *confirm, identifier], truth.columns, before="truth: ")
    if not links.height:
        return dict.fromkeys(["circular_rate", "correct_rate", "new_accuracy", "baseline_accuracy", "gain"])
    known = links.join(
        truth.select(identifier, *keys).unique(), on=[identifier, *keys], how="semi", nulls_equal=True
    )
    found: dict[str, float | int | None] = {"circular_rate": known.height / links.height}
    if not confirm:
        return found
    own = truth.select(identifier, *(pl.col(name).alias(f"true {name}") for name in confirm))
    sure = links.filter("provable").join(own, on=identifier, how="inner")
    places = [unit] if unit is not None else []
    mode = (
        truth.group_by([*places, *confirm])
        .len()
        .sort("len", *confirm, descending=[True, *[False] * len(confirm)])
        .group_by(places or pl.lit(0).alias("all"), maintain_order=True)
        .first()
        .select(*places, *(pl.col(name).alias(f"mode {name}") for name in confirm))
    )
    sure = sure.join(mode, on=places, how="left") if places else sure.join(mode, how="cross")
    right = np.ones(sure.height, dtype=bool)
    guessed = np.ones(sure.height, dtype=bool)
    for name in confirm:
        right &= (sure[name] == sure[f"true {name}"]).fill_null(False).to_numpy()
        guessed &= (sure[f"true {name}"] == sure[f"mode {name}"]).fill_null(False).to_numpy()
    found["correct_rate"] = float(right.sum() / links.height)
    found["new_accuracy"] = float(right.mean()) if len(right) else None
    found["baseline_accuracy"] = float(guessed.mean()) if len(right) else None
    found["gain"] = float(right.mean() - guessed.mean()) if len(right) else None
    found["gain_off_mode"] = float(right[~guessed].mean()) if (~guessed).any() else None
    return found
