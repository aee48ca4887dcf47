"""The language that names tables."""

from __future__ import annotations

import pytest

from discreet.core.errors import ParameterError
from discreet.formula import Formula, Term, parsed


def margins(formula: Formula) -> set[frozenset[str]]:
    return set().union(*(formula.published(term) for term in formula.terms))


def sets(*names: str) -> set[frozenset[str]]:
    return {frozenset(name) for name in names}


def test_a_product_publishes_all_its_margins_and_the_total():
    assert margins(parsed("a*b")) == sets("", "a", "b", "ab")


def test_a_colon_publishes_the_crossing_and_the_total_alone():
    assert margins(parsed("a:b")) == sets("", "ab")


def test_a_colon_binds_closer_than_a_product():
    assert margins(parsed("a*b:c")) == sets("", "a", "bc", "abc")


def test_parentheses_distribute_over_products_from_both_sides():
    assert [term.name for term in parsed("(a + b)*(c + d)").terms] == ["a*c", "a*d", "b*c", "b*d"]


def test_minus_takes_out_a_margin_or_the_grand_total():
    assert margins(parsed("a*b - b - 1")) == sets("a", "ab")


def test_a_column_crossed_with_itself_is_itself():
    assert parsed("a*a").terms == (Term((("a",),)),)


def test_names_with_signs_go_in_backquotes_and_come_back_in_them():
    formula = parsed("`marital-status`*sex")
    assert formula.columns == ("marital-status", "sex")
    assert parsed(formula.text) == formula


def test_lists_of_columns_say_the_same_as_a_formula():
    assert parsed([["a", "b"], ["c"]]) == parsed("a*b + c")


def test_a_table_named_twice_is_made_once():
    assert len(parsed("a*b + a*b").terms) == 1


@pytest.mark.parametrize("text", ["", "a*", "*a", "a b", "(a + b", "a)", "`a", "a ++ b", "- 1", "(a - b)*c"])
def test_a_formula_that_cannot_be_read_says_so(text):
    with pytest.raises(ParameterError):
        parsed(text)


def test_an_empty_list_is_refused():
    with pytest.raises(ParameterError, match="formula"):
        parsed([])
