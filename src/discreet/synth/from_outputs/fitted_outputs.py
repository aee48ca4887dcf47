"""Files that were made from published results, with the account of how well each result is met.

Whether such a file tells more about the people behind it than about strangers is measured, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet._version import __version__
from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.randomness import Seed
from discreet.core.results import Detail, Measure
from discreet.core.values import jsonable
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata, require_microdata
from discreet.risk.correct_attribution import attribution
from discreet.synth.from_outputs.bound_targets import BoundModel
from discreet.synth.from_outputs.codebook import frame_of
from discreet.synth.from_outputs.starting_file import Preparation, SwapStart
from discreet.synth.saved_models import stored, unstored
from discreet.synth.synthesizer import Fitted, seed_of

if TYPE_CHECKING:
    from discreet.synth.from_outputs.teaching_data import FromOutputs


@stored("file-of-outputs")
@dataclass(frozen=True, eq=False)
class Run:
    """One file and what became of the targets.

    Attributes
    ----------
    file
        Numbers and level positions, one row a record.
    loss
        Sum over targets of weight times mean squared difference, on the scale of the synthesizer.
    targets
        ``target``, ``figure``, ``published``, ``achieved``, ``difference``, ``unit``, ``met``.
    trace
        ``step`` (batch or generation), ``loss`` (of the best file so far), ``changes`` and ``phase``: losses of
        different phases of the swap engine are on different scales.
    notes
        What could not be reached, and why.
    """

    file: Floats
    loss: float
    targets: pl.DataFrame
    trace: pl.DataFrame
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        plan: FromOutputs,
        preparation: Preparation,
        file: Floats,
        trace: Sequence[tuple[int, float, int, str]],
        short: Sequence[str],
    ) -> Run:
        """Compute every published figure from the file, models by a true refit."""
        loss, tables, notes = 0.0, [], []
        for bound in preparation.bounds:
            achieved = bound.achieved(file)
            spread = bound.spread(file) if plan.loss_scale == "se" else None
            loss += bound.weight * bound.loss(achieved, plan.loss_scale, plan.penalty, spread)
            met = bound.met(achieved)
            tables.append(
                pl.DataFrame(
                    {
                        "target": [bound.title] * len(met),
                        "figure": list(bound.labels),
                        "published": bound.published,
                        "achieved": achieved,
                        "difference": achieved - bound.published,
                        "unit": 2 * bound.halves,
                        "met": met,
                    }
                )
            )
            if not met.all():
                notes.append(_missed(bound.title, tables[-1], isinstance(bound, BoundModel)))
        if short:
            notes.append(
                f"Tables and margins leave too few records of one outcome behind {', '.join(short)}."
            )
        steps = pl.DataFrame(
            list(trace),
            schema={"step": pl.Int64, "loss": pl.Float64, "changes": pl.Int64, "phase": pl.String},
            orient="row",
        )
        return cls(file, loss, pl.concat(tables).fill_nan(None), steps, tuple(notes))


@stored("fitted-outputs")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedOutputs(Fitted):
    """Files made from published results.

    Attributes
    ----------
    plan
        The synthesizer: codebook, targets and settings.
    runs
        The files made by `fit`, the best first.
    seed
        What they were made with.
    """

    plan: FromOutputs
    runs: Sequence[Run]
    seed: int
    preparation: Preparation = field(default=None, metadata=unstored())  # type: ignore[assignment]
    start: SwapStart | None = field(default=None, metadata=unstored())

    def __post_init__(self) -> None:
        self.runs = tuple(sorted(self.runs, key=lambda run: (-int(run.targets["met"].sum()), run.loss)))
        if not self.preparation:
            self.preparation = Preparation.of(self.plan)
            self.start = SwapStart.of(self.preparation) if self.plan.engine == "swap" else None

    @property
    def targets(self) -> pl.DataFrame:
        """Every published figure beside the one the best file gives."""
        return self.runs[0].targets

    @property
    def trace(self) -> pl.DataFrame:
        """How the loss of the best file fell."""
        return self.runs[0].trace

    @property
    def notes(self) -> tuple[str, ...]:
        """What was rescaled, assigned or could not be reached."""
        early = self.start.notes if self.start else ()
        return (*self.preparation.notes, *early, *self.runs[0].notes)

    @property
    def margins(self) -> pl.DataFrame | None:
        """Population margins and what the weights reach, where there are weights."""
        return None if self.plan.weights is None else self._weighed(self.runs[0].file)[1]

    @property
    def report(self) -> Measure:
        """How well is each published result met?"""
        table = self.targets
        met, figures = int(table["met"].sum()), table.height
        coefficients = [
            abs(value)
            for bound in self.preparation.bounds
            if isinstance(bound, BoundModel)
            for value in table.filter(pl.col("target") == bound.title)["difference"]
            .head(int(np.isfinite(bound.beta).sum()))
            .to_list()
            if value is not None
        ]
        tables = {"targets": lambda: self.targets, "trace": lambda: self.trace}
        if self.plan.weights is not None:
            tables["margins"] = lambda: self.margins  # type: ignore[assignment,return-value]
        return Measure(
            name="from_outputs",
            value=met / figures,
            figures={
                "figures": figures,
                "met": met,
                "largest_difference_in_units": (table["difference"].abs() / table["unit"]).max(),  # type: ignore[dict-item]
                "mean_coefficient_error": float(np.mean(coefficients)) if coefficients else None,
                "largest_coefficient_error": max(coefficients) if coefficients else None,
                "loss": self.runs[0].loss,
                "runs": len(self.runs),
            },
            meaning=f"{met} of {figures} published figures come out of the made-up file as they were printed.",
            caveats=[
                *self.notes,
                "Only what was a target is right; everything else in the file is made up.",
                "Whether the file tells something about individuals was not examined: see risk(original, holdout).",
            ],
            parameters={"engine": self.plan.engine, "n": self.plan.n},
            detail=Detail(**tables),
        )

    @property
    def manifest(self) -> dict[str, Any]:
        """What the files were made from: published inputs only, with a checksum, and no original data."""
        inputs = jsonable(self.plan.to_dict())
        text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
        return {
            "method": self.plan.name,
            "version": __version__,
            "inputs": inputs,
            "inputs_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "seed": self.seed,
            "original_data_used": False,
            "guarantee": None,
            "disclosure_check": "not done; no claim of safety is made without original and hold-out",
        }

    def sample(
        self,
        n: int | None = None,
        *,
        copies: int = 1,
        progress: bool = False,
        seed: Seed = None,
        **in_parts: Any,
    ) -> Any:
        """Return files, each of an independent run; they are as large as what was published, and have no parts.

        Parameters
        ----------
        n
            The number of records is part of what was published; it cannot be another one here.
        copies
            Number of files.
        seed
            Without one, the files of `fit` come first, the best of them ahead, and further runs follow when more are
            wanted; with one, all are made anew.
        progress
            Show how far it is, on a terminal.

        Returns
        -------
        Microdata
            One file, or a list of them where ``copies`` is more than one.
        """
        if in_parts:
            raise ParameterError(
                f"Files made from outputs are not drawn in parts. Leave {min(in_parts)} out."
            )
        if n is not None and n != self.plan.n:
            raise ParameterError(
                f"The targets were set for {self.plan.n:,} records; for {n} make another FromOutputs(…, n={n})."
            )
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise ParameterError("copies must be a whole number of at least 1.")
        files = [run.file for run in self.runs[:copies]] if seed is None else []
        root = self.seed if seed is None else seed_of(seed)
        for number in range(len(files), copies):
            stream = Stream(root, self.plan.name, f"{'run' if seed is None else 'copy'} {number}")
            files.append(self.plan._run(self.preparation, self.start, stream, progress=progress).file)
        with self._trusted():
            made = [self._in_kind(self._frame(file)) for file in files]
        return made[0] if copies == 1 else made

    def try_out(self) -> None:
        """Show the first of the files that the model holds; to make another would take a search."""
        self.sample()

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Make one more file."""
        return self._frame(self.plan._run(self.preparation, self.start, stream).file)

    def risk(self, original: Microdata, holdout: Microdata) -> Measure:
        """Say whether the best file tells more about the people behind the results than about a hold-out.

        Only a steward who holds the original can ask this; see `attribution_beyond_holdout`.
        """
        return attribution_beyond_holdout(self.sample(), original, holdout)

    def _frame(self, file: Floats) -> pl.DataFrame:
        frame = frame_of(self.plan.codebook, file)
        if self.plan.weights is None or self.plan.codebook.weight is None:
            return frame
        return frame.with_columns(pl.Series(self.plan.codebook.weight, self._weighed(file)[0]))

    def _weighed(self, file: Floats) -> tuple[Floats, pl.DataFrame]:
        if self.plan.weights is None:
            raise ParameterError("There are no weights: give FromOutputs(…, weights=Raking(…)).")
        return self.plan.weights.weigh(self.plan.codebook, file)


def _missed(title: str, table: pl.DataFrame, is_model: bool) -> str:
    missed = table.filter(~pl.col("met"))
    lost = int(missed["achieved"].is_nan().sum())
    known = missed["difference"].to_numpy()
    known = np.abs(known[np.isfinite(known)])
    text = f"{missed.height} of {table.height} figures of '{title}' are not met at printed precision"
    if len(known):
        text += f"; the error attained is at most {known.max():.2g}"
    if lost:
        text += f"; {lost} cannot be computed (no records, or the outcome is told for certain)"
    return f"{text}. {'More records, batches or generations come closer.' if is_model else ''}".strip()


# Does a file made from published results tell more about the people behind them than about strangers?


def attribution_beyond_holdout(synthetic: Microdata, original: Microdata, holdout: Microdata) -> Measure:
    """How much better does a made-up file tell the people behind the results than people it never saw?

    Each column in turn is guessed from all others (TCAP with certainty 1): among the people whose keys occur in the
    made-up file with a single value of the target, how many have that value? The same is asked of a hold-out from the
    same population. What is right for the hold-out too is what the published model teaches about anybody.

    Parameters
    ----------
    synthetic
        The made-up file.
    original, holdout
        People behind the published results, and people of the same population that were not.

    Returns
    -------
    Measure
        ``value`` is the largest difference ``tcap_conditional`` original less hold-out over the columns. ``figures``:
        ``largest_marginal_risk``, ``mean_marginal_risk``, ``mean_tcap_original``, ``mean_tcap_holdout``,
        ``mean_baseline``, ``targets``, ``targets_beyond_chance``. ``detail["variables"]``: by target, for both files,
        ``tcap_conditional`` (of the people shown a single value), ``tcap`` (of all people whose keys occur), both
        calibrated, ``baseline``, ``marginal_risk`` and ``chance``, twice its standard error.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": [1, 2, 1, 2], "car": [0, 1, 0, 1]}))
    >>> attribution_beyond_holdout(people, people, people).value
    0.0
    """
    for what, data in (("original", original), ("holdout", holdout)):
        require_microdata(data, what)
        for name in synthetic.columns:
            if name not in data.columns:
                raise ColumnError(
                    f"{unknown_name(name, data.columns)} It must be in the {what} as in the made-up file."
                )
    columns = [name for name in synthetic.columns if name != synthetic.roles.weight]
    if len(columns) < 2:
        raise ParameterError("Guessing one column from the others needs at least two columns.")
    rows = [_row(synthetic, original, holdout, columns, target) for target in columns]
    table = pl.DataFrame(rows, infer_schema_length=None)
    known = table.drop_nulls("marginal_risk")
    risks = known["marginal_risk"]
    largest = float(risks.max()) if len(risks) else None  # type: ignore[arg-type]
    beyond = int((known["marginal_risk"] > known["chance"]).sum())
    return Measure(
        name="attribution_beyond_holdout",
        value=largest,
        figures={
            "largest_marginal_risk": largest,
            "mean_marginal_risk": _mean(risks),
            "mean_tcap_original": _mean(known["tcap_conditional_original"]),
            "mean_tcap_holdout": _mean(known["tcap_conditional_holdout"]),
            "mean_baseline": _mean(known["baseline"]),
            "targets": len(risks),
            "targets_beyond_chance": beyond,
        },
        meaning=_meaning(largest, beyond, len(risks)),
        caveats=[
            "A marginal risk near zero means that the file tells no more than the results that are already "
            "published; whether those results are too telling is a question about the results.",
            "Differences within chance cannot be told from none; a larger hold-out tells smaller ones apart.",
        ],
        parameters={"columns": columns},
        detail=Detail(variables=lambda: table),
    )


def calibrated(tcap: float | None, baseline: float | None) -> float | None:
    """Put a share of right guesses on a scale from 0, guessing without keys, to 1, always right.

    Examples
    --------
    >>> round(calibrated(0.733, 0.5015), 3)
    0.464
    """
    if tcap is None or baseline is None or baseline >= 1:
        return None
    return (tcap - baseline) / (1 - baseline)


def _row(
    synthetic: Microdata, original: Microdata, holdout: Microdata, columns: list[str], target: str
) -> dict[str, Any]:
    keys = [name for name in columns if name != target]
    row: dict[str, Any] = {"target": target}
    found = {}
    for what, data in (("original", original), ("holdout", holdout)):
        figures = attribution(
            data.with_roles(keys=keys, sensitive=target, identifiers=None, weight=None), synthetic
        ).figures
        found[what] = figures
    base = found["original"]["baseline"]
    row["baseline"] = base
    for what, figures in found.items():
        for name in ("tcap_conditional", "tcap"):
            row[f"{name}_{what}"] = figures[name]
            row[f"{name}_{what}_calibrated"] = calibrated(figures[name], base)  # type: ignore[arg-type]
    one, two = row["tcap_conditional_original"], row["tcap_conditional_holdout"]
    row["marginal_risk"] = None if one is None or two is None else one - two
    row["chance"] = 2 * math.sqrt(sum(_variance(figures) for figures in found.values()))
    return row


def _variance(figures: Any) -> float:
    """Variance of a share of the people who are shown a single value."""
    share, told, matched = figures["tcap_conditional"], figures["tcap"], figures["matched_records"]
    if not share or not told or not matched:
        return 0.0
    return float(share * (1 - share) / max(told / share * matched, 1.0))


def _mean(values: pl.Series) -> float | None:
    return float(values.mean()) if len(values) else None  # type: ignore[arg-type]


def _meaning(largest: float | None, beyond: int, targets: int) -> str:
    if largest is None:
        return "The made-up file tells no column for certain about anyone, so nothing could be compared."
    side = f"{percent(abs(largest))} {'more' if largest >= 0 else 'less'} often"
    told = (
        f"{beyond} of {targets} columns differ by more than chance."
        if beyond
        else "No column exceeds chance."
    )
    return (
        f"Where the made-up file tells a column for certain, it is right at most {side} about the people behind the "
        f"results than about strangers. {told}"
    )
