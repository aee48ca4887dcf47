"""Tables 1 to 3 of the method note on secondary suppression by Gaussian elimination, section 5."""

import numpy as np
import pytest
from scipy import sparse

from discreet.tables import gauss


def crossed(inner, cells):
    """Which inner cell is part of which cell; ``Tot`` stands for everything."""
    inner = [name.split("~") for name in inner]
    cells = [name.split("~") for name in cells]
    parts = [
        [int(all(c in ("Tot", i) for c, i in zip(cell, row, strict=True))) for cell in cells] for row in inner
    ]
    return sparse.csc_matrix(np.array(parts))


YOUNG_OLD = ["Young~I", "Young~P", "Young~S", "Old~I", "Old~P", "Old~S"]
COUNTS = np.array([0, 0, 5, 6, 3, 4])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("none", ["Old~I", "Old~P"]),
        ("virtual", ["Old~I", "Young~S", "Old~S", "Old~P"]),
        ("subspace", ["Old~I", "Young~S", "Old~S", "Old~P"]),
        ("any_sum", ["Old~I", "Young~S", "Old~S", "Old~P"]),
    ],
)
def test_table_1_two_zeros_in_one_row(method, expected):
    cells = [f"{age}~{land}" for age in ("Young", "Old", "Tot") for land in ("I", "P", "S", "Tot")]
    x = crossed(YOUNG_OLD, cells)
    primary = [cells.index("Young~I"), cells.index("Young~P")]
    found = gauss.secondary(x, primary, values=x.T @ COUNTS, zero_method=method, special_rows=[0, 1])
    assert [cells[c] for c in found.secondary] == expected
    assert len(found.unsafe) == 0


def test_table_1_default_order_of_candidates():
    cells = [f"{age}~{land}" for age in ("Young", "Old", "Tot") for land in ("I", "P", "S", "Tot")]
    x = crossed(YOUNG_OLD, cells)
    from discreet.tables.gauss.problem import default_order

    others = np.array([i for i, cell in enumerate(cells) if cell not in {"Young~I", "Young~P"}])
    ordered = [cells[c] for c in default_order(x, x.T @ COUNTS, others)]
    assert ordered == [
        "Tot~Tot", "Old~Tot", "Tot~S", "Tot~I", "Old~I", "Young~Tot", "Young~S", "Old~S", "Tot~P", "Old~P",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "expected"),
    [("none", ["Old~P"]), ("any_sum", ["Old~P"]), ("subspace", ["Total2", "Old~P"])],
)
def test_table_2_two_totals_that_differ_by_a_zero(method, expected):
    names = ["Total1", "Total2", "Old~I", "Young~S", "Old~S", "Old~P", "Young~I", "Young~P"]
    x = np.zeros((6, 8), dtype=int)
    x[:, :2] = 1
    x[0, 0] = x[1, 1] = 0
    for column, name in enumerate(names[2:], start=2):
        x[YOUNG_OLD.index(name), column] = 1
    found = gauss.secondary(x, [6, 7], candidates=range(6), zero_method=method, special_rows=[0, 1])
    assert [names[c] for c in found.secondary] == expected


SALES = {
    "Ind~I": 45.6, "Agr~P": 3.9, "Gov~P": 64.8, "Agr~S": 122.3, "Ent~S": 109.1,
    "Ind~P": 83.9, "Ind~S": 2.3, "Ent~I": 2.7, "Ent~P": 12.2, "Gov~S": 15.5,
}  # fmt: skip
SINGLE = {"Ent~I": "A", "Ent~P": "A", "Gov~S": "A", "Ind~P": "B", "Ind~S": "B"}
SALES_CELLS = [
    f"{sector}~{land}"
    for sector in ("Agr", "Ent", "Gov", "Ind", "Tot")
    for land in ("I", "P", "S", "Tot")
    if f"{sector}~{land}" not in {"Agr~I", "Gov~I"}
]


def sales():
    x = crossed(SALES, SALES_CELLS)
    primary = [SALES_CELLS.index(cell) for cell in SINGLE]
    return x, primary, x.T @ np.array(list(SALES.values())), [SINGLE.get(cell) for cell in SALES]


def test_table_3_adds_up_to_the_printed_margins():
    _, _, values, _ = sales()
    printed = {"Agr~Tot": 126.2, "Ent~Tot": 124.0, "Gov~Tot": 80.3, "Ind~Tot": 131.8,
               "Tot~I": 48.3, "Tot~P": 164.8, "Tot~S": 249.2, "Tot~Tot": 462.3}  # fmt: skip
    for cell, value in printed.items():
        assert values[SALES_CELLS.index(cell)] == pytest.approx(value)


FULL = ["Ind~Tot", "Agr~S", "Ent~S", "Gov~Tot", "Gov~P", "Ind~I", "Agr~P"]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ((), ["Gov~P", "Ind~I"]),
        (("virtual",), ["Ent~S", "Gov~P", "Ind~I"]),
        (("within",), ["Agr~S", "Gov~P", "Ind~I", "Agr~P"]),
        (("within", "parallel"), ["Ind~Tot", "Agr~S", "Gov~Tot", "Ind~I", "Agr~P"]),
        (("within", "parallel", "combinations"), FULL),
        (("virtual", "within", "parallel", "combinations"), FULL),
    ],
)
def test_table_3_single_contributors(method, expected):
    x, primary, values, who = sales()
    found = gauss.secondary(x, primary, values=values, contributors=who, singleton_method=method)
    assert [SALES_CELLS[c] for c in found.secondary] == expected
    assert found.figures["virtual"] == (4 if "virtual" in method else 0)
