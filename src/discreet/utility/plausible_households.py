"""Are households what households are? Rules that every household of a file must keep, and how many break them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.wording import type_name
from discreet.expressions import parse
from discreet.microdata import Microdata

_ROUNDED = 1e-6
_QUANTIFIED: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "every member": lambda kept: ~kept.all(),
    "some member": lambda kept: ~kept.any(),
    "one member": lambda kept: kept.sum() != 1,
    "no member": lambda kept: kept.any(),
}
# A member of whom a condition cannot be told keeps "every" rule and is not the one that another rule asks for.
_UNKNOWN = {"every member": True}


@checked
def household_rules(
    data: Microdata,
    *,
    age: str = "age",
    sex: str | None = None,
    size: str | None = None,
    adult_age: float = 16.0,
    ages: Sequence[float] | None = None,
    reference: str | None = None,
    no_income: str | Sequence[str] | None = None,
    parts: Mapping[str, Sequence[str]] | None = None,
    rules: Mapping[str, str] | None = None,
    truth: Microdata | None = None,
) -> pl.DataFrame:
    """Are the households of a file plausible, and as many as there should be?

    Parameters
    ----------
    data
        The file, with the role ``household``; its weight counts households where it has one.
    age, sex, size
        Columns of the age, of the sex, and of the number of members.
    adult_age
        From which age on somebody is an adult.
    ages
        The youngest and the oldest age there can be.
    reference
        A condition that holds for the reference person, e.g. ``"relation == 'head'"``: every household has at least
        one.
    no_income
        Columns that are zero or missing for everybody below ``adult_age``.
    parts
        ``{total: [parts]}``: the parts add up to the total.
    rules
        Rules of your own: ``{name: "every member: age <= 110"}``. They begin with ``every member``, ``some member``,
        ``one member`` or ``no member``, and go on with a condition as in `discreet.expressions`.
    truth
        The population that the file stands for, to compare with.

    Returns
    -------
    polars.DataFrame
        One row a rule: ``households`` in all, those ``without an adult``, ``mixed`` (an adult of each of two sexes),
        with a ``size that is not its number of members``, in ``more than one stratum``, with an ``age out of bounds``,
        ``without a reference person``, with ``income of a child``, with ``parts that miss the total``, and those that
        break a rule of your own; the estimate, and with ``truth`` the true number and the difference.

    Examples
    --------
    >>> people = pl.DataFrame({"home": [1, 1, 2], "age": [40, 10, 9]})
    >>> household_rules(Microdata(people, household="home")).rows()
    [('households', 2.0), ('without an adult', 1.0)]
    >>> grown = {"two generations": "some member: age < 16"}
    >>> household_rules(Microdata(people, household="home"), rules=grown).rows()[-1]
    ('two generations', 0.0)
    """
    asked = _Asked(age, sex, size, adult_age, ages, reference, no_income, parts, rules)
    found = asked.counted(data)
    made = pl.DataFrame({"rule": list(found), "estimate": list(found.values())})
    if truth is None:
        return made
    true = asked.counted(truth)
    return made.with_columns(
        pl.Series("truth", [true.get(rule) for rule in found], dtype=pl.Float64)
    ).with_columns((pl.col("estimate") - pl.col("truth")).alias("difference"))


class _Asked:
    """The rules that were asked for; `counted` counts the households they are about in any file."""

    def __init__(  # noqa: PLR0917
        self,
        age: str,
        sex: str | None,
        size: str | None,
        adult_age: float,
        ages: Sequence[float] | None,
        reference: str | None,
        no_income: str | Sequence[str] | None,
        parts: Mapping[str, Sequence[str]] | None,
        rules: Mapping[str, str] | None,
    ) -> None:
        if ages is not None and (len(ages) != 2 or not ages[0] <= ages[1]):
            raise ParameterError("ages must be two numbers: the youngest and the oldest age there can be.")
        self.age, self.sex, self.size, self.adult_age, self.ages = age, sex, size, adult_age, ages
        self.reference = reference
        self.no_income = [no_income] if isinstance(no_income, str) else list(no_income or ())
        self.parts = {
            total: [own] if isinstance(own, str) else list(own) for total, own in (parts or {}).items()
        }
        self.rules = dict(rules or {})

    def counted(self, data: Microdata) -> dict[str, float]:
        if data.roles.household is None:
            raise ParameterError("Say which records belong together: the role household is not set.")
        numbers = [
            self.age,
            *self.no_income,
            *self.parts,
            *(part for own in self.parts.values() for part in own),
        ]
        numbers += [self.size] if self.size else []
        need_known((*numbers, *([self.sex] if self.sex else [])), data.columns)
        for name, kind in engine.types_in_polars(data, list(dict.fromkeys(numbers))).items():
            if not kind.is_numeric():
                raise ColumnError(
                    f"Rules of households need numbers, and column '{name}' is {type_name(kind)}."
                )
        home, weight = data.roles.household, data.roles.weight
        frame = engine.collect(data)
        counts = pl.col(weight).cast(pl.Float64).mean() if weight in frame.columns else pl.lit(1.0)
        broken = self._broken(frame, list(data.roles.strata))
        # Numbered, so that no rule can have the name of a column.
        homes = frame.group_by(home).agg(
            counts.alias("weight"), *(rule.alias(f"rule {at}") for at, rule in enumerate(broken.values()))
        )
        made = {"households": float(homes["weight"].sum())}
        for at, name in enumerate(broken):
            made[name] = float(homes.filter(pl.col(f"rule {at}"))["weight"].sum())
        return made

    def _broken(self, frame: pl.DataFrame, strata: Sequence[str]) -> dict[str, pl.Expr]:
        """Return what is counted: an expression a rule, true for households that it is about."""
        years = pl.col(self.age).cast(pl.Float64)
        adult = years >= self.adult_age
        asked = {"without an adult": ~adult.any()}
        if self.sex is not None:
            asked["mixed"] = pl.col(self.sex).filter(adult).drop_nulls().n_unique() >= 2
        if self.size is not None:
            asked["size that is not its number of members"] = (
                pl.col(self.size).cast(pl.Float64) != pl.len()
            ).any()
        if strata:
            asked["more than one stratum"] = pl.struct(strata).n_unique() > 1
        if self.ages is not None:
            asked["age out of bounds"] = (~years.is_between(self.ages[0], self.ages[1])).any()
        if self.reference is not None:
            kept = parse(self.reference, frame.schema).condition
            asked["without a reference person"] = _QUANTIFIED["some member"](kept)
        if self.no_income:
            earned = pl.any_horizontal(
                (pl.col(name).cast(pl.Float64).fill_null(0.0) != 0.0) for name in self.no_income
            )
            asked["income of a child"] = ((years < self.adult_age) & earned).any()
        if self.parts:
            asked["parts that miss the total"] = pl.any_horizontal(
                _missed(total, own) for total, own in self.parts.items()
            ).any()
        for name, text in self.rules.items():
            if name in asked or name == "households":
                raise ParameterError(
                    f"A rule of your own is named '{name}', as a rule that is there already."
                )
            asked[name] = _own_rule(name, text, frame)
        return asked


def _missed(total: str, parts: Sequence[str]) -> pl.Expr:
    """Whether parts do not add up to a total, beyond what rounding explains; missing totals are not looked at."""
    whole = pl.col(total).cast(pl.Float64)
    added = pl.sum_horizontal(pl.col(part).cast(pl.Float64) for part in parts)
    # Every part may be off by half a cent.
    return ((added - whole).abs() > 0.005 * len(parts) + _ROUNDED * whole.abs()).fill_null(False)


def _own_rule(name: str, text: str, frame: pl.DataFrame) -> pl.Expr:
    begins, colon, condition = text.partition(":")
    begins = " ".join(begins.split())
    if not colon or begins not in _QUANTIFIED:
        raise ParameterError(
            f"The rule '{name}' must begin with {', '.join(f'{own!r}' for own in _QUANTIFIED)} and a colon, e.g. "
            "'every member: age <= 110'."
        )
    kept = parse(condition.strip(), frame.schema)
    if kept.kind != "condition":
        raise ParameterError(f"The rule '{name}' must be a condition, e.g. 'every member: age <= 110'.")
    return _QUANTIFIED[begins](kept.value.fill_null(_UNKNOWN.get(begins, False)))
