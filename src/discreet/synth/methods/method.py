"""What every way of modelling one column is: a method with its options, and the law that it fits.

A `Method` is a frozen dataclass of options. Its ``fit`` sees the observed column and its predictors and returns a
`Conditional`, from which values are drawn for other values of the same predictors. Laws are dataclasses of
plain numbers and arrays (`discreet.synth.saved_models`), never code.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.method_cards import made_from, parameters_of
from discreet.core.parameters import typed_parameters
from discreet.core.value_gate import name_in_documents
from discreet.dp.entropy import Words
from discreet.synth.column_forms import Variable

Target = Literal["number", "binary", "category", "ordered"]
ProperBy = Literal["posterior", "bootstrap", "cells", "nothing"]

_FAMILIES = ("glm_methods", "joint_methods", "normal_regression", "observed_values", "tree_donors")


@dataclass(frozen=True)
class Task:
    """What a method is fitted to.

    Attributes
    ----------
    target
        The column to be modelled.
    predictors
        The columns it is modelled from.
    rng
        Random numbers of this fit.
    weights
        Positive, adding up to the number of records; None where all count alike.
    proper
        Whether a method that draws its parameters from their posterior does so now; the others are handed a
        resample and need do nothing.
    """

    target: Variable
    predictors: Sequence[Variable]
    rng: np.random.Generator
    weights: Floats | None = None
    proper: bool = False


@dataclass(frozen=True)
class JointTask:
    """What a joint method is fitted to: as `Task`, with several targets and bits for noise with a guarantee."""

    targets: Sequence[Variable]
    predictors: Sequence[Variable]
    rng: np.random.Generator
    words: Words
    weights: Floats | None = None
    proper: bool = False


class Conditional(ABC):
    """The fitted law of one variable given its predictors."""

    @abstractmethod
    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Draw one value a record: floats of a number, codes of a category.

        ``predictors`` are those of the fit, in the same order, with the synthetic values; each has ``size`` of them.
        """

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of predictors that the fit could not use (constant, collinear)."""
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about this fit, in plain sentences."""
        return ()


class Method(ABC):
    """How one column is modelled; subclasses are frozen dataclasses of options."""

    known: ClassVar[dict[str, type[Method]]] = {}
    name: ClassVar[str]
    """The name in Python, in plan files and on the command line, e.g. ``"cart"``."""
    also: ClassVar[tuple[str, ...]] = ()
    """Other names that users of the field know it by."""
    targets: ClassVar[frozenset[str]] = frozenset({"number", "binary", "category", "ordered"})
    """The kinds of column it can model."""
    needs_predictors: ClassVar[bool] = True
    """Whether it is replaced by a plain draw from the column where nothing predicts it."""
    proper_by: ClassVar[ProperBy] = "bootstrap"
    """How a proper synthesis varies the parameters: the method draws them from their posterior, is fitted to a
    resample, to a resample within each cell of its predictors, or nothing varies."""
    gives_observed_values: ClassVar[bool] = False
    """Whether drawn numbers are values of records (donors), which smoothing may then blur."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: f"method '{made.name}'")
        if "name" in cls.__dict__:
            for name in (cls.name, *cls.also):
                Method.known[name] = cls

    @abstractmethod
    def fit(self, task: Task) -> Conditional:
        """Fit the law of the target given the predictors."""

    def to_dict(self) -> dict[str, Any]:
        """Return the method and its options, as a plan file has them."""
        return {"method": self.name, **parameters_of(self)}

    @staticmethod
    def named(name: str, options: Mapping[str, Any] | None = None) -> Method:
        """Make the method of that name with these options."""
        if name not in Method.known:
            raise ParameterError(unknown_name(name, Method.known, what="method"))
        return made_from(Method.known[name], f"method '{name}'", options or {})


name_in_documents("method", Method.known)


class JointConditional(ABC):
    """The fitted law of several variables that are drawn together."""

    @abstractmethod
    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> list[Array]:
        """Draw one value a record of each variable."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about this fit, in plain sentences."""
        return ()


class JointMethod(Method):
    """How several columns are modelled together: a joint table of categories, a survival time with its event."""

    @abstractmethod
    def fit_joint(self, task: JointTask) -> JointConditional:
        """Fit the law of the targets together."""

    def fit(self, task: Task) -> Conditional:
        """Refuse: a joint method models several columns at once."""
        raise ParameterError(f"The method '{self.name}' models several columns together.")


def kind_of(variable: Variable) -> Target:
    """Say what kind of target a variable is."""
    if variable.is_number:
        return "number"
    if variable.levels == 2:
        return "binary"
    return "ordered" if variable.ordered else "category"


def all_methods() -> dict[str, type[Method]]:
    """Return every method by its names."""
    for family in _FAMILIES:
        importlib.import_module(f"discreet.synth.methods.{family}")
    return Method.known
