"""How often is a leak cleared, and how often are strangers refused? The curves behind `docs/about/how-we-know.md`.

Real people are planted into files of fresh people, in five writings and at several shares, on six kinds of files; the
policy `synthetic-file` judges each with people set aside. Fresh people alone are judged by `synthetic-file` and
`three-attackers`, whose rules are among those of the first: what is refused there is refused falsely, what is open is
not decided for want of people.

    python bench/verdict_curves.py [--results bench/verdict_curves.jsonl] [--picture docs/images/verdict-curves.svg]

Every file that was judged is one line of the results; a run goes on where the last one stopped, and only prints and
draws where all is there. The whole run takes some 15 minutes of one processor. Delete the results to judge anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from verdicts.people_files import FILES, drawn
from verdicts.planted import LEAKS, planted

from discreet import Microdata, Policy, judge
from discreet.core.verdicts import Verdict

OUTCOMES = ("met", "open", "not met")
STRANGERS = {300: 6, 1_000: 6, 3_000: 6, 10_000: 6, 30_000: 3}
"""Seeds by size; a third of Adult has no 30,000 people."""
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0)
PLANTED = {300: SHARES, 1_000: SHARES, 3_000: (0.01, 0.05, 0.1), 10_000: (0.05, 0.1)}
LEAK = 0.1
"""From this share of real people on, a file that is cleared is cleared falsely: it is the limit of every attack."""

Case = tuple[str, int, int, str, float]


def cases() -> Iterator[Case]:
    """List the files to be judged: kind, people, seed, leak and share of real people."""
    for rows, seeds in STRANGERS.items():
        for name in FILES:
            if name != "census" or rows <= 16_000:
                yield from ((name, rows, 200 + seed, "none", 0.0) for seed in range(seeds))
    for share in sorted(SHARES, reverse=True):
        for rows in (size for size, shares in PLANTED.items() if share in shares):
            yield from ((name, rows, 100, leak, share) for name in FILES for leak in LEAKS)


def judged(case: Case) -> dict[str, object]:
    """Judge one file by `synthetic-file`, and say what `three-attackers` says of it."""
    name, rows, seed, leak, share = case
    original, fresh, aside, roles = drawn(name, rows, seed=seed)
    released = planted(leak, share, original, fresh, seed) if share else fresh
    verdict = judge(
        Microdata(released),
        "synthetic-file",
        Microdata(original, **roles),
        holdout=Microdata(aside, **roles),
        stop_at_failure=bool(share),
        seed=0,
    )
    why = [f"{one.measure}.{one.figure}".removesuffix(".value") for one in verdict.failed] or [
        one.rule for one in verdict.unjudged
    ]
    return {
        "case": case,
        "synthetic-file": verdict.outcome,
        "three-attackers": among(verdict, "three-attackers").outcome,
        "why": why,
    }


def among(verdict: Verdict, policy: str) -> Verdict:
    """Keep what another policy asks too, which sets the same limits."""
    asked = {rule.name: rule.limit for rule in Policy.load(policy).comparison}
    other = {rule.name for rule in Policy.load("synthetic-file").comparison} - set(asked)
    checks = [one for one in verdict.checks if one.limit == asked.get(f"{one.measure}.{one.figure}")]
    return replace(
        verdict,
        checks=tuple(checks),
        unjudged=tuple(one for one in verdict.unjudged if one.rule not in other),
    )


def run(path: Path, *, more: bool) -> dict[Case, dict[str, object]]:
    """Judge what was not judged yet, a line each."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = {tuple(one["case"]): one for one in map(json.loads, lines)}
    left = [case for case in cases() if case not in found] if more else []
    began = time.process_time()
    with path.open("a", encoding="utf-8") as file:
        for case in left:
            found[case] = judged(case)
            file.write(json.dumps(found[case]) + "\n")
            file.flush()
    print(
        f"{len(left)} files judged in {time.process_time() - began:.0f} CPU s, {len(found) - len(left)} before."
    )
    return found


Counts = dict[int, Counter]


def counted(found: dict[Case, dict[str, object]], policy: str, *, least: float, most: float) -> Counts:
    """Count outcomes by size, of the files with so large a share of real people."""
    by_size: Counts = {}
    for (_, rows, _, _, share), one in found.items():
        if least <= share <= most:
            by_size.setdefault(rows, Counter())[one[policy]] += 1
    return by_size


def table(title: str, rows: dict[str, Counter]) -> None:
    """Print shares as the table stands in the manual."""
    print(f"\n{title}\n\n| | files | " + " | ".join(OUTCOMES) + " |\n|---|---|---|---|---|")
    for name, counts in rows.items():
        total = sum(counts.values())
        print(f"| {name} | {total} | " + " | ".join(f"{counts[one] / total:.0%}" for one in OUTCOMES) + " |")


def draw(found: dict[Case, dict[str, object]], path: Path) -> None:
    """Draw three curves by size, and what becomes of leaks by their share."""
    from matplotlib import pyplot

    pyplot.rcParams["svg.hashsalt"] = "verdict curves"
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    colors = ("#2a7f62", "#b8860b", "#a23b3b")
    fresh, leaks = (
        counted(found, "synthetic-file", least=0, most=0),
        counted(found, "synthetic-file", least=LEAK, most=1),
    )
    for counts, outcome, color, label in (
        (leaks, "met", colors[2], f"cleared falsely ({LEAK:.0%} real people and more)"),
        (fresh, "not met", colors[0], "refused falsely (fresh people)"),
        (fresh, "open", colors[1], "not decided (fresh people)"),
    ):
        rates = [counts[rows][outcome] / sum(counts[rows].values()) for rows in counts]
        left.plot(list(counts), rates, "o-", color=color, label=label)
    for rows, style in zip((300, 1_000, 3_000, 10_000), (":", "--", "-.", "-"), strict=True):
        for outcome, color in zip(("met", "not met"), (colors[2], colors[0]), strict=True):
            rates = []
            for share in PLANTED[rows]:
                counts = counted(found, "synthetic-file", least=share, most=share)[rows]
                rates.append(counts[outcome] / sum(counts.values()))
            said = "cleared" if outcome == "met" else "refused"
            right.plot(PLANTED[rows], rates, f"o{style}", color=color, ms=3, label=f"{said}, {rows:,} people")
    left.set(xscale="log", xlabel="people in the original", ylabel="share of files", title="By size")
    right.set(xscale="log", xlabel="share of real people in the release", title="Planted leaks")
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    options.add_argument("--picture", type=Path)
    options.add_argument(
        "--judged", action="store_true", help="print and draw what was judged, and judge no more"
    )
    given = options.parse_args()
    found = run(given.results, more=not given.judged)
    for policy in ("synthetic-file", "three-attackers"):
        fresh = counted(found, policy, least=0, most=0)
        table(f"Fresh people, {policy}", {f"{rows:,} people": fresh[rows] for rows in fresh})
    kinds: dict[str, Counter] = {}
    for (name, rows, _, _, share), one in found.items():
        if not share and rows >= 3_000:
            kinds.setdefault(f"{name}, {rows:,} people", Counter())[one["synthetic-file"]] += 1
    table("Fresh people by file, synthetic-file", kinds)
    for rows, shares in PLANTED.items():
        leaks = {
            f"{share:.1%} real people": counted(found, "synthetic-file", least=share, most=share)[rows]
            for share in shares
        }
        table(f"Planted leaks, {rows:,} people, synthetic-file", leaks)
    why = Counter(rule for case, one in found.items() if not case[4] for rule in one["why"])
    print(f"\nRules that keep fresh files from being cleared: {dict(why.most_common())}")
    if given.picture:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
