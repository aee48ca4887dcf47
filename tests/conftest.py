"""What several test folders need."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real data sets, where the machine has one."""
    folder = os.environ.get("DISCREET_TEST_DATA")
    if not folder:
        pytest.skip("DISCREET_TEST_DATA does not name the folder of real data sets")
    return Path(folder)
