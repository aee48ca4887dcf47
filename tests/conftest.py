"""What several test folders need."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from examples import SEARCHING, examples
from hypothesis import settings
from hypothesis.internal.conjecture import providers

# Every run of `make test` tries the same few examples, so that a change fails by what it changed;
# `make test-all` searches for new ones. A busy machine is no failure: there is no deadline.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=examples(100))
settings.register_profile("searching", deadline=None, max_examples=examples(100))
settings.load_profile(os.environ.get("DISCREET_EXAMPLES", "repeatable"))
if not SEARCHING and hasattr(providers, "_get_local_constants"):
    # Hypothesis also tries the numbers and words that stand in the code: a thousand modules are read for them, and
    # a change in one would change the examples of all tests.
    providers._get_local_constants = lambda: providers._local_constants

# Two test processes share two cores: threads of one that wait for work would keep the other from its own.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if not SEARCHING:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Nearly all that is made while ten thousand tests are collected stays: looking for what does not takes seconds.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in docstrings of the package only, not of tests, which have none."""
    found = yield
    return [node for node in found if not isinstance(node, DoctestModule)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep the tests of a file in one process, and all that start Spark in the same one: one Java is enough."""
    from xdist.scheduler import LoadFileScheduling

    class OneJava(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "spark" if file.startswith("tests/engines/") else file

    return OneJava(config, log)


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for what is no longer needed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 25, 25)
    gc.enable()


# In the end everything is let go, or libraries report it as lost.
atexit.register(gc.unfreeze)


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real data sets, where the machine has one."""
    folder = os.environ.get("DISCREET_TEST_DATA")
    if not folder:
        pytest.skip("DISCREET_TEST_DATA does not name the folder of real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def spark_session():
    from engines.agreement import why_no_spark

    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    # Spark starts the python3 of the path otherwise, which need not be the one that these tests run in.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            # Queries so small are over before a better compiler has paid.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
    yield session
    session.stop()


@pytest.fixture
def session_of(request):
    """Start Spark only for the tests that ask for it."""
    return lambda kind: request.getfixturevalue("spark_session") if kind == "pyspark" else None
