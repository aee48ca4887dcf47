"""Sequential synthesis: one column at a time, each drawn from its law given the columns before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from discreet import engine
from discreet.core.constraints import AtLeast, Between, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.method_cards import made_from, method, nested
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.microdata import Microdata, require_microdata
from discreet.synth.methods.method import Method
from discreet.synth.sequential.fitting_records import fit_weights
from discreet.synth.sequential.method_choice import names_in, values_of
from discreet.synth.sequential.plan_checks import check_columns
from discreet.synth.sequential.sequential_model import FittedSequential, FittedUnits, plan_units
from discreet.synth.sequential.synthesis_plan import SynthesisPlan, read_rules
from discreet.synth.sequential.synthesis_planning import plan_synthesis
from discreet.synth.sequential.whole_units import unit_of
from discreet.synth.synthesizer import Synthesizer, seed_of
from discreet.synth.written_values import written

_DEFAULTS = {"number": "normrank", "binary": "logreg", "category": "polyreg", "ordered": "polr"}

_BY_COLUMN = (
    "rules",
    "special_codes",
    "semicontinuous",
    "method_options",
    "number_groups",
    "events",
    "denominators",
)

Smoothing = Literal["spline", "density", "running-mean", "adaptive", "between"]


@method(
    aim="records",
    work="whole-file",
    references=(
        "Nowok, B., Raab, G. M. and Dibben, C. (2016). synthpop: bespoke creation of synthetic data in R. "
        "Journal of Statistical Software 74(11), 1–26. doi:10.18637/jss.v074.i11",
        "Reiter, J. P. (2005). Using CART to generate partially synthetic public use microdata. Journal "
        "of Official Statistics 21(3), 441–462.",
    ),
)
@dataclass(frozen=True)
class Sequential(Synthesizer):
    """Which records do models of one column after another draw?

    The columns are synthesized one after the other. The first is drawn from its observed values; each later one
    from a model of it given those before, fitted to the data and fed with synthetic values. The default model is a
    tree whose leaves are filled with observed values (CART), which keeps margins, skew and most relations without
    being told anything (Reiter 2005; Nowok, Raab and Dibben 2016).

    Also known as: synthpop; syn; sequential CART; fully conditional specification; FCS; CART synthesis; ctree; pmm;
    predictive mean matching; norm; polyreg.

    Parameters
    ----------
    method
        One name for all columns, or ``{column: name}`` (the others take ``otherwise``). Trees: ``"cart"``, ``"ctree"``,
        ``"rf"``, ``"bag"``; parametric: ``"norm"``, ``"lognorm"``, ``"sqrtnorm"``, ``"cubertnorm"``, ``"normrank"``,
        ``"pmm"``, ``"poisson"``, ``"logreg"``, ``"polyreg"``, ``"polr"``, or ``"parametric"`` for what fits the kind of
        column; draws: ``"sample"``, ``"nested.other"``, ``"satcat"``; joint tables for the first columns: ``"catall"``,
        ``"ipf"``; ``"keep"`` (or ``""``) leaves a column as it is; ``"~weight / height"`` computes it.
    otherwise
        The method of columns that ``method`` does not name.
    visit_sequence
        The order: ``None`` or ``"file"`` for that of the data, a list of columns, ``"auto"``, or another way of
        choosing it that `discreet.synth.choose_order` knows.
    predictor_matrix
        Which columns may predict which: a square of 0 and 1 in the order of the data, or ``{column: [predictors]}``.
        Columns that come later never predict earlier ones.
    rules
        ``{column: [(condition, value), …]}``: where the condition holds, the column has the value (None: missing).
    special_codes, semicontinuous
        ``{column: [values]}``: codes that are no numbers (-8 for "refused"), and values at which numbers pile up. A
        text column named under ``special_codes`` is taken for numbers: ``{"income": ["N"]}``, or ``[]`` where it has no
        codes.
    smoothing
        Blurs numbers that are drawn from donors: ``"spline"``, ``"density"``, ``"running-mean"``, ``"adaptive"`` or
        ``"between"``, for all or by column. Numbers that nearly every record has for itself (a turnover) are real
        people's without it.
    strata
        Columns within whose values everything is fitted and drawn separately.
    proper
        False: models are used as fitted. True: their parameters are drawn anew for each copy (trees are fitted to a
        resample). ``"bootstrap"``: all models of a copy are fitted to one resample of the records, or of the clusters
        where the data have the role ``psu``, within the design strata where they have the role ``strata``.
    weights
        What becomes of survey weights, where the data have the role: ``"use"`` fits every model by pseudo-likelihood,
        so that the synthetic file is like a simple random sample of the population and has no weights;
        ``"regenerate"`` does so and adds a constant weight that adds up to the population; ``"synthesize"`` makes the
        weight one more column, the last, and raises drawn weights that are not above zero to the smallest of the data
        (with a warning that counts them); ``"ignore"`` leaves weights aside.
    method_options
        ``{method: {option: value}}``, e.g. ``{"cart": {"min_leaf": 10}}``.
    defaults
        What ``"parametric"`` means for a number, a binary, another category and an ordered one.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    max_levels
        Refuse categories with more levels than this; None sets no limit.
    number_groups
        ``{column: groups}``: numbers that are modelled by group first and then drawn within it (for joint tables).
    events
        ``{time: event}``: survival times and their event columns, drawn together by a survival tree; None (in a plan
        file ``""``) where nothing is censored.
    denominators
        ``{count: denominator}``: counts out of another column, drawn from a binomial law.
    constraints
        Conditions that every synthetic record must meet; records that do not are drawn again.
    max_rounds
        How often records that break a constraint are drawn again before giving up.
    stratum_sizes
        ``"drawn"`` at random in the shares of the data (of the population, where weights are used), ``"fixed"`` as in
        the data, or ``"population"`` exactly in the shares of the summed weights.
    min_stratum
        Strata with fewer records are pooled with one another, and predict within the pool; ten plus ten for each column
        unless given.
    leave_out
        Columns that the synthetic file shall not have.
    together
        Which records belong together and are drawn as a whole, households for example: a column that they share,
        ``"auto"`` for the role ``household``, else ``person``, else a column that the data give away (records in a row
        share it, and another column counts them), or ``"no"``: records are drawn one by one, and a household or person
        that they share is left out. A unit is drawn with its first record; the others follow, given these. Its numbers
        are new ones, it has as many records as it says, and what its records share they share in the synthetic file.
    risk_limit
        The most that attackers may gain from what is drawn, e.g. 0.05. A model cannot see to that by itself: people
        have to be set aside, and what is drawn has to be attacked. So ``fit`` refuses it, and
        `discreet.workflow.synthesis_within_risk.synthesize_within_risk`, ``discreet synthesize``, policies and studies
        keep it.

    How it is used
    --------------
    ``fit`` returns a model with its ``plan``; ``sample`` draws any number of records and copies from it.

    When not to use it
    ------------------
    Do not take the result for anonymous: donors are values of real records, and a record may be drawn as it was.
    Measure with `discreet.compare` or `discreet.risk.disclosure` before anything is released. Relations between
    columns that neither predict the other (see ``predictor_matrix``) are lost.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "age": list(range(200))})
    >>> fitted = Sequential(method="cart").fit(Microdata(people), seed=1)
    >>> fitted.plan.methods
    {'sex': 'sample', 'age': 'cart'}
    >>> fitted.sample(3, seed=1).frame.shape
    (3, 2)
    """

    own_words: ClassVar[bool] = True
    method: Annotated[str, Public()] | Method | Mapping[ColumnName, Annotated[str, Public()] | Method] = (
        "cart"
    )
    otherwise: Annotated[str, Public()] | Method = "cart"
    visit_sequence: ColumnName | ColumnNames | None = None
    predictor_matrix: Annotated[Any, Public()] = None
    rules: Annotated[Mapping[str, Any], HoldsValues(in_expressions=True)] | None = None
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    semicontinuous: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    smoothing: Annotated[Smoothing, Public()] | Annotated[Mapping[str, Smoothing], Public()] | None = None
    strata: Annotated[Columns, Public()] = None
    proper: bool | Literal["bootstrap"] = False
    weights: Literal["use", "regenerate", "synthesize", "ignore"] = "use"
    method_options: Annotated[Mapping[str, Mapping[str, Any]], Public()] | None = None
    defaults: Annotated[Mapping[str, str], Public()] = field(default_factory=lambda: dict(_DEFAULTS))
    few_values: Annotated[int, AtLeast(0)] = 1
    max_levels: Annotated[int, AtLeast(1)] | None = None
    number_groups: Annotated[Mapping[str, int], Public()] | None = None
    events: Annotated[Mapping[str, str | None], Public()] | None = None
    denominators: Annotated[Mapping[str, str], Public()] | None = None
    constraints: Annotated[Sequence[str], HoldsValues(in_expressions=True)] = ()
    max_rounds: Annotated[int, AtLeast(1)] = 100
    stratum_sizes: Literal["drawn", "fixed", "population"] = "drawn"
    min_stratum: Annotated[int, AtLeast(1)] | None = None
    leave_out: Annotated[Columns, Public()] = None
    together: Annotated[str, Public()] = "auto"
    risk_limit: Annotated[float, Between(0, 1, above=True, below=True)] | None = None

    def __post_init__(self) -> None:
        if self.proper not in (False, True, "bootstrap"):
            raise ParameterError('proper must be False, True or "bootstrap".')
        if self.stratum_sizes not in ("drawn", "fixed", "population"):
            raise ParameterError(
                unknown_name(str(self.stratum_sizes), ("drawn", "fixed", "population"), what="stratum_sizes")
            )
        if isinstance(self.constraints, str):
            object.__setattr__(self, "constraints", (self.constraints,))
        if not isinstance(self.constraints, Sequence):
            raise ParameterError("constraints must be a condition, or a list of them, e.g. ['age >= 16'].")
        if not isinstance(self.together, str):
            raise ParameterError('together must be the name of a column, "auto" or "no".')
        for setting in ("strata", "leave_out"):
            names_in(getattr(self, setting), setting)
        if not isinstance(self.visit_sequence, str | Sequence | None):
            raise ParameterError(
                "visit_sequence must be a list of columns, or the name of a way to choose them."
            )
        for setting in _BY_COLUMN:
            value = getattr(self, setting)
            if not isinstance(value, Mapping | None):
                raise ParameterError(f"{setting} must be a mapping from columns to what is said about them.")
        for name, given in (self.method_options or {}).items():
            if not isinstance(given, Mapping):
                raise ParameterError(
                    f"method_options of '{name}' must be a mapping from options to values, e.g. {{'min_leaf': 10}}."
                )
        for kind in self.defaults:
            if kind not in _DEFAULTS:
                raise ParameterError(
                    f"{unknown_name(kind, _DEFAULTS, what='kind of column')} It was named under defaults."
                )
        object.__setattr__(self, "defaults", _DEFAULTS | dict(self.defaults))
        read_rules(self.rules)

    def plan(self, data: Microdata) -> SynthesisPlan:
        """Say what would be done, without fitting anything: order, methods, predictors, warnings."""
        require_microdata(data)
        check_columns(data.columns)
        frame = engine.collect(data)
        unit = unit_of(self, data, frame)
        if unit is None:
            return plan_synthesis(self, data, frame)[0]
        return plan_units(self, unit, data, frame)

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: Ledger | None = None,
        seed: Seed = None,
    ) -> FittedSequential | FittedUnits:
        """Fit a model of every column given those before it.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            Same data, same parameters, same seed: same model.
        progress
            Show how far it is, on a terminal.
        ledger
            The privacy budget of the data source. Only a noisy table (method ``catall`` with an ``epsilon``) has a
            guarantee: it is entered before noise is drawn, and anything else is refused.
        """
        require_microdata(data)
        if self.risk_limit is not None:
            raise ParameterError(
                "risk_limit is kept by attacking what is drawn, beside people who were set aside; a model alone has "
                "neither. Use discreet.workflow.synthesis_within_risk.synthesize_within_risk(data, synthesizer=…) or "
                "discreet synthesize --set risk_limit=…, or leave risk_limit out."
            )
        check_columns(data.columns)
        frame = engine.collect(data)
        stream = Stream(seed_of(seed), "sequential", seeded=seed is not None, ledger=ledger, data=data)
        unit = unit_of(self, data, frame)
        if unit is not None:
            stream.enter(None, "records of one unit are drawn one after the other.")
            return FittedUnits.fit(self, unit, data, frame, stream=stream, progress=progress)
        plan, forms = plan_synthesis(self, data, frame)
        weights = fit_weights(self, data, frame)
        return FittedSequential.fit(
            self, plan, forms, data, frame, weights=weights, stream=stream, progress=progress
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, ready for JSON or TOML."""
        given = super().to_dict()
        if isinstance(self.method, Method):
            # Under ``method`` a table of options would be read as methods of columns with these names.
            own = self.method.to_dict()
            given["method"] = own.pop("method")
            if own:
                given["method_options"] = {**given.get("method_options", {}), given["method"]: own}
        for setting in ("special_codes", "semicontinuous"):
            if setting in given:
                codes = getattr(self, setting)
                given[setting] = {
                    str(name): [written(code) for code in values_of(codes, name)] for name in codes
                }
        if self.events:
            given["events"] = {time: event or "" for time, event in self.events.items()}
        if self.rules:
            given["rules"] = {
                name: [rule.to_dict() for rule in rules] for name, rules in read_rules(self.rules).items()
            }
        if self.predictor_matrix is not None:
            given["predictor_matrix"] = nested(self.predictor_matrix)
        return given

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Self:
        """Make the synthesizer from the content of a plan file."""
        return made_from(cls, "sequential", parameters)
