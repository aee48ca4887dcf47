"""Learning from a stated sample of a file larger than memory."""

import polars as pl
import pytest
from engines.agreement import in_kind
from engines.test_row_wise import nothing_collected

from discreet import Microdata
from discreet.errors import ParameterError
from discreet.synth import Independent, fit_on_sample, fitting_sample


def people(rows: int = 3000) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": range(rows), "home": [i // 3 for i in range(rows)], "sex": ["f", "m", "m"] * (rows // 3)}
    )


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb", "pandas"])
def test_the_sample_is_the_same_on_every_engine(kind):
    expected = fitting_sample(Microdata(people()), rows=150, seed=3)
    found = fitting_sample(Microdata(in_kind(people(), kind)), rows=150, seed=3)
    assert found.data.frame["id"].to_list() == expected.data.frame["id"].to_list()
    # 150 expected, 5 standard deviations of 12.
    assert 90 < found.rows < 210


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_no_more_than_the_sample_is_collected(kind):
    data = Microdata(in_kind(people(), kind))
    with nothing_collected():
        fitting_sample(data, rows=120, seed=1)


def test_households_are_drawn_whole_and_it_is_said():
    found = fitting_sample(Microdata(people().lazy(), household="home"), rows=300, seed=1)
    assert found.data.frame["home"].value_counts()["count"].to_list() == [3] * (found.rows // 3)
    assert "all of a 'home' or none" in found.meaning


def test_the_size_follows_from_the_memory_and_the_report_says_what_is_lost():
    small, large = (fitting_sample(Microdata(people().lazy()), memory=m, seed=1) for m in (1e-4, 1))
    assert large.is_whole
    assert small.rows < 1200
    assert "random sample" in small.meaning


def test_a_model_of_a_sample_draws_as_many_records_as_the_file_has():
    fitted = fit_on_sample(Independent(), Microdata(people().lazy()), rows=300, seed=1)
    assert fitted.rows == 3000
    assert "of 3,000 records" in repr(fitted)
    with pytest.raises(ParameterError, match="not both"):
        fit_on_sample(Independent(), Microdata(people()), rows=300, memory=1)
