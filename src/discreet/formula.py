"""Which tables are wanted? The small language that names them: ``"region*age + region*sex"``.

- ``a*b``: the table of a by b with its margins (a, b and the total);
- ``a:b``: the crossing alone, without the margins of a and of b;
- ``+`` sets tables side by side that are published together (linked tables);
- ``( … )`` groups: ``(region + county)*age`` is ``region*age + county*age``;
- ``- a`` takes the margin a out again, ``- 1`` the grand total.

A name with spaces or signs goes in backquotes: ```marital-status`*sex``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from discreet.core.errors import ParameterError

Block = tuple[str, ...]
Margin = frozenset[str]

_TOKEN = re.compile(r"\s*(?:`([^`]+)`|([^\s`*:+\-()]+)|([*:+\-()]))")


@dataclass(frozen=True)
class Term:
    """One table: blocks of columns that are crossed with each other, with or without their margins.

    Examples
    --------
    >>> term = Term((("region",), ("age",)))
    >>> term.name, sorted(map(sorted, term.margins))
    ('region*age', [[], ['age'], ['age', 'region'], ['region']])
    """

    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        """The term as one would write it."""
        return "*".join(":".join(_quoted(column) for column in block) for block in self.blocks)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are crossed."""
        return tuple(dict.fromkeys(column for block in self.blocks for column in block))

    @property
    def margins(self) -> frozenset[Margin]:
        """The sets of columns whose crossings are published; the empty set is the grand total."""
        chosen = itertools.chain.from_iterable(
            itertools.combinations(self.blocks, size) for size in range(len(self.blocks) + 1)
        )
        return frozenset(frozenset(itertools.chain.from_iterable(blocks)) for blocks in chosen)


@dataclass(frozen=True)
class Formula:
    """Tables that are published together, and the margins that are left out of all of them.

    Examples
    --------
    >>> formula = parsed("(region + county)*age - 1")
    >>> [term.name for term in formula.terms], formula.columns
    (['region*age', 'county*age'], ('region', 'age', 'county'))
    >>> formula.published(formula.terms[0]) == {frozenset(["region"]), frozenset(["age"]),
    ...                                         frozenset(["region", "age"])}
    True
    """

    terms: tuple[Term, ...]
    without: frozenset[Margin] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which they are named."""
        return tuple(dict.fromkeys(column for term in self.terms for column in term.columns))

    @property
    def text(self) -> str:
        """The formula, written out."""
        kept = " + ".join(term.name for term in self.terms)
        gone = [":".join(map(_quoted, sorted(margin))) or "1" for margin in self.without]
        return kept + "".join(f" - {margin}" for margin in sorted(gone))

    def published(self, term: Term) -> frozenset[Margin]:
        """The margins of one term that are published."""
        return term.margins - self.without

    def without_margins(self) -> Formula:
        """The same tables, each without any margin."""
        return Formula(
            tuple(replace(term, blocks=(term.columns,)) for term in self.terms), frozenset([frozenset()])
        )


def parsed(tables: str | Sequence[str] | Sequence[Sequence[str]]) -> Formula:
    """Read a formula, or a list of tables, each a list of columns or itself a formula.

    Examples
    --------
    >>> parsed([["region", "age"], "sex"]).text
    'region*age + sex'
    """
    if isinstance(tables, str):
        return _Reader(tables).formula()
    if not isinstance(tables, Sequence) or not tables:
        raise ParameterError(
            "tables must be a formula such as 'region*age + region*sex', or a list of lists of columns."
        )
    read = [
        _Reader(table).formula() if isinstance(table, str) else Formula((Term(tuple((c,) for c in table)),))
        for table in tables
    ]
    if any(not term.columns for formula in read for term in formula.terms):
        raise ParameterError("A table needs at least one column; one of the lists under tables is empty.")
    terms = tuple(dict.fromkeys(term for formula in read for term in formula.terms))
    return Formula(terms, frozenset().union(*(formula.without for formula in read)))


class _Reader:
    """Reads a formula from left to right; ``:`` binds closer than ``*``, and ``*`` closer than ``+`` and ``-``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0

    def formula(self) -> Formula:
        terms, without = self._sum()
        if self.at < len(self.tokens):
            closing = self._next(")")
            raise self._error(
                "there is a closing parenthesis too many"
                if closing
                else "an operator is missing between two names"
            )
        if not terms:
            raise self._error("it names no table")
        return Formula(tuple(dict.fromkeys(terms)), frozenset(without))

    def _sum(self) -> tuple[list[Term], list[Margin]]:
        terms: list[Term] = []
        without: list[Margin] = []
        sign = "-" if self._take("-") else "+"
        while True:
            if sign == "+":
                terms += [term for term in self._product() if term.blocks]
            else:
                without += [frozenset(term.columns) for term in self._product()]
            if not (self._next("+") or self._next("-")):
                return terms, without
            sign = self._take("+") or self._take("-") or ""

    def _product(self) -> list[Term]:
        found = self._crossing()
        while self._take("*"):
            right = self._crossing()
            found = [Term(_distinct(a.blocks + b.blocks)) for a in found for b in right]
        return found

    def _crossing(self) -> list[Term]:
        found = self._factor()
        while self._take(":"):
            right = self._factor()
            found = [Term((tuple(dict.fromkeys(a.columns + b.columns)),)) for a in found for b in right]
        return found

    def _factor(self) -> list[Term]:
        if self._take("("):
            terms, without = self._sum()
            if not self._take(")"):
                raise self._error("a parenthesis is not closed")
            if without:
                raise self._error("'-' belongs at the end, outside parentheses")
            return terms
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
            raise self._error("a column name is missing beside an operator")
        name = self.tokens[self.at][1]
        self.at += 1
        return [Term(())] if name in ("1", "0") else [Term(((name,),))]

    def _next(self, sign: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == ("sign", sign)

    def _take(self, sign: str) -> str | None:
        if not self._next(sign):
            return None
        self.at += 1
        return sign

    def _error(self, why: str) -> ParameterError:
        return ParameterError(
            f"The formula '{self.text}' cannot be read: {why}. Write, for example, 'region*age + region*sex'; "
            "put a name with spaces or signs in backquotes."
        )


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = text.strip().removeprefix("~").rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ParameterError(f"The formula '{text}' has a backquote that is not closed.")
        quoted, name, sign = match.groups()
        yield ("sign", sign) if sign else ("name", quoted or name)
        at = match.end()


def _distinct(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    return tuple(dict.fromkeys(blocks))


def _quoted(column: str) -> str:
    return column if re.fullmatch(r"[^\s`*:+\-()]+", column) else f"`{column}`"
