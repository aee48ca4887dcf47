"""Training: seeds, checkpoints, early stops, limits, and what is said when something goes wrong."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet.core.errors import DiscreetError, InputError, ParameterError  # noqa: E402
from discreet.networks.autoencoder import VaeShape, VaeTrainer  # noqa: E402
from discreet.networks.diffusion import DiffusionShape, DiffusionTrainer  # noqa: E402
from discreet.networks.tables import CodedTable  # noqa: E402
from discreet.networks.training import (  # noqa: E402
    Course,
    Trainer,
    _done,
    chosen_device,
    own_noise,
    train,
)

RNG = np.random.default_rng(1)
TABLE = CodedTable(
    RNG.uniform(-0.9, 0.9, (60, 2)).astype("f4"), RNG.integers(0, 3, (60, 1)).astype("i4"), (3,), (0,)
)
SHAPE = VaeShape(latent=4, width=8)


def vae(device, held=None):
    return VaeTrainer(TABLE, SHAPE, 20, device, held)


def same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


class Interrupted(Exception):
    pass


def interrupt(at):
    def hear(epoch, epochs, left):
        assert left >= 0
        if epoch == at:
            raise Interrupted

    return hear


def test_the_same_seed_gives_the_same_weights():
    one, _ = train(vae, Course(2, 20, seed=5))
    assert same(one, train(vae, Course(2, 20, seed=5))[0])
    assert not same(one, train(vae, Course(2, 20, seed=6))[0])


def test_a_training_that_was_interrupted_goes_on_where_it_was(tmp_path):
    place = str(tmp_path / "checkpoint")
    whole, _ = train(vae, Course(4, 20, seed=5))
    kept = Course(4, 20, seed=5, checkpoint=place, checkpoint_every=0.0)
    with pytest.raises(Interrupted):
        train(vae, kept, hear=interrupt(3))
    assert (tmp_path / "checkpoint").exists()
    resumed, report = train(vae, kept)
    assert same(whole, resumed)
    assert report.epochs == 4
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    place = tmp_path / "checkpoint"
    with pytest.raises(Interrupted):
        train(vae, Course(4, 20, seed=5, checkpoint=str(place), checkpoint_every=0.0), hear=interrupt(3))
    with pytest.raises(InputError, match="no checkpoint of this training"):
        train(vae, Course(4, 20, seed=6, checkpoint=str(place)))
    place.write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        train(vae, Course(4, 20, seed=5, checkpoint=str(place)))


def test_training_ends_when_held_out_records_get_no_better():
    held = TABLE.take(np.arange(10))
    _, report = train(lambda device: vae(device, held), Course(200, 20, seed=5, look_every=1, patience=2))
    assert report.epochs < 200
    assert "held out" in report.ended


def test_a_time_limit_ends_training_with_what_there_is():
    weights, report = train(vae, Course(10_000, 20, seed=5, time_limit=0.2))
    assert report.epochs < 10_000
    assert "time limit" in report.ended
    assert weights


def test_a_time_limit_that_is_far_away_changes_no_byte():
    def diffusion(device):
        return DiffusionTrainer(TABLE, DiffusionShape(steps=4, width=8), 20, device)

    alone, _ = train(diffusion, Course(4, 20, seed=5))
    assert same(alone, train(diffusion, Course(4, 20, seed=5, time_limit=10_000.0))[0])


@pytest.mark.parametrize(
    ("epoch", "seconds", "share"),
    [(0, 5.0, 0.0), (1, 9.0, 0.1), (5, 40.0, 0.5), (2, 60.0, 0.6), (9, 200.0, 1.0)],
)
def test_the_clock_counts_only_where_the_limit_will_be_reached(epoch, seconds, share):
    assert _done(epoch, Course(10, 20, time_limit=100.0), seconds) == pytest.approx(share)


class Broken(Trainer):
    def __init__(self, device, fault):
        self.device, self.fault = device, fault

    def steps_per_epoch(self):
        return 1

    def modules(self):
        return {"one": torch.nn.Linear(1, 1)}

    def learn(self):
        if isinstance(self.fault, Exception):
            raise self.fault
        return {"loss": torch.tensor(self.fault)}


def test_a_loss_that_is_no_number_ends_training_in_words():
    with pytest.raises(DiscreetError, match="Lower learning_rate"):
        train(lambda device: Broken(device, float("nan")), Course(1, 1))


@pytest.mark.parametrize(
    "fault", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 bytes")]
)
def test_memory_that_runs_out_says_what_to_lower(fault):
    with pytest.raises(DiscreetError, match="Lower batch or width"):
        train(lambda device: Broken(device, fault), Course(1, 1), smaller="batch or width")


def test_other_errors_are_not_taken_for_lack_of_memory():
    with pytest.raises(RuntimeError, match="shapes"):
        train(lambda device: Broken(device, RuntimeError("shapes")), Course(1, 1))


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(ParameterError, match="none that torch knows"):
        chosen_device("toaster")
    if not torch.cuda.is_available():
        with pytest.raises(ParameterError, match="no device 'cuda'"):
            chosen_device("cuda")


def test_the_rate_falls_towards_the_end_and_survives_a_checkpoint(tmp_path):
    made = []

    def make(device):
        made.append(vae(device))
        return made[-1]

    train(make, Course(4, 20, seed=5))
    assert made[0].adam.param_groups[0]["lr"] == pytest.approx(SHAPE.learning_rate / 2)
    kept = Course(4, 20, seed=5, checkpoint=str(tmp_path / "checkpoint"), checkpoint_every=0.0)
    with pytest.raises(Interrupted):
        train(make, kept, hear=interrupt(2))
    train(make, kept)
    assert made[2].adam.param_groups[0]["lr"] == pytest.approx(SHAPE.learning_rate / 2)


def test_drawing_leaves_the_random_numbers_of_training_alone():
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    with own_noise(7, torch.device("cpu")):
        torch.rand(100)
    assert torch.equal(torch.rand(3), wanted)
