"""Check figures of the method note on differentially private k-anonymity by random sampling, section 5."""

import polars as pl
import pytest

from discreet.protect.sample_and_anonymize import (
    SampleAndAnonymize,
    _Choice,
    delta_of,
    highest_rate,
    smallest_k,
    telling_share,
)

SMALLEST = {
    0.9: {"max": 44, 0.5: 30, 0.4: 21, 0.3: 15, 0.2: 10},
    1.8: {"max": 77, 0.8: 62, 0.7: 33, 0.6: 23, 0.5: 17, 0.4: 13, 0.3: 10, 0.2: 6},
    2.7: {"max": 133, 0.9: 88, 0.8: 42, 0.7: 26, 0.6: 19, 0.5: 14, 0.4: 11, 0.3: 8, 0.2: 6},
}


@pytest.mark.parametrize(
    ("epsilon", "rate", "gamma"),
    [(0.9, 0.593430, 0.834701), (1.8, 0.834701, 0.972676), (2.7, 0.932794, 0.995483)],
)
def test_highest_rates_and_telling_shares(epsilon, rate, gamma):
    assert highest_rate(epsilon) == pytest.approx(rate, abs=5e-7)
    assert telling_share(epsilon, highest_rate(epsilon)) == pytest.approx(gamma, abs=5e-7)


@pytest.mark.parametrize(
    ("epsilon", "rate", "k"), [(e, r, k) for e, row in SMALLEST.items() for r, k in row.items()]
)
def test_smallest_class_sizes_of_table_1(epsilon, rate, k):
    assert smallest_k(epsilon, 1e-4, highest_rate(epsilon) if rate == "max" else rate) == k


def test_values_of_delta():
    assert delta_of(44, 0.9, highest_rate(0.9)) == pytest.approx(9.8983e-5, rel=1e-4)
    assert delta_of(43, 0.9, highest_rate(0.9)) == pytest.approx(1.14493e-4, rel=1e-4)
    assert delta_of(133, 2.7, highest_rate(2.7)) == pytest.approx(9.5837e-5, rel=1e-4)
    assert delta_of(6, 2.7, 0.2) == pytest.approx(0.2**6, rel=1e-6)


def test_the_largest_rate_makes_k_explode():
    budgets = (0.1, 0.5, 1, 2, 3, 4, 5, 6)
    assert [smallest_k(e, 1e-4, highest_rate(e)) for e in budgets] == [38, 39, 47, 81, 181, 499, 1363, 3712]
    assert smallest_k(2.7, 1e-4, 0.93) == 127


@pytest.mark.parametrize(("k", "score"), [(2, 5), (4, 3), (9, 0)])
def test_the_classification_score_counts_the_commonest_target_of_kept_classes(k, score):
    sample = pl.DataFrame({"q": ["a"] * 5 + ["b"] * 3 + ["c"], "t": list("HHLLL") + list("HHL") + ["H"]})
    asked = SampleAndAnonymize(epsilon=1, keys=["q"], score="classification", target="t")
    assert _Choice(asked, sample, ["q"], ("t",), heights=(1,), k=k)._scored((0,)) == score
