"""A model file that was tampered with is refused, or is a model: never a trace, and never half of one."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from discreet.core.errors import DiscreetError
from discreet.synth import Synthesizer, load
from fuzz.campaign import fuzzed
from fuzz.documents import changed
from fuzz.frames import spoilt
from fuzz.harness import refused_or_done
from fuzz.values import PEOPLE, ROLES, annotations

_WITHOUT_MODEL = ("from-outputs", "macro-to-micro")


@functools.cache
def saved(name: str) -> bytes | None:
    """A model of every synthesizer that learns from a file."""
    from discreet.microdata import Microdata

    people = Microdata(PEOPLE.select("age", "sex", "pay"), keys=ROLES["keys"][:2], sensitive="pay")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder) / "m.model"
        kind = Synthesizer.known[name]
        options = annotations(kind)
        needed: dict[str, float] = {
            option: 1.0 for option, (annotation, must) in options.items() if must and annotation is float
        }
        # How well a network has learned makes no difference to its file.
        needed |= {"epochs": 2} if "epochs" in options else {}
        try:
            kind(**needed).fit(people, seed=1).save(place)
        except (DiscreetError, TypeError):  # an extra is missing, or it needs more than a file and a number
            return None
        return place.read_bytes()


def _parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as box:
        return {item.filename: box.read(item) for item in box.infolist()}


def _packed(parts: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as box:
        for name, content in parts.items():
            box.writestr(name, content)
    return stream.getvalue()


_ARRAYS = st.sampled_from(
    [np.array([]), np.array([np.nan] * 3), np.array([-1, 10**9]), np.zeros((2, 2, 2)), np.array("x"), np.array([1e308,
     -1]),
     np.array([True]), np.array([0], dtype=np.uint8), np.arange(500.0)]
)  # fmt: skip


@st.composite
def tampered(draw: st.DrawFn) -> tuple[str, bytes]:
    """A model with bytes, numbers, arrays or parts that are not its own; sealed again where it can be."""
    names = sorted(name for name in Synthesizer.known if name not in _WITHOUT_MODEL and saved(name))
    name = draw(st.sampled_from(names))
    content = saved(name)
    assert content is not None
    how = draw(
        st.sampled_from(["bytes", "document", "document", "document", "array", "part", "swapped", "other"])
    )
    parts = _parts(content)
    if how == "bytes":
        return name, draw(spoilt(content))
    if how == "document":
        document = draw(changed(json.loads(parts["model.json"])))
        try:
            parts["model.json"] = json.dumps(document).encode()
        except (TypeError, ValueError):
            parts["model.json"] = b"[]"
        return name, _sealed(parts, draw(st.booleans()))
    if how == "array" and any(part.endswith(".npy") for part in parts):
        part = draw(st.sampled_from([part for part in parts if part.endswith(".npy")]))
        stream = io.BytesIO()
        np.lib.format.write_array(stream, draw(_ARRAYS), allow_pickle=False)
        parts[part] = stream.getvalue()
    elif how == "part":
        del parts[draw(st.sampled_from(sorted(parts)))]
    elif how == "swapped":
        one, two = (draw(st.sampled_from(sorted(parts))) for _ in range(2))
        parts[one], parts[two] = parts[two], parts[one]
    else:
        parts["../../outside"] = b"x"
        parts["model.json"] = draw(spoilt(parts["model.json"]))
    return name, _sealed(parts, draw(st.booleans()))


def _sealed(parts: dict[str, bytes], again: bool) -> bytes:
    """Pack the parts; with the manifest made anew, as somebody would who knows how it is made."""
    if not again or "manifest.json" not in parts:
        return _packed(parts)
    try:
        manifest = json.loads(parts["manifest.json"])
        known = dict(manifest["parts"])
    except (ValueError, KeyError, TypeError):
        return _packed(parts)
    manifest["parts"] = {
        name: {
            **known.get(name, {}),
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            **_shape(content),
        }
        for name, content in parts.items()
        if name != "manifest.json"
    }
    return _packed({**parts, "manifest.json": json.dumps(manifest).encode()})


def _shape(content: bytes) -> dict[str, Any]:
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except ValueError:
        return {}
    return {"type": array.dtype.str, "shape": list(array.shape)}


@fuzzed(tampered(), quick=10, share=0.05)
def test_a_tampered_model_is_refused_or_is_one(case: tuple[str, bytes]) -> None:
    name, content = case
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"{name}.model"
        place.write_bytes(content)

        def use() -> Any:
            fitted = load(place)
            return fitted.sample(5, seed=1), repr(fitted)

        refused_or_done(use)
        assert len(list(Path(folder).parent.glob("outside"))) == 0
