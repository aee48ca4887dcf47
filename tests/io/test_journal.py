"""Files that grow by whole lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import InputError
from discreet.core.files.journals import append_line, lines_of

BEGINS = '{"cell"'


@given(cut=st.integers(0, 40))
def test_a_line_that_was_cut_anywhere_is_taken_off_and_the_others_stay(tmp_path_factory, cut):
    file = tmp_path_factory.mktemp("journal") / "done.jsonl"
    whole = ['{"cell": 1, "text": "ä"}', '{"cell": 2}']
    for line in whole:
        append_line(file, line)
    content = file.read_bytes()
    last = '{"cell": 3, "text": "€ and more text"}'.encode()
    file.write_bytes(content + last[:cut])
    assert lines_of(file, begins=BEGINS, what="results") == whole
    assert file.read_bytes() == content


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "precious", '{"cell": 1}\nprecious'])
def test_a_file_of_somebody_else_is_refused_and_left_as_it_is(tmp_path, text):
    file = tmp_path / "done.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match="does not hold results"):
        lines_of(file, begins=BEGINS, what="results")
    assert file.read_text() == text


def test_a_place_that_cannot_be_written_is_a_plain_refusal(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        append_line(tmp_path / "nowhere" / "done.jsonl", "{}")
