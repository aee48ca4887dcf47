"""A message takes no more memory than it has bytes, and nobody's bytes are read who may not ask."""

from __future__ import annotations

import asyncio
import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import DiscreetError, InputError
from discreet.federated.envelopes import packed, put_in, unpacked
from discreet.federated.messages import Message, ProtocolError, contents, decoded, joined, values_of


def outside(**changes):
    sent = put_in(Message("secure-sum", "r", "coordinator", "north", "partial", {}), 1)
    return {**sent.outside, **changes}


def envelope(outer, inner=b""):
    return joined(json.dumps(outer).encode() if isinstance(outer, dict) else outer, inner)


def body(layout, plain=b"{}", *raws):
    return joined(json.dumps(layout).encode(), plain, *raws)


DEEP = b"[" * 200_000


@pytest.mark.parametrize(
    "data",
    [
        envelope(DEEP),
        envelope(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
        envelope(outside(run="r" * 201)),
        envelope(outside(time=True)),
        envelope(outside(number=1.0)),
        envelope(json.dumps(outside(time=float("nan"))).encode()),
        envelope(json.dumps(outside(time=float("inf"))).encode()),
        envelope(outside(fields={f"f{at}": "json" for at in range(10_000)})),
        envelope(outside(number=10**400)),
        joined(b"{}"),
        struct.pack(">I", 2**32 - 1) + b"short",
    ],
)
def test_an_outside_that_is_deep_long_or_no_number_is_dropped(data):
    with pytest.raises(InputError, match="no message"):
        unpacked(data)


@pytest.mark.parametrize(
    "data",
    [
        body({}, DEEP),
        joined(DEEP, b"{}"),
        body({}, b'{"a": NaN}'),
        body({}, b'{"a": 1e999}'),
        body({}, b" " * (17 << 20)),
        body({"a": ["float64", 10**9]}, b"{}", b""),
        body({"a": ["float64", 10**9, 10**9]}, b"{}", b"\0" * 8),
        body({"a": ["float64", -1]}, b"{}", b"\0" * 8),
        body({"a": ["float64", True]}, b"{}", b"\0" * 8),
        body({"a": ["float64", 1, 1, 1, 1, 1]}, b"{}", b"\0" * 8),
        body({"a": ["object", 1]}, b"{}", b"\0" * 8),
        body({"a": ["bool", 2]}, b"{}", b"\1\2"),
        body({"a": "float64"}, b"{}", b"\0" * 8),
        body({"a": ["float64", 1]}, b"{}"),
        body([["a"]], b"{}"),
        body({}, b"[1]"),
    ],
)
def test_contents_that_are_not_what_they_say_are_dropped(data):
    with pytest.raises(InputError, match="cannot be read"):
        values_of(data)


def test_reading_a_message_takes_the_memory_that_it_came_in():
    data = contents({"a": np.zeros((1000, 1000)), "flags": np.ones(10, dtype=bool)})
    tracemalloc.start()
    found = values_of(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["a"].shape == (1000, 1000)
    assert peak < 1.1 * len(data)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.one_of(
            st.lists(st.floats(allow_nan=False), max_size=5).map(np.array),
            st.lists(st.booleans(), min_size=1, max_size=5).map(np.array),
            st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5).map(
                lambda xs: np.array(xs, np.uint64)
            ),
            st.integers(-(2**63), 2**63),
            st.text(max_size=5),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=4,
    )
)
def test_contents_come_back_as_they_went(values):
    found = values_of(contents(values))
    assert set(found) == set(values)
    for name, value in values.items():
        assert type(found[name]) is type(value)
        assert np.array_equal(found[name], value)
        assert not isinstance(value, np.ndarray) or found[name].dtype == value.dtype


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_spoilt_bytes_are_dropped_or_read_and_nothing_else(junk, place, byte):
    whole = bytearray(packed([put_in(Message("p", "r", "a", "b", "n", {"x": np.arange(3.0), "k": 1}), 1)]))
    whole[place % len(whole)] = byte
    for data in (bytes(whole), junk):
        for read in (lambda told: [one.opened() for one in unpacked(told)], decoded, values_of):
            try:
                read(data)
            except DiscreetError:
                continue


# A site that is asked over a connection.


class Counting:
    """A request of many bytes that counts how many were read."""

    def __init__(self, size, *, announced, piece=1 << 20):
        self.size, self.announced, self.piece, self.read = size, announced, piece, 0

    async def receive(self):
        self.read += self.piece
        return {"type": "http.request", "body": b"x" * self.piece, "more_body": self.read < self.size}


def asked(application, analyst, request):
    headers = [(b"content-length", str(request.size).encode())] if request.announced else []
    scope = {"type": "http", "method": "POST", "path": "/messages", "raw_path": b"/messages", "query_string": b"",
             "headers": headers, "peer_name": analyst, "root_path": "", "http_version": "1.1"}  # fmt: skip
    told = []

    async def send(message):
        told.append(message)

    asyncio.run(application(scope, request.receive, send))
    return told[0]["status"], json.loads(told[1]["body"])["error"]


@pytest.fixture
def application(tmp_path):
    pytest.importorskip("starlette")
    from dataclasses import replace

    import polars as pl

    from discreet.federated.remote_transport import application
    from discreet.federated.site_rules import SiteFile
    from discreet.federated.sites import Site
    from discreet.federated.trial_certificates import prepare

    pl.DataFrame({"x": np.arange(20.0)}).write_csv(tmp_path / "north.csv")
    prepare(tmp_path, {"north": "north.csv"}, columns={"north": ["x"]})
    file = SiteFile.read(tmp_path / "north.toml")
    site = Site(replace(file, allowed=replace(file.allowed, max_bytes=4 << 20)))
    return application(site)


@pytest.mark.parametrize("announced", [True, False])
def test_nothing_is_read_of_somebody_who_may_not_ask(application, announced):
    request = Counting(250 << 20, announced=announced)
    status, error = asked(application, "mallory", request)
    assert status == 403
    assert "does not answer this analyst" in error
    assert request.read == 0


def test_a_request_that_is_too_large_is_refused_before_it_is_read_or_where_it_passes_the_limit(application):
    said, unsaid = Counting(250 << 20, announced=True), Counting(250 << 20, announced=False)
    for request, most in ((said, 0), (unsaid, 5 << 20)):
        status, error = asked(application, "analyst", request)
        assert status == 403
        assert "of this size" in error
        assert request.read <= most


def test_an_answer_without_end_is_not_read_by_the_analyst():
    httpx = pytest.importorskip("httpx")
    from discreet.federated.remote_transport import SitesOnNetwork

    transport = SitesOnNetwork.__new__(SitesOnNetwork)
    transport._addresses, transport._errors, transport.max_bytes = {"north": "https://north"}, httpx, 1 << 20

    def endless():
        for _ in range(1000):
            yield b"x" * (1 << 16)
        raise AssertionError("read to the end")

    transport._client = httpx.Client(
        transport=httpx.MockTransport(lambda request: httpx.Response(200, content=endless()))
    )
    with pytest.raises(ProtocolError, match="more than 1,048,576 bytes"):
        transport._post("north", b"", [])


def test_a_packed_answer_is_not_unpacked():
    httpx = pytest.importorskip("httpx")
    import gzip

    from discreet.federated.remote_transport import SitesOnNetwork

    transport = SitesOnNetwork.__new__(SitesOnNetwork)
    transport._addresses, transport._errors = {"north": "https://north"}, httpx
    bomb = gzip.compress(b"\0" * (64 << 20))
    transport._client = httpx.Client(
        transport=httpx.MockTransport(
            lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, content=iter([bomb]))
        )
    )
    assert len(transport._post("north", b"", [])) == len(bomb)
