"""What networks say to files and machines they cannot work with: each refusal names the way out, and draws nothing."""

import json
import sys
import zipfile

import numpy as np
import polars as pl
import pytest

torch = pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet import Microdata  # noqa: E402
from discreet.core.errors import DiscreetError, ExtraMissingError, ParameterError  # noqa: E402
from discreet.networks import training  # noqa: E402
from discreet.synth import CTGAN, TVAE, AdversarialForest, LanguageModel, TabularDiffusion, load  # noqa: E402

RNG = np.random.default_rng(5)
PEOPLE = Microdata(pl.DataFrame({"sex": RNG.choice(["f", "m"], 80), "pay": RNG.normal(size=80).round(2)}))
SMALL = {
    "ctgan": CTGAN(epochs=1, batch=40, width=8, noise=4),
    "tvae": TVAE(epochs=1, batch=40, width=8, latent=4),
    "tabular-diffusion": TabularDiffusion(epochs=1, batch=40, width=8, steps=4),
    "language-model": LanguageModel(epochs=1, batch=40, width=8, layers=1, heads=2),
}
NETWORKS = pytest.mark.parametrize("kind", SMALL)
LOWER = dict.fromkeys(SMALL, "batch, width or max_levels") | {"language-model": "batch, width or layers"}


def with_settings(kind, **more):
    return type(SMALL[kind])(**{**SMALL[kind].to_dict(), **more})


@NETWORKS
def test_one_record_is_too_few_to_learn_from(kind):
    with pytest.raises(ParameterError, match="two records"):
        SMALL[kind].fit(PEOPLE.with_frame(PEOPLE.frame.head(1)), seed=1)


@NETWORKS
def test_a_file_of_constants_comes_back_as_it_was(kind):
    same = Microdata(pl.DataFrame({"a": ["x"] * 30, "b": [4] * 30, "c": [1.5] * 30}))
    assert SMALL[kind].fit(same, seed=1).sample(5, seed=1).frame.equals(same.frame.head(5))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SMALL, "adversarial-forest"])
def test_a_column_of_ten_thousand_levels_is_learned(kind):
    frame = pl.DataFrame({"id": [f"p{n}" for n in range(10_000)], "x": np.arange(10_000) % 7})
    maker = AdversarialForest(trees=2) if kind == "adversarial-forest" else SMALL[kind]
    made = maker.fit(Microdata(frame), seed=1).sample(50, seed=1).frame
    assert made.height == 50
    assert set(made["id"]) <= set(frame["id"])


@NETWORKS
def test_a_rate_that_breaks_training_down_is_named(kind):
    with pytest.raises(DiscreetError, match="Lower learning_rate"):
        with_settings(kind, learning_rate=1e30, epochs=5).fit(PEOPLE, seed=1)


@NETWORKS
@pytest.mark.parametrize("fault", [torch.OutOfMemoryError("CUDA out of memory"), MemoryError()])
def test_memory_that_runs_out_in_training_says_which_setting_to_lower(kind, fault, monkeypatch):
    def out_of_memory(*_):
        raise fault

    monkeypatch.setattr(training, "_run", out_of_memory)
    with pytest.raises(DiscreetError, match=f"Lower {LOWER[kind]}"):
        SMALL[kind].fit(PEOPLE, seed=1)


@NETWORKS
def test_memory_that_runs_out_in_drawing_says_to_ask_for_fewer(kind, monkeypatch):
    fitted = SMALL[kind].fit(PEOPLE, seed=1)

    def out_of_memory(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(training, "put_weights", out_of_memory)
    with pytest.raises(DiscreetError, match="fewer at a time"):
        fitted.sample(5, seed=1)


@NETWORKS
def test_a_model_of_another_version_is_refused(kind, tmp_path):
    place, old = SMALL[kind].fit(PEOPLE, seed=1).save(tmp_path / "new.model"), tmp_path / "old.model"
    with zipfile.ZipFile(place) as box, zipfile.ZipFile(old, "w") as copy:
        for name in box.namelist():
            content = box.read(name)
            if name == "manifest.json":
                content = json.dumps(json.loads(content) | {"format": "discreet model 999"}).encode()
            copy.writestr(name, content)
    with pytest.raises(DiscreetError, match="another version"):
        load(old)


@NETWORKS
def test_without_torch_the_extra_is_named_in_fitting_and_in_drawing(kind, monkeypatch):
    fitted = SMALL[kind].fit(PEOPLE, seed=1)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ExtraMissingError, match=r"discreet\[deep\]"):
        SMALL[kind].fit(PEOPLE, seed=1)
    with pytest.raises(ExtraMissingError, match=r"discreet\[deep\]"):
        fitted.sample(5, seed=1)


@NETWORKS
@pytest.mark.parametrize(
    ("device", "said"), [("toaster", "none that torch knows"), ("cuda:99", "no device 'cuda:99'")]
)
def test_a_device_that_is_not_there_is_named(kind, device, said):
    with pytest.raises(ParameterError, match=said):
        with_settings(kind, device=device).fit(PEOPLE, seed=1)
