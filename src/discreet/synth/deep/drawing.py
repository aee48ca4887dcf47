"""Build the network of a model again and draw from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.core.arrays import Array, Codes, Floats, Singles
from discreet.core.errors import load_extra

if TYPE_CHECKING:
    from discreet.synth.deep.fitted_network import FittedNetwork


def draw_from(
    model: FittedNetwork, n: int, seed: int, asked: tuple[int, Floats] | None
) -> tuple[Singles, Codes]:
    """Draw n records from a trained network: numbers and codes."""
    torch = load_extra("torch", extra="deep", purpose=f"Drawing from {model.kind}")
    from discreet.networks.training import chosen_device, drawing_memory_told, put_weights, quiet_threads

    device = chosen_device(model.device)
    sizes, numbers = model.coding.sizes, model.coding.numbers
    with drawing_memory_told(), quiet_threads(1):
        if model.kind in ("ctgan", "dpgan", "pategan"):
            from discreet.networks.adversarial import Asked, GanShape, Generator, sample_gan
            from discreet.networks.blocks import Blocks

            shape = GanShape(**model.shape)
            conditions = Asked(
                sizes, model.coding.conditions if model.kind == "ctgan" else (), model.shares, model.rows
            )
            conditions = conditions.to(device)
            generator = Generator(shape, conditions.width, numbers + sum(sizes)).to(device)
            put_weights({"average": generator}, _part(model, "average"))
            wanted = None
            if asked is not None and asked[0] in conditions.columns:
                wanted = (conditions.columns.index(asked[0]), asked[1])
            return sample_gan(
                generator, conditions, Blocks(sizes, device), shape, n, seed=seed, wanted=wanted
            )
        if model.kind == "tvae":
            from discreet.networks.autoencoder import Decoder, VaeShape, sample_vae
            from discreet.networks.blocks import Blocks

            vae = VaeShape(**model.shape)
            decoder = Decoder(numbers, numbers + sum(sizes), vae).to(device)
            put_weights({"decoder": decoder}, _part(model, "decoder"))
            return sample_vae(decoder, Blocks(sizes, device), vae, n, seed=seed, device=device)
        if model.kind != "tabular-diffusion":
            raise ValueError("a network of an unknown kind")
        from discreet.networks.blocks import Blocks
        from discreet.networks.diffusion import Denoiser, DiffusionShape, Schedule, sample_diffusion

        form = DiffusionShape(**model.shape)
        denoiser = Denoiser(numbers + sum(sizes), form).to(device)
        put_weights({"average": denoiser}, _part(model, "average"))
        blocks = Blocks(sizes, device)
        fixed = None
        if asked is not None:
            column, chances = asked
            start = int(np.sum(sizes[:column]))
            drawn = np.random.default_rng(seed).choice(len(chances), n, p=chances)
            one_hot = np.zeros((n, len(chances)), dtype=np.float32)
            one_hot[np.arange(n), drawn] = 1.0
            fixed = (slice(start, start + len(chances)), torch.from_numpy(one_hot).to(device))
        return sample_diffusion(
            denoiser,
            Schedule(form.steps).to(device),
            blocks,
            numbers,
            n,
            seed=seed,
            mixed_precision=form.mixed_precision,
            fixed=fixed,
        )


def _part(model: FittedNetwork, name: str) -> dict[str, Array]:
    """Return the weights of one of the networks that were trained together."""
    return {key: value for key, value in model.weights.items() if key.startswith(f"{name}/")}
