"""A fitted order-free synthesis: the records it was fitted to, a model of each column, and draws from them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.one_thread import one_thread
from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.synth.all_others.models import ColumnModel
from discreet.synth.all_others.records import Records, Scene
from discreet.synth.all_others.switching import NO_SWITCH_IS_PRIVATE, switch
from discreet.synth.column_forms import restored_form
from discreet.synth.synthesizer import Fitted, Stream

_GONE_ASTRAY = 5.0


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

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        records: Records,
        models: Mapping[str, ColumnModel],
        kept: pl.DataFrame,
        chances: Floats | None,
        scales: Mapping[str, float],
        settings: Mapping[str, Any],
        notes: tuple[str, ...],
    ) -> None:
        super().__init__(like, rows)
        self.records = records
        self.models = dict(models)
        self.kept = kept
        self.chances = chances
        self.scales = dict(scales)
        self.settings = dict(settings)
        self.notes = notes
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
        from discreet.synth.all_others.diagnosis import diagnosis

        return diagnosis(self, self.sample(seed=seed) if released is None else released)

    def state(self) -> dict[str, Any]:
        """Return the model for a file; it holds the records that the synthesis starts from."""
        return {
            "records": self.records.state(),
            "models": [model.state() for model in self.models.values()],
            "kept": self.kept.get_columns(),
            "kept_names": self.kept.columns,
            "chances": self.chances,
            "scales": self.scales,
            "settings": self.settings,
            "notes": list(self.notes),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        forms = {name: restored_form(form) for name, form in state["records"]["forms"].items()}
        models = [ColumnModel.restored(model) for model in state["models"]]
        named = zip(state["kept_names"], state["kept"], strict=True)
        return cls(
            like,
            rows,
            records=Records.restored(state["records"], forms),
            models={model.name: model for model in models},
            kept=pl.DataFrame([series.rename(name) for name, series in named]),
            chances=state["chances"],
            scales=state["scales"],
            settings=state["settings"],
            notes=tuple(state["notes"]),
        )
