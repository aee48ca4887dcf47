"""What is learned of people who are alone with what an intruder knows, in the file and in the release?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.utility.table_codes import Coding, Released

_FEW = 30
_TEST = 0.3


def _with_keys(facts: ReleaseFacts) -> dict[str, Any] | None:
    return {} if facts.roles.get("keys") else None


@measure(
    room="attack",
    title="Unique quasi-identifiers",
    question="What is learned of people who are alone with their quasi-identifiers?",
    headline="largest improvement over a guess from statistics",
    chapter="attackers",
    place=40,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Largest improvement of precision over the baseline", better="lower", summary=True),
        "mean_improvement": Figure("Mean improvement of precision over the baseline", better="lower"),
        "median_improvement": Figure("Median improvement of precision over the baseline", better="lower"),
        "matches": Figure("People alone in both files, on average over columns", better="lower"),
        "coverage": Figure("Share of the people whom the attack speaks of", unit="share", better="lower"),
        "full_matches": Figure("Unique records that come back whole", better="lower"),
    },
    of_release=OfReleaseStudy(14, _with_keys),
)
@checked
def quasi_identifier_attack(
    original: Microdata,
    released: Any,
    *,
    known: ColumnName | ColumnNames | None = None,
    secret: ColumnName | ColumnNames | None = None,
    bins: Annotated[int, AtLeast(2)] = 20,
    least: Annotated[int, AtLeast(1)] = _FEW,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """What is learned of people who are alone with their quasi-identifiers, in the file and in the release?

    The intruder knows some columns of everybody, looks for people who are alone with them in the file, and takes the
    released record that is alone with the same values for theirs. Of every other column, the share of values that
    come out right is held against what a model predicts that was fitted to real people and knows the same columns (a
    logistic regression with a penalty on absolute values, fitted to 70 % of the original and judged by the rest). What
    counts is the improvement, ``(attack - baseline) / (1 - baseline)``.

    Also known as: quasi-identifier attack.

    Parameters
    ----------
    original, released
        The file before and after. In a release of many tables each column is attacked in the table that has it and
        what is known.
    known
        The quasi-identifiers; the keys of the original unless named.
    secret
        The columns that are to be learned; all others unless named.
    bins
        Numbers with more distinct values than this are learned up to one of so many classes.
    least
        Columns with fewer matches are shown and do not count for the headline: a share of a handful says little.
    progress
        Show a progress bar on a terminal.
    seed
        Of the split for the baseline.

    Returns
    -------
    Measure
        ``value`` is the largest improvement; missing where no column has enough matches. ``figures``:
        ``mean_improvement``, ``median_improvement``, ``matches``, ``coverage``, ``full_matches`` (of one file).
        ``detail``: ``columns``.

    How to read it
    --------------
    0 means that the release tells no more of these people than statistics about others do, and less than 0 that it
    tells less. The author of the attack calls a release safe below 0.5; ask for less where you can. Read the coverage
    beside it: a sure find of two people in a million is a rare accident.

    When not to trust it
    --------------------
    The baseline has seen real people, and the weaker it is (few records, many classes), the more the attack seems to
    gain. People who share their quasi-identifiers with others are not attacked. Use `discreet.attack.inference` with a
    control beside it.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> real = Microdata(pl.DataFrame({"age": range(400), "ill": rng.integers(0, 2, 400)}), keys=["age"])
    >>> quasi_identifier_attack(real, real, seed=1).value
    1.0
    """
    files = Released(original, released)
    keys = files.named(known if known is not None else list(original.roles.keys))
    if not keys:
        raise ParameterError("Say what the intruder knows: known=[…], or the role keys.")
    others = [name for name in files.named(secret) if name not in keys]
    if not others:
        raise ParameterError("There is no other column to be learned.")
    codings = {name: Coding(files.real[name], len(files.real) + 1, None) for name in keys}
    codings |= {name: Coding(files.real[name], bins, None) for name in others}
    real = pl.DataFrame({name: codings[name].codes(files.real[name]) for name in (*keys, *others)})
    draws = generator(seed, "baseline").permutation(real.height)
    rows: list[tuple[str, int, float | None, float, float | None]] = []
    for name in track(others, description="Attacking", progress=progress):
        table = files.table([*keys, name])
        made = pl.DataFrame({own: codings[own].codes(table[own]) for own in (*keys, name)})
        alone = [own.filter(own.select(pl.struct(keys).is_unique()).to_series()) for own in (real, made)]
        found = alone[0].join(alone[1], on=keys, suffix=" released")
        base = _baseline(real.select(keys), real[name].to_numpy(), draws)
        if not found.height:
            rows.append((name, 0, None, base, None))
            continue
        rate = float((found[name] == found[f"{name} released"]).to_numpy().mean())
        rows.append((name, found.height, rate, base, 0.0 if base >= 1 else (rate - base) / (1 - base)))
    kinds: list[tuple[str, Any]] = [
        ("column", pl.String),
        ("matches", pl.Int64),
        ("precision", pl.Float64),
        ("baseline", pl.Float64),
        ("improvement", pl.Float64),
    ]
    columns = pl.DataFrame(rows, schema=kinds, orient="row")
    columns = columns.sort("improvement", descending=True, nulls_last=True)
    enough = pl.col("improvement").is_not_null() & (pl.col("matches") >= least)
    counted = columns.filter(enough)["improvement"].to_numpy()
    matches = float(np.mean([row[1] for row in rows]))
    value = float(counted.max()) if len(counted) else None
    figures = {
        "mean_improvement": float(counted.mean()) if len(counted) else None,
        "median_improvement": float(np.median(counted)) if len(counted) else None,
        "matches": matches,
        "coverage": matches / real.height,
        "full_matches": None if files.many else _full_matches(files, [*keys, *others]),
    }
    return Measure(
        "quasi_identifier_attack",
        value,
        figures,
        f"Of {matches:.0f} people who are alone with what is known ({percent(matches / real.height)}), "
        + (
            f"at best {value:.2f} of the way from a guess to certainty is gained by the release."
            if value is not None
            else "too few were matched to say what the release gains."
        ),
        caveats=[
            "The baseline is a model of one kind; a weaker baseline makes the attack look stronger.",
            *(
                [f"{columns.height - len(counted)} columns had fewer than {least} matches and do not count."]
                if len(counted) < columns.height
                else []
            ),
        ],
        detail={"columns": columns},
        parameters={"known": keys, "bins": bins, "least": least},
    )


def _baseline(known: pl.DataFrame, answers: Integers, order: Integers) -> float:
    """Fit a logistic model with an L1 penalty to 70 % of the people, and judge it by the others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    x = OneHotEncoder(handle_unknown="ignore").fit_transform(known.to_numpy())
    cut = max(1, round((1 - _TEST) * len(order)))
    train, test = order[:cut], order[cut:]
    if not len(test) or len(np.unique(answers[train])) < 2:
        test = order if not len(test) else test
        return float((answers[test] == answers[train][0]).mean())
    model = LogisticRegression(l1_ratio=1.0, C=0.01, solver="saga", max_iter=100, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(x[train], answers[train])
    return float((model.predict(x[test]) == answers[test]).mean())


def _full_matches(files: Released, names: Sequence[str]) -> int:
    """Count records that are like no other in the original and come back in every column."""
    real, made = (
        frame.select(pl.col(name).cast(pl.String) for name in names)
        for frame in (files.real, files.table(list(names)))
    )
    alone = real.filter(real.select(pl.struct(names).is_unique()).to_series())
    return alone.join(made.unique(), on=list(names), how="semi", nulls_equal=True).height
