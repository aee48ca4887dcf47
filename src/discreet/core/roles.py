"""Roles: which column of a file plays which part.

Roles are checked against the columns of the file at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.core.errors import ColumnError, ParameterError, unknown_name

Columns = str | Sequence[str] | None


MANY = ("keys", "sensitive", "identifiers", "strata", "location")


ONE = ("weight", "household", "person", "contributor", "employer", "time", "psu")


ROLES = (*MANY[:3], "weight", "household", *MANY[3:], *ONE[2:])


EXCLUSIVE = ("keys", "sensitive", "identifiers", "weight")


@dataclass(frozen=True)
class Roles:
    """Which column plays which part.

    ``keys``, ``sensitive``, ``identifiers`` and ``weight`` exclude one another: a column that an intruder
    knows is a key, one they want to learn is sensitive. The others say how the file is built (households,
    strata, places, time) and may also be keys.
    """

    keys: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    weight: str | None = None
    household: str | None = None
    strata: tuple[str, ...] = ()
    location: tuple[str, ...] = ()
    person: str | None = None
    contributor: str | None = None
    employer: str | None = None
    time: str | None = None
    psu: str | None = None

    @classmethod
    def of(cls, **given: Columns) -> Roles:
        """Make roles from what a user writes: a column name or a list of them.

        Examples
        --------
        >>> Roles.of(keys="age", weight=["w"])
        Roles(keys=('age',), sensitive=(), identifiers=(), weight='w', household=None, ...)
        """
        clean: dict[str, Any] = {}
        for role, columns in given.items():
            if role not in ROLES:
                raise ParameterError(unknown_name(role, ROLES, what="role"))
            names = columns_named(columns, role)
            if role in ONE and len(names) > 1:
                raise ParameterError(f"The role '{role}' takes one column, not {len(names)}.")
            if role in ONE:
                clean[role] = names[0] if names else None
            else:
                clean[role] = names
        return cls(**clean)

    @property
    def technical(self) -> frozenset[str]:
        """The columns that tell units apart or weight them, and say nothing themselves: to lose them is no loss."""
        units = (self.weight, self.household, self.person, self.contributor, self.employer, self.psu)
        content = {*self.keys, *self.sensitive, *self.strata, self.time}
        return frozenset({*self.identifiers, *(name for name in units if name)} - content)

    def columns(self) -> tuple[str, ...]:
        """All columns that have a role, once each."""
        named = [column for role in ROLES for column in columns_named(getattr(self, role), role)]
        return tuple(dict.fromkeys(named))

    def to_dict(self) -> dict[str, Any]:
        """Return the roles that are taken, ready for JSON or TOML."""
        taken = {role: getattr(self, role) for role in ROLES if getattr(self, role)}
        return {role: list(value) if isinstance(value, tuple) else value for role, value in taken.items()}

    def check(self, columns: Sequence[str]) -> None:
        """Refuse roles that name an unknown column or put one column in two exclusive roles."""
        for role in ROLES:
            for column in columns_named(getattr(self, role), role):
                if column not in columns:
                    raise ColumnError(f"{unknown_name(column, columns)} It was named under '{role}'.")
        taken: dict[str, str] = {}
        for role in EXCLUSIVE:
            for column in columns_named(getattr(self, role), role):
                if taken.setdefault(column, role) != role:
                    raise ColumnError(
                        f"Column '{column}' is in two roles, '{taken[column]}' and '{role}'. "
                        "Decide for one: a key is what an intruder may know, sensitive what they must not learn."
                    )


def columns_named(columns: Columns, role: str) -> tuple[str, ...]:
    """Take the columns of a role as they were written: one name, several, or none."""
    if columns is None:
        return ()
    given: Any = columns  # from a roles file, where it may be anything
    if not isinstance(given, str | Iterable):
        raise ParameterError(f"The role '{role}' takes column names, not {type(given).__name__} values.")
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if not isinstance(name, str):
            raise ParameterError(f"The role '{role}' takes column names, not {type(name).__name__} values.")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ColumnError(f"Column '{twice[0]}' is named twice under '{role}'. Name it once.")
    return names
