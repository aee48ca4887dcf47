"""One dimension of several tables: the codes of all of them in one hierarchy.

Tables that were made apart rarely list the same codes: one stops at a coarser level, another covers a part of the
country, a third has no cell for a branch. Their codes are put together by who stands right above whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.core.errors import ParameterError
from discreet.tables.building.dimension import TOTAL, Chain, Dimension, dimension_of
from discreet.tables.building.dimension_sources import branch_order

Parents = dict[str, str | None]


def merged_dimension(dimensions: Sequence[Dimension], whole: str | None = None) -> Dimension:
    """Put the codes of one column of several tables into one dimension.

    A code that is a leaf in one table and a group in another is a group. The total of a table that covers only a
    part of the codes becomes a group of its own. Where two tables group the same codes differently the hierarchies
    overlap. ``whole`` names the total where every table covers a part.

    Examples
    --------
    >>> coarse = dimension_of("place", ["X", "Y"])
    >>> fine = dimension_of("place", ["a", "b"], [[["a", "b"], ["X", "X"]]])
    >>> merged_dimension([coarse, fine]).codes
    ('Total', 'X', 'a', 'b', 'Y')
    """
    first = dimensions[0]
    if whole in (None, first.total) and all(other == first for other in dimensions[1:]):
        return first
    held = _members(dimensions)
    leaves = list(
        dict.fromkeys(leaf for one in dimensions for code in one.codes[1:] for leaf in _covered(code, held))
    )
    total = whole or _total(first.name, dimensions, held, set(leaves))
    merged: list[Parents] = []
    for one in dimensions:
        for chain in range(len(one.chains)):
            _taken_in(merged, _parents(one, chain, total))
    chains = [_levels(parents, leaves) for parents in merged]
    order = branch_order(chains[0])
    return dimension_of(
        first.name,
        [leaves[at] for at in order],
        [tuple(tuple(level[at] for at in order) for level in chain) for chain in chains],
        total=total,
    )


def _members(dimensions: Sequence[Dimension]) -> dict[str, dict[str, None]]:
    """What each group holds right below it, in any table."""
    held: dict[str, dict[str, None]] = {}
    for one in dimensions:
        for chain in range(len(one.chains)):
            for group, below in one.children(chain).items():
                held.setdefault(group, {}).update(dict.fromkeys(below))
    return held


def _covered(code: str, held: Mapping[str, dict[str, None]]) -> list[str]:
    """The lowest codes below a code, in order."""
    below = held.get(code)
    if below is None:
        return [code]
    return list(dict.fromkeys(leaf for part in below for leaf in _covered(part, held)))


def _total(
    name: str, dimensions: Sequence[Dimension], held: Mapping[str, dict[str, None]], leaves: set[str]
) -> str:
    """The total that covers every code; those of tables that cover a part are groups."""
    whole = [
        code for code in dict.fromkeys(one.total for one in dimensions) if set(_covered(code, held)) >= leaves
    ]
    if len(whole) > 1:
        raise ParameterError(
            f"The total of column '{name}' has different codes in the tables. Give it one code, with total= where they "
            "are built."
        )
    return whole[0] if whole else TOTAL


def _parents(one: Dimension, chain: int, total: str) -> Parents:
    found: Parents = {}
    for group, below in one.children(chain).items():
        for code in below:
            found[code] = None if group == total else group
    if one.total != total:
        found[one.total] = None
    return found


def _taken_in(merged: list[Parents], parents: Parents) -> None:
    """Add a hierarchy to the first one that does not contradict it; right below the total contradicts nothing."""
    for known in merged:
        if all(known.get(code) in (None, above) or above is None for code, above in parents.items()):
            for code, above in parents.items():
                known[code] = known.get(code) or above
            return
    merged.append(dict(parents))


def _levels(parents: Parents, leaves: Sequence[str]) -> Chain:
    paths = []
    for leaf in leaves:
        path = [leaf]
        while (above := parents.get(path[-1])) is not None:
            path.append(above)
            if len(path) > len(parents) + 1:
                raise ParameterError(
                    "The hierarchies of the tables contradict each other: a code is above itself. Give all tables the "
                    "same hierarchies."
                )
        paths.append(path)
    depth = max(map(len, paths))
    padded = [[*path, *[path[-1]] * (depth - len(path))] for path in paths]
    return tuple(tuple(path[level] for path in padded) for level in range(depth))
