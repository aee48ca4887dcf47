import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.progress import track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@given(st.lists(st.integers()))
def test_tracking_hands_over_every_item_in_order(items):
    assert list(track(items)) == items
    assert list(track(iter(items), total=len(items))) == items


def test_a_bar_is_drawn_on_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    assert list(track([1, 2, 3], description="Counting sheep")) == [1, 2, 3]
    assert "Counting sheep" in screen.getvalue()


@pytest.mark.parametrize(("screen", "progress"), [(io.StringIO(), True), (Terminal(), False)])
def test_nothing_is_written_to_a_file_or_when_not_wanted(monkeypatch, screen, progress):
    monkeypatch.setattr(sys, "stderr", screen)
    assert list(track(range(3), description="Counting", progress=progress)) == [0, 1, 2]
    assert screen.getvalue() == ""


def test_rich_is_not_loaded_when_nobody_is_looking():
    code = "import sys; from discreet.core.progress import track; list(track([1])); assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.PIPE)
