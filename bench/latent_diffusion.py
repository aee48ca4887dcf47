"""Is diffusion among the points of an autoencoder better than diffusion on the columns themselves? Adult.

The score-based variant of Zhang and others (2024): an autoencoder that is told to reproduce records rather than to fill
its space evenly, then a denoiser of its points, trained and drawn from as Karras and others (2022) do. Run beside
`deep_on_gpu`, whose coding and measures it takes: ``tabular-diffusion`` there is what it has to beat.

    PYTHONPATH=src python bench/latent_diffusion.py [FOLDER] [--epochs 300] [--variants 64:10,64:100,128:100]

A variant is the number of coordinates of a point and how much reproducing counts beside the order of the space.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import numpy as np
from deep_on_gpu import LEARNED, SEED, Coding, Measured, adult

DATA_SPREAD, LOWEST, HIGHEST, BEND = 0.5, 0.002, 80.0, 7.0
STEPS, BLOCK = 50, 20_000


def coded_points(table, shape, epochs: int, device: str):
    """Train the autoencoder; return its trainer and the middle of every record's point."""
    import torch

    from discreet.networks.autoencoder import VaeTrainer
    from discreet.networks.training import Course, train

    made = {}

    def make(on):
        made["it"] = VaeTrainer(table, shape, 500, on)
        return made["it"]

    _, report = train(make, Course(epochs, 500, seed=SEED, device=device))
    trainer = made["it"]
    with torch.inference_mode():
        rows = torch.arange(len(table), device=trainer.device).split(BLOCK)
        points = torch.cat([trainer.encoder(trainer.records.dense(part))[0] for part in rows])
    return trainer, points, report


def denoiser(width: int, latent: int, device):
    """The network of `TabularDiffusion`, for points instead of records."""
    from discreet.networks.diffusion import Denoiser, DiffusionShape

    return Denoiser(latent, DiffusionShape(width=width, layers=4)).to(device)


def denoised(network, noisy, spread):
    """Return the clean points that the network takes the noisy ones for."""
    whole = (spread**2 + DATA_SPREAD**2).sqrt()
    raw = network(noisy / whole, 250 * spread[:, 0].log())
    return DATA_SPREAD**2 / whole**2 * noisy + spread * DATA_SPREAD / whole * raw


def learned_score(points, width: int, epochs: int, batch: int = 1024):
    """Train the denoiser of points; return a slow average of it."""
    import torch

    from discreet.networks.training import Average, Recorded, adam, set_rate

    torch.manual_seed(SEED)
    network = denoiser(width, points.shape[1], points.device)
    slow, rate = Average(network, 0.999), 1e-3
    optimizer = adam(network.parameters(), points.device, lr=rate)

    def learn():
        clean = points[torch.randint(len(points), (batch,), device=points.device)]
        spread = torch.exp(1.2 * torch.randn(batch, 1, device=points.device) - 1.2)
        made = denoised(network, clean + spread * torch.randn_like(clean), spread)
        weight = (spread**2 + DATA_SPREAD**2) / (spread * DATA_SPREAD) ** 2
        loss = (weight * (made - clean) ** 2).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach()}

    step = Recorded(learn, points.device)
    count = epochs * (len(points) // batch)
    for at in range(count):
        if at % 100 == 0:
            set_rate(optimizer, rate * min(1.0, 2 * (1 - at / count)))
        step()
        slow.follow()
    return slow.network


def drawn_points(network, n: int, latent: int, device):
    """Draw points: from noise along Heun's steps."""
    import torch

    places = torch.linspace(0, 1, STEPS, device=device)
    ladder = (HIGHEST ** (1 / BEND) + places * (LOWEST ** (1 / BEND) - HIGHEST ** (1 / BEND))) ** BEND
    ladder = [*ladder, ladder.new_zeros(())]
    points = torch.randn(n, latent, device=device) * ladder[0]
    for now, then in itertools.pairwise(ladder):
        slope = (points - denoised(network, points, now.expand(n, 1))) / now
        ahead = points + (then - now) * slope
        if then > 0:
            again = (ahead - denoised(network, ahead, then.expand(n, 1))) / then
            ahead = points + (then - now) * (slope + again) / 2
        points = ahead
    return points


def decoded(trainer, points, *, sharp: bool):
    """Draw the columns of records from the laws at their points; sharp numbers are the middles of theirs."""
    import torch

    raw = trainer.decoder(points)
    width = trainer.numbers
    numbers = torch.tanh(raw[:, :width])
    if not sharp:
        numbers = numbers + torch.randn_like(numbers) * trainer.decoder.spreads
    blocks = trainer.records.blocks
    codes = blocks.drawn(blocks.softmax(raw[:, width:]))
    return numbers.clamp(-1, 1).cpu().numpy(), codes.cpu().numpy().astype(np.int32)


def run(latent: int, fit_weight: float, train, sizes, given):
    """Train both networks and draw as many records as were learned from."""
    import torch

    from discreet.networks.autoencoder import VaeShape

    coding = Coding(train, sizes, "modes")
    table = coding.table(train)
    shape = VaeShape(latent=latent, fit_weight=fit_weight, width=512)
    trainer, points, report = coded_points(table, shape, given.epochs, given.device)
    print(f"  encoded after {report.seconds:.1f} s", flush=True)
    middle, spread = points.mean(0), points.std(0).clamp(min=1e-6) / DATA_SPREAD
    began = time.perf_counter()
    network = learned_score((points - middle) / spread, 1024, given.epochs)
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    learned = time.perf_counter()
    print(f"  denoiser of points learned after {learned - began:.1f} s", flush=True)
    with torch.inference_mode():
        made = torch.cat(
            [
                drawn_points(network, min(BLOCK, LEARNED - at), latent, trainer.device)
                for at in range(0, LEARNED, BLOCK)
            ]
        )
        drawn = decoded(trainer, made * spread + middle, sharp=False)
        over = time.perf_counter()
        again = decoded(trainer, points, sharp=False)
    return (
        coding.columns(*drawn),
        coding.columns(*again),
        {
            "device": report.device,
            "train_seconds": report.seconds + learned - began,
            "records_per_second": round(LEARNED / (over - learned)),
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--variants", default="32:10,64:10,64:100")
    given = parser.parse_args()
    columns, sizes = adult()
    train = {n: v[:LEARNED] for n, v in columns.items()}
    measured = Measured(train, {n: v[LEARNED:] for n, v in columns.items()})
    results = {}
    print(
        "coordinates:weight   seconds  records/s     tv1     tv2    TSTR   (tv2 of records only encoded)",
        flush=True,
    )
    for variant in given.variants.split(","):
        latent, weight = variant.split(":")
        made, again, about = run(int(latent), float(weight), train, sizes, given)
        one = results[variant] = {**about, **measured.of(made), "tv2 encoded": measured.of(again)["tv2"]}
        print(
            f"{variant:18s} {one['train_seconds']:9.1f} {one['records_per_second']:10,d} {one['tv1']:7.4f} "
            f"{one['tv2']:7.4f} {one['tstr']:7.4f}   {one['tv2 encoded']:.4f}   worst: {one['worst column']}",
            flush=True,
        )
        if given.folder:
            given.folder.mkdir(parents=True, exist_ok=True)
            (given.folder / "latent.json").write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    sys.exit(main())
