"""What somebody meets who opens a session for the first time and gets something wrong."""

import polars as pl
import pytest

from discreet.core.errors import ColumnError, InputError
from discreet.outputs import Session

PEOPLE = pl.DataFrame({"sex": ["f", "m"] * 30, "pay": [float(i) for i in range(60)], "months": range(60)})


def test_a_file_or_a_condition_without_records_is_said_in_words():
    with Session(data=PEOPLE) as s:
        with pytest.raises(InputError, match="No record fits"):
            s.crosstab("sex", where={"sex": "x"})
        with pytest.raises(InputError, match="No record fits"):
            s.summary("pay", "sex", data=PEOPLE.clear(), margins=True)


def test_an_event_that_is_no_event_is_refused_by_name():
    with Session(data=PEOPLE) as s, pytest.raises(ColumnError, match="'sex' is String; a survival curve"):
        s.survival("months", "sex")


def test_a_misspelled_regressor_is_named_with_its_near_misses():
    with Session(data=PEOPLE) as s, pytest.raises(ColumnError, match="Did you mean 'months'"):
        s.ols("pay ~ month + C(sex)")
