"""Who holds what? Columns of the same people (vertical), rows of the same columns (horizontal), or both (complex).

A layout is a list of groups of rows; within a group each holder has some of the columns, and together they have all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.federated.masking import Masks, child_seed
from discreet.federated.messages import COORDINATOR, MAIN
from discreet.federated.parties import Holder, Party, Transport, as_frame, by_party

Kind = Literal["vertical", "horizontal", "complex"]


@dataclass(frozen=True)
class Group:
    """Rows whose columns lie with these holders, in this order."""

    nodes: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    block: str = MAIN

    @property
    def variables(self) -> tuple[str, ...]:
        """All columns, in the order of the holders."""
        return tuple(name for own in self.columns for name in own)


@dataclass(frozen=True)
class Layout:
    """Who holds what, and the holders where they are here.

    Examples
    --------
    >>> from discreet.federated import vertical
    >>> layout = vertical([[[1.0], [2.0]], [[3.0], [5.0]]])
    >>> layout.kind, layout.variables, layout.nodes
    ('vertical', ('x1', 'x2'), ('node 1', 'node 2'))
    """

    kind: Kind
    groups: tuple[Group, ...]
    holders: Mapping[str, Holder] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.groups:
            raise ParameterError("The layout has no rows: name who holds what.")
        first = set(self.groups[0].variables)
        for group in self.groups:
            if len(set(group.variables)) != len(group.variables):
                twice = next(name for name in group.variables if group.variables.count(name) > 1)
                raise ParameterError(f"'{twice}' lies with two holders. Leave it out at one of them.")
            if len(set(group.nodes)) != len(group.nodes):
                raise ParameterError("A holder stands twice in one group of rows. Put its columns together.")
            if not all(group.columns):
                raise ParameterError("A holder without columns has no part in the likelihood. Leave it out.")
            if set(group.variables) != first:
                raise ParameterError("Every group of rows must have the same columns, whoever holds them.")

    @property
    def variables(self) -> tuple[str, ...]:
        """All columns, in the order of the first group."""
        return self.groups[0].variables

    @property
    def nodes(self) -> tuple[str, ...]:
        """All holders."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group.nodes))


@checked
def vertical(blocks: Any, *, ids: str | None = None, seed: Seed = None) -> Layout:
    """Lay out columns of the same people that lie with different holders.

    Parameters
    ----------
    blocks
        One table for each holder, with other columns and the same rows, as a list or ``{holder: table}``.
    ids
        Column by which the rows are linked; without it they must be in the same order.
    seed
        For the same masks again; only for tests.
    """
    frames = _named(blocks, numbered=True)
    columns = [tuple(name for name in frame.columns if name != ids) for frame in frames.values()]
    group = Group(tuple(frames), tuple(columns))
    return Layout(
        "vertical", (group,), {name: _holder(name, frame, ids, seed) for name, frame in frames.items()}
    )


@checked
def horizontal(blocks: Any, *, seed: Seed = None) -> Layout:
    """Lay out rows of different people, with the same columns at every holder."""
    frames = _named(blocks, numbered=False)
    columns = next(iter(frames.values())).columns
    for name, frame in frames.items():
        if set(frame.columns) != set(columns):
            raise ParameterError(f"The columns of '{name}' are not those of the first holder.")
    groups = tuple(Group((name,), (tuple(columns),)) for name in frames)
    return Layout(
        "horizontal", groups, {name: _holder(name, frame, None, seed) for name, frame in frames.items()}
    )


@checked
def complex_layout(groups: Sequence[Any], *, ids: str | None = None, seed: Seed = None) -> Layout:
    """Lay out groups of rows, each split by columns over holders in its own way.

    Parameters
    ----------
    groups
        For each group of rows ``{holder: table}``, or a list of tables.
    ids
        Column by which the rows of a group are linked.
    seed
        For the same masks again; only for tests.
    """
    blocks: dict[str, dict[str, pl.DataFrame]] = {}
    made = []
    used: set[str] = set()
    for at, given in enumerate(groups):
        frames = _named(given, numbered=True)
        names = begun_by_another(list(frames), used)
        block = f"group {at + 1}"
        for name in names:
            blocks.setdefault(name, {})[block] = frames[name]
        columns = tuple(tuple(column for column in frames[name].columns if column != ids) for name in names)
        made.append(Group(tuple(names), columns, block))
    return Layout(
        "complex", tuple(made), {name: _holder(name, held, ids, seed) for name, held in blocks.items()}
    )


def begun_by_another(names: list[str], used: set[str]) -> list[str]:
    """Order the holders of a group so that it begins with one who began none; the totals are added by a secure sum.

    Examples
    --------
    >>> used = {"a"}
    >>> begun_by_another(["a", "b", "c"], used), sorted(used)
    (['b', 'c', 'a'], ['a', 'b'])
    """
    ordered = sorted(names, key=lambda name: (name in used, names.index(name)))
    used.add(ordered[0])
    return ordered


def laid_out(layout: Any, *, seed: Seed = None) -> Layout:
    """Take a layout as it is, or tables whose columns say what is meant.

    Tables with the same columns are rows of different people, with other columns they are columns of the same people,
    and lists of tables are groups of rows. Arrays without names are columns of the same people.
    """
    if isinstance(layout, Layout):
        return layout
    blocks = list(by_party(layout, "sites", named="site").values())
    if not blocks:
        raise ParameterError("The layout is empty: name who holds what.")
    if not isinstance(layout, Mapping) and all(_is_group(block) for block in blocks):
        return complex_layout(blocks, seed=seed)
    if any(hasattr(block, "columns") for block in blocks):
        sets = [set(as_frame(block).columns) for block in blocks]
        if len(sets) > 1 and all(one == sets[0] for one in sets):
            return horizontal(layout, seed=seed)
        if len(sets) > 1 and sum(map(len, sets)) != len(set().union(*sets)):
            raise ParameterError(
                "Some columns lie with several holders, and not all of them. Leave them out at all but one, or say "
                "what is meant with federated.vertical, horizontal or complex_layout."
            )
    return vertical(layout, seed=seed)


def coordinated(layout: Layout, transport: Transport | None, seed: Seed) -> tuple[Transport, Party]:
    """Let a coordinator join those who hold the data; give what carries the messages, and the coordinator."""
    central = Party(COORDINATOR, Masks(seed))
    carrier = transport or Transport(layout.holders.values())
    carrier.join(central)
    return carrier, central


def _is_group(block: Any) -> bool:
    if isinstance(block, Mapping):
        return True
    return (
        isinstance(block, list | tuple) and len(block) > 0 and all(hasattr(part, "shape") for part in block)
    )


def _named(blocks: Any, *, numbered: bool) -> dict[str, pl.DataFrame]:
    made: dict[str, pl.DataFrame] = {}
    for name, block in by_party(blocks, "blocks", named="node").items():
        start = sum(frame.width for frame in made.values()) if numbered else 0
        made[name] = as_frame(block, start=start)
    if not made:
        raise ParameterError("The layout is empty: name who holds what.")
    return made


def _holder(name: str, data: Any, ids: str | None, seed: Seed) -> Holder:
    return Holder(name, data, ids=ids, masks=Masks(child_seed(seed, "holder", name)))
