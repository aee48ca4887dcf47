"""What must a class of records that look alike fulfil before it may be released?

Each privacy model says which classes violate it. Two properties decide how a search may use it. A model is
*closed* when a class that fulfils it still does so after any other class has been merged into it (k-anonymity,
distinct l-diversity, k-map): then coarser keys never suppress more records. A model is *convex* when merging
classes that all fulfil it gives one that does (t-closeness, entropy and recursive l-diversity, ...): then coarser
keys stay safe only as long as no record had to be suppressed, because a suppressed class may spoil the class it
is merged into.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.described import kebab
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.parameters import typed_parameters
from discreet.core.values import jsonable
from discreet.engine import ClassCounts
from discreet.hierarchy import Hierarchy

if TYPE_CHECKING:
    from discreet.protect.generalizing.privacy_models import KMap


class Classes(Protocol):
    """What a model may ask about the classes of a file."""

    @property
    def sizes(self) -> Integers:
        """The number of records of each class; of people, where a role says whose the records are."""

    def values(self, column: str) -> ClassCounts:
        """The sparse counts of a sensitive column, class by class."""

    def population(self, model: KMap) -> Floats:
        """The (estimated) number of people in the population behind each class."""


class PrivacyModel(ABC):
    """A condition on every released class; subclasses are frozen dataclasses."""

    known: ClassVar[dict[str, type[PrivacyModel]]] = {}
    closed: bool = False
    """Whether a class that fulfils the model does so after any merge."""
    convex: bool = True
    """Whether merging classes that all fulfil the model gives one that does."""
    relative: ClassVar[bool] = False
    """Whether classes are compared with the whole file, as it was before anything was suppressed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: made.name)
        PrivacyModel.known[kebab(cls.__name__)] = cls

    @property
    def name(self) -> str:
        """The name in plan files, e.g. ``k-anonymity``."""
        return kebab(type(self).__name__)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns the model looks at."""
        column = getattr(self, "sensitive", None)
        return () if column is None else (column,)

    @abstractmethod
    def violations(self, classes: Classes) -> Flags:
        """Say for each class whether it violates the model."""

    def implied(self) -> tuple[PrivacyModel, ...]:
        """Name closed models that hold wherever this one does; a search may prune by them."""
        return (self,) if self.closed else ()

    def monotone(self, *, suppression: bool) -> bool:
        """Say whether a generalization of a feasible file is feasible, with or without suppressed records."""
        return self.closed or (self.convex and not suppression)

    def to_dict(self) -> dict[str, Any]:
        """Describe the model in plain values, with its kebab name under ``model``."""
        given: dict[str, Any] = {"model": self.name}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if value is not None and (value != item.default or not _has_default(item)):
                given[item.name] = value.to_dict() if isinstance(value, Hierarchy) else jsonable(value)
        return given

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> PrivacyModel:
        """Build the model that `to_dict` described.

        Examples
        --------
        >>> from discreet.protect.generalizing.privacy_models import LDiversity
        >>> PrivacyModel.from_dict({"model": "l-diversity", "sensitive": "income", "l": 2})
        LDiversity(sensitive='income', l=2, kind='distinct', c=2.0)
        """
        parameters = dict(description)
        name = str(parameters.pop("model", None))
        if name not in PrivacyModel.known:
            raise ParameterError(unknown_name(name, PrivacyModel.known, what="privacy model"))
        kind = PrivacyModel.known[name]
        options = [item.name for item in fields(kind)]  # type: ignore[arg-type]
        for option in parameters:
            if option not in options:
                raise ParameterError(f"In {name}: {unknown_name(option, options, what='parameter')}")
        if isinstance(parameters.get("hierarchy"), Mapping):
            parameters["hierarchy"] = Hierarchy.from_dict(parameters["hierarchy"])
        try:
            return kind(**parameters)
        except TypeError as error:
            raise ParameterError(f"{name} cannot be made from these parameters: {error}.") from error


def models_of(models: Any) -> tuple[PrivacyModel, ...]:
    """Take the models as a user or a plan file gives them: one or several, as objects or descriptions."""
    if isinstance(models, PrivacyModel | Mapping):
        models = [models]
    if not isinstance(models, Sequence) or isinstance(models, str) or not models:
        raise ParameterError("models must list at least one privacy model, e.g. models=[KAnonymity(5)].")
    found: tuple[Any, ...] = tuple(
        PrivacyModel.from_dict(item) if isinstance(item, Mapping) else item for item in models
    )
    for item in found:
        if not isinstance(item, PrivacyModel):
            raise ParameterError(
                f"models must hold privacy models such as KAnonymity(5), not {type(item).__name__}."
            )
    return found


def _has_default(item: Any) -> bool:
    return "MISSING" not in repr(item.default)


def must_be_column(name: Any) -> None:
    """Refuse a sensitive column that is not one name."""
    if not isinstance(name, str):
        raise ParameterError("sensitive must be the name of one column.")


def must_be_number(
    value: Any, parameter: str, *, least: float = -math.inf, above: float = -math.inf, most: float = math.inf
) -> None:
    """Refuse what is not a finite number within its bounds, by the name of the parameter."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not (least <= value <= most and value > above):
        bounds = [
            *([f"at least {least:g}"] if least > -math.inf else []),
            *([f"above {above:g}"] if above > -math.inf else []),
            *([f"at most {most:g}"] if most < math.inf else []),
        ]
        raise ParameterError(f"{parameter} must be a number, {' and '.join(bounds)}.")


def must_be_whole(value: Any, parameter: str, *, least: int) -> None:
    """Refuse what is not a whole number."""
    must_be_number(value, parameter, least=least)
    if value != int(value):
        raise ParameterError(f"{parameter} must be a whole number of at least {least}.")
