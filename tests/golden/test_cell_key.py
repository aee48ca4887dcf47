"""The perturbation table of ptable 1.0.0 quoted in the spec of classical methods (D = 5, V = 3, js = 2)."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.tables import perturbation_table


def test_the_row_of_a_true_count_of_one_is_that_of_ptable():
    row = perturbation_table(D=5, V=3, js=2).row(1)
    expected = {0: 0.7344695, 3: 0.1367202, 4: 0.0727963, 5: 0.0374296, 6: 0.0185844}
    assert row.keys() == expected.keys()
    for result, chance in expected.items():
        assert row[result] == pytest.approx(chance, abs=5e-8)


@pytest.mark.parametrize(("D", "V", "js"), [(5, 3, 2), (4, 2.5, 1), (8, 4, 0), (10, 9, 3)])
def test_every_row_has_mean_zero_the_variance_and_no_forbidden_result(D, V, js):
    table = perturbation_table(D, V, js)
    assert table.row(0) == {0: 1.0}
    for count in range(1, len(table.chances)):
        row = table.row(count)
        results, chances = np.array(list(row)), np.array(list(row.values()))
        assert chances.sum() == pytest.approx(1)
        assert chances @ results == pytest.approx(count, abs=1e-9)
        assert chances @ (results - count) ** 2 == pytest.approx(V, abs=1e-8)
        assert np.abs(results - count).max() <= D
        assert not set(range(1, js + 1)) & set(row)
        assert results.min() >= 0


def test_large_counts_share_a_symmetric_row():
    table = perturbation_table(5, 3, 2)
    row = np.array(list(table.row(500).values()))
    assert row == pytest.approx(row[::-1])
    assert [result - 500 for result in table.row(500)] == list(range(-5, 6))
