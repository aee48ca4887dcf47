"""How long does a private graph of a million people take, and how many of its edges are true?

python bench/lapgraph.py [--people 1000000] [--edges 10000000] [--epsilon 8]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy import sparse

from discreet import protect


def main() -> None:
    """Print the seconds and the share of true edges beside the expected one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--epsilon", type=float, default=8.0)
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(asked.people, size=(asked.edges, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    half = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(asked.people,) * 2)
    graph = half + half.T
    start = time.process_time()
    shown = protect.LapGraph(epsilon=asked.epsilon).apply(graph)
    spent = time.process_time() - start
    kept = graph.multiply(shown.adjacency).sum() / graph.nnz
    expected = protect.lapgraph_expected_recall(asked.people, len(ends), asked.epsilon)
    print(
        f"{asked.people:,} people, {len(ends):,} edges: {spent:.1f} s CPU; kept {kept:.4f}, expected {expected:.4f}"
    )


if __name__ == "__main__":
    main()
