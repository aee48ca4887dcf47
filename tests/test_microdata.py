import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError

PEOPLE = pl.DataFrame({"age": [30, 40], "sex": ["f", None], "pay": [1.5, 2.5]})


@pytest.mark.parametrize("frame", [PEOPLE, PEOPLE.lazy(), PEOPLE.to_pandas(), PEOPLE.to_arrow()])
def test_the_frame_comes_back_as_the_very_object_that_went_in(frame):
    assert Microdata(frame, keys="age").frame is frame


def test_an_unknown_column_is_refused_with_its_near_miss_and_role():
    with pytest.raises(ColumnError, match=r"no column 'Age_'.*'age'.*'sensitive'"):
        Microdata(PEOPLE, sensitive="Age_")


def test_a_column_cannot_be_key_and_sensitive():
    with pytest.raises(ColumnError, match="two roles"):
        Microdata(PEOPLE, keys=["age"], sensitive=["age"])


def test_a_stratum_may_also_be_a_key():
    assert Microdata(PEOPLE, keys=["age"], strata=["age"]).roles.strata == ("age",)


def test_a_weight_must_be_numeric():
    with pytest.raises(ColumnError, match="'sex' is not numeric"):
        Microdata(PEOPLE, weight="sex")


def test_a_weight_is_one_column():
    with pytest.raises(ParameterError, match="takes one column"):
        Microdata(PEOPLE, weight=["age", "pay"])


def test_a_column_named_twice_in_a_role_is_refused():
    with pytest.raises(ColumnError, match="named twice"):
        Microdata(PEOPLE, keys=["age", "age"])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
)
def test_duplicate_column_names_are_refused(frame):
    with pytest.raises(ColumnError, match="'a' appears more than once"):
        Microdata(frame)


def test_something_that_is_no_frame_is_refused():
    with pytest.raises(InputError, match="list is not a data frame"):
        Microdata([1, 2])


def test_an_unknown_role_is_refused():
    with pytest.raises(ParameterError, match=r"no role 'key'.*'keys'"):
        Microdata(PEOPLE).with_roles(key="age")


def test_with_roles_leaves_the_first_as_it_was():
    first = Microdata(PEOPLE, keys="age")
    second = first.with_roles(keys=["age", "sex"], sensitive="pay")
    assert first.roles.keys == ("age",)
    assert second.roles.keys == ("age", "sex")
    assert second.roles.sensitive == ("pay",)


def test_with_frame_drops_roles_whose_column_is_gone():
    data = Microdata(PEOPLE, keys=["age", "sex"], weight="pay")
    assert data.with_frame(PEOPLE.select("sex")).roles.to_dict() == {"keys": ["sex"]}


def test_the_description_names_columns_and_no_values():
    text = repr(Microdata(PEOPLE, keys="age"))
    assert "age     Int64    key" in text
    assert "30" not in text


def test_names_that_are_no_texts_are_refused_with_the_way_out():
    for frame in (pd.DataFrame({0: [1]}), pd.DataFrame({("a", "x"): [1]})):
        with pytest.raises(ColumnError, match=r"columns\.map\(str\)"):
            Microdata(frame, keys=["0"])


def test_a_lazy_source_that_is_gone_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Microdata(pl.scan_csv(tmp_path / "gone.csv"), keys=["age"])


def test_a_relation_whose_connection_is_closed_is_an_input_error():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS age")
    connection.close()
    with pytest.raises(InputError, match="connection open"):
        Microdata(relation, keys=["age"])


def test_a_role_that_is_no_name_is_refused():
    for given in (5, 1.5, object()):
        with pytest.raises(ParameterError, match="'keys' takes column names"):
            Microdata(pl.DataFrame({"age": [1]}), keys=given)
