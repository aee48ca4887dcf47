"""How fast and how good are the networks on an accelerator? Adult: 32,561 records to learn from, 16,281 to test on.

Needs NumPy, SciPy, scikit-learn and torch, and ``src`` on PYTHONPATH; the file is the one that is bundled. Each network
is trained with its defaults, and what it draws is measured: tv1 and tv2 are the mean total variation distances of all
one- and two-way tables (numbers cut at deciles), TSTR the accuracy on the test file of boosted trees trained on the
drawn one, as in `private_synthesis`. ``--set match=0,width=512`` tries other sizes and rates.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import gzip
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

PLACE = Path(__file__).resolve().parents[1] / "src" / "discreet" / "datasets" / "adult.csv.gz"
NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
MODELS = ("independent", "ctgan", "tvae", "tabular-diffusion", "language-model")
LEARNED = 32_561
FEW, PILE = 20, 0.2  # as the generators: fewer values are a category, a value so frequent is a state
SEED = 1


def adult() -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The columns as whole numbers, and how many levels the categories have."""
    with gzip.open(PLACE, "rt") as file:
        rows = list(csv.reader(file))
    columns, sizes = {}, {}
    for name, own in zip(rows[0], zip(*rows[1:], strict=True), strict=True):
        if name in NUMBERS:
            columns[name] = np.array(own, dtype=np.int64)
        else:
            levels, columns[name] = np.unique(np.array(own), return_inverse=True)
            sizes[name] = len(levels)
    return columns, sizes


class Coding:
    """How the columns become numbers and codes, and come back."""

    def __init__(self, columns, sizes, kind: str) -> None:
        from discreet.networks.tables import ModeCoding, ScoreCoding

        self.names, self.parts = list(columns), {}
        for name, values in columns.items():
            known, counts = np.unique(values, return_counts=True)
            if name in sizes or len(known) <= FEW:
                self.parts[name] = (known if name not in sizes else np.arange(sizes[name]), None, None)
                continue
            piles = known[counts >= PILE * len(values)]
            plain = values[~np.isin(values, piles)].astype(np.float64)
            rng = np.random.default_rng(SEED)
            part = ScoreCoding.of(plain) if kind == "scores" else ModeCoding.of(plain, rng, 10)
            self.parts[name] = (piles, part, plain)

    def table(self, columns):
        from discreet.networks.tables import CodedTable

        rng = np.random.default_rng(SEED)
        numbers, codes, sizes, conditions = [], [], [], []
        for name, (known, part, plain) in self.parts.items():
            values = columns[name]
            state = np.searchsorted(known, values) if part is None else np.zeros(len(values), dtype=np.int64)
            if part is not None:
                for at, pile in enumerate(known):
                    state[values == pile] = at + 1
            if part is None or len(known):
                conditions.append(len(sizes))
                codes.append(state)
                sizes.append(len(known) + (part is not None))
            if part is None:
                continue
            own = np.where(state == 0, values, rng.choice(plain, len(values))).astype(np.float64)
            made = part.encode(own, rng)
            if isinstance(made, tuple):
                codes.append(made[1])
                sizes.append(part.size)
                made = made[0]
            numbers.append(made)
        return CodedTable(
            np.column_stack(numbers).astype(np.float32),
            np.column_stack(codes).astype(np.int32),
            tuple(sizes),
            tuple(conditions),
        )

    def columns(self, numbers, codes) -> dict[str, np.ndarray]:
        made, number, code = {}, 0, 0
        for name, (known, part, plain) in self.parts.items():
            if part is None:
                made[name], code = known[codes[:, code]], code + 1
                continue
            state = None
            if len(known):
                state, code = codes[:, code], code + 1
            if hasattr(part, "means"):
                values, code = part.decode(numbers[:, number], codes[:, code]), code + 1
            else:
                values = part.decode(numbers[:, number])
            values, number = np.rint(np.clip(values, plain.min(), plain.max())).astype(np.int64), number + 1
            made[name] = values if state is None else np.where(state == 0, values, np.append(0, known)[state])
        return made


class Measured:
    """The real file, and how far a drawn one is from it."""

    def __init__(self, train, test) -> None:
        self.train, self.test = train, test
        self.cuts = {n: np.unique(np.quantile(train[n], np.linspace(0, 1, 11)[1:-1])) for n in NUMBERS}
        self.real = self.cells(train)

    def cells(self, columns):
        return {
            n: np.searchsorted(self.cuts[n], v, side="right") if n in NUMBERS else v
            for n, v in columns.items()
        }

    def of(self, made) -> dict[str, float]:
        drawn = self.cells(made)
        far = {n: distance(self.real[n], drawn[n]) for n in self.real}
        pairs = itertools.combinations(self.real, 2)
        two = [distance(self.real[a] * 100 + self.real[b], drawn[a] * 100 + drawn[b]) for a, b in pairs]
        worst = max(far, key=far.get)
        return {
            "tv1": float(np.mean(list(far.values()))),
            "tv2": float(np.mean(two)),
            "tstr": self.accuracy(made),
            "worst column": f"{worst} {far[worst]:.3f}",
        }

    def accuracy(self, made) -> float:
        inputs = [n for n in made if n != "income"]
        levels = [at for at, n in enumerate(inputs) if n not in NUMBERS]
        learner = HistGradientBoostingClassifier(random_state=0, categorical_features=levels)
        learner.fit(np.column_stack([made[n] for n in inputs]), made["income"])
        right = learner.predict(np.column_stack([self.test[n] for n in inputs])) == self.test["income"]
        return float(right.mean())


def distance(here: np.ndarray, there: np.ndarray) -> float:
    size = int(max(here.max(), there.max())) + 1
    shares = [np.bincount(one, minlength=size) / len(one) for one in (here, there)]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def with_settings(shape, settings: dict[str, float]):
    """The shape with those of the settings that it has."""
    known = {field.name: type(getattr(shape, field.name)) for field in dataclasses.fields(shape)}
    return dataclasses.replace(shape, **{n: known[n](v) for n, v in settings.items() if n in known})


def written(columns, sizes):
    """The columns as tokens, the income first."""
    from discreet.networks.tokens import RowTokenizer, TokenColumn

    order = ["income", *(name for name in columns if name != "income")]
    kinds = [TokenColumn.level(sizes[n]) if n in sizes else TokenColumn.number(columns[n]) for n in order]
    tokenizer = RowTokenizer(kinds)
    tokens = tokenizer.encode(np.column_stack([columns[n] for n in order]))
    tokenizer.learn(tokens)
    return order, tokenizer, tokens


def run(name: str, train, sizes, settings, given):
    """Train one network and draw as many records as it has learned from."""
    import torch

    from discreet.networks import adversarial, autoencoder, diffusion, language
    from discreet.networks.training import Course
    from discreet.networks.training import train as train_network

    short = given.short
    rows = 500 if short else LEARNED
    coding = Coding(train, sizes, "scores" if name == "tabular-diffusion" else "modes")
    table = coding.table(train)
    made = {}
    size = {"layers": 2, "width": 64, "heads": 4} if short else {"layers": 12, "width": 768, "heads": 12}
    shapes = {
        "ctgan": (adversarial.GanShape(), 500),
        "tvae": (autoencoder.VaeShape(), 500),
        "tabular-diffusion": (diffusion.DiffusionShape(), 1024),
        "language-model": (language.LanguageShape(**size, learning_rate=3e-4, dropout=0.1), 256),
    }
    shape, batch = shapes[name]
    shape, batch = with_settings(shape, settings), int(settings.get("batch", batch))
    order, tokenizer, tokens = written(train, sizes) if name == "language-model" else ([], None, None)

    def make(on):
        if name == "ctgan":
            made["it"] = adversarial.GanTrainer(table, shape, batch, on)
        elif name == "tvae":
            made["it"] = autoencoder.VaeTrainer(table, shape, batch, on)
        elif name == "tabular-diffusion":
            made["it"] = diffusion.DiffusionTrainer(table, shape, batch, on)
        else:
            made["it"] = language.LanguageTrainer(tokens, tokenizer, shape, batch=batch, device=on)
        return made["it"]

    epochs = given.epochs or (1 if short else 100 if name == "language-model" else 300)
    _, report = train_network(make, Course(epochs, batch, seed=SEED, device=given.device, time_limit=540.0))
    trainer = made["it"]
    began = time.perf_counter()
    if name == "ctgan":
        drawn = adversarial.sample_gan(
            trainer.average, trainer.asked, trainer.records.blocks, trainer.shape, rows, seed=SEED
        )
    elif name == "tvae":
        drawn = autoencoder.sample_vae(
            trainer.decoder, trainer.records.blocks, trainer.shape, rows, seed=SEED, device=trainer.device
        )
    elif name == "tabular-diffusion":
        drawn = diffusion.sample_diffusion(
            trainer.average, trainer.schedule, trainer.records.blocks, trainer.numbers, rows, seed=SEED
        )
    else:
        start = tokens[np.random.default_rng(SEED).integers(len(tokens), size=rows), : tokenizer.lengths[0]]
        drawn = language.write_rows(trainer.writer, tokenizer, rows, seed=SEED, start=start)
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    about = {
        "device": report.device,
        "torch": torch.__version__,
        "epochs": report.epochs,
        "ended": report.ended,
        "train_seconds": round(report.seconds, 2),
        "records_per_second": round(rows / (time.perf_counter() - began)),
        "parameters": sum(p.numel() for module in trainer.modules().values() for p in module.parameters()),
    }
    if name != "language-model":
        return coding.columns(*drawn), about
    values, good = tokenizer.decode(drawn)
    about["rejected"] = round(float(1 - good.mean()), 5)
    columns = {n: values[good][:, at] for at, n in enumerate(order)}
    return {n: columns[n] for n in train}, about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where to write what was measured")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--set", default="", help="sizes and rates: name=value,name=value")
    parser.add_argument("--short", action="store_true", help="one epoch, to see that it runs")
    given = parser.parse_args()
    columns, sizes = adult()
    train = {n: v[:LEARNED] for n, v in columns.items()}
    measured = Measured(train, {n: v[LEARNED:] for n, v in columns.items()})
    settings = {n: float(v) for n, v in (one.split("=") for one in given.set.split(",") if one)}
    results = {}
    print("network             epochs  seconds  records/s     tv1     tv2    TSTR", flush=True)
    for name in given.models.split(","):
        if name == "independent":
            rng = np.random.default_rng(SEED)
            made, about = {n: rng.permutation(v) for n, v in train.items()}, {}
        else:
            made, about = run(name, train, sizes, settings, given)
        results[name] = {**about, **measured.of(made), "settings": settings}
        one = results[name]
        print(
            f"{name:18s} {one.get('epochs', 0):7d} {one.get('train_seconds', 0.0):8.1f} "
            f"{one.get('records_per_second', 0):10,d} {one['tv1']:7.4f} {one['tv2']:7.4f} {one['tstr']:7.4f}   "
            f"worst: {one['worst column']}   {one.get('device', '')} {given.set}",
            flush=True,
        )
        if given.folder:
            given.folder.mkdir(parents=True, exist_ok=True)
            (given.folder / f"results-{abs(hash(given.set)) % 10**6}.json").write_text(
                json.dumps(results, indent=2)
            )


if __name__ == "__main__":
    sys.exit(main())
