"""How the steps of a training are taken: at which rate, with whose random numbers, recorded where that can be replayed.

The networks of this room are small. On an accelerator a step of one takes longer to ask for than to compute: some
hundreds of kernels, each asked for by itself. Where a step needs nothing from the processor it is recorded once and
replayed as a whole (a CUDA graph); the random numbers of a replay go on where those of the last one ended.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from discreet.core.errors import InputError

if TYPE_CHECKING:
    from discreet.networks.training import Course, Report, Trainer


_WARM = 3  # steps before one is recorded: optimizers and libraries set themselves up in the first


def adam(parameters: Any, device: torch.device, *, lr: float, **options: Any) -> torch.optim.Adam:
    """Return the optimizer, its steps in one kernel where the device has it, and fit to be recorded there."""
    recorded = device.type == "cuda"
    rate = torch.tensor(lr, device=device) if recorded else lr
    fused = device.type in ("cpu", "cuda")
    return torch.optim.Adam(parameters, lr=rate, fused=fused, capturable=recorded, **options)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate; one that a recorded step reads is changed where it lies."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def plain_groups(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """Return the settings of an optimizer, ready for JSON."""
    return [
        {key: float(value) if isinstance(value, torch.Tensor) else value for key, value in group.items()}
        for group in optimizer.state_dict()["param_groups"]
    ]


def take_groups(optimizer: torch.optim.Optimizer, state: dict[int, Any], groups: Sequence[Any]) -> None:
    """Put the state of an optimizer back; a rate that lies on a device stays there."""
    rates = [group["lr"] for group in optimizer.param_groups]
    optimizer.load_state_dict({"state": state, "param_groups": list(groups)})
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(rate, torch.Tensor):
            group["lr"] = rate.fill_(float(group["lr"]))


@contextlib.contextmanager
def own_noise(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from a seed within the block, and go on afterwards as if nothing had been drawn."""
    before = torch.get_rng_state()
    there = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if there is not None:
            torch.cuda.set_rng_state(there, device)


class Average:
    """A slow average of a network, which draws better than the last state of it (Polyak and Juditsky 1992)."""

    def __init__(self, network: nn.Module, slowest: float) -> None:
        self.network = copy.deepcopy(network).requires_grad_(False)
        self.slowest = slowest
        self.taken = 0
        self._own, self._others = (_numbers(one) for one in (self.network, network))

    def follow(self) -> None:
        """Take the newest state in; early on quickly, so that a short training is not held back by its start."""
        self.taken += 1
        slow = min(self.slowest, (1 + self.taken) / (10 + self.taken))
        with torch.no_grad():
            torch._foreach_lerp_(self._own, self._others, 1 - slow)


def _numbers(network: nn.Module) -> list[torch.Tensor]:
    """The weights of a network, and what its layers keep of the batches they have seen."""
    kept = [own for own in network.buffers() if own.is_floating_point()]
    return [*(one.detach() for one in network.parameters()), *kept]


class Recorded:
    """A step that is taken as it is a few times, then recorded and replayed."""

    def __init__(self, learn: Callable[[], dict[str, torch.Tensor]], device: torch.device) -> None:
        self.learn, self.device = learn, device
        self.taken = 0
        self.graph: Any = None
        self.losses: dict[str, torch.Tensor] = {}

    def __call__(self) -> dict[str, torch.Tensor]:
        """Take a step and return its losses, left on the device."""
        if self.device.type != "cuda":
            return self.learn()
        self.taken += 1
        if self.taken <= _WARM:
            return self._aside()
        if self.graph is None:
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.losses = self.learn()
        self.graph.replay()
        return self.losses

    def _aside(self) -> dict[str, torch.Tensor]:
        """Take a step beside the main stream, as recording asks of what goes before it."""
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            losses = self.learn()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        return losses


# The state of a training in one file: weights, optimizers and random numbers, so that it can go on where it was.


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
