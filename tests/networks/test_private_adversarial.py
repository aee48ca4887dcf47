"""What one record can change in what a private network reads: never more than the noise is made for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet.networks.private_adversarial import (  # noqa: E402
    Gradients,
    PrivateGan,
    PrivateShape,
    Teachers,
    critic_of,
    drawn_codes,
)

SIZES = (2, 3, 4)
STARTS = np.array([0, 2, 5])
SHAPE = PrivateShape(noise=4, width=8, critic=5)
RNG = np.random.default_rng(3)
CODES = np.column_stack([RNG.integers(0, size, 40) for size in SIZES])


def critic(seed, scale=1.0):
    torch.manual_seed(seed)
    made = critic_of(SHAPE, sum(SIZES))
    with torch.no_grad():
        for own in made.parameters():
            own.mul_(scale)
    return made


def test_the_sum_of_gradients_is_that_of_the_loss_where_nothing_is_clipped():
    own, most = critic(1, 0.3), 2**20
    inputs = torch.zeros(len(CODES), sum(SIZES)).scatter_(1, torch.from_numpy(CODES + STARTS), 1.0)
    torch.nn.functional.softplus(-own(inputs)).sum().backward()
    by_torch = np.concatenate([one.grad.numpy().ravel() for one in own.parameters()])
    found = Gradients(own, STARTS, most).total(CODES) / most
    assert found == pytest.approx(by_torch, abs=2e-2)  # the table of the slope has steps of 1/1024


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([0.1, 1.0, 30.0, 1e12, 1e300]),
    rows=st.lists(st.integers(0, 39), min_size=1, max_size=8),
    most=st.sampled_from([16, 1024, 8192]),
)
def test_a_record_adds_no_more_than_allowed_and_the_same_in_any_company(seed, scale, rows, most):
    gradients = Gradients(critic(seed, scale), STARTS, most)
    alone = [gradients.total(CODES[[row]]) for row in rows]
    for own in alone:
        assert int((own.astype(object) ** 2).sum()) <= most**2
    assert (gradients.total(CODES[rows]) == sum(alone)).all()


def test_no_records_add_nothing():
    assert not Gradients(critic(1), STARTS, 64).total(CODES[:0]).any()


def test_a_record_more_changes_one_teacher_and_a_vote_by_one():
    records = torch.zeros(len(CODES), sum(SIZES)).scatter_(1, torch.from_numpy(CODES + STARTS), 1.0)
    whose = np.arange(39) % 6

    def taught(rows):
        torch.manual_seed(4)
        parts = [np.flatnonzero(whose[: min(rows, 39)] == one) for one in range(6)]
        if rows == 40:
            parts[2] = np.append(parts[2], 39)
        teachers = Teachers(parts, records, SHAPE)
        asked = torch.softmax(5 * torch.randn(30, sum(SIZES)), 1)
        votes = []
        for _ in range(5):
            teachers.learn(asked, 7)
            votes.append(teachers.votes(asked))
        return teachers, np.concatenate(votes)

    (one, before), (more, after) = taught(39), taught(40)
    assert np.abs(before - after).max() <= 1
    others = [place for place in range(6) if place != 2]
    assert torch.equal(one.first[others], more.first[others])
    assert not torch.equal(one.first[2], more.first[2])


def test_a_teacher_without_records_does_no_harm():
    records = torch.eye(sum(SIZES))
    teachers = Teachers([np.arange(9), np.empty(0, np.int64)], records, SHAPE)
    teachers.learn(records, 4)
    assert np.isin(teachers.votes(records), [0, 1, 2]).all()


def test_a_generator_keeps_shares_that_are_known():
    torch.manual_seed(1)
    shares = np.array([0.9, 0.1, 0.2, 0.3, 0.5, 0.7, 0.1, 0.1, 0.1])
    gan = PrivateGan(
        SIZES, shares, PrivateShape(noise=8, width=16, critic=4, match=100.0, learning_rate=0.01)
    )
    for _ in range(150):
        gan.generator_step(128)
    codes = drawn_codes(gan.shape, gan.weights(), SIZES, 4000, seed=1)
    found = np.concatenate(
        [np.bincount(codes[:, at], minlength=size) / 4000 for at, size in enumerate(SIZES)]
    )
    assert found == pytest.approx(shares, abs=0.08)
