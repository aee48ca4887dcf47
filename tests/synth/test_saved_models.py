"""Every fitted model comes back from its file as it was: same draws, same bytes; every stored class is among them."""

import hashlib
import importlib.util
import json
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest

from discreet import Microdata, synth
from discreet.core.errors import InputError, ParameterError
from discreet.core.index import load
from discreet.synth import Sequential, saved_models
from discreet.synth.from_outputs import Codebook, CrossTab, FromOutputs, Variable

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(5)
N = 120
AGE = RNG.integers(20, 70, N)
FRAME = pl.DataFrame(
    {
        "age": AGE,
        "sex": RNG.choice(["f", "m"], N),
        "region": pl.Series(RNG.choice(["n", "s", "w"], N)).cast(pl.Enum(["n", "s", "w"])),
        "school": pl.Series(np.minimum((AGE - 20) // 17, 2).astype(str)).cast(pl.Enum(["0", "1", "2"])),
        "pay": pl.Series([None, 0.0, *RNG.normal(2000, 400, N - 2).round(2).tolist()]),
        "visits": RNG.poisson(3, N),
        "won": RNG.integers(0, 3, N),
        "born": pl.Series(RNG.integers(0, 9000, N)).cast(pl.Int32).cast(pl.Date),
    }
).with_columns(pl.col("visits") + pl.col("won"), (pl.col("pay") * 2 + 1).alias("twice"))
PEOPLE = Microdata(FRAME, keys=["age", "sex"], sensitive="pay")
HOMES = FRAME.select("age", "sex", "pay").with_columns(
    home=pl.Series(np.repeat(np.arange(N // 2), 2)),
    area=pl.Series(np.repeat(RNG.choice(["n", "s"], N // 2), 2)),
    wage=pl.col("pay") * 0.7,
    rent=pl.col("pay") * 0.3,
)
SURVEY = Microdata(HOMES, household="home", strata="area")
FEW = Microdata(FRAME.select("age", "sex", "region", "pay"))
DOMAIN = {"age": (20, 70), "sex": ["f", "m"]}
PRIVATE = Microdata(FRAME.select("age", "sex"))
TABLE = Microdata(pl.DataFrame({"sector": ["a", "b"], "records": [40, 60], "staff": [90.0, 200.0]}))
BOOK = Codebook([Variable("sex", levels=["f", "m"]), Variable("car", levels=[0, 1])])
TIMES = Microdata(pl.DataFrame({"time": RNG.integers(1, 40, N), "event": RNG.integers(0, 2, N)}))
CODED = Microdata(pl.DataFrame({"t": ["1", "2", "N", "31"] * 30, "x": np.arange(120) % 7}))


def linked():
    homes = pl.DataFrame({"home": np.arange(40), "area": RNG.choice(["n", "s"], 40)})
    people = pl.DataFrame({"home": np.repeat(np.arange(40), 2), "age": RNG.integers(1, 90, 80)})
    schema = {"tables": {"homes": {"key": "home"}, "people": {"parents": {"home": "homes"}}}}
    return synth.Relational(schema).fit({"homes": homes, "people": people}, seed=1)


def columns(method, **more):
    return lambda: Sequential(method={"visits": method}, **more).fit(PEOPLE, seed=1)


MODELS = {
    "trees": lambda: Sequential(smoothing="spline").fit(PEOPLE, seed=1),
    "forest": lambda: Sequential(method="rf").fit(FEW, seed=1),
    "bag": lambda: Sequential(method="bag").fit(FEW, seed=1),
    "parametric": lambda: Sequential(method="parametric").fit(PEOPLE, seed=1),
    "strata": lambda: Sequential(strata="sex", min_stratum=5).fit(PEOPLE, seed=1),
    "partial": lambda: Sequential(method={"age": ""}).fit(PEOPLE, seed=1),
    "rules": lambda: Sequential(rules={"pay": [("age < 30", 0.0)]}, constraints=["age > 18"]).fit(
        FEW, seed=1
    ),
    "groups": lambda: Sequential(number_groups={"pay": 4}).fit(FEW, seed=1),
    "spikes": lambda: Sequential(special_codes={"pay": [0]}, semicontinuous={"visits": 3}).fit(
        PEOPLE, seed=1
    ),
    "computed": columns("cubertnorm"),
    "near": lambda: Sequential(method={"twice": {"method": "near", "expression": "2 * pay"}}).fit(
        PEOPLE, seed=1
    ),
    "passive": lambda: Sequential(method={"twice": "~2 * pay + 1"}).fit(PEOPLE, seed=1),
    "all together": lambda: Sequential(method="catall", number_groups={"age": 3, "pay": 3}).fit(FEW, seed=1),
    "margins": lambda: Sequential(method="ipf", number_groups={"age": 3, "pay": 3}).fit(FEW, seed=1),
    "nested": lambda: Sequential(
        method={"age": "nested.school"}, visit_sequence=["school", "age", "sex"]
    ).fit(Microdata(FRAME.select("age", "sex", "school")), seed=1),
    "times": lambda: Sequential(events={"time": "event"}, method={"time": "survctree"}).fit(TIMES, seed=1),
    "binomial": lambda: Sequential(method={"won": "binomial"}, denominators={"won": "visits"}).fit(
        PEOPLE, seed=1
    ),
    **{
        method: columns(method)
        for method in ("norm", "lognorm", "normrank", "pmm", "poisson", "ctree", "sample")
    },
    "shared donors": lambda: Sequential(method_options={"cart": {"shared_by": 3}}).fit(FEW, seed=1),
    "cells": lambda: Sequential(method={"sex": "satcat"}, predictor_matrix={"sex": ["region"]}).fit(
        FEW, seed=1
    ),
    "ordered": lambda: Sequential(method={"school": "polr"}).fit(PEOPLE, seed=1),
    "whole units": lambda: Sequential().fit(SURVEY, seed=1),
    "households": lambda: synth.Households(Sequential(method="sample"), min_households=5).fit(SURVEY, seed=1),
    "population": lambda: synth.Population(
        structure=["age", "sex"], continuous=["pay"], components={"pay": ["wage", "rent"]}
    ).fit(SURVEY, seed=1),
    "lookup population": lambda: synth.Population(
        structure=["age"], categorical=["sex"], cat_method="distribution"
    ).fit(SURVEY, seed=1),
    "regression": lambda: synth.Population(structure=["age"], continuous=["pay"], cont_method="lm").fit(
        SURVEY, seed=1
    ),
    "copula": lambda: synth.GaussianCopula(margins={"age": "parametric"}).fit(PEOPLE, seed=1),
    "vines": lambda: synth.VineCopula("r-vine", pair_copulas="gaussian").fit(FEW, seed=1),
    "network": lambda: synth.BayesianNetwork().fit(PEOPLE, seed=1),
    "all others": lambda: synth.AllOthers().fit(FEW, seed=1),
    "random forest": lambda: synth.AdversarialForest(trees=3).fit(FEW, seed=1),
    "diffix": lambda: synth.SynDiffix().fit(FEW, seed=1),
    "aim": lambda: synth.AIM(5.0, domain=DOMAIN, impossible=[{"sex": "m", "age": (20, 30)}]).fit(
        PRIVATE, seed=1
    ),
    "mst": lambda: synth.MST(5.0, domain=DOMAIN).fit(PRIVATE, seed=1),
    "histogram": lambda: synth.PerturbedHistogram(3, 1.0, domain=DOMAIN).fit(PRIVATE, seed=1),
    "smooth": lambda: synth.SmoothHistogram(3, 1.0, domain=DOMAIN).fit(PRIVATE, seed=1),
    "normal": lambda: synth.NoisyBayes(5.0, bounds={"age": (20, 70)}).fit(
        Microdata(FRAME.select("age")), seed=1
    ),
    "parameters": lambda: synth.PMSEMechanism(
        5.0, prior={"age": (40, 20)}, sampler="candidates", candidates=20
    ).fit(Microdata(FRAME.select("age")), seed=1),
    "independent": lambda: synth.Independent().fit(PEOPLE, seed=1),
    "bootstrap": lambda: synth.Bootstrap().fit(PEOPLE, seed=1),
    "aggregates": lambda: synth.MacroToMicro(unit="sector", sds={"staff": 2.0}).fit(TABLE, seed=1),
    "outputs": lambda: FromOutputs(BOOK, [CrossTab(["sex", "car"], [[20, 30], [35, 15]])], 100).fit(seed=1),
    "numbers as text": lambda: Sequential(special_codes={"t": ["N"]}).fit(CODED, seed=1),
    "constant": lambda: Sequential().fit(Microdata(FRAME.select("age", pl.lit("x").alias("same"))), seed=1),
    "families": lambda: synth.GaussianCopula(margins="parametric").fit(FEW, seed=1),
}
NETWORKS = {
    "tvae": lambda: synth.TVAE(epochs=1, batch=40, width=8, latent=4).fit(FEW, seed=1),
    "ctgan": lambda: synth.CTGAN(epochs=1, batch=40, width=8, noise=4).fit(FEW, seed=1),
    "diffusion": lambda: synth.TabularDiffusion(epochs=1, batch=40, width=8, steps=4).fit(FEW, seed=1),
    "language": lambda: synth.LanguageModel(epochs=2, batch=40, width=8, layers=1, heads=2).fit(FEW, seed=1),
    "dpgan": lambda: synth.DPGAN(4.0, domain=DOMAIN, steps=2, width=8, critic=8).fit(PRIVATE, seed=1),
}


# Trees of another library are refused; a column of one value is drawn like any other.
NEVER = {"forest-chances", "one-value"}


def document_of(place):
    with zipfile.ZipFile(place) as box:
        return json.loads(box.read("model.json"))


def names_in(document):
    if isinstance(document, list):
        return {name for own in document for name in names_in(own)}
    if not isinstance(document, dict):
        return set()
    return document.keys() | {name for own in document.values() for name in names_in(own)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The models and their files; those that need networks where there are some."""
    folder = tmp_path_factory.mktemp("models")
    there = MODELS | (NETWORKS if importlib.util.find_spec("torch") else {})
    fitted = {name: make() for name, make in there.items()}
    return {name: (own, own.save(folder / name)) for name, own in fitted.items()}


def test_a_model_from_a_file_draws_what_it_drew_before(saved):
    for name, (fitted, place) in saved.items():
        assert synth.load(place).sample(seed=3).frame.equals(fitted.sample(seed=3).frame), name


def test_the_same_model_is_the_same_bytes_also_after_drawing(saved, tmp_path):
    for name, (fitted, place) in saved.items():
        assert fitted.save(tmp_path / "again").read_bytes() == place.read_bytes(), name


def test_a_model_from_a_file_is_written_as_it_was(saved, tmp_path):
    for name, (_, place) in saved.items():
        assert document_of(synth.load(place).save(tmp_path / "again")) == document_of(place), name


def test_linked_tables_come_back_from_their_file(tmp_path):
    fitted = linked()
    place = fitted.save(tmp_path / "tables.model")
    again = synth.FittedRelational.load(place)
    made, remade = fitted.sample(seed=2), again.sample(seed=2)
    assert all(made[name].equals(remade[name]) for name in made)
    assert document_of(again.save(tmp_path / "again")) == document_of(place)
    with pytest.raises(InputError, match="another kind"):
        synth.load(place)


def test_every_class_that_can_be_stored_was_stored(saved, tmp_path):
    pytest.importorskip("torch")
    load("discreet.synth")
    found = names_in(document_of(linked().save(tmp_path / "tables.model")))
    for _, place in saved.values():
        found |= names_in(document_of(place))
    kinds = {name for name, kind in saved_models._KINDS.items() if kind.__module__.startswith("discreet.")}
    assert kinds - found == NEVER


@pytest.mark.parametrize("name", ["trees", "shared donors", "histogram"])
def test_a_program_that_imports_nothing_else_reads_the_file(saved, name):
    code = (
        "import sys; from discreet.synth import load; "
        "print(load(sys.argv[1]).sample(seed=3).frame.hash_rows().sum())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(saved[name][1])], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) == saved[name][0].sample(seed=3).frame.hash_rows().sum()


def test_a_model_that_holds_code_of_others_or_its_data_is_not_saved(tmp_path):
    boosted = synth.Population(structure=["age"], categorical=["sex"], cat_method="forest")
    for fitted in (boosted.fit(SURVEY, seed=1), Sequential(proper=True).fit(FEW, seed=1)):
        with pytest.raises(ParameterError, match=r"not kept|cannot be saved"):
            fitted.save(tmp_path / "m.model")
    assert not list(tmp_path.iterdir())


def test_what_a_small_model_looks_like(tmp_path):
    fitted = synth.Bootstrap().fit(Microdata(pl.DataFrame({"a": [1, 2]}), keys="a"), seed=1)
    assert document_of(fitted.save(tmp_path / "m.model")) == {
        "fitted-draws": {
            "like": {"form-of-a-file": [{"$table": [{"$column": "column-0", "name": "a"}]}, {"keys": ["a"]}]},
            "rows": 2,
            "frame": {"$table": [{"$column": "column-1", "name": "a"}]},
            "weights": None,
            "together": True,
        }
    }


@pytest.mark.parametrize(
    "document",
    [
        {"fitted-draws": {}},
        {"fitted-sequential": {}},
        {"binned-column": {}},
        {"discreet.synth.baselines.FittedDraws": {}},
        {"builtins.exec": ["print(1)"]},
        {},
        [],
    ],
)
def test_what_is_no_model_is_refused(document, saved, tmp_path):
    with zipfile.ZipFile(saved["bootstrap"][1]) as box:
        parts = {name: box.read(name) for name in box.namelist()}
    manifest = json.loads(parts["manifest.json"])
    parts["model.json"] = json.dumps(document).encode()
    about = manifest["parts"]["model.json"]
    about |= {"bytes": len(parts["model.json"]), "sha256": hashlib.sha256(parts["model.json"]).hexdigest()}
    parts["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(tmp_path / "m.model", "w") as box:
        for name, content in parts.items():
            box.writestr(name, content)
    with pytest.raises(InputError, match=r"nothing was loaded|another kind"):
        synth.load(tmp_path / "m.model")


@pytest.mark.parametrize("version", ["discreet model 2", "discreet model 4"])
def test_a_file_of_another_version_says_what_to_do(version, saved, tmp_path):
    with zipfile.ZipFile(saved["bootstrap"][1]) as box:
        parts = {name: box.read(name) for name in box.namelist()}
    parts["manifest.json"] = parts["manifest.json"].replace(b"discreet model 3", version.encode())
    with zipfile.ZipFile(tmp_path / "m.model", "w") as box:
        for name, content in parts.items():
            box.writestr(name, content)
    with pytest.raises(InputError, match=r"another version of discreet\. Fit the model again\."):
        synth.load(tmp_path / "m.model")
