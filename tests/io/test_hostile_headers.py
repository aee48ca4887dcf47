"""Files whose first line names no column are refused by name."""

from __future__ import annotations

import pytest

import discreet
from discreet.core.errors import InputError


def test_a_file_in_another_alphabet_without_a_header_is_refused(tmp_path):
    place = tmp_path / "data.tsv"
    place.write_bytes(b"\r%`\xf1'\r\xb2\x84\x81\xa8\xa2k@\xf0z\xf0\xf7z\xf0\xf7K\xf0\xf3\xf3\xf9\xf5\xf6\r%")
    with pytest.raises(InputError, match=r"data\.tsv"):
        discreet.read(place)
