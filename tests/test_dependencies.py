"""Every dependency is pinned, and none of the pinned versions has a hole that the package index knows of."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

PINNED = Path(__file__).parent.parent / "constraints.txt"


def pinned() -> dict[str, str]:
    lines = [line.partition("#")[0].strip() for line in PINNED.read_text().splitlines()]
    return dict(re.split(r"===?", line.partition(";")[0].strip(), maxsplit=1) for line in lines if line)


def known_holes(index: str, name: str, version: str) -> list[str] | None:
    """What the index knows against a version, withdrawn reports left out; None where it does not tell."""
    try:
        with urllib.request.urlopen(f"{index}/{name}/{version}/json", timeout=20) as answer:
            document = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return None
    if "vulnerabilities" not in document:
        return None
    return [
        f"{name} {version}: {hole['id']}, mended in {', '.join(hole.get('fixed_in') or ['no version yet'])}"
        for hole in document["vulnerabilities"]
        if not hole.get("withdrawn")
    ]


def index_of_pip() -> str:
    """The index that pip itself would ask."""
    found = pytest.importorskip("pip._internal.models.index", reason="pip does not say which index it asks")
    return found.PyPI.pypi_url


def test_every_version_is_pinned():
    wild = [
        line
        for line in PINNED.read_text().splitlines()
        if line.strip() and not re.match(r"^[\w.\[\]-]+==", line)
    ]
    assert wild == []
    assert len(pinned()) > 50


@pytest.mark.slow
def test_no_pinned_version_has_a_known_hole():
    index = index_of_pip()
    (first, version), *others = pinned().items()
    found = known_holes(index, first, version)
    if found is None:
        pytest.skip("the package index cannot be asked for known holes from here")
    with ThreadPoolExecutor(4) as pool:
        more = list(pool.map(lambda one: known_holes(index, *one), others))
    assert found + [hole for holes in more for hole in holes or []] == []


def test_a_known_hole_is_told_and_a_withdrawn_report_is_not():
    class Index(BaseHTTPRequestHandler):
        def do_GET(self):
            holes = [{"id": "A-1", "fixed_in": ["2.1"]}, {"id": "A-2", "withdrawn": "2026-01-01"}]
            told = {"/open/2.0/json": {"vulnerabilities": holes}, "/silent/1.0/json": {}}
            self.send_response(200 if self.path in told else 404)
            self.end_headers()
            self.wfile.write(json.dumps(told.get(self.path, {})).encode())

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = f"http://127.0.0.1:{server.server_address[1]}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(urllib.request, "urlopen", opener.open)
            assert known_holes(index, "open", "2.0") == ["open 2.0: A-1, mended in 2.1"]
            assert known_holes(index, "silent", "1.0") is None
            assert known_holes(index, "nobody", "1.0") is None
        server.shutdown()
