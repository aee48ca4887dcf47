"""How often is a leak cleared, and how often are strangers refused? The curves behind `docs/about/how-we-know.md`.

Real people are planted into files of fresh people, in five writings and at several sizes, on six kinds of files; the
policy `synthetic-file` judges each with people set aside. The second table judges fresh people alone: what is refused
there is refused falsely, what is open is not decided for want of people.

    python bench/verdict_curves.py [--rows 3000] [--seeds 3] [--picture curves.svg]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from verdicts.people_files import FILES, drawn
from verdicts.planted import LEAKS, planted

from discreet import Microdata, judge

SHARES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0)
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
OUTCOMES = ("met", "open", "not met")


def outcome(released, original, aside, roles, policy="synthetic-file"):
    verdict = judge(
        Microdata(released), policy, Microdata(original, **roles), holdout=Microdata(aside, **roles), seed=0
    )
    return verdict.outcome


def leaks(rows: int, seeds: int) -> dict[float, Counter]:
    found = {share: Counter() for share in SHARES}
    for name in FILES:
        for seed in range(seeds):
            original, fresh, aside, roles = drawn(name, rows, seed=100 + seed)
            for share in SHARES:
                for leak in LEAKS if share else ["as they are"]:
                    made = planted(leak, share, original, fresh, seed)
                    found[share][outcome(made, original, aside, roles)] += 1
    return found


def strangers(seeds: int, most: int) -> dict[int, dict[str, Counter]]:
    found = {}
    for rows in (size for size in SIZES if size <= most):
        found[rows] = {policy: Counter() for policy in ("synthetic-file", "three-attackers")}
        for name in FILES:
            if name == "census" and rows > 16_000:
                continue  # a third of Adult has no more people
            for seed in range(seeds):
                original, fresh, aside, roles = drawn(name, rows, seed=200 + seed)
                for policy in found[rows]:
                    found[rows][policy][outcome(fresh, original, aside, roles, policy)] += 1
    return found


def table(title: str, rows: dict[str, Counter]) -> None:
    print(f"\n{title}")
    print(f"{'':28}{'files':>7}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for name, counts in rows.items():
        total = sum(counts.values())
        print(f"{name:28}{total:>7}" + "".join(f"{counts[one] / total:>10.1%}" for one in OUTCOMES))


def draw(by_share: dict[float, Counter], by_size: dict[int, dict[str, Counter]], path: Path) -> None:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for one, color in zip(OUTCOMES, ("#2a7f62", "#b8860b", "#a23b3b"), strict=True):
        shares = [share for share in by_share if share]
        left.plot(
            shares,
            [by_share[x][one] / sum(by_share[x].values()) for x in shares],
            "o-",
            color=color,
            label=one,
        )
        for policy, style in zip(("synthetic-file", "three-attackers"), ("-", "--"), strict=True):
            rates = [by_size[n][policy][one] / sum(by_size[n][policy].values()) for n in by_size]
            right.plot(list(by_size), rates, f"o{style}", color=color, label=f"{one}, {policy}")
    left.set(
        xscale="log",
        xlabel="share of real people in the release",
        ylabel="share of files",
        title="Planted leaks",
    )
    right.set(xscale="log", xlabel="people in the original", title="Fresh people")
    left.legend(frameon=False)
    right.legend(frameon=False, fontsize=7)
    figure.savefig(path)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=1_500)
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--most", type=int, default=3_000)
    options.add_argument("--picture", type=Path)
    given = options.parse_args()
    began = time.process_time()
    by_share = leaks(given.rows, given.seeds)
    table(
        f"Planted leaks, {given.rows:,} people",
        {f"{share:.1%} real people": by_share[share] for share in SHARES},
    )
    by_size = strangers(given.seeds, given.most)
    for policy in ("synthetic-file", "three-attackers"):
        table(f"Fresh people, {policy}", {f"{n:,} people": by_size[n][policy] for n in by_size})
    print(f"\n{time.process_time() - began:.0f} CPU s")
    if given.picture:
        draw(by_share, by_size, given.picture)


if __name__ == "__main__":
    main()
