"""An engine that gives up leaves no trace on the terminal; everything else is printed."""

import os

import pyarrow as pa
import pytest
from pyarrow import feather

import discreet
from discreet.core.errors import InputError
from discreet.core.native_libraries import quiet_panics


def test_an_arrow_file_of_months_is_refused_without_the_trace_of_the_engine(tmp_path, capfd):
    months = pa.array([pa.MonthDayNano([1, 2, 3]), None], type=pa.month_day_nano_interval())
    feather.write_feather(
        pa.table({"since": months, "n": [1, 2]}), tmp_path / "a.arrow", compression="uncompressed"
    )
    with pytest.raises(InputError, match="cannot read"):
        discreet.read(tmp_path / "a.arrow")
    assert capfd.readouterr().err == ""


def test_other_words_are_only_held_back(capfd):
    with quiet_panics(), quiet_panics():
        os.write(2, b"a warning\n")
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "a warning\nlater\n"
