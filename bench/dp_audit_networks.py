"""Do private networks keep what every step of their training claims? The noise is looked at where it is added.

What a trained generator shows of one record is far less than what its training would let through, so the training
itself is audited, as in the literature on noisy gradients (Jagielski, Ullman and Oprea 2020; Nasr and others 2021):
whoever looks sees every noisy sum of gradients, or every noisy count of votes, has fixed the networks as suits them,
and asks whether one record was there. The loop of training is the one of `fit`; only the networks do not learn from it,
so that every step is a run of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from dp_audit_doors import Claim

from discreet import dp, synth
from discreet.dp.entropy import Stream

DELTA = 1e-3
VOTE = 2.0
"""The epsilon of one noisy vote."""
_STEPS = 1000


class _Watched:
    """Networks that stay as they are, and write down what they were told."""

    def __init__(self) -> None:
        import torch

        from discreet.networks.private_adversarial import PrivateGan, PrivateShape
        from discreet.networks.training import own_noise

        with own_noise(1, torch.device("cpu")):
            gan = PrivateGan(
                (2,), np.array([0.5, 0.5]), PrivateShape(noise=1, width=1, critic=1, learning_rate=0.1)
            )
        # Weights for which the gradient of a record is longer than what it is clipped to: the worst there are.
        for own, value in zip(gan.critic.parameters(), (1.0, 1.0, 5.0, -30.0), strict=True):
            own.data.fill_(value)
        self.critic, self.blocks, self.shape = gan.critic, gan.blocks, gan.shape
        self.told: list[Any] = []
        self._records = torch.eye(2)

    def drawn(self, n: int) -> Any:
        """One record of the code 1, which is looked for, to vote on; to learn from, one of them to three others.

        A teacher half of whose real records have the code 1 takes it for real, one who has seen none does not.
        """
        return self._records[[1] if n == 1 else [int(at % 4 == 0) for at in range(n)]]

    def critic_step(self, real: npt.ArrayLike, _: int) -> None:
        self.told.append(real)

    def student_step(self, _: Any, labels: npt.ArrayLike) -> None:
        self.told.append(labels)

    def generator_step(self, n: int) -> None:
        """Learn nothing."""


def noise_multiplier(plan: synth.DPGAN) -> float:
    """The noise of a step in units of the longest gradient."""
    _, _, most, variance = plan._noise(0.0)
    return math.sqrt(variance) / most


def noisy_gradients(plan: synth.DPGAN, records: int, runs: int) -> npt.ArrayLike:
    """How far the noisy sum of gradients lies in the direction of the record looked for, one step a run."""
    from discreet.networks.private_adversarial import Gradients

    gan = _Watched()
    _, share, most, _ = plan._noise(0.0)
    own = Gradients(gan.critic, gan.blocks.starts.numpy(), most).total(np.ones((1, 1), dtype=np.int64))
    codes = np.ones((records, 1), dtype=np.int64)
    public = 8.0  # the number of records as far as it is known, the same for both files
    while len(gan.told) < runs:
        plan._train(gan, codes, public, 0.0, Stream(1, "dpgan", seeded=False), progress=False)
    sums = np.rint(np.stack(gan.told[:runs]) * (most * max(share * public, 1.0)))
    return (sums @ own.astype(np.float64)).astype(np.float64)


def noisy_votes(plan: synth.PATEGAN, records: int, runs: int) -> npt.ArrayLike:
    """The noisy number of votes for a record like the one looked for, one step a run."""
    from discreet.synth import private_gans

    gan = _Watched()
    counted: list[float] = []
    majority = private_gans._majority

    def watched(votes: Any, teachers: int) -> Any:
        counted.append(float(votes[0]))
        return majority(votes, teachers)

    codes = np.array([[0]] + [[1]] * records)
    private_gans._majority = watched
    try:
        while len(counted) < runs:
            rho = plan.steps * dp.largest_rho(VOTE, DELTA)
            plan._train(gan, codes, 8.0, rho, Stream(1, "pategan", seeded=False), progress=False)
    finally:
        private_gans._majority = majority
    return np.asarray(counted[:runs])


DPGAN = synth.DPGAN(200.0, delta=DELTA, steps=_STEPS, rate=0.5, critic=1, width=1, noise=1)
PATEGAN = synth.PATEGAN(200.0, delta=DELTA, steps=_STEPS, teachers=1, questions=1, critic=1, width=1, noise=1)


def claims() -> dict[str, Claim]:
    """What one step claims, and the pair of files that puts it to the test: with the record looked for, or without."""
    share = DPGAN._noise(0.0)[1]
    step = dp.subsampled_gaussian_epsilon(noise_multiplier(DPGAN), share, 1, DELTA)
    return {
        "DPGAN, one noisy gradient": Claim(
            lambda records, runs: noisy_gradients(DPGAN, records, runs), (0, 1), step, DELTA
        ),
        "PATEGAN, one noisy vote": Claim(
            lambda records, runs: noisy_votes(PATEGAN, records, runs), (0, 1), VOTE, DELTA
        ),
    }
