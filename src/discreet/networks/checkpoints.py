"""The state of a training in one file: weights, optimizers and random numbers, so that it can go on where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from discreet.core.errors import InputError
from discreet.networks.stepping import plain_groups, take_groups

if TYPE_CHECKING:
    from discreet.networks.training import Course, Report, Trainer

_FORMAT = "discreet checkpoint 1"


def keep_checkpoint(trainer: Trainer, course: Course, report: Report) -> None:
    """Write weights, optimizers and the state of the random numbers to one file, whole or not at all."""
    from safetensors.torch import save

    tensors = {f"weights/{key}": torch.from_numpy(value) for key, value in trainer.weights().items()}
    plain: dict[str, Any] = {}
    for name, optimizer in trainer.optimizers().items():
        state = optimizer.state_dict()
        plain[name] = {"groups": plain_groups(optimizer)}
        for number, entries in state["state"].items():
            for key, value in entries.items():
                tensors[f"optimizer/{name}/{number}/{key}"] = (
                    torch.as_tensor(value).detach().cpu().contiguous()
                )
    tensors["random/cpu"] = torch.get_rng_state()
    if trainer.device.type == "cuda":
        tensors["random/cuda"] = torch.cuda.get_rng_state(trainer.device)
    about = {
        "format": _FORMAT,
        "epochs": report.epochs,
        "seconds": report.seconds,
        "seed": course.seed,
        "batch": course.batch,
        "optimizers": plain,
        "losses": report.losses,
        "held_out": report.held_out,
    }
    place = Path(str(course.checkpoint))
    draft = place.with_name(f"{place.name}.{os.getpid()}.part")
    draft.write_bytes(save(tensors, metadata={"discreet": json.dumps(about)}))
    draft.replace(place)


def resumed(trainer: Trainer, course: Course, report: Report) -> int:
    """Take up a checkpoint where there is one; return the epoch to go on with."""
    if not course.checkpoint or not Path(course.checkpoint).exists():
        return 0
    from safetensors import SafetensorError, safe_open

    place = Path(course.checkpoint)
    refused = InputError(
        f"'{place.name}' is no checkpoint of this training, or it is damaged. Remove it, or name another file as "
        "checkpoint."
    )
    try:
        with safe_open(place, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("discreet", "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - no mapping
        if about.get("format") != _FORMAT or (about["seed"], about["batch"]) != (
            course.seed,
            course.batch,
        ):
            raise refused
        trainer.take_weights(
            {
                key.removeprefix("weights/"): value.numpy()
                for key, value in tensors.items()
                if key.startswith("weights/")
            }
        )
        for name, optimizer in trainer.optimizers().items():
            states: dict[int, dict[str, torch.Tensor]] = {}
            for key, value in tensors.items():
                if key.startswith(f"optimizer/{name}/"):
                    number, entry = key.removeprefix(f"optimizer/{name}/").split("/")
                    states.setdefault(int(number), {})[entry] = value
            take_groups(optimizer, states, about["optimizers"][name]["groups"])
        torch.set_rng_state(tensors["random/cpu"])
        if trainer.device.type == "cuda" and "random/cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random/cuda"], trainer.device)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise refused from error
    report.losses = list(about["losses"])
    report.held_out = [(int(epoch), float(loss)) for epoch, loss in about["held_out"]]
    report.seconds = float(about["seconds"])
    report.epochs = int(about["epochs"])
    trainer.resumed(report.epochs)
    return report.epochs
