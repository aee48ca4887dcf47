"""Files of strangers are not refused, and real people among strangers still are.

Strangers are fresh people of the population of the original: other halves and thirds of real files. What a release of
them shows is chance and general knowledge. The wide sweep is slow; each prints its counts.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from verdicts.people_files import drawn
from verdicts.planted import with_codes
from verdicts.strangers import FILES, original, parts, refused

from discreet import Microdata, judge
from discreet.protect import Band, LocalSuppression, Mondrian, Plan, ReorderRecords

SIZES = (300, 1_000, 3_000, 10_000)
TREATED = ("public-use-file", "scientific-use-file", "safe-setting")
SHARES = (0.02, 0.05, 0.1, 0.3)


def counted(cases):
    """Judge each case (what it is, policy, released, original, holdout) and count refusals by rule."""
    outcomes, rules = Counter(), Counter()
    for _, policy, released, before, holdout in cases:
        verdict = judge(Microdata(released), policy, before, holdout=holdout, seed=0)
        outcomes["refused" if refused(verdict) else verdict.outcome] += 1
        rules.update(f"{check.measure}.{check.figure}" for check in refused(verdict))
    print(f"{sum(outcomes.values())} files of strangers: {dict(outcomes)}; refused by {dict(rules)}")
    return outcomes


def halves(names, sizes, seeds, folder=None):
    for name in names:
        for rows in sizes:
            for seed in seeds:
                cut = parts(name, rows, seed, 2, folder)
                if cut is not None:
                    yield name, "synthetic-file", cut[1], original(name, cut[0]), None


def thirds(names, sizes, seeds, folder=None, policies=("synthetic-file", "three-attackers")):
    for name in names:
        for rows in sizes:
            for seed in seeds:
                cut = parts(name, rows, seed, 3, folder)
                if cut is not None:
                    for policy in policies:
                        yield name, policy, cut[1], original(name, cut[0]), Microdata(cut[2])


def nearly_all_pass(outcomes):
    return outcomes["refused"] <= 0.05 * sum(outcomes.values())


def test_strangers_are_not_refused_as_a_synthetic_file():
    assert nearly_all_pass(counted(halves(["adult"], SIZES, range(4))))


def test_attacks_do_not_refuse_strangers():
    assert nearly_all_pass(counted(thirds(["adult"], SIZES[:2], range(3), policies=["three-attackers"])))


@pytest.mark.parametrize("name", ["SD2011", "eusilcS", "CASCrefmicrodata"])
def test_strangers_of_surveys_are_not_refused(name, test_data):
    assert nearly_all_pass(counted(halves([name], SIZES[:3], range(2), test_data)))


def test_fresh_people_of_made_up_files_are_not_refused():
    cases = []
    for name in ("census", "stays", "firms", "levels", "numbers"):
        before, fresh, _, given = drawn(name, 1_000, seed=11)
        cases.append((name, "synthetic-file", fresh, Microdata(before, **given), None))
    assert counted(cases)["refused"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_strangers_of_every_file_and_size_are_not_refused(name, test_data):
    assert nearly_all_pass(counted(halves([name], SIZES, range(20), test_data)))


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_attacks_on_every_file_do_not_refuse_strangers(name, test_data):
    assert nearly_all_pass(counted(thirds([name], SIZES, range(8), test_data)))


def planted(real, fresh, share, seed=0):
    rng = np.random.default_rng(seed)
    rows = real.height
    leak = real[rng.permutation(rows)[: round(share * rows)]]
    both = pl.concat([leak, fresh[: rows - leak.height]])
    return both[rng.permutation(rows)]


def refused_from(name, rows, seed, folder=None):
    """The smallest share of real people among strangers that is refused, and whether every larger one is."""
    before, fresh = parts(name, rows, seed, 2, folder)
    found = [
        bool(
            refused(
                judge(
                    Microdata(planted(before, fresh, share)), "synthetic-file", original(name, before), seed=0
                )
            )
        )
        for share in SHARES
    ]
    print(f"{name}, {rows:,} people: refused {dict(zip(SHARES, found, strict=True))}")
    return next((share for share, is_ in zip(SHARES, found, strict=True) if is_), 1.0), found == sorted(found)


def test_real_people_among_strangers_are_still_refused():
    assert refused_from("adult", 1_000, 1) <= (0.1, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("rows", SIZES)
def test_real_people_among_strangers_of_every_file_are_still_refused(name, rows, test_data):
    if parts(name, rows, 1, 2, test_data) is None:
        pytest.skip("the file has fewer people")
    least, rising = refused_from(name, rows, 1, test_data)
    assert rising
    assert least <= (0.3 if rows == 300 else 0.1)


PLANS = {
    "bands": lambda k: Plan([Band(widths={"age": 20}), LocalSuppression(k=k), ReorderRecords()]),
    "mondrian": lambda k: Plan([Mondrian(k=k), ReorderRecords()]),
}


def anonymized(names, sizes, plans, folder=None):
    """k-anonymized people, held against themselves and against people who were not used."""
    for name in names:
        for rows in sizes:
            cut = parts(name, rows, 1, 2, folder)
            if cut is None:
                continue
            mine, others = (original(name, part) for part in cut)
            fewer = {"keys": list(mine.roles.keys)[:3]}
            mine, others = mine.with_roles(**fewer), others.with_roles(**fewer)
            for policy in TREATED:
                for plan in plans:
                    k = 10 if policy == "public-use-file" else 3
                    made = PLANS[plan](k).apply(mine, seed=1).data.frame
                    yield f"{name}, others", policy, made, others, None
                    if policy == "safe-setting":
                        # Elsewhere they are found by what others may know of them, and rightly refused.
                        yield f"{name}, themselves", policy, made, mine, None


def test_anonymized_strangers_are_not_refused_by_comparison():
    assert counted(anonymized(["adult"], [1_000], PLANS))["refused"] == 0


@pytest.mark.slow
def test_anonymized_strangers_of_every_file_are_not_refused_by_comparison(test_data):
    names = [name for name in FILES if name != "CASCrefmicrodata"]
    assert nearly_all_pass(counted(anonymized(names, SIZES[1:], PLANS, test_data)))


@pytest.mark.parametrize("name", ["levels", "census", "firms"])
def test_strangers_whose_labels_were_exchanged_are_neither_refused_nor_cleared(name):
    before, fresh, aside, given = drawn(name, 1_500, seed=1)
    coded = Microdata(with_codes(fresh, before, np.random.default_rng(1)))
    verdict = judge(coded, "three-attackers", Microdata(before, **given), holdout=Microdata(aside), seed=0)
    assert verdict.outcome == "open", verdict.line
    guessed = [rule for rule in verdict.unjudged if "labels" in rule.needs]
    assert all("RELEASE_WITH_ITS_LABELS" in rule.command for rule in guessed)


@pytest.mark.parametrize("name", ["levels", "census", "firms"])
def test_people_whose_labels_were_exchanged_are_refused_all_the_same(name):
    before, fresh, aside, given = drawn(name, 1_500, seed=1)
    coded = Microdata(
        with_codes(before, fresh, np.random.default_rng(1)).sample(before.height, shuffle=True, seed=1)
    )
    verdict = judge(coded, "three-attackers", Microdata(before, **given), holdout=Microdata(aside), seed=0)
    assert verdict.outcome == "not met", verdict.line
