"""One local Spark session for all tests of the folder."""

from __future__ import annotations

import warnings

import pytest

from engines.agreement import why_no_spark


@pytest.fixture(scope="session")
def spark_session():
    reason = why_no_spark()
    if reason:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
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
