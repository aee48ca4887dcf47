"""Each column from all the others, without an order: as it was proposed, with its repair, and with a Laplace switch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.constraints import Above, AtLeast, Between, HoldsValues, Public
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.method_cards import method
from discreet.core.native_libraries import one_thread
from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.all_others_diagnosis import NO_SWITCH_IS_PRIVATE, switch
from discreet.synth.all_others_models import ColumnModel, Noise, Records, Scene, fit_all
from discreet.synth.all_others_selection import Selector
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of
from discreet.synth.whole_records import Intake, Weights, take_in

_KEPT_SETTINGS = ("selector", "noise", "second_pass", "sweeps", "start")


@method(
    aim="records",
    work="whole-file",
    references=(
        "Qu, C. (2024). Contributions to statistical theory of data privacy. M.Sc. thesis, Department of Mathematics "
        "and Statistics, University of Ottawa; sections 4.5.2 and 4.6.",
    ),
)
@dataclass(frozen=True)
class AllOthers(Synthesizer):
    """What would each value be, judging by the rest of its record?

    Every column is regressed on those of the others that a selector picks; its synthetic values are predicted from
    the *observed* values of the others, plus noise of the size of the residuals. No order of the columns is needed.
    Synthetic record j belongs to original record j: this masks a file, it does not invent people.

    What it does to relations is known. For jointly normal columns, each predicted from all the others, a correlation
    r becomes ``r - p * sqrt((1 - R1²) * (1 - R2²))``, where p is the partial correlation given the rest and R1², R2²
    are the shares explained: the noises of two columns are independent, so what they have in common beyond the rest
    is lost. Of two columns, r is left at r³, and after a second pass at r⁵. Columns that are uncorrelated but for a
    third may even come out correlated. Only where fits are nearly exact does none of this show, and there the
    synthetic value is nearly the original one: the correlation of a synthetic column with its original is its R².
    ``sweeps`` repairs it: columns are drawn again in turn, given the *current* values of the others (Gibbs sampling),
    which for normal data leads to the fitted joint law and away from the original record.

    Also known as: regression on all others; synthesis without order.

    Parameters
    ----------
    selector
        ``"lasso"``: predictors with a coefficient other than zero; ``"ridge-threshold"``: with a ridge coefficient of
        at least ``threshold``; ``"aic"``: added one by one while Akaike's criterion falls; ``"none"``: all others.
    lasso_alpha
        Penalty of the lasso (or the ridge) on standardized variables; ``"cv"`` chooses the lasso's by cross-validation.
    threshold
        For ``"ridge-threshold"``, on standardized variables.
    noise
        ``"residual"``: normal, with the residual variance; ``"bayes"``: coefficients and variance are drawn from their
        posterior for each copy first; ``"none"``: predictions as they are. Categories are always drawn from their
        predicted shares (logit, multinomial).
    noise_floor
        Share of the standard deviation that the noise has at least. A column that others predict exactly would
        otherwise be released as it is; a warning says where that was so.
    second_pass
        Predict once more, from the synthetic values.
    sweeps
        How often every column is drawn again given the current values of the others; 10 is usually enough.
    start
        Where sweeps start: ``"aligned"`` from the regression draws, or ``"bootstrap"`` from records drawn with
        replacement; then any number of records can be drawn.
    laplace_switch
        Experimental: release a draw c only if its distance from the true value x exceeds Laplace noise l of scale
        range / epsilon, else release x + l. This is **not differentially private**: (i) a switch needs l > 0, so values
        drift upward; (ii) the regressions see the raw data; (iii) the densities of the output under two inputs can
        differ by any factor (at epsilon 1 and a residual standard deviation of 0.05 of the range, by e^199). Proved
        alternatives: local Laplace noise on clipped values, or noisy marginals and draws from them.
    epsilon
        Of the Laplace noise, for all numbers or ``{column: epsilon}``.
    bounds
        ``{column: (low, high)}`` of every number, for the switch; from knowledge, not from the data. Those of dates are
        in days since 1970.
    outside
        What becomes of values outside their bounds: ``"error"`` or ``"clip"``.
    special_codes
        ``{column: [codes]}``: numbers that are no values. They stay where they are, as missing values do.
    weights
        ``"use"`` fits by pseudo-likelihood with the survey weights, ``"ignore"`` without. The weight itself stays with
        its record; a bootstrap draws by it and leaves it out.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    max_levels
        Categories with more levels are refused; None sets no limit.
    max_records
        Multinomial fits use at most so many records, all of rare levels and weighted ones of frequent levels; None
        takes all.
    leave_out
        Columns that the synthetic file shall not have.

    How it is used
    --------------
    ``fit`` returns a model; ``model.selected`` tells the predictors, ``model.diagnose()`` what happened to correlations
    and how many records can be led back to their originals. Look at it before anything is released.

    When not to use it
    ------------------
    Do not use it without ``sweeps`` where relations between columns matter, and never as a protection by itself:
    aligned records can be linked. Normal noise knows no limits, so positive columns may get negative values.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=2000)
    >>> pair = Microdata(pl.DataFrame({"x": x, "y": 0.6 * x + 0.8 * rng.normal(size=2000)}))
    >>> plain = AllOthers().fit(pair, seed=1).diagnose(seed=1).detail["correlations"].row(0, named=True)
    >>> round(plain["original"], 2), round(plain["expected"], 2), round(plain["original"] ** 3, 2)
    (0.59, 0.2, 0.2)
    >>> swept = AllOthers(sweeps=10).fit(pair, seed=1).diagnose(seed=1).detail["correlations"]
    >>> bool(abs(swept["synthetic"][0] - swept["original"][0]) < 0.05)
    True
    """

    selector: Selector = "lasso"
    lasso_alpha: Annotated[float, Above(0)] | Literal["cv"] = 0.01
    threshold: float = 0.05
    noise: Noise = "residual"
    noise_floor: Annotated[float, Between(0, 1, above=True, below=True)] = 0.01
    second_pass: bool = False
    sweeps: Annotated[int, AtLeast(0)] = 0
    start: Literal["aligned", "bootstrap"] = "aligned"
    laplace_switch: bool = False
    epsilon: float | Annotated[Mapping[str, float], Public()] | None = None
    bounds: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    outside: Literal["error", "clip"] = "error"
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    weights: Weights = "use"
    few_values: int = 2
    max_levels: int | None = 100
    max_records: Annotated[int, AtLeast(100)] | None = 10_000
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        if self.start == "bootstrap" and not self.sweeps:
            raise ParameterError(
                'start="bootstrap" without sweeps would release the records as they are. Set sweeps=10.'
            )
        if self.start == "bootstrap" and self.second_pass:
            raise ParameterError('second_pass needs start="aligned".')
        self._check_switch()

    @property
    def why_never(self) -> str:  # type: ignore[override]
        """Why the Laplace switch guarantees nothing, where it is on."""
        return NO_SWITCH_IS_PRIVATE if self.laplace_switch else ""

    def _check_switch(self) -> None:
        if not self.laplace_switch:
            if self.epsilon is not None or self.bounds is not None:
                raise ParameterError(
                    "epsilon and bounds belong to laplace_switch=True. Without it nothing is added that they describe."
                )
            return
        if self.second_pass or self.sweeps or self.noise != "residual":
            raise ParameterError(
                "laplace_switch compares regression draws with the true values; leave second_pass, sweeps and noise as "
                "they are."
            )
        given = self.epsilon.values() if isinstance(self.epsilon, Mapping) else [self.epsilon]
        if not all(_is_number(value) and float(value) > 0 for value in given):  # type: ignore[arg-type]
            raise ParameterError("epsilon must be positive, for all numbers or by column.")
        for name, pair in (self.bounds or {}).items():
            if len(tuple(pair)) != 2 or not all(_is_number(end) for end in pair) or not pair[0] < pair[1]:
                raise ParameterError(f"The bounds of '{name}' must be two numbers, the smaller one first.")

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedAllOthers:
        """Fit a model of every column given the others.

        Parameters
        ----------
        data
            The file; its identifiers are left out.
        seed
            Same data, same parameters, same seed: same model.
        progress
            Kept for the signature of all synthesizers; fits are quick.
        """
        intake = take_in(
            data,
            leave_out=self.leave_out,
            weights=self.weights,
            special_codes=self.special_codes,
            few_values=self.few_values,
            max_levels=self.max_levels,
            least_columns=2,
        )
        stream = Stream(seed_of(seed), "all others")
        records = Records.of(intake, stream)
        records, scales, notes = self._switching(records)
        with one_thread():
            records, models, about = fit_all(records, self, intake.weights, stream)
        notes = (*notes, *about, *(note for model in models.values() for note in model.notes))
        for model in models.values():
            if model.floored:
                warnings.warn(model.notes[-1], DiscreetWarning, stacklevel=2)
        kept, chances = self._weight(data, intake)
        shown = [name for name in data.columns if name in intake.forms or name in kept.columns]
        return FittedAllOthers(
            empty_like(data, intake.frame.select(shown)),
            intake.rows,
            records=records,
            models=models,
            kept=kept,
            chances=chances,
            scales=scales,
            settings={name: getattr(self, name) for name in _KEPT_SETTINGS},
            notes=notes,
        )

    def _weight(self, data: Microdata, intake: Intake) -> tuple[pl.DataFrame, Any]:
        """Return the weight that stays with its records, or the chances of a bootstrap that draws by it."""
        if self.start == "bootstrap":
            return pl.DataFrame(), None if intake.weights is None else intake.weights / intake.weights.sum()
        name = data.roles.weight
        asked = {self.leave_out} if isinstance(self.leave_out, str) else set(self.leave_out or ())
        return intake.frame.select([name] if name and name not in asked else []), None

    def _switching(self, records: Records) -> tuple[Records, dict[str, float], tuple[str, ...]]:
        """Check the bounds of the Laplace switch and return the scales of its noise."""
        if not self.laplace_switch:
            return records, {}, ()
        bounds = self.bounds or {}
        for name in (*bounds, *(self.epsilon if isinstance(self.epsilon, Mapping) else ())):
            if name not in records.scene or not records.scene[name].is_number:
                raise ColumnError(f"{unknown_name(name, records.numbers)} The switch is for numbers.")
        scene, scales, notes = dict(records.scene), {}, []
        for name in records.numbers:
            if name not in bounds:
                raise ParameterError(
                    f"laplace_switch needs the bounds of every number; those of '{name}' are not given. Take them from "
                    "what is known about the column, not from the data."
                )
            dtype = records.forms[name].dtype
            if dtype.is_temporal() and dtype != pl.Date:
                raise ColumnError(
                    f"laplace_switch is for numbers and dates; '{name}' is a time. Leave it out."
                )
            low, high = (float(end) for end in bounds[name])
            epsilon = self.epsilon.get(name) if isinstance(self.epsilon, Mapping) else self.epsilon
            if epsilon is None:
                raise ParameterError(f"epsilon is not given for '{name}'.")
            values = scene[name].values
            beyond = int(((values < low) | (values > high))[records.there(name)].sum())
            if beyond and self.outside == "error":
                raise ColumnError(
                    f"{beyond:,} values of '{name}' lie outside its bounds. Widen them, or set outside='clip'."
                )
            if beyond:
                notes.append(f"{beyond:,} values of '{name}' were clipped to its bounds.")
            scene[name] = scene[name].redrawn(np.clip(values, low, high))
            scales[name] = (high - low) / float(epsilon)
        return replace(records, scene=scene), scales, tuple(notes)


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float | np.number)
        and not isinstance(value, bool)
        and bool(np.isfinite(value))
    )


# A fitted order-free synthesis: the records it was fitted to, a model of each column, and draws from them.
_GONE_ASTRAY = 5.0


@stored("fitted-all-others")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedAllOthers(Fitted):
    """An order-free synthesis that was fitted.

    Attributes
    ----------
    models
        The model of every column that is not constant: its ``predictors``, ``r2`` and ``sigma``.
    notes
        What the user should know.
    guarantee
        None, always: neither the regression draws nor the Laplace switch are differentially private.
    """

    records: Records
    models: Mapping[str, ColumnModel]
    kept: pl.DataFrame
    chances: Floats | None
    scales: Mapping[str, float]
    settings: Mapping[str, Any]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.scales:
            self.why_none = NO_SWITCH_IS_PRIVATE
        self.keeps_records = self.settings["start"] == "aligned"
        self.combining_rule = "partial" if self.keeps_records else "simple"

    @property
    def selected(self) -> dict[str, tuple[str, ...]]:
        """The predictors of every column."""
        return {name: model.predictors for name, model in self.models.items()}

    def sample(
        self,
        n: int | None = None,
        *,
        copies: int = 1,
        progress: bool = False,
        seed: Seed = None,
        **in_parts: Any,
    ) -> Any:
        """Draw synthetic files; see `Fitted.sample`. Record by record they belong to the original ones."""
        if self.keeps_records and n is not None and n != self.rows:
            raise ParameterError(
                f"Each synthetic record is drawn from an original one, so there are {self.rows:,}. Leave n out, or fit "
                'with start="bootstrap" and sweeps=10 for any number.'
            )
        return super().sample(n, copies=copies, seed=seed, progress=progress, **in_parts)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw one synthetic file."""
        with one_thread():
            return self._file(n, stream)

    def _file(self, n: int, stream: Stream) -> pl.DataFrame:
        models = self.models
        if self.settings["noise"] == "bayes":
            models = {name: model.renewed(stream("posterior", name)) for name, model in models.items()}
        records = self.records
        if not self.keeps_records:
            rows = stream("bootstrap").choice(self.rows, size=n, p=self.chances)
            records = records.taken(rows)
            scene = dict(records.scene)
        else:
            scene = self._once(models, records, records.scene, stream.child("first"))
            if self.settings["second_pass"]:
                scene = self._once(models, records, scene, stream.child("second"))
        for number in range(self.settings["sweeps"]):
            own = stream.child(f"sweep {number}")
            for place in own("order").permutation(len(models)):
                name = list(models)[place]
                scene[name] = records.patterned(name, models[name].draw(scene, own(name)))
        if self.settings["sweeps"]:
            self._check_spread(scene)
        table = records.released(scene)
        return pl.concat([table, self.kept], how="horizontal") if self.kept.width else table

    def _check_spread(self, scene: Scene) -> None:
        """Warn where models that were selected apart from each other drive each other away from the data."""
        gone = [
            name
            for name in self.records.numbers
            if not scene[name].values.std()
            < _GONE_ASTRAY * max(self.records.scene[name].values.std(), 1e-300)
        ]
        if gone:
            named = ", ".join(f"'{name}'" for name in gone)
            warnings.warn(
                f"The sweeps do not settle: {named} spread out far beyond the data. Use selector='none', or fewer "
                "sweeps.",
                DiscreetWarning,
                stacklevel=2,
            )

    def _once(
        self, models: Mapping[str, ColumnModel], records: Records, scene: Scene, stream: Stream
    ) -> Scene:
        """Draw every column from the values that the others have in ``scene``."""
        drawn = dict(scene)
        for name, model in models.items():
            rng = stream(name)
            if name in self.scales:
                values, _ = switch(
                    records.scene[name].values, model.predicted(scene), model.spread, self.scales[name], rng
                )
            else:
                values = model.draw(scene, rng)
            drawn[name] = records.patterned(name, values)
        return drawn

    def diagnose(self, released: Microdata | None = None, *, seed: Seed = None) -> Measure:
        """Report what the synthesis does to relations, and how far its records lead back to the original ones.

        Parameters
        ----------
        released
            A file that was drawn from this model; one is drawn unless given.
        seed
            For that file.

        Returns
        -------
        Measure
            ``value`` is the largest change of a correlation between two numbers. ``figures``:
            ``max_correlation_change``, ``attenuation`` (sum of squared correlations after over before), ``mean_r2``,
            ``max_r2``, ``linked_share`` and ``guess_share`` (aligned files only), ``switched_share``.
            ``detail``: ``correlations`` (a row a pair: original, synthetic, and what the law expects), ``variables``
            (predictors, R², correlation or agreement with the original values, bias, share switched).
        """
        from discreet.synth.all_others_diagnosis import diagnosis

        return diagnosis(self, self.sample(seed=seed) if released is None else released)
