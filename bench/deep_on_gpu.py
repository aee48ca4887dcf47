"""How fast and how good are the networks on an accelerator? Adult's training file, in three steps.

``prepare`` (where discreet is installed) writes Adult as coded arrays to ``build/deep/adult.npz``. ``train`` (where
only NumPy and torch are, with ``src`` on PYTHONPATH) trains each network from it and writes what it draws, with times,
to the folder OUT. ``report FOLDER`` (here again) decodes the draws and measures tv1, tv2 and TSTR as
`private_synthesis` does. Needs the folder DISCREET_TEST_DATA for the first and the last step.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

PLACE = Path(__file__).resolve().parents[1] / "build" / "deep" / "adult.npz"
MODELS = ("ctgan", "tvae", "tabular-diffusion", "language-model")
SEED = 1


def adult():
    """The file, its variables, and how networks code them."""
    import polars as pl

    from discreet import Microdata
    from discreet.synth import CTGAN, TabularDiffusion
    from discreet.synth.deep.language_model import written
    from discreet.synth.deep.training_plan import coded
    from discreet.synth.synthesizer import Stream
    from discreet.synth.whole_records import prepare

    train = pl.read_csv(Path(os.environ["DISCREET_TEST_DATA"]) / "adult" / "adult_train.csv.gz")
    data = Microdata(train, sensitive="income")
    file = prepare(CTGAN(), data)
    modes = coded(CTGAN(), file, Stream(SEED, "bench"))
    scores = coded(TabularDiffusion(), file, Stream(SEED, "bench"))
    return file, modes, scores, written(file, data, middle_padding=False)


def prepare() -> None:
    _, (_, modes), (_, scores), (tokenizer, _, _, values) = adult()
    arrays = {f"modes/{name}": array for name, array in modes.to_arrays().items()}
    arrays |= {f"scores/{name}": array for name, array in scores.to_arrays().items()}
    described = json.dumps({**tokenizer.to_dict(), "seen": None})
    arrays |= {"text/values": values, "text/tokenizer": np.frombuffer(described.encode(), dtype=np.uint8)}
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(PLACE, **arrays)
    print(f"{PLACE}: {PLACE.stat().st_size / 1e6:.1f} MB")


def tokens_of(arrays):
    from discreet.networks.tokens import RowTokenizer

    described = json.loads(bytes(arrays["text/tokenizer"]).decode())
    described.pop("seen")
    tokenizer = RowTokenizer.from_dict(described)
    tokens = tokenizer.encode(arrays["text/values"])
    tokenizer.learn(tokens)
    return tokenizer, tokens


def train(models, device: str, folder: Path, *, short: bool) -> None:
    import torch

    from discreet.networks.adversarial import GanShape, GanTrainer, sample_gan
    from discreet.networks.autoencoder import VaeShape, VaeTrainer, sample_vae
    from discreet.networks.diffusion import DiffusionShape, DiffusionTrainer, sample_diffusion
    from discreet.networks.language import LanguageShape, LanguageTrainer, write_rows
    from discreet.networks.tables import CodedTable
    from discreet.networks.training import Course
    from discreet.networks.training import train as train_network

    torch.set_float32_matmul_precision("high")
    with np.load(PLACE) as file:
        arrays = {name: file[name] for name in file.files}
    tables = {
        kind: CodedTable.from_arrays({k.split("/")[1]: v for k, v in arrays.items() if k.startswith(kind)})
        for kind in ("modes", "scores")
    }
    tokenizer, tokens = tokens_of(arrays)
    rows = 500 if short else len(tables["modes"])
    folder.mkdir(parents=True, exist_ok=True)
    times = {}
    for name in models:
        made = {}

        def make(on, name=name, made=made):
            if name == "ctgan":
                made["it"] = GanTrainer(tables["modes"], GanShape(), 500, on)
            elif name == "tvae":
                made["it"] = VaeTrainer(tables["modes"], VaeShape(), 500, on)
            elif name == "tabular-diffusion":
                made["it"] = DiffusionTrainer(tables["scores"], DiffusionShape(), 1024, on)
            else:
                size = (
                    {"layers": 2, "width": 64, "heads": 4}
                    if short
                    else {"layers": 12, "width": 768, "heads": 12}
                )
                shape = LanguageShape(**size, learning_rate=3e-4, dropout=0.1)
                made["it"] = LanguageTrainer(tokens, tokenizer, shape, batch=256, device=on)
            return made["it"]

        epochs = 1 if short else 100 if name == "language-model" else 300
        course = Course(epochs, 500, seed=SEED, device=device, time_limit=540.0)
        _, report = train_network(make, course)
        trainer = made["it"]
        began = time.perf_counter()
        if name == "ctgan":
            drawn = sample_gan(
                trainer.generator, trainer.asked, trainer.records.blocks, trainer.shape, rows, seed=SEED
            )
        elif name == "tvae":
            drawn = sample_vae(
                trainer.decoder, trainer.records.blocks, trainer.shape, rows, seed=SEED, device=trainer.device
            )
        elif name == "tabular-diffusion":
            drawn = sample_diffusion(
                trainer.average, trainer.schedule, trainer.records.blocks, trainer.numbers, rows, seed=SEED,
                mixed_precision=True,
            )  # fmt: skip
        else:
            rng = np.random.default_rng(SEED)
            start = tokens[rng.integers(len(tokens), size=rows), : tokenizer.lengths[0]]
            drawn = (write_rows(trainer.writer, tokenizer, rows, seed=SEED, start=start),)
        if trainer.device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        parameters = sum(p.numel() for module in trainer.modules().values() for p in module.parameters())
        times[name] = {
            "device": report.device,
            "torch": torch.__version__,
            "epochs": report.epochs,
            "ended": report.ended,
            "train_seconds": round(report.seconds, 2),
            "records_per_second": round(rows / seconds),
            "parameters": parameters,
            "last_losses": report.losses[-1],
        }
        print(name, json.dumps(times[name]), flush=True)
        keys = ("tokens",) if name == "language-model" else ("numbers", "codes")
        kept = {
            key: array.astype(np.float32 if array.dtype.kind == "f" else np.int16)
            for key, array in zip(keys, drawn, strict=True)
        }
        np.savez_compressed(folder / f"{name}.npz", **kept)
        (folder / "times.json").write_text(json.dumps(times, indent=2))


def report(folder: Path) -> None:
    import itertools

    import polars as pl

    sys.path.insert(0, str(Path(__file__).parent))
    import private_synthesis as measured

    from discreet.synth.synthesizer import Stream

    file, (modes, _), (scores, _), (tokenizer, order, scales, _) = adult()
    base = Path(os.environ["DISCREET_TEST_DATA"]) / "adult"
    train, test = (pl.read_csv(base / f"adult_{part}.csv.gz") for part in ("train", "test"))
    levels = {
        name: sorted({*train[name].fill_null("?").to_list(), *test[name].fill_null("?").to_list()})
        for name in train.columns
        if name not in measured.RANGES
    }
    real, held = (measured.coded(frame, train, levels) for frame in (train, test))
    times = json.loads((folder / "times.json").read_text())
    print("network             epochs  seconds  records/s     tv1     tv2    TSTR  rejected")
    for name, about in times.items():
        rejected = ""
        with np.load(folder / f"{name}.npz") as drawn:
            if name == "language-model":
                values, good = tokenizer.decode(drawn["tokens"])
                rejected = f"{1 - good.mean():9.4f}"
                parts = [np.empty(0)] * len(order)
                for column, place in enumerate(order):
                    own = values[good][:, column]
                    level = tokenizer.columns[column].is_level
                    parts[place] = own.astype(np.int32) if level else own / scales[place]
            else:
                coding = scores if name == "tabular-diffusion" else modes
                codes = drawn["codes"].astype(np.int32)
                parts = coding.decoded(drawn["numbers"], codes, Stream(SEED, "decode"))
        made = file.blueprint.joined(parts).select(train.columns)
        copy = measured.coded(made, train, levels)
        one = np.mean([measured.distance(real[n], copy[n]) for n in train.columns])
        pairs = itertools.combinations(train.columns, 2)
        two = np.mean([measured.distance(real[a] * 100 + real[b], copy[a] * 100 + copy[b]) for a, b in pairs])
        accuracy = measured.accuracy(made, copy, test, held)
        print(
            f"{name:18s} {about['epochs']:7d} {about['train_seconds']:8.1f} {about['records_per_second']:10,d} "
            f"{one:7.4f} {two:7.4f} {accuracy:7.4f} {rejected}   {about['device']}, torch {about['torch']}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("prepare", "train", "report"))
    parser.add_argument("folder", nargs="?", default=os.environ.get("OUT", "build/deep/drawn"), type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--short", action="store_true", help="one epoch of small networks, to see that it runs"
    )
    given = parser.parse_args()
    if given.step == "prepare":
        prepare()
    elif given.step == "train":
        train(given.models.split(","), given.device, given.folder, short=given.short)
    else:
        report(given.folder)


if __name__ == "__main__":
    main()
