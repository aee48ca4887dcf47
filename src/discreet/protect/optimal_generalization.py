"""How coarse must the keys become, at least, before the file is safe?

Full-domain generalization: every key gets one level of its hierarchy for the whole file. The search over all
combinations of levels is exact and says so; see `discreet.protect.lattice_search` for how.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import polars as pl

from discreet import engine
from discreet.core.constraints import Above, ColumnName, ColumnNames, HoldsValues, Public, Share
from discreet.core.errors import ParameterError, need_known
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics.loss import CELL_LOSSES
from discreet.protect.global_recoding import hierarchies_of
from discreet.protect.lattice_classes import Lattice
from discreet.protect.lattice_search import Answer, CellObjective, ClassObjective, Evaluated, Search
from discreet.protect.privacy_models import KMap, PrivacyModel, models_of
from discreet.protect.records_of_classes import by_class
from discreet.protect.treatment import Change, Treatment

Loss = Literal[
    "coverage", "normalized-entropy", "precision", "discernibility", "average-class-size", "classification"
]


@method(
    aim="company",
    work="class-wise",
    references=(
        "Samarati, P. (2001). Protecting respondents' identities in microdata release. IEEE Transactions "
        "on Knowledge and Data Engineering 13(6), 1010–1027. doi:10.1109/69.971193",
        "El Emam, K. et al. (2009). A globally optimal k-anonymity method for the de-identification of "
        "health data. Journal of the American Medical Informatics Association 16(5), 670–682. "
        "doi:10.1197/jamia.M3144",
        "Kohlmayer, F., Prasser, F., Eckert, C., Kemper, A. and Kuhn, K. A. (2012). Flash: efficient, "
        "stable and optimal k-anonymity. PASSAT 2012, 708–717.",
    ),
    tells=("frontier", "heights", "nodes"),
)
@dataclass(frozen=True)
class OptimalGeneralization(Treatment):
    """Coarsen the keys, each to one level of its hierarchy, so that the models hold and the least is lost.

    It protects against finding somebody by their keys, and with further models against learning their
    sensitive value, in every class of the released file.

    All combinations of levels form a lattice; the one with the least loss is found and proved to be so. Records in
    classes that violate a model at that node are suppressed: all their keys become missing. How many may be is
    yours to say.

    Also known as: OLA; optimal lattice anonymization; Flash; Incognito; full-domain generalization; Samarati.

    Parameters
    ----------
    models
        The privacy models every released class must meet, e.g. ``[KAnonymity(5), LDiversity("income", 2)]``.
    hierarchies
        ``{key: Hierarchy}``. A key without one is either kept as it is or replaced by ``*`` altogether.
    suppression_limit
        The share of records that may be suppressed.
    loss
        What is to be small: ``coverage``, the mean share of its domain that a released cell covers, suppressed
        cells covering all of it; ``normalized-entropy``, ``precision``, ``discernibility``,
        ``average-class-size`` or ``classification``. See `discreet.numerics.loss`.
    target
        The column that must stay predictable, for ``loss="classification"``.
    weights
        Importance of keys, ``{key: number}``, for the losses of cells; 1 unless given.
    keys
        The columns to generalize; the keys of the data unless named.
    suppressed
        ``missing``: suppressed records stay, with all keys missing. ``remove``: they are taken out.
    time_limit
        Seconds after which the best node found so far is taken; the log then says how far it may be from the best.

    Notes
    -----
    Missing key values are a group of their own and stay missing, except where a key goes to the top of its
    hierarchy and nothing is said about anybody. Distributions of sensitive values are compared with those of the
    whole file as it was. Which levels were chosen is learned from the data; models on classes say nothing about
    that. The log has ``levels``, ``loss_reached``, ``suppressed_records``, the ``frontier`` (among the nodes that
    were evaluated, those that no other beats in both suppressed records and loss), and how the search went.

    What it costs
    -------------
    Detail of the keys, the same for all records, plus the suppressed records. By the chosen loss no other
    choice of levels costs less (``proven`` in the log).

    When not to use it
    ------------------
    Do not use it with many keys or keys without a hierarchy: the levels that work for the rarest record are
    then coarse for all, and `Mondrian` or `LocalSuppression` lose less. A hierarchy made from this very file
    may itself tell who is rare.

    Examples
    --------
    >>> from discreet import Microdata
    >>> from discreet.protect.privacy_models import KAnonymity
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [31, 34, 42, 48]})
    >>> ages = {"age": Hierarchy.intervals([10])}
    >>> safe = OptimalGeneralization([KAnonymity(2)], ages).apply(Microdata(people, keys=["sex", "age"]))
    >>> safe.data.frame["age"].to_list()
    ['[30, 40)', '[30, 40)', '[40, 50)', '[40, 50)']
    >>> safe.log[0].parameters["levels"]
    {'sex': 0, 'age': 1}
    """

    models: Sequence[PrivacyModel]
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)] = field(default_factory=dict)
    suppression_limit: Annotated[float, Share()] = 0.0
    loss: Loss = "coverage"
    target: ColumnName | None = None
    weights: Annotated[Mapping[str, Annotated[float, Above(0)]], Public()] | None = None
    keys: ColumnNames | None = None
    suppressed: Literal["missing", "remove"] = "missing"
    time_limit: Annotated[float, Above(0)] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", models_of(self.models))
        object.__setattr__(self, "hierarchies", hierarchies_of(self.hierarchies))
        if (self.loss == "classification") != (self.target is not None):
            raise ParameterError(
                "target names the column that must stay predictable: loss='classification' needs it, and "
                "no other loss uses it."
            )
        keep_as_tuples(self, "keys")
        if self.weights is not None and self.loss not in CELL_LOSSES:
            raise ParameterError(
                f"weights are for the losses of cells ({', '.join(CELL_LOSSES)}), not for '{self.loss}'."
            )

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Search the lattice and recode the keys to the levels found."""
        keys = engine.resolve_keys(data, self.keys)
        for role, names in (("hierarchies", self.hierarchies), ("weights", self.weights or {})):
            need_known(names, keys, what="key", before=f"In {role}: ")
        for model in self.models:
            for column in model.columns:
                engine.resolve_sensitive(data, column, keys)
        if self.target is not None:
            engine.resolve_sensitive(data, self.target, keys)
        others = [self.target] if self.target is not None else []
        by_classes = self._by_classes(data)
        lattice = Lattice(data, keys, self.hierarchies, self.models, others, by_classes=by_classes)
        allowed = math.floor(self.suppression_limit * lattice.records + 1e-9)
        objective = (
            CellObjective(lattice, self.loss, [(self.weights or {}).get(key, 1.0) for key in keys])
            if self.loss in CELL_LOSSES
            else ClassObjective(lattice, self.loss, self.target)
        )
        answer = Search(lattice, self.models, allowed, objective, self.time_limit).run()
        if answer.best is None:
            raise ParameterError(self._hopeless(answer))
        return self._released(lattice, answer, answer.best, by_classes=by_classes)

    def _by_classes(self, data: Microdata) -> bool:
        """Whether the classes say all: not where records are taken out, or people and weights are counted."""
        weighted = any(isinstance(model, KMap) and model.weight is not None for model in self.models)
        return (
            engine.is_lazy(data)
            and self.suppressed == "missing"
            and engine.counted_unit(data) is None
            and not weighted
        )

    def _released(self, lattice: Lattice, answer: Answer, best: Evaluated, *, by_classes: bool) -> Change:
        names = [key.name for key in lattice.keys]
        violating = lattice.violating(lattice.fresh_table(best.node), self.models)
        gone = pl.Series(violating[lattice.owners_of_base(best.node)[lattice.base_of_record]])
        hide = best.suppressed > 0 and self.suppressed == "missing"
        columns = {}
        for key, level in zip(lattice.keys, best.node, strict=True):
            if level or hide:
                column = key.released(lattice.columns[key.name], level)
                columns[key.name] = _without(column, gone) if hide else column
        rest = lattice.violations_together(best.node, self.models) if hide else ()
        meets = ", ".join(model.name for model in self.models)
        if any(model.relative for model in self.models):
            meets += " (compared with the file as it was)"
        return Change(
            columns={} if by_classes else columns,
            by_record=by_class(lattice.columns.select(names), columns) if by_classes and columns else None,
            keep=~gone if best.suppressed and self.suppressed == "remove" else None,
            notes=self._notes(lattice, answer, best, rest),
            parameters={
                "levels": dict(zip(names, best.node, strict=True)),
                "heights": dict(zip(names, lattice.heights, strict=True)),
                "loss_reached": best.loss,
                "suppressed_records": best.suppressed,
                "proven": answer.proven,
                "gap": answer.gap,
                "nodes": {
                    "lattice": answer.nodes,
                    "evaluated": len(answer.evaluated),
                    "pruned": answer.nodes - len(answer.evaluated) if answer.proven else None,
                },
                "frontier": _frontier(answer, names),
            },
            guarantee=None if rest else f"Every class of the keys {', '.join(names)} meets {meets}.",
        )

    def _notes(
        self, lattice: Lattice, answer: Answer, best: Evaluated, rest: Sequence[str]
    ) -> tuple[str, ...]:
        levels = ", ".join(
            f"'{key.name}' {level} of {key.height}"
            for key, level in zip(lattice.keys, best.node, strict=True)
        )
        share = percent(best.suppressed / lattice.records)
        fate = "all their keys are missing" if self.suppressed == "missing" else "they were removed"
        notes = [
            f"Keys were coarsened to these levels: {levels}.",
            f"{best.suppressed:,} of {lattice.records:,} records ({share}) were suppressed: {fate}."
            if best.suppressed
            else "No record was suppressed.",
            f"The loss ({self.loss}) is {best.loss:.4f}. "
            + (
                f"No other choice of levels loses less: {len(answer.evaluated):,} of {answer.nodes:,} were "
                "counted and the others are ruled out."
                if answer.proven
                else f"The time was up; a choice that loses up to {answer.gap:.4f} less is not ruled out."
            ),
        ]
        if rest:
            notes.append(
                f"The suppressed records, taken as one class, do not meet {', '.join(rest)}: somebody known to be "
                "in the file who fits no class must be among them. Take them out with suppressed='remove'."
            )
        return tuple(notes)

    def _hopeless(self, answer: Answer) -> str:
        names = ", ".join(model.name for model in self.models)
        if self.time_limit is not None and answer.lower_bound < math.inf:
            return (
                f"No levels that meet {names} were found within time_limit={self.time_limit:g} seconds. "
                "Allow more time."
            )
        return (
            f"No combination of levels meets {names} with at most {percent(self.suppression_limit)} of the records "
            "suppressed. Raise suppression_limit, or ask for less in models."
        )


def _frontier(answer: Answer, names: Sequence[str]) -> list[dict[str, Any]]:
    found = [node for node in answer.evaluated if node.loss < math.inf]
    kept: list[Evaluated] = []
    for node in sorted(found, key=lambda item: (item.suppressed, item.loss, item.node)):
        if not kept or node.loss < kept[-1].loss:
            kept.append(node)
    return [
        {"levels": dict(zip(names, node.node, strict=True)), "suppressed": node.suppressed, "loss": node.loss}
        for node in kept
    ]


def _without(column: pl.Series, gone: pl.Series) -> pl.Series:
    return pl.select(pl.when(~gone).then(column).alias(column.name)).to_series()
