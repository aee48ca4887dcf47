"""Bad input: a clear error, nothing spent, nothing written."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, dp
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.guarantees import in_plain_words
from discreet.policy import Policy


def people() -> Microdata:
    rng = np.random.default_rng(4)
    return Microdata(
        pl.DataFrame(
            {
                "age": rng.uniform(18, 80, 300),
                "pay": rng.gamma(2.0, 900.0, 300),
                "sex": rng.choice(["f", "m"], 300),
                "w": rng.uniform(1, 9, 300),
            }
        )
    )


LINE = {"y": "pay", "x": "age", "x_bounds": {"age": (18, 80)}}
WRONG = {
    "epsilon of 0": lambda ledger: dp.count(people(), epsilon=0, ledger=ledger),
    "negative epsilon": lambda ledger: dp.mean(
        people(), "pay", lower=0, upper=9e3, epsilon=-1, ledger=ledger
    ),
    "epsilon that is no number": lambda ledger: dp.count(people(), epsilon=float("nan"), ledger=ledger),
    "bounds the wrong way round": lambda ledger: dp.total(
        people(), "pay", lower=10, upper=10, epsilon=1, ledger=ledger
    ),
    "bounds that are no numbers": lambda ledger: dp.total(
        people(), "pay", lower=float("nan"), upper=10, epsilon=1, ledger=ledger
    ),
    "bounds missing": lambda ledger: dp.table(
        people(), "sex", column="pay", levels={"sex": ["f", "m"]}, epsilon=1, ledger=ledger
    ),
    "bounds of a regression missing": lambda ledger: dp.quantile_regression(
        people(), y="pay", x="age", epsilon=1, ledger=ledger
    ),
    "levels of two types": lambda ledger: dp.histogram(
        people(), "sex", levels=["f", 1.5, 4], epsilon=1, ledger=ledger
    ),
    "levels neither declared nor paid for": lambda ledger: dp.table(
        people(), "sex", epsilon=1, ledger=ledger
    ),
    "weights without a public maximum": lambda ledger: dp.quantile_regression(
        people(), weight="w", epsilon=1, ledger=ledger, **LINE
    ),
    "a value that is NaN": lambda ledger: dp.laplace(float("nan"), sensitivity=1, epsilon=1, ledger=ledger),
    "a column with NaN": lambda ledger: dp.quantile_regression(
        Microdata(pl.DataFrame({"age": [20.0, float("nan")], "pay": [1.0, 2.0]})),
        epsilon=1,
        ledger=ledger,
        **LINE,
    ),
    "bounds of the line of means missing": lambda ledger: dp.linear_regression(
        people(), epsilon=1, ledger=ledger, **LINE
    ),
    "more than the budget": lambda ledger: dp.linear_regression(
        people(), epsilon=50, y_bounds=(0, 9e3), ledger=ledger, **LINE
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_refused_and_nothing_is_spent(name, tmp_path):
    file = tmp_path / "survey.csv"
    file.write_text("age\n1\n")
    ledger = dp.Ledger.beside(file, 10.0, 1e-5)
    before = ledger.path.read_bytes()
    with pytest.raises(DiscreetError):
        WRONG[name](ledger)
    assert ledger.path.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.csv", "survey.privacy.toml"]


def test_a_ledger_of_another_file_or_one_that_was_edited_is_refused(tmp_path):
    file, other = tmp_path / "survey.csv", tmp_path / "other.csv"
    file.write_text("age\n1\n")
    other.write_text("age\n2\n")
    ledger = dp.Ledger.beside(file, 1.0)
    with pytest.raises(InputError, match="another file"):
        dp.Ledger.load(ledger.path, source=other)
    ledger.path.write_text(ledger.path.read_text().replace("epsilon = 1.0", "epsilon = 9.0"))
    with pytest.raises(InputError, match="checksum"):
        dp.Ledger.load(ledger.path)
    with pytest.raises(InputError, match="checksum"):
        dp.count(people(), epsilon=0.5, ledger=ledger)


def test_one_record_is_answered_like_any_other_file():
    one = Microdata(pl.DataFrame({"age": [30.0]}))
    assert dp.count(one, epsilon=1.0).guarantee
    assert 0 <= dp.mean(one, "age", lower=0, upper=100, epsilon=1.0).value <= 100


def test_a_policy_sets_the_budget():
    stated = {
        "rules": {"k_anonymity": {"at_least": 3}},
        "budget": {"epsilon": 2.0, "delta": 1e-6, "unit": "person"},
    }
    policy = Policy.from_dict(stated)
    assert Policy.from_dict(policy.to_dict()) == policy
    ledger = dp.Ledger.of_policy(policy)
    assert ledger.budget == (2.0, 1e-6)
    assert ledger.against(policy) == ()
    assert len(dp.Ledger(epsilon=3.0, delta=1e-3).against(policy)) == 3
    for wrong in ({"epsilon": 0}, {"delta": 0.1}, {"epsilon": 1, "unit": "dog"}, {"epsilon": 1, "rho": 1}, 3):
        with pytest.raises(ParameterError, match="budget"):
            Policy.from_dict({**stated, "budget": wrong})
    with pytest.raises(ParameterError, match="no privacy budget"):
        dp.Ledger.of_policy("public-use-file")


def test_a_page_says_the_promise_in_plain_words(tmp_path):
    ledger = dp.Ledger(epsilon=3.0)
    dp.count(people(), epsilon=1.0, ledger=ledger, purpose="how many <b>there</b> are")
    page = ledger.to_html(tmp_path / "budget.html").read_text()
    assert "factor of 2.72 at most" in page
    assert "What is not covered" in page
    assert "how many &lt;b&gt;there&lt;/b&gt; are" in page
    dp.quantile_regression(people(), epsilon=1.0, ledger=ledger, **LINE)
    assert "not guaranteed" in ledger.meaning


def test_plain_words_err_on_the_side_of_caution():
    for epsilon in (0.01, 0.1, 0.5, 1.0, 4.2, 9.9):
        words = in_plain_words(epsilon)
        factor = float(words.split("factor of ")[1].split(" at most")[0].replace(",", ""))
        chance = float(words.split("become ")[1].split(" %")[0])
        assert factor >= np.exp(epsilon)
        assert chance >= 100 * np.exp(epsilon) / (1 + np.exp(epsilon))
    assert "next to nothing" in in_plain_words(11.0)


def test_a_misspelt_column_of_a_table_is_told_by_the_columns_of_the_file():
    with pytest.raises(DiscreetError, match=r"no column 'sexx'\. Did you mean 'sex'"):
        dp.table(people(), "sexx", levels={"sex": ["f", "m"]}, epsilon=1)
