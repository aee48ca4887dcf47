"""What does the exact Shapley engine cost beside the bare calls of the model?

    python bench/explanations.py [--records 1000] [--references 100] [--features 12]

Every coalition of every pair of record and reference is one row for the model. The bare calls ask the same model for
as many rows that are there already; the ratio is what mixing rows and adding up answers costs. A logistic curve in
NumPy is the quickest model there is, so its ratio is the worst; boosted trees are what people use. Both sides take
turns within one run. On a busy machine set OMP_NUM_THREADS=1: threads that wait for each other count as work.
Seen so on two cores with much else to do: logistic 1.83 to 1.94 (6.4 s beside 3.4 s for 409,600,000 rows), boosted
trees 0.7.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from discreet import attack

BATCH = 1 << 14
TURNS = 20


def main() -> None:
    """Print a line a model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--references", type=int, default=100)
    parser.add_argument("--features", type=int, default=12)
    parser.add_argument("--boosted-records", type=int, default=10)
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    weights = rng.normal(size=asked.features)
    records = rng.normal(size=(asked.records, asked.features))
    references = rng.normal(size=(asked.references, asked.features))

    def logistic(rows: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-(rows @ weights)))

    from sklearn.ensemble import HistGradientBoostingClassifier

    train = rng.normal(size=(5000, asked.features))
    boosted = HistGradientBoostingClassifier(max_iter=50, random_state=0).fit(
        train, logistic(train) > rng.random(5000)
    )
    for name, predict, people in (
        ("logistic", logistic, records),
        ("boosted trees", lambda rows: boosted.predict_proba(rows)[:, 1], records[: asked.boosted_records]),
    ):
        attack.shapley_values(predict, people[:1], references[:1])
        there = rng.normal(size=(BATCH, asked.features))
        ours = bare = 0.0
        # In turns, so that whatever else the machine does falls on both alike.
        for some in np.array_split(people, min(TURNS, len(people))):
            start = time.process_time()
            attack.shapley_values(predict, some, references)
            ours += time.process_time() - start
            start = time.process_time()
            for _ in range(max((len(some) * len(references) << asked.features) // BATCH, 1)):
                predict(there)
            bare += time.process_time() - start
        rows = len(people) * len(references) << asked.features
        print(
            f"{name}: {len(people):,} records, {rows:,} rows; {ours:.1f} s CPU, bare calls {bare:.1f} s, "
            f"ratio {ours / bare:.2f}"
        )


if __name__ == "__main__":
    main()
