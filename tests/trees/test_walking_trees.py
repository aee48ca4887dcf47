"""Records that go down a tree together end where each would end alone."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.growing import grow_classification
from discreet.numerics.trees.tree import CUT, FEATURE, LEFT, LEFT_SHARE, MEMBERS_END, RIGHT, Tree
from discreet.numerics.trees.walk_kernels import intervals


def grown(seed, levels=(3, 70)):
    rng = np.random.default_rng(seed)
    numbers, categories = rng.normal(size=800), [rng.integers(0, k, 800) for k in levels]
    features = [Feature.numeric(numbers), *(Feature.category(k) for k in levels)]
    outcome = (numbers > 0).astype(np.int32) + (categories[1] % 2).astype(np.int32)
    tree = grow_classification(encode(features, [numbers, *categories]), features, outcome, 3, rng=rng)
    return tree, features


def ways(tree, record):
    """All leaves that a record may end in: both sides of a node that has not seen its code."""
    open_nodes, ends = [0], set()
    while open_nodes:
        node = open_nodes.pop()
        line = tree.nodes[node]
        if line[FEATURE] < 0:
            ends.add(int(np.flatnonzero(tree.leaf_nodes == node)[0]))
            continue
        code, sides = record[line[FEATURE]], [LEFT, RIGHT]
        if tree.by_level[node]:
            seen = {m >> 1: m & 1 for m in tree.members[line[CUT] : line[MEMBERS_END]].tolist()}
            sides = [RIGHT if seen[code] else LEFT] if code in seen else sides
        elif code >= 0:
            sides = [LEFT if code <= line[CUT] else RIGHT]
        open_nodes += [line[side] for side in sides]
    return ends


@given(seed=st.integers(0, 2**31))
@settings(max_examples=examples(20), deadline=None)
def test_a_record_ends_in_a_leaf_that_its_codes_lead_to(seed):
    tree, features = grown(seed)
    rng = np.random.default_rng(seed + 1)
    codes = np.column_stack([rng.integers(-1, f.levels + 2, 60) for f in features]).astype(np.int16)
    leaves = tree.leaves(codes, rng)
    possible = [ways(tree, record) for record in codes.tolist()]
    assert all(leaf in ends for leaf, ends in zip(leaves.tolist(), possible, strict=True))
    assert any(len(ends) == 1 for ends in possible)


def test_records_beside_a_record_do_not_change_where_it_ends():
    tree, features = grown(5)
    rng = np.random.default_rng(6)
    codes = np.column_stack([rng.integers(-1, f.levels + 2, 5000) for f in features]).astype(np.int16)
    whole = tree.leaves(codes, np.random.default_rng(7))
    few = tree.leaves(codes[:40], np.random.default_rng(7))
    assert whole[:40].tolist() == few.tolist()


def test_nobody_and_a_tree_of_one_leaf_are_walked_too():
    tree, _ = grown(5)
    assert tree.leaves(np.empty((0, 3), np.int16), np.random.default_rng(1)).tolist() == []
    rng = np.random.default_rng(1)
    leaf = grow_classification(
        np.zeros((9, 1), np.int16), [Feature.category(1)], np.zeros(9, np.int32), 2, rng=rng
    )
    assert leaf.leaves(np.array([[0], [4], [-1]], np.int16), rng).tolist() == [0, 0, 0]


def test_a_tree_file_with_a_level_below_zero_is_refused():
    arrays = grown(5)[0].to_arrays()
    arrays["members"] = arrays["members"] - 10_000
    with pytest.raises(ParameterError, match="do not fit together"):
        Tree.from_arrays(arrays)


def test_a_level_that_a_node_never_saw_goes_left_as_often_as_its_records_do():
    tree, features = grown(5)
    node = int(np.flatnonzero(tree.nodes[:, FEATURE] >= 0)[0])
    codes = np.full((20_000, len(features)), -1, np.int16)
    left = ways_left(tree, node)
    leaves = tree.leaves(codes, np.random.default_rng(3))
    assert np.isin(leaves, left).mean() == pytest.approx(tree.figures[node, LEFT_SHARE], abs=0.02)


def ways_left(tree, node):
    """Leaves under the left child of a node."""
    numbers = {int(at): leaf for leaf, at in enumerate(tree.leaf_nodes)}
    open_nodes, ends = [int(tree.nodes[node, LEFT])], []
    while open_nodes:
        here = open_nodes.pop()
        if here in numbers:
            ends.append(numbers[here])
        else:
            open_nodes += [int(tree.nodes[here, LEFT]), int(tree.nodes[here, RIGHT])]
    return ends


@given(
    cuts=st.lists(st.floats(-5, 5), max_size=40).map(sorted),
    values=st.lists(st.floats(-6, 6) | st.sampled_from([np.inf, -np.inf]), max_size=600),
)
@settings(max_examples=examples(100), deadline=None)
def test_an_interval_is_the_number_of_cuts_at_or_below(cuts, values):
    found = intervals(np.array(cuts, dtype=np.float64), np.array(values, dtype=np.float64))
    assert found.tolist() == np.searchsorted(cuts, values, side="right").tolist()
