"""Model files that were damaged or changed: refused as a whole, or a model that draws; never another error."""

import datetime as dt
import hashlib
import io
import json
import random
import zipfile

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import DiscreetError
from discreet.synth import (
    AIM,
    AllOthers,
    BayesianNetwork,
    Bootstrap,
    GaussianCopula,
    Independent,
    MacroToMicro,
    NoisyBayes,
    PerturbedHistogram,
    PMSEMechanism,
    Sequential,
    SmoothHistogram,
    load,
)

N = 60

pytestmark = pytest.mark.filterwarnings("ignore")
DRAW = np.random.default_rng(3)
FRAME = pl.DataFrame(
    {
        "age": DRAW.integers(20, 70, N),
        "sex": DRAW.choice(["f", "m"], N),
        "region": pl.Series(DRAW.choice(["n", "s", "w"], N)).cast(pl.Enum(["n", "s", "w"])),
        "pay": [None, *DRAW.normal(2000, 400, N - 1).round(2)],
        "born": pl.Series(DRAW.integers(0, 9000, N)).cast(pl.Int32).cast(pl.Date),
        "hh": np.repeat(np.arange(N // 2), 2),
    }
)
PEOPLE = Microdata(FRAME.drop("hh"), keys=["age", "sex"], sensitive="pay")
TABLE = Microdata(pl.DataFrame({"sector": ["a", "b"], "records": [40, 60], "staff": [90.0, 200.0]}))
PUBLIC = {
    "age": (20, 70),
    "sex": ["f", "m"],
    "pay": (0.0, 4000.0),
    "born": (dt.date(1970, 1, 1), dt.date(1995, 1, 1)),
}
AGES = Microdata(FRAME.select("age"))
MODELS = {
    "trees": lambda: Sequential().fit(PEOPLE, seed=1),
    "forest": lambda: Sequential(method="rf").fit(PEOPLE, seed=1),
    "regressions": lambda: Sequential(method="parametric").fit(PEOPLE, seed=1),
    "strata": lambda: Sequential(strata="sex", min_stratum=5).fit(PEOPLE, seed=1),
    "partial": lambda: Sequential(method={"age": ""}).fit(PEOPLE, seed=1),
    "households": lambda: Sequential().fit(Microdata(FRAME, household="hh"), seed=1),
    "copula": lambda: GaussianCopula().fit(PEOPLE, seed=1),
    "network": lambda: BayesianNetwork().fit(PEOPLE, seed=1),
    "all others": lambda: AllOthers().fit(PEOPLE, seed=1),
    "noisy tables": lambda: AIM(epsilon=5.0, domain=PUBLIC, impossible=[{"sex": "m", "age": (20, 30)}]).fit(
        PEOPLE, seed=1
    ),
    "cells": lambda: PerturbedHistogram(3, 1.0, domain=PUBLIC).fit(PEOPLE, seed=1),
    "rows": lambda: SmoothHistogram(3, 1.0, domain=PUBLIC).fit(PEOPLE, seed=1),
    "normal": lambda: NoisyBayes(5.0, bounds={"age": (20, 70)}).fit(AGES, seed=1),
    "parameters": lambda: PMSEMechanism(
        5.0, prior={"age": (40, 20)}, sampler="candidates", candidates=20
    ).fit(AGES, seed=1),
    "independent": lambda: Independent().fit(PEOPLE, seed=1),
    "bootstrap": lambda: Bootstrap().fit(PEOPLE, seed=1),
    "aggregates": lambda: MacroToMicro(unit="sector", sds={"staff": 2.0}).fit(TABLE, seed=1),
}
ODD = (
    None,
    True,
    -1,
    0,
    3,
    2**70,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [1],
    {},
    {"$array": "array-0"},
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: make().save(folder / f"{name}.model") for name, make in MODELS.items()}


def parts_of(path):
    with zipfile.ZipFile(path) as box:
        return {name: box.read(name) for name in box.namelist()}


def written(parts, path):
    """Write parts with a manifest that fits them, as somebody would who knows the format."""
    about = {}
    for name, content in parts.items():
        if name == "manifest.json":
            continue
        about[name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(content))
            about[name] |= {"type": array.dtype.str, "shape": list(array.shape)}
        if name.endswith(".arrow"):
            series = pl.read_ipc(io.BytesIO(content))["column"]
            about[name] |= {"type": str(series.dtype.base_type()), "length": len(series)}
    manifest = json.dumps({"format": "discreet model 3", "parts": about})
    with zipfile.ZipFile(path, "w") as box:
        for name, content in {**parts, "manifest.json": manifest.encode()}.items():
            box.writestr(name, content)
    return path


def places(document, at=()):
    yield at
    if isinstance(document, dict | list):
        for key, item in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(item, (*at, key))


def changed_structure(content, rng):
    document = json.loads(content)
    *way, last = rng.choice([place for place in places(document) if place])
    inside = document
    for key in way:
        inside = inside[key]
    if rng.random() < 0.4:
        del inside[last]
    else:
        inside[last] = rng.choice(ODD)
    return json.dumps(document).encode()


def changed_array(content, rng):
    array = np.load(io.BytesIO(content))
    other = rng.choice(
        [
            lambda: array.astype(np.float32) if array.dtype.kind in "fiub" else array,
            lambda: array.astype(str),
            lambda: array.astype(np.int64, casting="unsafe") if array.dtype.kind in "fiub" else array[:0],
            lambda: array.reshape(-1),
            lambda: array[:0] if array.ndim else array.reshape(1),
            lambda: np.concatenate([array, array]) if array.ndim else array.reshape(1, 1),
            lambda: np.full_like(array, 2**30 if array.dtype.kind in "iu" else 1),
            lambda: np.full_like(array, -5 if array.dtype.kind == "i" else 1),
            lambda: np.full_like(array, np.nan) if array.dtype.kind == "f" else array[::-1],
            lambda: np.zeros_like(array),
        ]
    )
    stream = io.BytesIO()
    with np.errstate(all="ignore"):
        try:
            np.save(stream, np.ascontiguousarray(other()), allow_pickle=False)
        except (ValueError, TypeError, IndexError):
            return content
    return stream.getvalue()


def changed_column(content, rng):
    series = pl.read_ipc(io.BytesIO(content))["column"]
    other = rng.choice(
        [series.cast(pl.String), series[:0], pl.concat([series, series]), pl.Series([1.5, None])]
    )
    stream = io.BytesIO()
    other.to_frame("column").write_ipc(stream)
    return stream.getvalue()


def tampered(path, target, rng):
    """Change a model file in one of many ways; some leave a file that says it is sound."""
    way = rng.choice(["flip", "cut", "drop", "swap", "structure", "structure", "array", "array", "column"])
    if way in ("flip", "cut"):
        content = bytearray(path.read_bytes())
        place = rng.randrange(len(content))
        if way == "cut":
            content = content[:place]
        else:
            content[place] ^= rng.randrange(1, 256)
        target.write_bytes(content)
        return way
    parts = parts_of(path)
    parts.pop("manifest.json")
    names = [name for name in parts if name.endswith({"array": ".npy", "column": ".arrow"}.get(way, ""))]
    if not names:
        return tampered(path, target, rng)
    name = rng.choice(names)
    if way == "drop":
        del parts[name]
    elif way == "swap":
        other = rng.choice(names)
        suffix = name.rpartition(".")[2]
        if other.endswith(suffix):
            parts[name], parts[other] = parts[other], parts[name]
    elif way == "structure":
        parts["model.json"] = changed_structure(parts["model.json"], rng)
    else:
        parts[name] = (changed_array if way == "array" else changed_column)(parts[name], rng)
    written(parts, target)
    return way


def hold(saved, tmp_path, cases):
    refused = 0
    for name, path in saved.items():
        for case in range(cases):
            rng = random.Random(f"{name} {case}")
            target = tmp_path / "other.model"
            way = tampered(path, target, rng)
            try:
                load(target).sample(seed=1)
            except DiscreetError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"{name}, case {case} ({way})") from error
    return refused


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_was_not_touched_draws_what_it_drew_before(saved, name, tmp_path):
    made = load(saved[name]).sample(seed=4).frame
    again = written(
        {k: v for k, v in parts_of(saved[name]).items() if k != "manifest.json"}, tmp_path / "a.model"
    )
    assert load(again).sample(seed=4).frame.equals(made)
    assert made.equals(MODELS[name]().sample(seed=4).frame)


def test_dozens_of_tampered_models_are_refused_or_draw(saved, tmp_path):
    refused = hold(saved, tmp_path, 6)
    assert refused > 12 * 6 / 3


@pytest.mark.slow
def test_thousands_of_tampered_models_are_refused_or_draw(saved, tmp_path):
    hold(saved, tmp_path, 400)


@pytest.mark.parametrize("part", ["model.json", "manifest.json", "array-0.npy", "column-0.arrow"])
def test_every_byte_of_every_part_is_under_the_checksum(saved, tmp_path, part):
    parts = parts_of(saved["trees"])
    content = bytearray(parts[part])
    content[len(content) // 2] ^= 1
    target = tmp_path / "other.model"
    with zipfile.ZipFile(target, "w") as box:
        for name, own in {**parts, part: bytes(content)}.items():
            box.writestr(name, own)
    with pytest.raises(DiscreetError, match="nothing was loaded"):
        load(target)


def test_a_part_that_unpacks_to_more_than_it_says_is_not_unpacked(saved, tmp_path):
    parts = parts_of(saved["trees"])
    target = tmp_path / "bomb.model"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as box:
        for name, content in {**parts, "array-0.npy": parts["array-0.npy"] + bytes(10**7)}.items():
            box.writestr(name, content)
    with pytest.raises(DiscreetError):
        load(target)


def test_a_tree_that_leads_back_up_is_refused_rather_than_walked_forever(saved, tmp_path):
    parts = parts_of(saved["trees"])
    for name, content in parts.items():
        array = np.load(io.BytesIO(content)) if name.endswith(".npy") else None
        if array is not None and array.ndim == 2 and array.shape[1] == 8 and (array[:, 0] >= 0).any():
            array[array[:, 0] >= 0, 3:5] = 0
            stream = io.BytesIO()
            np.save(stream, array)
            parts[name] = stream.getvalue()
    parts.pop("manifest.json")
    with pytest.raises(DiscreetError):
        load(written(parts, tmp_path / "loop.model"))


def test_a_model_of_an_earlier_format_is_named_as_such(tmp_path):
    target = tmp_path / "old.model"
    with zipfile.ZipFile(target, "w") as box:
        box.writestr("model.json", '{"format": "discreet model 1", "model": {}}')
    with pytest.raises(DiscreetError, match="another version"):
        load(target)
