"""How any of the networks is trained: seeds, devices, held-out records, checkpoints, limits of time, what went wrong.

A trainer is a network with a step; this module knows nothing of what the step does. Everything that decides the bytes
of a model is drawn from one seed on one device: the same seed gives the same model there, as far as the device's own
arithmetic does.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from discreet.core.errors import DiscreetError, InputError, ParameterError

_SOON = 0.1  # of a time limit, before which it says nothing about whether it will be reached
_PART = 0.9  # a checkpoint is kept when this much of the interval has passed


@dataclass(frozen=True)
class Course:
    """How long and how carefully a network is trained.

    Attributes
    ----------
    epochs
        How often every record is seen.
    batch
        How many records a step takes.
    seed
        Of weights, batches and noise.
    device
        ``"auto"`` takes an accelerator where there is one; else as torch names it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
    held_out
        The share of records that are not learned from, to see when learning turns into memorizing; 0 holds none out.
    patience
        Training ends when the loss of the held-out records has not fallen for so many looks; the best state is kept.
    look_every
        How many epochs lie between two looks.
    time_limit
        Seconds after which training ends with what it has; None sets no limit.
    checkpoint
        A file that keeps the state, written every ``checkpoint_every`` seconds and read again by the next run.
    mixed_precision
        Whether an accelerator computes in 16 bits where that does no harm.
    threads
        Processor threads of torch; 1 gives the same bytes on machines with other numbers of cores.
    """

    epochs: int
    batch: int
    seed: int = 0
    device: str = "auto"
    held_out: float = 0.0
    patience: int = 5
    look_every: int = 5
    time_limit: float | None = None
    checkpoint: str | None = None
    checkpoint_every: float = 60.0
    mixed_precision: bool = True
    threads: int = 1


@dataclass
class Report:
    """What happened during training."""

    epochs: int = 0
    seconds: float = 0.0
    losses: list[dict[str, float]] = field(default_factory=list)
    held_out: list[tuple[int, float]] = field(default_factory=list)
    ended: str = "all epochs were run"
    device: str = "cpu"

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "epochs": self.epochs,
            "seconds": round(self.seconds, 3),
            "losses": self.losses[-20:],
            "held_out": [list(look) for look in self.held_out],
            "ended": self.ended,
            "device": self.device,
        }


class Trainer(ABC):
    """A network, its optimizers and one step of its training."""

    device: torch.device
    recordable: ClassVar[bool] = True
    slow: Average | None = None

    @abstractmethod
    def steps_per_epoch(self) -> int:
        """How many steps see every record once."""

    @abstractmethod
    def learn(self) -> dict[str, torch.Tensor]:
        """Learn from the batch at hand and return the losses, left on the device.

        Where ``recordable``, it asks the processor for nothing: no sizes that change, no values that are read.
        """

    def at_hand(self) -> None:  # noqa: B027 - most draw within the step
        """Lay the next batch out where `learn` looks for it."""

    def learned(self) -> None:
        """Take the new state into the average that draws, where there is one."""
        if self.slow is not None:
            self.slow.follow()

    def pace(self, done: float) -> None:  # noqa: B027 - most keep their rate
        """Set the learning rates for a training of which this share is done."""

    @abstractmethod
    def modules(self) -> dict[str, torch.nn.Module]:
        """The networks by name, whose weights are the model."""

    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers by name, whose state goes into a checkpoint."""
        return {}

    def held_out_loss(self) -> float | None:
        """Return the loss of records that were held out; None where the network has no such loss."""
        return None

    def resumed(self, epochs: int) -> None:
        """Count the steps that were taken before the training was stopped."""
        if self.slow is not None:
            self.slow.taken = epochs * self.steps_per_epoch()

    def weights(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the weights as arrays, by name of network and parameter."""
        return {
            f"{name}/{key}": value.detach().to("cpu").numpy().copy()
            for name, module in self.modules().items()
            for key, value in module.state_dict().items()
        }

    def take_weights(self, weights: Mapping[str, Any]) -> None:
        """Put weights back; those of another network are refused."""
        put_weights(self.modules(), weights)


def put_weights(modules: Mapping[str, torch.nn.Module], weights: Mapping[str, Any]) -> None:
    """Give networks the weights of `Trainer.weights`, all of them and no others."""
    wanted = {f"{name}/{key}" for name, module in modules.items() for key in module.state_dict()}
    if wanted != set(weights):
        raise ValueError("weights of another network")
    for name, module in modules.items():
        own = {
            key: torch.from_numpy(np.asarray(weights[f"{name}/{key}"]).copy())
            .to(value.dtype)
            .reshape(value.shape)
            for key, value in module.state_dict().items()
        }
        module.load_state_dict(own)


def chosen_device(name: str) -> torch.device:
    """Return the device of that name, or say that it is not there.

    Examples
    --------
    >>> chosen_device("cpu").type
    'cpu'
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ParameterError(
            f"device '{name}' is none that torch knows. Use 'auto', 'cpu' or 'cuda'."
        ) from error
    there = device.type == "cpu" or (
        device.type == "cuda"
        and torch.cuda.is_available()
        and (device.index or 0) < torch.cuda.device_count()
    )
    if device.type == "mps":
        there = torch.backends.mps.is_available()
    if not there:
        raise ParameterError(f"There is no device '{name}' here. Use device='auto' or 'cpu'.")
    return device


@contextlib.contextmanager
def quiet_threads(threads: int) -> Iterator[None]:
    """Keep torch to so many processor threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(threads, 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def half_precision(
    device: torch.device, *, wanted: bool, recorded: bool = False
) -> contextlib.AbstractContextManager[Any]:
    """Compute in 16 bits where the device is made for it; a step to be recorded converts its weights each time."""
    if wanted and device.type == "cuda" and torch.cuda.is_bf16_supported():
        halved: contextlib.AbstractContextManager[Any] = torch.autocast(
            "cuda", dtype=torch.bfloat16, cache_enabled=not recorded
        )
        return halved
    return contextlib.nullcontext()


def train(
    make: Callable[[torch.device], Trainer],
    course: Course,
    *,
    hear: Callable[[int, int, float], None] | None = None,
    smaller: str = "batch",
) -> tuple[dict[str, np.ndarray[Any, Any]], Report]:
    """Train a network and return its weights and what happened.

    Parameters
    ----------
    make
        Makes the trainer on a device; called once the seed is set.
    course
        How long, where, and with which limits.
    hear
        Called after every epoch with its number, the number of all, and the seconds that are likely to be left.
    smaller
        Which settings to lower where memory runs out, for the message.
    """
    device = chosen_device(course.device)
    report = Report(device=torch.cuda.get_device_name(device) if device.type == "cuda" else device.type)
    torch.manual_seed(course.seed)
    with memory_told(smaller, device), quiet_threads(course.threads):
        trainer = make(device)
        _run(trainer, course, report, hear)
        return trainer.weights(), report


@contextlib.contextmanager
def memory_told(smaller: str, device: torch.device) -> Iterator[None]:
    """Say which settings to lower where memory runs out while a network is trained within the block."""
    elsewhere = "" if device.type == "cpu" else ", or use device='cpu'"
    with _memory_told(
        f"Memory ran out in training. Lower {smaller}, or leave out columns with many levels{elsewhere}."
    ):
        yield


@contextlib.contextmanager
def drawing_memory_told() -> Iterator[None]:
    """Say what to ask for instead where memory runs out while records are drawn within the block."""
    with _memory_told(
        "Memory ran out while records were drawn. Ask for fewer at a time (n), or fit a smaller network (width)."
    ):
        yield


@contextlib.contextmanager
def _memory_told(said: str) -> Iterator[None]:
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise DiscreetError(said) from error
    except RuntimeError as error:
        if "memory" in str(error).lower() and "alloc" in str(error).lower():
            raise DiscreetError(said) from error
        raise


def _run(
    trainer: Trainer, course: Course, report: Report, hear: Callable[[int, int, float], None] | None
) -> None:
    began = time.monotonic()
    first = resumed(trainer, course, report)
    before = report.seconds
    best: tuple[float, dict[str, Any]] | None = None
    idle, saved = 0, began
    learn = Recorded(trainer.learn, trainer.device) if trainer.recordable else trainer.learn
    for epoch in range(first, course.epochs):
        sums: dict[str, torch.Tensor] = {}
        steps = trainer.steps_per_epoch()
        trainer.pace(_done(epoch, course, time.monotonic() - began))
        for _ in range(steps):
            trainer.at_hand()
            for name, loss in learn().items():
                # A replayed step writes its losses where the last one did: only a sum may be kept.
                sums[name] = sums.get(name, 0.0) + loss.detach()
            trainer.learned()
            if course.time_limit is not None and time.monotonic() - began > course.time_limit:
                break
        losses = {name: float(value) / steps for name, value in sums.items()}
        if not all(math.isfinite(value) for value in losses.values()):
            raise DiscreetError(
                f"Training broke down in epoch {epoch + 1}: the loss is no number any more. Lower learning_rate, or "
                "look for numbers of extreme size in the data."
            )
        report.epochs, report.seconds = epoch + 1, before + time.monotonic() - began
        report.losses.append(losses)
        if hear is not None:
            each = (time.monotonic() - began) / (epoch + 1 - first)
            hear(epoch + 1, course.epochs, each * (course.epochs - epoch - 1))
        if course.time_limit is not None and time.monotonic() - began > course.time_limit:
            report.ended = f"the time limit of {course.time_limit:g} seconds was reached"
            break
        if (epoch + 1) % course.look_every == 0:
            loss = trainer.held_out_loss()
            if loss is not None:
                report.held_out.append((epoch + 1, loss))
                if best is None or loss < best[0] - 1e-6 * abs(best[0]):
                    best, idle = (loss, trainer.weights()), 0
                else:
                    idle += 1
                if idle >= course.patience:
                    report.ended = "records that were held out had been learned as far as they go"
                    break
        if course.checkpoint and time.monotonic() - saved > _PART * course.checkpoint_every:
            keep_checkpoint(trainer, course, report)
            saved = time.monotonic()
    if best is not None:
        trainer.take_weights(best[1])
    report.seconds = before + time.monotonic() - began
    if course.checkpoint:
        Path(course.checkpoint).unlink(missing_ok=True)


def _done(epoch: int, course: Course, seconds: float) -> float:
    """Return the share of the training that is over, by epochs or by the time limit, whichever will end it first.

    A clock never ticks twice alike: it counts only where the limit is likely to be reached, so that a limit that is far
    away leaves the bytes of a model to the seed. Early on, when a first epoch sets things up, nobody can tell.
    """
    by_epochs = epoch / course.epochs
    if (
        not course.time_limit
        or seconds < _SOON * course.time_limit
        or seconds <= by_epochs * course.time_limit
    ):
        return by_epochs
    return min(seconds / course.time_limit, 1.0)


# How the steps of a training are taken: at which rate, with whose random numbers, recorded where that can be replayed.
#
# The networks of this room are small. On an accelerator a step of one takes longer to ask for than to compute: some
# hundreds of kernels, each asked for by itself. Where a step needs nothing from the processor it is recorded once and
# replayed as a whole (a CUDA graph); the random numbers of a replay go on where those of the last one ended.
_WARM = 3  # steps before one is recorded: optimizers and libraries set themselves up in the first


def adam(parameters: Any, device: torch.device, *, lr: float, **options: Any) -> torch.optim.Adam:
    """Return the optimizer, its steps in one kernel where the device has it, and fit to be recorded there."""
    recorded = device.type == "cuda"
    rate = torch.tensor(lr, device=device) if recorded else lr
    fused = device.type in ("cpu", "cuda")
    return torch.optim.Adam(parameters, lr=rate, fused=fused, capturable=recorded, **options)


def descended(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """Take one step down a loss, and return it."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


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
        same = about.get("format") == _FORMAT and (about["seed"], about["batch"]) == (
            course.seed,
            course.batch,
        )
        if not same:
            raise refused
        weights = _under(tensors, "weights/")
        trainer.take_weights({key: value.numpy() for key, value in weights.items()})
        for name, optimizer in trainer.optimizers().items():
            states: dict[int, dict[str, torch.Tensor]] = {}
            for key, value in _under(tensors, f"optimizer/{name}/").items():
                number, entry = key.split("/")
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


def _under(tensors: Mapping[str, torch.Tensor], start: str) -> dict[str, torch.Tensor]:
    """Those whose names have a common start, without it."""
    return {key.removeprefix(start): own for key, own in tensors.items() if key.startswith(start)}
