"""Can a model tell the release from the original? The propensity score mean squared error, scaled to be readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags
from discreet.core.cards import Figure, OfPair, OfStudy, TwoFiles, measure
from discreet.core.charts import Bars, Chart, Line, Lines, finite, number, part_shown, row_bars, rows_of
from discreet.core.citations import SNOKE_2018
from discreet.core.constraints import AtLeast, Between, ColumnName, ColumnNames, Share
from discreet.core.errors import ParameterError, need_known
from discreet.core.findings import Beside, Finding, Headline, OfReleases, OfWorst
from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import compared_columns, listed_files
from discreet.utility.propensity_design import Stack, stack
from discreet.utility.propensity_findings import Findings
from discreet.utility.propensity_learners import Boosting, Cart, Custom, Fit, Learner, Logit, Prepared
from discreet.utility.propensity_nulls import Reference

Model = Literal["logit", "cart", "boosting", "linear"] | Callable[[pl.DataFrame, Flags], Any]
Nulls = Literal["auto", "theory", "permutation", "pairs", "resynthesis"]


_MOST_FOR_LOGIT = 50_000
_GOOD = 3.0
_ABOVE_GUESSING = 0.05
_FIGURES = {
    "value": Figure(better="lower"),
    "pmse": Figure("pMSE"),
    "null_mean": Figure("What a correct synthesis would give"),
    "null_sd": Figure("Standard deviation of the reference"),
    "ratio": Figure("Times what a correct synthesis gives", better="lower", summary=True),
    "standardized": Figure("Standardized pMSE"),
    "specks": Figure("Largest distance of the scores (SPECKS)"),
    "po50": Figure("Percent classified rightly beyond 50"),
    "u": Figure("Pairs of records ordered rightly, counted (Mann-Whitney U)"),
    "largest_possible": Figure("Largest possible pMSE: every record told apart"),
    "null_factor": Figure("Factor of the reference"),
    "n_original": Figure("Records of the original"),
    "n_released": Figure("Records of the release"),
    "leaves": Figure("Leaves of the tree"),
    "null_leaves": Figure("Leaves of the trees of the reference, mean"),
    "share_null_without_split": Figure("Share of reference trees that find no question", unit="share"),
    "k": Figure("Coefficients of the model"),
    "k_star": Figure("Coefficients that involve a synthesized column"),
    "p_value": Figure("p-value"),
}


def _of_a_tree(pair: TwoFiles) -> dict[str, Any]:
    return {"model": "cart", "n_perm": 10, "aligned": pair.linked and pair.ids is None}


def _of_columns_alone(pair: TwoFiles) -> dict[str, Any]:
    model = "linear" if sum(pair.sizes) > _MOST_FOR_LOGIT else "logit"
    return {"model": model, "interactions": 0, "aligned": pair.linked and pair.ids is None}


def _distinguished(found: Measure, beside: Beside) -> Iterator[Finding]:
    if is_blind(found, beside.measures):
        yield Finding(
            "blind tree",
            1,
            "The tree that is to tell the files apart found no first question, although tables of two columns differ: "
            "its pMSE of 0 is no praise.",
        )
    ratio = found.figures.get("ratio")
    first = next(iter(rows_of(found, "variables")), None)
    by = f", first by '{first['variable']}'" if first else ""
    auc = found.figures.get("auc")
    ordered = (
        f"it orders {percent(auc)} of pairs rightly (50 % is guessing)" if isinstance(auc, float) else ""
    )
    if isinstance(ratio, int | float) and ratio >= _GOOD:
        times = f"{shown(float(f'{ratio:.3g}'))} times what a correct synthesis gives"
        yield Finding(
            "told apart",
            min(ratio / _GOOD, 5),
            f"A tree tells released records from real ones{by}: {times}{'; ' if ordered else ''}{ordered}.",
        )
    elif ratio is None and ordered and isinstance(auc, float) and auc - 0.5 >= _ABOVE_GUESSING:
        yield Finding(
            "told apart",
            1 + 10 * (auc - 0.5),
            f"A tree tells released records from real ones{by}: {ordered}.",
        )


def is_blind(found: Measure, measures: Mapping[str, Measure]) -> bool:
    """Say whether the tree found nothing although tables of two columns differ: then its pMSE of 0 is no praise."""
    tables = measures.get("tabular")
    worst = tables.figures.get("max_S_pMSE") if tables else None
    return found.figures.get("leaves") in (1, 1.0) and isinstance(worst, int | float) and worst >= _GOOD


_MOST_VARIABLES = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    yield from _drivers(found)
    yield from _scores(found)


def _drivers(found: Measure) -> Iterator[Bars]:
    rows = [
        row
        for row in rows_of(found, "variables", "variable", "importance")
        if finite(row["importance"]) and row["importance"] > 0
    ]
    if not rows or "pmse" not in found.figures:
        return
    kept = rows[:_MOST_VARIABLES]
    by_wald = "wald" in rows[0]
    axis = (
        "Importance of a variable; 1 is what a correct synthesis gives on average"
        if by_wald
        else "Share of a variable in telling the files apart"
    )
    title = f"What gives the release away{part_shown(kept, rows)}"
    yield row_bars(title, kept, "variable", "importance", axis, as_share=not by_wald)


def _scores(found: Measure) -> Iterator[Lines]:
    rows = rows_of(found, "histogram", "from", "to", "original", "released")
    if not rows or "pmse" not in found.figures or not found.value:
        return
    heights = {
        file: tuple(number(row[file]) or 0.0 for row in (*rows, rows[-1]))
        for file in ("released", "original")
    }
    yield Lines(
        title="Scores of the records of both files",
        places=tuple(at / len(rows) for at in range(len(rows) + 1)),
        lines=(Line("Released", heights["released"]), Line("Original", heights["original"])),
        axis=(
            "Share of the records, upwards, by the estimated chance of being a released one; the two lines of a "
            "perfect release are alike"
        ),
        places_as_share=True,
        ends=(shown(round(float(rows[0]["from"]), 3)), shown(round(float(rows[-1]["to"]), 3))),
        stepped=True,
    )


@measure(
    room="utility",
    work="whole-file",
    name="pmse_logit",
    title="Propensity by columns alone (pMSE)",
    question="Can a model that looks at each column by itself tell them apart?",
    headline="mean squared propensity difference (pMSE)",
    chapter="joint",
    place=2,
    references=(SNOKE_2018,),
    figures=_FIGURES,
    compare=OfPair(6, "utility", by_size=True, settings=_of_columns_alone),
    pictures=_pictures,
)
@measure(
    room="utility",
    work="whole-file",
    title="Propensity (pMSE)",
    question="Can a tree tell released records from real ones?",
    headline="mean squared propensity difference (pMSE)",
    chapter="joint",
    place=1,
    leading=True,
    references=(
        "Woo, M.-J., Reiter, J. P., Oganian, A. and Karr, A. F. (2009). Global measures of data utility "
        "for microdata masked for disclosure limitation. Journal of Privacy and Confidentiality 1(1), "
        "111–124.",
        SNOKE_2018,
    ),
    figures=_FIGURES,
    columns={
        "largest_z": Figure("Largest coefficient, in standard errors"),
        "importance": Figure("Importance"),
        "variable": Figure("Column"),
    },
    compare=OfPair(5, "utility", most=50_000, by_size=True, settings=_of_a_tree),
    study=OfStudy(1, {"model": "cart", "n_perm": 20}),
    worst=OfWorst(4, _distinguished),
    pictures=_pictures,
    releases=OfReleases(
        5,
        {"ratio": "Told apart by a tree (ratio)"},
        headline=Headline(
            "ratio",
            "times a correct synthesis",
            "How well a tree tells the files apart: about 1 is ideal, below 3 good, below 10 acceptable.",
        ),
        best_at=("ratio", "the file as a whole"),
        says_nothing=is_blind,
    ),
)
def pmse(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    model: Model = "logit",
    interactions: Annotated[int, Between(0, 1)] = 1,
    squares: bool = False,
    unsynthesized: ColumnName | ColumnNames = (),
    null: Nulls = "auto",
    synthesizer: Any = None,
    n_perm: Annotated[int, AtLeast(2)] = 50,
    n_resyntheses: Annotated[int, AtLeast(2)] = 10,
    tree: Mapping[str, Annotated[float, AtLeast(0)]] | None = None,
    tree_null_scale: Annotated[float, Share(above=True)] | Literal["auto"] = "auto",
    aggregate: bool | Literal["auto"] = "auto",
    aligned: bool = False,
    synthesized_rows: ColumnName | None = None,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    weight: ColumnName | None = None,
    progress: bool = True,
    seed: Seed = None,
) -> Measure:
    """Can a model tell the release from the original?

    The two files are stacked and a model estimates, for each record, the chance that it is a released one. If the
    release is as good as the original those chances all lie near the share c of released records; pMSE is their mean
    squared distance from it, between 0 and c(1-c). Because the bare number depends on the model and the sizes, it is
    held against what a *correct synthesis* (a file drawn from the right model, fitted to the original) would give:
    ``ratio`` is 1 and ``standardized`` is 0 for one.

    Also known as: propensity score mean squared error; propensity score; SPECKS; PO50; pMSE; standardized pMSE;
    S_pMSE.

    Parameters
    ----------
    original, released
        The original, and the release or a list of copies (synthetic files of the same original).
    model
        ``"logit"``; ``"cart"``, a classification tree as rpart grows it; ``"boosting"``; ``"linear"``, the logit's
        first step, one pass over the records for very large files (close for good releases, low for bad ones); or a
        function of a table of predictors and labels that gives the chances. Use more than one.
    interactions
        Order of the interactions of logit and linear models: 0 for main effects only, 1 for all pairs as well.
    squares
        Whether logit and linear models also take the squares of numbers.
    unsynthesized
        Columns that were left as they are in a partly synthetic file.
    null
        What a correct synthesis would give: by ``"theory"`` (logit, linear), ``"permutation"`` of labels,
        ``"pairs"`` of copies, or ``"resynthesis"`` (``synthesizer`` is applied to its own output). ``"auto"`` takes
        resynthesis where there is a synthesizer, else theory for logit and linear and permutation for the others;
        for partly synthetic files pairs instead of permutation.
    synthesizer
        An object with ``fit(data, seed=)`` and ``sample(n, seed=)``, or a function of data, number of records and
        random generator.
    n_perm, n_resyntheses
        How often labels are permuted, and how often the release is synthesized again.
    tree
        Options of the tree: ``cp`` (0.001), ``minsplit`` (20), ``minbucket`` (7), ``maxdepth`` (30); for boosting
        those of scikit-learn.
    tree_null_scale
        What resampled nulls of trees are multiplied by. ``"auto"``: 1 if the trees of the null have 20 leaves or more
        on average, else 1 - c.
    aggregate
        Whether records that are alike are fitted as one with a count; the result is the same, sooner.
    aligned
        Whether record i of the release is record i of the original, masked. Labels are then permuted within pairs.
    synthesized_rows
        A yes/no column of both files, for releases in which only some records were synthesized: only those are
        compared.
    columns, categorical
        What to tell the files apart by (every column but identifiers and weights unless named), and which of them are
        numbers that are codes.
    weight
        Survey weight; that of the original unless named. It is scaled to the number of records in each file, and
        counts as 1 in a file without it.
    progress
        False keeps resampling silent on a terminal.
    seed
        For permutations and resyntheses.

    Returns
    -------
    Measure
        ``value`` is pMSE, the mean over copies. ``figures``: ``pmse``, ``null_mean``, ``null_sd``, ``ratio``,
        ``standardized``; ``specks`` (largest distance between the cumulative scores of both files), ``po50`` (percent
        classified correctly, less 50), ``u`` (Mann-Whitney, of the released scores), ``auc``; ``k`` and ``k_star``
        (coefficients, and those that involve a synthesized column, each with the intercept), ``p_value``, ``leaves``,
        ``null_leaves``, ``share_null_without_split`` and more. ``detail``: ``variables`` (which drive it),
        ``coefficients`` (of numbers that were brought to mean 0 and standard deviation 1), ``scores``, ``histogram``,
        ``copies``, ``null``.

    How to read it
    --------------
    Look at ``ratio``: about 1 is what a perfect synthesis gives, below 3 is good, below 10 is acceptable, and more
    means that analyses of the release will go wrong somewhere. ``detail["variables"]`` says where: with a logit the
    importance of a variable is again 1 for a perfect synthesis. A logit with interactions sees means, shares and
    pairs; a tree sees any difference that a few questions find. Compare releases with the same model and the same
    columns. An ``auc`` of 0.5, a ``specks`` of 0 and a ``po50`` of 0 say that the files cannot be told apart.

    When not to trust it
    --------------------
    The ratio is meant for files drawn from a fitted model. A masked file, whose records are the original ones with
    noise, is closer than any correct synthesis: its ratio is below 1, and says that it is close, not that it is
    correct (set ``aligned``). SPECKS, PO50, U and AUC have no null by permutation, and are printed bare unless there
    are pairs of copies or a synthesizer. A tree that grows a leaf for every record tells any two files apart, and one
    that finds no split tells none apart: both are said in the caveats. Whether the permutation null of a tree must be
    halved is a rule of thumb that may be wrong by up to two in either direction: where you have the synthesizer, give
    it, and the null is exact. No p-value is printed where the theory does
    not hold.

    Examples
    --------
    >>> before = Microdata(pl.DataFrame({"x": [1, 2, 3, 4, 5, 6]}))
    >>> after = Microdata(pl.DataFrame({"x": [2, 3, 4, 5, 6, 9]}))
    >>> found = pmse(before, after)
    >>> round(found.value, 7), round(found.figures["ratio"], 4)
    (0.0249667, 2.3968)
    >>> pmse(before, before).value
    0.0
    """
    copies = listed_files(released)
    learner = _learner(model, interactions, squares, dict(tree or {}))
    compared = compared_columns(original, copies, columns, without=[weight, synthesized_rows])
    names = [name for name in compared.names if name not in (weight, synthesized_rows)]
    kept = (unsynthesized,) if isinstance(unsynthesized, str) else tuple(unsynthesized)
    coded = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    need_known((*kept, *coded), names, "It is not among the compared columns.")
    if set(kept) >= set(names):
        raise ParameterError("unsynthesized names every column, so there is nothing to compare.")
    weight = engine.resolve_weight(original, weight)
    reference = Reference(
        null=null,
        fixed_columns=learner.fixed_columns,
        kept=kept,
        copies=len(copies),
        weighted=weight is not None,
        aligned=aligned,
        synthesizer=synthesizer,
        n_perm=n_perm,
        n_resyntheses=n_resyntheses,
        scale=tree_null_scale,
        seed=seed,
        progress=progress,
    )

    def prepared(before: Microdata, after: Microdata) -> Prepared:
        stacked = stack(
            before, after, names, categorical=coded, weight=weight, rows=synthesized_rows, aggregate=aggregate
        )
        if not stacked.columns:
            return _Constant(stacked)
        return learner.prepare(stacked)

    ready = [prepared(original, copy) for copy in copies]
    if aligned:
        _must_be_linked(original, copies, ready)
    fits = [_fitted(each) for each in ready]
    found = reference.found(original, copies, ready, prepared)
    result = Findings(ready, fits, found, kept, weight is not None, aligned)
    return Measure(
        name="pmse",
        value=result.pmse,
        figures=result.figures(),
        meaning=result.meaning(model),
        caveats=[*compared.caveats, *result.caveats(model)],
        parameters={
            "model": model if isinstance(model, str) else "function",
            "interactions": interactions,
            "squares": squares,
            "columns": names,
            "categorical": list(coded),
            "unsynthesized": list(kept),
            "null": found.kind,
            "n_perm": n_perm,
            "tree": dict(tree or {}),
            "tree_null_scale": tree_null_scale,
            "aligned": aligned,
            "weight": weight,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=engine.tables_like(original, **result.tables()),
    )


@dataclass(frozen=True)
class _Constant:
    """Files whose compared columns never vary: nothing tells them apart."""

    stacked: Stack
    size: int = 1

    def fit(self, released: Flags | None = None, *, spread: bool = False) -> Fit:
        ours, every = self.stacked.masses(released)
        return Fit(np.full(len(ours), ours.sum() / every.sum()), ours, every, columns=1, leaves=1)


def _fitted(ready: Prepared) -> Fit:
    fit = ready.fit(spread=True)
    if not ready.stacked.identical:
        return fit
    return replace(fit, scores=np.full(len(fit.scores), fit.share), leaves=fit.leaves and 1)


def _learner(model: Model, interactions: int, squares: bool, options: dict[str, Any]) -> Learner:
    if callable(model):
        return Custom(model)
    if options and model in ("logit", "linear"):
        raise ParameterError(f"tree holds options of trees; model='{model}' has none.")
    if model == "cart":
        return Cart.of(options)
    if model == "boosting":
        return Boosting(options)
    return Logit(interactions, squares, linear=model == "linear")


def _must_be_linked(original: Microdata, copies: Sequence[Microdata], ready: Sequence[Prepared]) -> None:
    ordered = all(engine.has_row_order(data) for data in (original, *copies))
    if not ordered or any(each.stacked.share != 0.5 for each in ready):
        raise ParameterError(
            "aligned=True says that record i of the release is record i of the original, so both need the same number "
            "of records in an order that means something. Leave aligned out."
        )
