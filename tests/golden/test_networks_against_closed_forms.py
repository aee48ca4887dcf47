"""Encodings, losses and laws of the networks against hand values and closed forms.

Sources: synthetic-tabular-ctgan-tabula-sni, section 3.5 (mode-specific normalization, conditional vector, gradient
penalty); Ho, Jain and Abbeel (2020), equations 6 and 7; Hoogeboom and others (2021), equations 11 to 13; Akrami and
others (2022) for the beta-divergence. The expected values are computed by hand or by brute force here.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm

torch = pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet.networks.adversarial import Asked, Critic, asked_loss, slope_penalty  # noqa: E402
from discreet.networks.autoencoder import fit_loss, normal_divergence  # noqa: E402
from discreet.networks.blocks import Blocks  # noqa: E402
from discreet.networks.diffusion import Schedule, even_chances  # noqa: E402
from discreet.networks.tables import ModeCoding, ScoreCoding  # noqa: E402
from discreet.synth.column_forms import Variable  # noqa: E402
from discreet.synth.deep_model import LevelCoding  # noqa: E402

CPU = torch.device("cpu")


def test_a_number_is_its_place_within_four_spreads_of_its_mode():
    coding = ModeCoding(np.array([3.0, 1000.0]), np.array([1.0, 10.0]), np.array([0.5, 0.5]))
    places, modes = coding.encode(np.array([5.0, 990.0, 3.0]), np.random.default_rng(1))
    assert modes.tolist() == [0, 1, 0]
    assert places.tolist() == [0.5, -0.25, 0.0]
    assert coding.decode(places, modes).tolist() == [5.0, 990.0, 3.0]
    far, _ = ModeCoding(np.zeros(1), np.ones(1), np.ones(1)).encode(np.array([9.0]), np.random.default_rng(1))
    assert far[0] == pytest.approx(0.99)


def test_modes_of_two_hills_are_found_and_empty_ones_dropped():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0, 1, 500), rng.normal(100, 1, 500)])
    coding = ModeCoding.of(values, rng, 10)
    assert coding.size < 10
    assert coding.weights.sum() == pytest.approx(1)
    heavy = coding.means[coding.weights > 0.1]
    assert heavy.min() == pytest.approx(0, abs=2)
    assert heavy.max() == pytest.approx(100, abs=2)


def test_normal_scores_are_quantiles_of_ranks_and_ties_share_a_range_of_them():
    coding = ScoreCoding.of(np.array([10.0, 20.0, 20.0, 30.0]))
    rng = np.random.default_rng(1)
    assert coding.encode(np.array([10.0, 30.0]), rng) == pytest.approx(norm.ppf([1 / 8, 7 / 8]), rel=1e-6)
    tied = norm.cdf(coding.encode(np.full(200, 20.0), rng))
    assert ((tied > 1 / 4) & (tied < 3 / 4)).all()
    assert tied.std() > 0.1
    # The whole range leads back to the value, the middle between two others to their middle.
    assert coding.decode(norm.ppf([0.26, 0.5, 0.74]).astype("f4")).tolist() == [20.0, 20.0, 20.0]
    assert coding.decode(norm.ppf([(1 / 8 + 1 / 4) / 2]).astype("f4"))[0] == pytest.approx(15.0, abs=0.01)


def test_rare_levels_share_a_code_and_come_back_by_frequency():
    codes = np.repeat(np.arange(4), [60, 30, 8, 2]).astype(np.int32)
    coding = LevelCoding.of(Variable("c", codes, levels=4), None, 3)
    assert coding.size == 3
    assert coding.encode(np.array([0, 1, 2, 3], "i4")).tolist() == [0, 1, 2, 2]
    back = coding.decode(np.full(10_000, 2, "i4"), np.random.default_rng(1))
    assert (back == 2).mean() == pytest.approx(0.8, abs=0.02)


def test_conditions_ask_for_levels_by_the_logarithm_of_their_frequency():
    shares = [np.array([0.9, 0.1]), np.array([0.5, 0.25, 0.25])]
    asked = Asked((2, 3), (0, 1), shares, 100)
    torch.manual_seed(3)
    column, level = asked.draw(40_000, training=True)
    assert float((column == 0).float().mean()) == pytest.approx(0.5, abs=0.01)
    first = level[column == 0]
    expected = math.log(1 + 10) / (math.log(1 + 90) + math.log(1 + 10))
    assert float((first == 1).float().mean()) == pytest.approx(expected, abs=0.01)
    column, level = asked.draw(40_000, training=False)
    assert float((level[column == 0] == 1).float().mean()) == pytest.approx(0.1, abs=0.01)
    vector = asked.vector(torch.tensor([1, 0]), torch.tensor([2, 1]))
    assert vector.tolist() == [[0, 0, 0, 0, 1], [0, 1, 0, 0, 0]]


def test_the_penalty_of_a_linear_critic_is_known():
    critic = Critic(2, pack=2, width=1, layers=1, dropout=0.0)
    with torch.no_grad():
        critic.body[0].weight.copy_(torch.tensor([[0.6, 0.8, 0.6, 0.8]]))
        critic.body[0].bias.fill_(100.0)  # far from the bend
        critic.body[3].weight.fill_(1.0)
    _, _, slopes = critic.both(torch.randn(6, 2), torch.randn(6, 2))
    assert slopes.shape == (3, 4)
    assert float(slope_penalty(slopes, 10.0)) == pytest.approx(10 * (math.sqrt(2) - 1) ** 2, rel=1e-5)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_penalty_and_its_gradient_are_those_of_differentiating_twice(layers):
    torch.manual_seed(layers)
    critic = Critic(3, pack=2, width=8, layers=layers, dropout=0.5).eval()
    fake, real = torch.randn(10, 3), torch.randn(10, 3)
    torch.manual_seed(7)
    drawn, true, slopes = critic.both(fake, real)
    slope_penalty(slopes, 10.0).backward()
    ours = [None if one.grad is None else one.grad.clone() for one in critic.parameters()]
    critic.zero_grad()
    torch.manual_seed(7)
    mix = torch.rand(5, 1).repeat_interleave(2, 0)
    between = (fake + mix * (real - fake)).requires_grad_(True)
    twice = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0].reshape(5, -1)
    slope_penalty(twice, 10.0).backward()
    assert torch.allclose(slopes, twice, atol=1e-6)
    assert torch.allclose(drawn, critic(fake), atol=1e-6)
    assert torch.allclose(true, critic(real), atol=1e-6)
    for own, one in zip(ours, critic.parameters(), strict=True):
        wanted = torch.zeros_like(one) if one.grad is None else one.grad
        assert torch.allclose(torch.zeros_like(one) if own is None else own, wanted, atol=1e-5)


def test_gradients_of_the_chances_within_blocks_are_those_of_each_block_alone():
    blocks = Blocks((2, 1, 4), CPU)
    torch.manual_seed(3)
    logits = torch.randn(5, 7)
    above = torch.randn(5, 7)
    for whole, alone in ((blocks.softmax, torch.softmax), (blocks.log_softmax, torch.log_softmax)):
        own, other = (logits.clone().requires_grad_(True) for _ in range(2))
        made = whole(own)
        wanted = torch.cat([alone(part, 1) for part in other.split((2, 1, 4), 1)], 1)
        assert torch.allclose(made, wanted, atol=1e-6)
        (made * above).sum().backward()
        (wanted * above).sum().backward()
        assert torch.allclose(own.grad, other.grad, atol=1e-6)


def test_the_loss_of_what_was_asked_is_the_cross_entropy_of_its_column():
    blocks = Blocks((2, 3), CPU)
    logits = torch.tensor([[0.0, 0.0, 1.0, 2.0, 3.0]])
    found = asked_loss(logits, blocks, torch.tensor([0, 1]), torch.tensor([1]), torch.tensor([2]))
    by_hand = -math.log(math.exp(3) / (math.exp(1) + math.exp(2) + math.exp(3)))
    assert float(found) == pytest.approx(by_hand, rel=1e-5)


def test_softmax_of_blocks_bears_logits_of_very_different_size():
    blocks = Blocks((2, 2), CPU)
    chances = blocks.softmax(torch.tensor([[1000.0, 1000.0, -1000.0, -1001.0]]))
    assert chances[0].tolist() == pytest.approx([0.5, 0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.e)])


def test_losses_of_the_autoencoder_on_fixed_tensors():
    blocks = Blocks((2,), CPU)
    raw, numbers, codes = torch.zeros(1, 3), torch.tensor([[0.5]]), torch.tensor([[1]])
    spreads = torch.tensor([0.1])
    usual = float(fit_loss(raw, numbers, codes, spreads=spreads, blocks=blocks))
    assert usual == pytest.approx(12.5 + math.log(0.1) + math.log(2), rel=1e-5)
    # As beta goes to 0 the beta-cross-entropy becomes the log-loss, plus one for each column.
    robust = float(fit_loss(raw, numbers, codes, spreads=spreads, blocks=blocks, beta=1e-3))
    assert robust == pytest.approx(usual + 0.5 * math.log(2 * math.pi) + 2, rel=2e-2)
    # Far away it stays where it is.
    far = float(fit_loss(raw, torch.tensor([[50.0]]), codes, spreads=spreads, blocks=blocks, beta=0.5))
    near = float(fit_loss(raw, torch.tensor([[5.0]]), codes, spreads=spreads, blocks=blocks, beta=0.5))
    assert far == pytest.approx(near)
    # -(1 + b)/b (p^b - 1) + sum p^(1 + b) for p = 1/2 twice and b = 1: -2 (1/2 - 1) + 1/2.
    none = fit_loss(
        torch.zeros(1, 2), torch.empty(1, 0), codes, spreads=torch.empty(0), blocks=blocks, beta=1.0
    )
    assert float(none) == pytest.approx(1.5)


def test_divergence_from_the_standard_normal_law():
    found = normal_divergence(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, math.log(4)]]))
    assert float(found) == pytest.approx(0.5 + 0.5 * (4 - 1 - math.log(4)), rel=1e-6)


def test_the_law_of_a_number_one_step_earlier_is_the_product_of_two_normal_laws():
    schedule = Schedule(20)
    at = torch.tensor([7])
    alpha, before = float(schedule.alpha[7]), float(schedule.before[7])
    noisy, clean = 0.3, -1.2
    mean, variance = schedule.number_posterior(torch.tensor([[noisy]]), torch.tensor([[clean]]), at)
    precision = alpha / (1 - alpha) + 1 / (1 - before)
    middle = (math.sqrt(alpha) * noisy / (1 - alpha) + math.sqrt(before) * clean / (1 - before)) / precision
    assert float(variance) == pytest.approx(1 / precision, rel=1e-4)
    assert float(mean) == pytest.approx(middle, rel=1e-4)


def test_the_law_of_a_level_one_step_earlier_is_that_of_the_markov_chain():
    schedule, blocks, size = Schedule(20), Blocks((3,), CPU), 3
    even = even_chances(blocks)
    steps = [a * np.eye(size) + (1 - a) / size for a in schedule.alpha.numpy().astype(float)]
    upto = np.linalg.multi_dot(steps[:7])
    for clean in range(size):
        for noisy in range(size):
            by_hand = upto[clean] * steps[7][:, noisy]
            found = schedule.level_posterior(
                torch.eye(size)[[noisy]], torch.eye(size)[[clean]], torch.tensor([7]), even, blocks
            )
            assert found[0].numpy() == pytest.approx(by_hand / by_hand.sum(), rel=1e-4)
    chances = schedule.noisy_chances(torch.eye(size)[[1]], torch.tensor([6]), even)
    assert chances[0].numpy() == pytest.approx(upto[1], rel=1e-4)


def test_levels_drawn_back_through_all_steps_come_as_often_as_in_the_file():
    """With chances of clean levels that are exactly right, undoing the noise gives the shares of the file (Bayes)."""
    size, shares = 3, np.array([0.9, 0.08, 0.02])
    schedule, blocks = Schedule(20), Blocks((size,), CPU)
    even = even_chances(blocks)
    law = np.full(size, 1 / size)
    for at in range(19, -1, -1):
        kept = float(schedule.kept[at])
        likely = kept * np.eye(size) + (1 - kept) / size  # of a noisy level (column) given a clean one (row)
        clean = shares[:, None] * likely
        clean = torch.from_numpy((clean / clean.sum(0)).T).float()
        back = clean
        if at:
            step = torch.full((size,), at)
            back = schedule.level_posterior(torch.eye(size), clean, step, even, blocks)
        law = law @ back.numpy()
    assert law == pytest.approx(shares, abs=1e-3)
