"""A file is there whole or not at all."""

from __future__ import annotations

import pytest

from discreet.core.errors import InputError
from discreet.core.files.atomic import replacing


def test_the_file_appears_only_when_the_block_ends(tmp_path):
    target = tmp_path / "page.html"
    with replacing(target) as unfinished:
        unfinished.write_text("all of it")
        assert unfinished.parent.parent == tmp_path
        assert unfinished.suffix == ".html"
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_keeps_the_old_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "page.html"
    target.write_text("old")

    def half() -> None:
        with replacing(target) as unfinished:
            unfinished.write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "page.html"

    def race() -> None:
        with replacing(target, overwrite=False) as unfinished:
            unfinished.write_text("mine")
            target.write_text("theirs")

    with pytest.raises(InputError, match="appeared while"):
        race()
    assert target.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [target]


def test_a_replaced_file_stays_as_private_as_it_was(tmp_path):
    target = tmp_path / "page.html"
    target.write_text("old")
    target.chmod(0o600)
    with replacing(target) as unfinished:
        unfinished.write_text("new")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_folder_or_a_missing_folder_is_refused(tmp_path):
    for target in (tmp_path, tmp_path / "nowhere" / "page.html"):
        with pytest.raises(InputError, match="folder"), replacing(target):
            pass


def test_a_writer_that_opens_its_file_after_it_has_failed_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="failed"), replacing(tmp_path / "a.parquet") as unfinished:
        raise ValueError("failed")
    with pytest.raises(FileNotFoundError):
        unfinished.write_bytes(b"late")
    assert list(tmp_path.iterdir()) == []
