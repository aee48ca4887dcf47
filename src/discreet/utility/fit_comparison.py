"""Would an analyst of the release come to the conclusions of the original?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import called
from discreet.core.cards import Figure, OfPair, measure, pictured
from discreet.core.charts import Dots, Row, finite, rows_of
from discreet.core.citations import SNOKE_2018
from discreet.core.constraints import AtLeast, ColumnName, Share
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, Finding, OfReleases, OfWorst
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import listed_files
from discreet.utility.interval_overlap import Agreement, SeSynthetic, Settings
from discreet.utility.model_fits import Family, ModelFit, fit

Model = str | Callable[[Microdata], ModelFit] | tuple[str, Family]


_MOST_COEFFICIENTS = 30


def _pictures(found: Measure, show_values: bool) -> Iterator[Dots]:
    rows = [
        row
        for row in rows_of(
            found,
            "coefficients",
            "term",
            "original",
            "se_original",
            "released",
            "low_released",
            "high_released",
        )
        if all(finite(row[name]) for name in ("original", "se_original", "released", "low_released"))
        and row["se_original"] > 0
    ]
    kept = sorted(rows, key=lambda row: row["overlap"] if finite(row["overlap"]) else 0.0)[
        :_MOST_COEFFICIENTS
    ]
    if not kept:
        return
    chosen = [row for row in rows if row in kept]
    reach = (chosen[0]["high_original"] - chosen[0]["original"]) / chosen[0]["se_original"]
    first = f" (the {len(kept)} that agree least)" if len(kept) < len(rows) else ""
    yield Dots(
        title=f"Answers of the release beside the original's{first}",
        series=("Released",),
        rows=tuple(
            Row(
                _label(row),
                ((row["released"] - row["original"]) / row["se_original"],),
                (
                    (row["low_released"] - row["original"]) / row["se_original"],
                    (row["high_released"] - row["original"]) / row["se_original"],
                ),
            )
            for row in chosen
        ),
        axis=(
            "Difference in standard errors of the original, with the confidence interval of the release; the original "
            f"stands at 0, and its own interval runs from -{reach:.3g} to {reach:.3g}"
        ),
        as_share=False,
        mark=0.0,
    )


def _label(row: dict[str, object]) -> str:
    return f"{row['model']}: {row['term']}" if row.get("model") else str(row["term"])


@pictured(_pictures)
@checked
def compare_fits(
    fit_original: ModelFit,
    fits_synthetic: ModelFit | Sequence[ModelFit],
    *,
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
    se_synthetic: SeSynthetic = "plugin",
    target: Literal["observed", "population"] = "observed",
    synthesis: Literal["complete", "partial"] = "complete",
    posterior: bool = False,
    denominator: Literal["original", "synthetic"] = "original",
    draws: Annotated[int, AtLeast(2)] = 10_000,
) -> Measure:
    """Do fits of the copies give the answers of the original's fit?

    Also known as: compare.fit.synds; lack-of-fit test.

    Parameters
    ----------
    fit_original, fits_synthetic
        Fits by `fit`, or `ModelFit` made of any names, coefficients and covariance.
    level
        Of the confidence intervals.
    se_synthetic
        Standard errors of the copies: ``"plugin"``, as each copy gives them; ``"original"``, those of the original
        (intervals of one width, as in published tables); ``"combined"``, by the combining rule.
    target
        What the intervals of the copies are about: what the original would say (``"observed"``), or the population.
    synthesis, posterior
        How the copies were made, for the combining rule: all columns or only some, with or without parameters drawn
        from their posterior.
    denominator
        Whose standard errors standardize the differences.
    draws
        Of the ellipsoid overlap.

    Returns
    -------
    Measure
        ``value`` is the mean interval overlap. ``figures``: ``overlap_mean``, ``overlap_median``, ``overlap_min``,
        ``difference_mean``, ``difference_median``, ``difference_max`` (in standard errors), ``ellipsoid_overlap`` and
        its Monte Carlo error, ``wald`` with ``wald_df``, ``wald_ratio`` (1 for a correct synthesis) and, where it
        holds, ``wald_p_value``; ``share_same_sign``, ``share_same_significance``, ``share_same_conclusion``;
        ``coefficients``, ``coefficients_in_one_only``, ``copies``. ``detail``: ``coefficients``.

    How to read it
    --------------
    An overlap of 1 is the same interval, about 0.75 a difference of one standard error, below 0 intervals that share
    nothing. Look at ``overlap_min`` and at ``share_same_conclusion``: a conclusion is the same where both files are
    sure of an effect and of its sign, or both are not. The ellipsoid overlap and the Wald ratio look at all
    coefficients together and see disagreements that single intervals miss.

    When not to trust it
    --------------------
    It speaks of this model only: a release may do well here and badly elsewhere, so use several models. Intervals of
    useless width overlap nicely. Fits that did not converge, or that are sure of some records, are said in the caveats.
    The p-value asks whether the copies come from a correct model, and is left out where its law does not hold.

    Examples
    --------
    >>> before = ModelFit(("x",), [1.0], [[0.25]])
    >>> found = compare_fits(before, ModelFit(("x",), [1.5], [[0.25]]))
    >>> round(found.value, 6), found.figures["difference_mean"]
    (0.744893, 1.0)
    """
    copies = list(fits_synthetic) if isinstance(fits_synthetic, Sequence) else [fits_synthetic]
    if not copies or not all(isinstance(one, ModelFit) for one in (fit_original, *copies)):
        raise ParameterError("compare_fits takes fits: use fit(formula, data), or make a ModelFit.")
    settings = Settings(level, se_synthetic, target, synthesis, posterior, denominator, draws)
    agreement = Agreement(fit_original, copies, settings)
    figures = agreement.figures()
    return Measure(
        name="compare_fits",
        value=figures["overlap_mean"],
        figures=figures,
        meaning=_meaning(figures),
        caveats=agreement.caveats(),
        parameters=_parameters(settings),
        detail=Detail(coefficients=agreement.table),
    )


def _other_conclusions(found: Measure, beside: Beside) -> Iterator[Finding]:
    same = found.figures.get("share_same_conclusion")
    if isinstance(same, int | float) and same < 1:
        yield Finding(
            "other conclusions",
            1 + 5 * (1 - same),
            f"An analyst of the release would come to another conclusion for {percent(1 - same)} of the coefficients.",
        )


@measure(
    room="utility",
    work="whole-file",
    title="Answers of models",
    question="Would an analyst of the release come to the same conclusions?",
    headline="mean overlap of intervals",
    chapter="specific",
    place=1,
    leading=True,
    references=(
        "Karr, A. F., Kohnen, C. N., Oganian, A., Reiter, J. P. and Sanil, A. P. (2006). A framework for "
        "evaluating the utility of data altered to protect confidentiality. The American Statistician "
        "60(3), 224–232. doi:10.1198/000313006X124640",
        SNOKE_2018,
    ),
    figures={
        "value": Figure(better="higher"),
        "overlap_mean": Figure("Mean overlap of intervals", better="higher", summary=True),
        "overlap_median": Figure("Median overlap of intervals"),
        "overlap_min": Figure("Smallest overlap"),
        "difference_mean": Figure(
            "Mean difference of coefficients, in standard errors", better="lower", summary=True
        ),
        "difference_median": Figure("Median difference of coefficients, in standard errors"),
        "difference_max": Figure("Largest difference of a coefficient, in standard errors"),
        "ellipsoid_overlap": Figure("Overlap of the confidence ellipsoids of all coefficients"),
        "ellipsoid_error": Figure("Error of the overlap of ellipsoids"),
        "wald": Figure("Wald statistic"),
        "wald_df": Figure("Degrees of freedom of the Wald statistic"),
        "wald_ratio": Figure("Wald statistic, in times of what chance gives"),
        "wald_p_value": Figure("p-value of the Wald statistic"),
        "share_same_sign": Figure("Coefficients with the same sign", unit="share"),
        "share_same_significance": Figure(
            "Coefficients that are significant in both files or in neither", unit="share"
        ),
        "share_same_conclusion": Figure("Coefficients with the same conclusion", unit="share"),
        "coefficients": Figure("Coefficients"),
        "coefficients_in_one_only": Figure("Coefficients that only one of the files has"),
    },
    compare=OfPair(7, "utility"),
    worst=OfWorst(5, _other_conclusions),
    pictures=_pictures,
    releases=OfReleases(
        6,
        {"overlap_mean": "Overlap of intervals"},
        best_at=("overlap_mean", "the models that were named"),
    ),
    tells=(
        "families",
        "models",
        "rule",
    ),
)
def compare_model(
    formula: Model | Mapping[str, Model],
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    family: Family = "linear",
    weight: ColumnName | None = None,
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
    se_synthetic: SeSynthetic = "plugin",
    target: Literal["observed", "population"] = "observed",
    synthesis: Literal["complete", "partial"] = "complete",
    posterior: bool = False,
    denominator: Literal["original", "synthetic"] = "original",
    draws: Annotated[int, AtLeast(2)] = 10_000,
) -> Measure:
    """Would an analyst of the release come to the conclusions of the original?

    The model is fitted to the original and to every copy, with the reference levels of the original, and the fits are
    compared as in `compare_fits`.

    Parameters
    ----------
    formula
        ``"income ~ age + sex"``; a function of a file that gives a `ModelFit` (for survey designs); or several models
        by name, each a formula, a pair of formula and family, or a function.
    original, released
        The original, and the release or a list of copies.
    family
        ``"linear"``, ``"logistic"``, ``"poisson"`` or ``"multinomial"``, of the formulas that do not say it.
    weight
        A column of survey weights, used in the files that have it; the role of each file unless named, so that a
        weighted survey is compared with synthetic files that stand for its population.
    level, se_synthetic, target, synthesis, posterior, denominator, draws
        As in `compare_fits`.

    Returns
    -------
    Measure
        ``value`` and ``figures`` as in `compare_fits`; of several models the means, the smallest overlap, the largest
        difference and the numbers of coefficients together. ``detail``: ``coefficients`` (with the model's name),
        ``models`` (the figures of each).

    How to read it
    --------------
    Read it as `compare_fits`. With several models look at ``detail["models"]``: the worst one says for which analyses
    the release should not be used. Choose models that users of the data would fit, not only easy ones.

    When not to trust it
    --------------------
    It says nothing about models that were not tried. Records with missing values are left out of each fit, so that a
    release with other gaps is compared on other records. Levels that a file lacks have no coefficient there: they are
    counted, not scored.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=200)
    >>> before = Microdata(pl.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200)}))
    >>> after = Microdata(pl.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200)}))
    >>> found = compare_model("y ~ x", before, after)
    >>> found.figures["share_same_conclusion"], found.detail["coefficients"]["term"].to_list()
    (1.0, ['Intercept', 'x'])
    """
    copies = listed_files(released)
    models = dict(formula) if isinstance(formula, Mapping) else {"model": formula}
    if not models:
        raise ParameterError("No model was named. Give a formula, e.g. 'income ~ age + sex'.")
    settings = Settings(level, se_synthetic, target, synthesis, posterior, denominator, draws)
    found = {
        name: _agreement(model, original, copies, family, weight, settings) for name, model in models.items()
    }
    summaries = {name: agreement.figures() for name, agreement in found.items()}
    figures = next(iter(summaries.values())) if len(found) == 1 else _overall(list(summaries.values()))
    told = (
        f"{name}: {said}" if len(found) > 1 else said for name, one in found.items() for said in one.caveats()
    )
    caveats = list(dict.fromkeys(told))

    def coefficients() -> pl.DataFrame:
        tables = [one.table().with_columns(model=pl.lit(name)) for name, one in found.items()]
        table = pl.concat(tables)
        return table.drop("model") if len(found) == 1 else table.select("model", pl.exclude("model"))

    by_model = [{"model": name, **figure} for name, figure in summaries.items()]

    return Measure(
        name="compare_model",
        value=figures["overlap_mean"],
        figures=figures,
        meaning=_meaning(figures, len(found)),
        caveats=caveats,
        parameters={
            "models": {name: one.original.formula or "function" for name, one in found.items()},
            "families": {name: one.original.family or "own" for name, one in found.items()},
            "weight": weight or original.roles.weight,
            **_parameters(settings),
        },
        detail=engine.tables_like(
            original, coefficients=coefficients, models=pl.DataFrame(by_model, infer_schema_length=None)
        ),
    )


def _agreement(  # noqa: PLR0917
    model: Model,
    original: Microdata,
    copies: Sequence[Microdata],
    family: Family,
    weight: str | None,
    settings: Settings,
) -> Agreement:  # fmt: skip
    if callable(model):
        fits = [called(model, "formula", data) for data in (original, *copies)]
        if not all(isinstance(one, ModelFit) for one in fits):
            raise ParameterError("A model function must give a ModelFit: names, coefficients and covariance.")
        return Agreement(fits[0], fits[1:], settings)
    formula, kind = (model, family) if isinstance(model, str) else model
    base = fit(formula, original, kind, weight=weight)
    others = [
        fit(formula, copy, kind, like=base, weight=weight if weight in copy.schema else None)
        for copy in copies
    ]
    return Agreement(base, others, settings)


def _overall(summaries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    worst = {"overlap_min": min, "difference_max": max}
    total = ("coefficients", "coefficients_in_one_only")
    figures: dict[str, Any] = {}
    for name in summaries[0]:
        known = [one[name] for one in summaries if one[name] is not None]
        if not known or name == "wald_p_value":
            figures[name] = None
        elif name in worst:
            figures[name] = worst[name](known)
        elif name in total:
            figures[name] = sum(known)
        else:
            figures[name] = float(np.mean(known)) if name != "copies" else known[0]
    figures.pop("wald", None)
    figures.pop("wald_df", None)
    figures.pop("wald_p_value", None)
    return {**figures, "models": len(summaries)}


def _meaning(figures: Mapping[str, Any], models: int = 1) -> str:
    if figures["overlap_mean"] is None:
        return "The fits share no coefficient with a standard error, so that nothing can be compared."
    of = f" of {models} models" if models > 1 else ""
    return (
        f"The confidence intervals of {figures['coefficients']:,} coefficients{of} overlap by "
        f"{percent(max(figures['overlap_mean'], 0.0))} on average, at worst by {shown(float(figures['overlap_min']))} "
        f"(1 is the same, below 0 they share nothing); {percent(figures['share_same_conclusion'])} of the conclusions "
        "stay the same."
    )


def _parameters(settings: Settings) -> dict[str, Any]:
    names = ("level", "se_synthetic", "target", "synthesis", "posterior", "denominator", "rule")
    return {name: getattr(settings, name) for name in names}
