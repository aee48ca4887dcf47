import pandas as pd

from discreet import Microdata
from discreet.protect import ReorderRecords


def test_the_pandas_index_does_not_remember_the_order_that_was_given_up():
    frame = pd.DataFrame({"x": range(50)}, index=[f"person {i}" for i in range(50)])
    after = ReorderRecords().apply(Microdata(frame), seed=1).data.frame
    assert list(after.index) == list(range(50))
    assert sorted(after["x"]) == list(range(50))
    assert list(after["x"]) != list(range(50))
