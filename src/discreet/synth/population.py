"""A population of households, simulated from a weighted sample of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast, Between, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.method_cards import method
from discreet.core.randomness import Seed, generator
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth import member_laws
from discreet.synth.column_forms import check_named, columns_named, listed
from discreet.synth.household_surveys import SurveyHouseholds, cells_of
from discreet.synth.member_laws import Model
from discreet.synth.population_model import ComponentLaw, FittedPopulation, NumberLaw, VariableLaw
from discreet.synth.sequential.whole_units import same_within
from discreet.synth.synthesizer import Synthesizer, empty_like, seed_of

_SIZE = "members of the household"


@method(
    aim="records",
    work="whole-file",
    references=(
        "Templ, M., Meindl, B., Kowarik, A. and Dupriez, O. (2017). Simulation of synthetic complex data: the R "
        "package simPop. Journal of Statistical Software 79(10), 1–38. doi:10.18637/jss.v079.i10",
        "Alfons, A., Kraft, S., Templ, M. and Filzmoser, P. (2011). Simulation of close-to-reality population data for "
        "household surveys. Statistical Methods & Applications 20(3), 383–407.",
    ),
)
@dataclass(frozen=True)
class Population(Synthesizer):
    """Which population of households could this weighted sample have come from?

    How many households of each size a stratum has is expanded from the weights. Each is copied in its structure (age
    and sex of all members, say) from a household of the sample; every other column is simulated for its members, one
    column after the other, given those before it: categories from weighted models by stratum, numbers by class and then
    within the class, zero apart and with a tail of its own at the top (Templ et al. 2017).

    Also known as: simPop; synthetic population.

    Parameters
    ----------
    structure
        Columns that are copied with a household, e.g. ``["age", "sex"]``: what members have to do with each other.
    categorical, continuous
        Columns that are simulated, in this order; numbers may be zero for many, negative and missing.
    components
        ``{total: [parts]}``: parts of a simulated number, by the shares that a donor has.
    structure_method
        ``"direct"``: numbers of households as the weights say; ``"distribution"``: drawn in their shares;
        ``"multinom"``: drawn from a regression of the size on the stratum, so that sizes which the sample lacks in a
        stratum can occur there, with donors from others.
    cat_method, cont_method
        Models of classes, fitted in every stratum: ``"multinom"`` (weighted multinomial regression),
        ``"distribution"`` (weighted shares by combination), ``"forest"`` or ``"boosting"``. Numbers may be drawn by a
        regression instead, after whether there is one and whether it is zero: ``"lm"`` (linear in the logarithm, with
        the rest of somebody in the survey), ``"boosting"`` (boosted trees in place of the line) or ``"poisson"``
        (counts); the stratum is then one of the predictors. Forests and boosted trees are not kept in model files.
    limit, censor
        Structural zeros: ``{column: {predictor: {level: [outcomes]}}}``, the outcomes that are possible, or impossible,
        at a level of a predictor.
    eps
        Chances below it are zero.
    breaks
        Where numbers are cut: ``"refined"`` at the ends of the distribution, or ``"even"`` tenths.
    tail
        Whether the largest values follow a generalized Pareto law (cut at the largest observed one); evenly otherwise.
    min_donors
        Cells of size and stratum with fewer households borrow donors from their neighbors, so that no family of the
        sample is copied all over the population.
    calibrate
        ``{column: {level: number of persons}}`` of structure columns: households are exchanged until these
        numbers of persons come out (simulated annealing).
    different_weights
        ``"refuse"`` where members of a household differ in their weight, or ``"mean"``.

    When not to use it
    ------------------
    Structure columns are copied from real households: name few, and coarse ones where households are rare. A truth that
    was simulated by this method favors it in a comparison. No guarantee is given.

    Examples
    --------
    >>> frame = pl.DataFrame({
    ...     "home": [n // 2 for n in range(120)], "w": [50.0] * 120,
    ...     "age": [n % 2 * 20 + 20 + n % 11 for n in range(120)], "works": ["yes", "no", "no"] * 40,
    ... })
    >>> survey = Microdata(frame, household="home", weight="w")
    >>> made = Population(structure=["age"], categorical=["works"]).fit(survey, seed=1).sample(seed=1).frame
    >>> made.shape, made["home"].n_unique()
    ((6000, 3), 3000)
    """

    structure: Annotated[Columns, Public()] = None
    categorical: Annotated[Columns, Public()] = None
    continuous: Annotated[Columns, Public()] = None
    components: Annotated[Mapping[str, Sequence[str]], Public()] = field(default_factory=dict)
    structure_method: Literal["direct", "distribution", "multinom"] = "direct"
    cat_method: Model = "multinom"
    cont_method: Literal["multinom", "distribution", "forest", "lm", "boosting", "poisson"] = "multinom"
    limit: Annotated[Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]], HoldsValues(by_column=True)] = (
        field(default_factory=dict)
    )
    censor: Annotated[
        Mapping[str, Mapping[str, Mapping[str, Sequence[str]]]], HoldsValues(by_column=True)
    ] = field(default_factory=dict)
    eps: Annotated[float, Between(0, 1, below=True)] = 0.0
    breaks: Literal["refined", "even"] = "refined"
    tail: bool = True
    min_donors: Annotated[int, AtLeast(1)] = 3
    calibrate: Annotated[Mapping[str, Mapping[str, float]], HoldsValues(by_column=True)] = field(
        default_factory=dict
    )
    different_weights: Literal["refuse", "mean"] = "refuse"

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedPopulation:
        """Learn the structure of households and the laws of all other columns."""
        root = seed_of(seed)
        survey = SurveyHouseholds.of(data, different_weights=self.different_weights)
        frame = survey.frame
        structure, simulated = self._columns(data, frame)
        household = str(data.roles.household)
        cells = cells_of(
            survey, min_donors=self.min_donors, method=self.structure_method, rng=generator(root, "sizes")
        )
        shared = set(same_within(frame, household, [*self._named("categorical"), *self._named("continuous")]))
        weights = np.repeat(survey.weight, survey.size)
        stratum = np.repeat(survey.stratum, survey.size)
        known: dict[str, Integers] = {}
        classings: dict[str, member_laws.Classing] = {}
        size = pl.Series(_SIZE, np.repeat(survey.size, survey.size))
        for series in (size, *(frame[name] for name in structure)):
            classings[series.name] = member_laws.predictor_classing(series, weights)
            known[series.name] = classings[series.name].codes(series)
        laws: list[VariableLaw] = []
        for name in simulated:
            number = name in self._named("continuous")
            law, codes = self._law(
                name,
                number,
                frame,
                structure,
                (classings, known),
                stratum,
                weights,
                root,
                home=name in shared,
            )
            laws.append(law)
            classings[name] = law.fine
            known[name] = codes
        parts = [
            ComponentLaw.of(total, tuple(own), frame, classings[total].codes(frame[total]), weights)
            for total, own in self._components(frame).items()
        ]
        strata = list(data.roles.strata)
        kept = [
            name
            for name in data.columns
            if name in (household, *strata, *structure, *simulated, *(p for law in parts for p in law.parts))
        ]
        return FittedPopulation(
            empty_like(data.with_roles(weight=None), columns_named(frame, kept)),
            max(1, round(float(weights.sum()))),
            household=household,
            strata=tuple(strata),
            stratum_values=survey.strata,
            cells=cells,
            first=survey.first,
            structure=columns_named(frame, structure),
            sizes=classings[_SIZE],
            classings={name: classings[name] for name in structure},
            laws=laws,
            components=parts,
            calibrate={name: dict(own) for name, own in self.calibrate.items()},
        )

    def _named(self, setting: str) -> tuple[str, ...]:
        return listed(getattr(self, setting))

    def _columns(self, data: Microdata, frame: pl.DataFrame) -> tuple[list[str], list[str]]:
        structure = list(self._named("structure"))
        simulated = [*self._named("categorical"), *self._named("continuous")]
        if not structure:
            raise ParameterError("Name the structure of households, e.g. structure=['age', 'sex'].")
        for name in (*structure, *simulated, *self.calibrate):
            if name not in frame.columns:
                raise ColumnError(unknown_name(name, frame.columns))
        taken = [data.roles.household, data.roles.weight, *data.roles.strata]
        for name in (*structure, *simulated):
            if name in taken:
                raise ColumnError(
                    f"Column '{name}' is the household, the weight or a stratum, and has its place already."
                )
        twice = [name for name in simulated if name in structure or simulated.count(name) > 1]
        if twice:
            raise ColumnError(f"Column '{twice[0]}' is named twice. Copy it or simulate it, not both.")
        for name in self._named("continuous"):
            if not frame.schema[name].is_numeric():
                raise ColumnError(f"Column '{name}' is named under continuous and is no number.")
        for name in self.calibrate:
            if name not in structure:
                raise ColumnError(
                    f"calibrate takes columns of the structure; '{name}' is none. Strata have the numbers that "
                    "the weights say; what is simulated comes afterwards."
                )
        for setting in (self.limit, self.censor):
            for name in setting:
                if name not in simulated:
                    raise ColumnError(f"limit and censor speak of simulated columns; '{name}' is none.")
        return structure, simulated

    def _law(  # noqa: PLR0917
        self,
        name: str,
        number: bool,
        frame: pl.DataFrame,
        structure: Sequence[str],
        so_far: tuple[Mapping[str, member_laws.Classing], Mapping[str, Integers]],
        stratum: Integers,
        weights: Floats,
        root: int,
        *,
        home: bool,
    ) -> tuple[VariableLaw, Integers]:
        classings, known = so_far
        series = frame[name]
        fine = (
            member_laws.Classing.of_number(series, weights, member_laws.shares_of(self.breaks))
            if number
            else member_laws.Classing.of_category(series)
        )
        kind: Any = self.cont_method if number else self.cat_method
        regression = kind if number and kind in member_laws.REGRESSIONS else None
        coarse = member_laws.having_a_number(series, regression) if regression else None
        target = coarse or fine
        names = list(classings)
        law = member_laws.class_law(
            target,
            target.codes(series),
            [classings[own] for own in names],
            [known[own] for own in names],
            stratum,
            weights,
            kind="multinom" if regression else kind,
            limit=self.limit.get(name, {}),
            censor=self.censor.get(name, {}),
            eps=self.eps,
            seed=root % 2**31,
        )
        within: NumberLaw | member_laws.RegressionLaw | None = None
        if coarse is not None:
            sizes = [classings[own].size for own in names]
            within = member_laws.RegressionLaw.of(
                kind, series, coarse, fine, known, sizes, stratum, weights, root % 2**31
            )
        elif number:
            values = series.cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
            within = NumberLaw.of(target, values, tail=self.tail)
        outside = {} if home else _universe(series, frame, structure)
        return VariableLaw(name, law, within, home, outside), fine.codes(series)

    def _components(self, frame: pl.DataFrame) -> dict[str, tuple[str, ...]]:
        made = {}
        for total, parts in self.components.items():
            if total not in self._named("continuous"):
                raise ColumnError(f"components: '{total}' is not among the continuous columns.")
            names = (parts,) if isinstance(parts, str) else tuple(parts)
            check_named({"components": names}, frame.columns)
            made[total] = names
        return made


def _universe(
    series: pl.Series, frame: pl.DataFrame, structure: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Say between which values of a structure column anybody answered: children have no occupation, by design."""
    there = series.is_not_null()
    if there.all() or not there.any():
        return {}
    found = {}
    for name in structure:
        if frame.schema[name].is_numeric():
            own = frame[name].cast(pl.Float64)
            answered = own.filter(there)
            low, high = float(answered.min()), float(answered.max())  # type: ignore[arg-type]
            if float(own.min()) < low or float(own.max()) > high:  # type: ignore[arg-type]
                found[name] = (low, high)
    return found
