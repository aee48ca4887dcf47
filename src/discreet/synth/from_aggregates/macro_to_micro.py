"""Microdata from published tables: a Gaussian copula for the dependence, margins from means and sds, totals restored.

The idea is SynC's (Wan, Li, Guo and Zhao 2020). Nothing is learned from records unless the scenario says so; the same
machinery therefore also shows what an intruder who knows only the tables can guess about the records behind them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.method_cards import method
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata
from discreet.synth.column_forms import check_named
from discreet.synth.from_aggregates.latent_correlation import (
    Dependence,
    Matrix,
    as_matrix,
    between_units,
    checked_correlation,
    correlation_of_covariance,
    dependence_of,
    normal_score_correlation,
    random_correlation,
)
from discreet.synth.from_aggregates.macro_to_micro_model import FittedMacroToMicro
from discreet.synth.from_aggregates.published_aggregates import (
    BETWEEN,
    EXTERNAL,
    PUBLISHED,
    RANDOM,
    REAL,
    Aggregates,
    Figures,
    Given,
    Knowledge,
    gathered,
    read_aggregates,
)
from discreet.synth.record_rules import RecordRule, derived_columns, read_rules
from discreet.synth.synthesizer import Synthesizer

Scenario = Literal["none", "internal", "external"]


@method(
    aim="published results",
    references=(
        "Wan, C., Li, Z., Guo, A. and Zhao, Y. (2020). SynC: a copula based framework for generating "
        "synthetic data from aggregated sources. ICDM Workshops 2020, 571–578.",
        "Aghaddar, M., Su, L. N., Slokom, M., Barnhoorn, L. and de Wolf, P.-P. (2024). A case study "
        "exploring data synthesis strategies on tabular vs. aggregated data sources for official "
        "statistics. Privacy in Statistical Databases, LNCS 14915. doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class MacroToMicro(Synthesizer):
    """Make microdata from published totals, means, standard deviations and correlations.

    Every record is invented: it fits the tables and nobody else. Use it for test and teaching files where no record
    may be touched, or to see how near an intruder who has the tables can come to the records.

    Also known as: SynC; macro-to-micro; copula from aggregates.

    Parameters
    ----------
    unit
        Column, or columns, of the aggregates that name the units (sectors, regions). Without it the table has one
        row, for the whole file.
    variables
        Variables to make; all in the aggregates unless named.
    cells
        What a plain column of the aggregates holds: ``total`` or ``mean``. Columns called ``…_total``, ``…_mean``,
        ``…_sd`` or ``…_zeros`` (share of zeros) say it themselves.
    records
        Number of records by unit: a column of the aggregates, one number for all, or ``{unit: number}``. In scenario
        ``none`` the range to draw from, e.g. ``(20, 200)``.
    marginals
        Family by variable: lognormal for amounts that are never negative and normal for the others unless given; also
        gamma, exponential, truncated normal, beta (shares), bernoulli, poisson and negative binomial (counts).
        Several names, or ``"auto"``, choose by the AIC of the unit means.
    means, sds, zeros
        Numbers that the aggregates do not have: ``{variable: number}`` or ``{variable: {unit: number}}``.
    cv
        Standard deviation over mean to assume where no sd is known; a warning says so.
    correlation, covariance
        Within units: a matrix in the order of the variables drawn, or ``{variable: {variable: number}}``. Without
        one, the means of the units are correlated and shrunk towards none, with a warning: what holds between units
        need not hold between records.
    correlation_of
        Whether ``correlation`` is that of the ``data`` (as published) or of the ``latent`` normal variables.
    scenario
        None uses what is published and given here. ``none``: an intruder without knowledge: correlations and numbers
        of records are random. ``internal``: they and the sds come from the real file, ``fit(…, microdata=…)``.
        ``external``: they are what a third party guesses, given here.
    scale
        Fit margins to ``minmax``, ``standard`` or ``log`` scaled numbers; the result is always scaled back.
    match_totals
        Bring every unit to its totals: amounts multiplied, signed ones shifted, whole numbers by largest remainder.
    whole
        Variables that are whole numbers (counts are by themselves).
    rules
        Rules of the records, see `discreet.synth.check_rules`. What sums and equalities define is not drawn but
        computed.
    repair
        ``projection`` moves numbers, ``reject`` draws records again until the other rules hold; None only reports,
        with ``fitted.check(file)``.

    When not to use it
    ------------------
    Do not use it to answer questions about records: relations that were not published are inventions. A result is no
    safer than the tables it came from; in scenario ``internal`` correlations of real records are used as well.

    Examples
    --------
    >>> table = pl.DataFrame({"sector": ["58", "62"], "revenue": [12000.0, 90000.0], "records": [60, 200]})
    >>> model = MacroToMicro(unit="sector", sds={"revenue": 150.0}).fit(table, seed=1)
    >>> file = model.sample(seed=2).frame
    >>> file.group_by("sector", maintain_order=True).agg(pl.col("revenue").sum().round(6)).rows()
    [('58', 12000.0), ('62', 90000.0)]
    """

    unit: ColumnName | ColumnNames | None = None
    variables: ColumnNames | None = None
    cells: Literal["total", "mean"] = "total"
    records: ColumnName | int | Annotated[Mapping[Any, int] | tuple[int, int], HoldsValues()] = "records"
    marginals: Annotated[Mapping[str, str | Sequence[str]], Public()] = field(default_factory=dict)
    means: Annotated[Mapping[str, Given], HoldsValues(by_column=True)] = field(default_factory=dict)
    sds: Annotated[Mapping[str, Given], HoldsValues(by_column=True)] = field(default_factory=dict)
    zeros: Annotated[Mapping[str, Given], HoldsValues(by_column=True)] = field(default_factory=dict)
    cv: float | None = None
    correlation: Annotated[Matrix, Public()] | None = None
    covariance: Annotated[Matrix, Public()] | None = None
    correlation_of: Literal["data", "latent"] = "data"
    scenario: Scenario | None = None
    scale: Literal["none", "minmax", "standard", "log"] = "none"
    match_totals: bool = True
    whole: ColumnNames = ()
    rules: Annotated[Sequence[str], HoldsValues(in_expressions=True)] = ()
    repair: Literal["projection", "reject"] | None = None

    def __post_init__(self) -> None:
        for name in ("variables", "whole", "rules"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
        if self.cv is not None and not self.cv > 0:
            raise ParameterError("cv must be a number above 0.")
        if self.correlation is not None and self.covariance is not None:
            raise ParameterError("Give either correlation or covariance, not both.")

    def fit(
        self,
        data: Any,
        *,
        microdata: Any = None,
        progress: bool = False,
        seed: Seed = None,
    ) -> FittedMacroToMicro:
        """Read the aggregates and settle every parameter.

        Parameters
        ----------
        data
            The aggregates: a data frame (or Microdata) with a row a unit.
        microdata
            The real file (Microdata or a data frame), for scenario ``internal`` only.
        seed
            For what is random in scenario ``none``.
        progress
            There is nothing to wait for.
        """
        file = _as_microdata(data)
        table = engine.whole_frame(file)
        unit = [] if self.unit is None else [self.unit] if isinstance(self.unit, str) else list(self.unit)
        count_column = self.records if isinstance(self.records, str) else "records"
        if count_column != "records" and count_column not in table.columns:
            raise ColumnError(f"{unknown_name(count_column, table.columns)} It was named under 'records'.")
        read = read_aggregates(
            table, unit=unit, variables=self.variables, cells=self.cells, records=count_column
        )
        rules, names = self._rules(read)
        drawn = _only(read, [name for name in read.variables if name not in derived_columns(rules)])
        if microdata is not None and self.scenario != "internal":
            raise ParameterError("The real file is used in scenario 'internal' only. Leave microdata= out.")
        real = None if microdata is None else engine.whole_frame(_as_microdata(microdata))
        rng = generator(seed, "macro-to-micro", "fit")
        target, sds = self._given_correlation(drawn.variables)
        known = gathered(self, drawn, real, sds, rng)
        dependence = self._dependence(drawn, known, target, real, rng)
        _derived_totals(read, drawn, known, rules)
        return FittedMacroToMicro.made(
            file, drawn, known, dependence, columns=names, rules=tuple(self.rules), options=self
        )

    def _rules(self, read: Aggregates) -> tuple[tuple[RecordRule, ...], tuple[str, ...]]:
        """Read the rules; a rule may define a column that the aggregates do not have."""
        schema: dict[str, Any] = {**read.units.schema, **dict.fromkeys(read.variables, pl.Float64())}
        check_named({"'whole'": self.whole}, read.variables)
        for text in self.rules:
            defines = re.match(r"\s*(?:`([^`]+)`|([A-Za-z_]\w*))\s*==?(?!=)", text)
            if defines and (name := defines[1] or defines[2]) not in schema:
                schema[name] = pl.Float64()
        rules = read_rules(list(self.rules), schema)
        return rules, tuple(name for name in schema if name not in read.units.columns)

    def _given_correlation(self, variables: Sequence[str]) -> tuple[Floats | None, Floats | None]:
        if self.correlation is not None:
            return checked_correlation(as_matrix(self.correlation, variables, "correlation")), None
        if self.covariance is not None:
            found, sds = correlation_of_covariance(as_matrix(self.covariance, variables, "covariance"))
            if np.abs(found).max() > 1 + 1e-9:
                raise ParameterError(
                    "covariance holds a number larger than the product of its two standard deviations."
                )
            return np.clip(found, -1.0, 1.0), sds
        return None, None

    def _dependence(
        self,
        read: Aggregates,
        known: Knowledge,
        target: Floats | None,
        real: pl.DataFrame | None,
        rng: np.random.Generator,
    ) -> Dependence:
        names = read.variables
        if self.scenario == "none":
            matrix = random_correlation(len(names), rng)
            return dependence_of(matrix, known.margins, names, latent=True, source=RANDOM)
        if self.scenario == "internal":
            assert real is not None
            matrix = normal_score_correlation(real, read.units.columns, names)
            return dependence_of(matrix, known.margins, names, latent=True, source=REAL)
        if target is not None:
            source = EXTERNAL if self.scenario == "external" else PUBLISHED
            latent = self.correlation_of == "latent"
            return dependence_of(target, known.margins, names, latent=latent, source=source)
        if self.scenario == "external" and len(names) > 1:
            raise ParameterError("Scenario 'external' needs the guessed correlation= or covariance=.")
        return self._between(read, known)

    def _between(self, read: Aggregates, known: Knowledge) -> Dependence:
        names, units = read.variables, len(read.keys)
        if len(names) == 1:
            return dependence_of(np.eye(1), known.margins, names, latent=True, source=PUBLISHED)
        if units < 3:
            message = (
                f"With {units} unit{'s' * (units > 1)} nothing is known about how variables hang together; they were "
                "drawn independently. Give correlation=."
            )
            matrix = np.eye(len(names))
        else:
            matrix, shrunk = between_units(known.means.values)
            message = (
                f"Correlations are those of the means of {units} units, shrunk by {shrunk:.0%}. What holds between "
                "units need not hold between records. Give correlation= where it is published."
            )
        warnings.warn(message, DiscreetWarning, stacklevel=4)
        source = BETWEEN if units >= 3 else "assumed"
        return dependence_of(matrix, known.margins, names, latent=False, source=source, notes=[message])


def _as_microdata(data: Any) -> Microdata:
    return data if isinstance(data, Microdata) else Microdata(data)


def _only(read: Aggregates, names: Sequence[str]) -> Aggregates:
    """Leave out the variables that rules compute."""
    if not names:
        raise ParameterError("The rules compute every variable from others, so there is none left to draw.")
    at = [read.variables.index(name) for name in names]
    statistics = {
        name: Figures(figures.values[:, at], figures.sources[:, at])
        for name, figures in read.statistics.items()
    }
    computed = tuple(name for name in read.variables if name not in names)
    return Aggregates(read.units, read.keys, tuple(names), statistics, read.records, computed)


def _derived_totals(
    read: Aggregates, drawn: Aggregates, known: Knowledge, rules: Sequence[RecordRule]
) -> None:
    """Refuse a published total that is not what its rule makes of the totals of the others."""
    sums = pl.DataFrame({name: known.totals.values[:, d] for d, name in enumerate(drawn.variables)})
    for name, rule in derived_columns(rules).items():
        assert rule.right is not None
        sums = sums.with_columns(rule.right.value.cast(pl.Float64).alias(name))
        if name not in read.variables or rule.kind != "summation":
            continue
        published = read.statistics["total"].values[:, read.variables.index(name)]
        made = sums[name].to_numpy()
        # Each part may have been rounded by itself.
        off = np.abs(published - made) > 0.5 * len(rule.columns) + 1e-9 * np.abs(made)
        if off.any():
            raise ParameterError(
                f"The published totals of '{name}' do not fit the rule '{rule.text}' in {int(off.sum())} of "
                f"{len(off)} units. Correct them, or leave the rule out."
            )
