"""Private graphs: the number of edges, the share of true ones, what is refused, and what is entered."""

from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from discreet import dp, protect
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.protect import lapgraph
from discreet.protect.lapgraph import (
    fixed_rate,
    rare_places,
    rounded_noise,
    slab_chance,
    tail_chance,
    waiting_steps,
)


def random_graph(people, edges, seed=1):
    rng = np.random.default_rng(seed)
    numbers = np.sort(rng.permutation(people * (people - 1) // 2)[:edges])
    return lapgraph._Pairs(people, numbers, directed=False).graph(numbers)


def test_expected_recall_of_the_worked_example():
    """methods/node-injection-link-stealing-lapgraph.md, section 5."""
    for epsilon, kept in ((1, 0.0420), (5, 0.6703), (7, 0.8775), (10, 0.9723)):
        assert protect.lapgraph_expected_recall(500, 2000, epsilon) == pytest.approx(kept, abs=5e-5)
    assert protect.lapgraph_expected_recall(10**6, 10**7, 8) == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize("most", [lapgraph.MOST_PAIRS, 0])
def test_the_share_of_true_edges_is_the_expected_one_dense_and_sparse(monkeypatch, most):
    monkeypatch.setattr(lapgraph, "MOST_PAIRS", most)
    graph = random_graph(500, 2000)
    for epsilon, kept in ((3, 0.241), (5, 0.669), (8, 0.925)):
        shares = [
            graph.multiply(protect.LapGraph(epsilon=epsilon).apply(graph, seed=seed).adjacency).sum()
            / graph.nnz
            for seed in range(8)
        ]
        assert np.mean(shares) == pytest.approx(kept, abs=0.015)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 30), st.integers(0, 60), st.floats(0.5, 30), st.integers(0, 2**32), st.booleans())
def test_what_is_published_is_a_graph_of_the_same_people(people, edges, epsilon, seed, sparse_way):
    graph = random_graph(people, min(edges, people * (people - 1) // 2), seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lapgraph, "MOST_PAIRS", 0 if sparse_way else lapgraph.MOST_PAIRS)
        try:
            shown = protect.LapGraph(epsilon=epsilon).apply(graph, seed=seed)
        except ParameterError:
            # Almost every pair would have to be drawn.
            assert sparse_way
            return
    matrix = shown.adjacency
    assert matrix.shape == (people, people)
    assert (matrix != matrix.T).nnz == 0
    assert matrix.diagonal().sum() == 0
    assert set(np.unique(matrix.data)) <= {1}
    again = protect.LapGraph(epsilon=epsilon).apply(graph, seed=seed)
    assert shown.guarantee is None
    assert sparse_way or (again.adjacency != matrix).nnz == 0


@given(st.integers(2, 2_000_000), st.data())
def test_pairs_are_numbered_and_found_again(people, data):
    count = people * (people - 1) // 2
    numbers = np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=20)))
    low, high = lapgraph._ends(numbers, people)
    assert ((low >= 0) & (low < high) & (high < people)).all()
    assert (lapgraph._number(low, high, people) == numbers).all()


def test_a_large_epsilon_gives_the_graph_back():
    graph = random_graph(100, 300)
    shown = protect.LapGraph(epsilon=500.0, split=0.5).apply(graph)
    assert (shown.adjacency != graph).nnz == 0
    assert shown.edges == 300


def test_a_release_is_entered_and_claimed_and_every_further_one_costs_again():
    graph = random_graph(60, 100)
    ledger = dp.Ledger(epsilon=5.0)
    plan = protect.LapGraph(epsilon=2.0)
    shown = plan.apply(graph, ledger=ledger)
    assert shown.guarantee == f"2-differential privacy against {lapgraph.AGAINST}."
    plan.apply(graph, ledger=ledger)
    assert ledger.spent.epsilon == pytest.approx(4.0)
    with pytest.raises(ParameterError, match="budget"):
        plan.apply(graph, ledger=ledger)
    with pytest.raises(ParameterError, match="seed"):
        plan.apply(graph, ledger=ledger, seed=1)


def test_directed_graphs_keep_their_directions():
    rng = np.random.default_rng(1)
    matrix = (rng.random((40, 40)) < 0.1) & ~np.eye(40, dtype=bool)
    with pytest.raises(ParameterError, match="not symmetric"):
        protect.LapGraph(epsilon=1.0).apply(matrix)
    shown = protect.LapGraph(epsilon=500.0, split=0.5, directed=True).apply(matrix.astype(int))
    assert (shown.adjacency.toarray() == matrix).all()
    both = protect.LapGraph(epsilon=500.0, split=0.5, symmetrize=True).apply(matrix.astype(int))
    assert (both.adjacency.toarray() == (matrix | matrix.T)).all()


def test_an_empty_graph_stays_small_and_bad_graphs_are_refused():
    assert protect.LapGraph(epsilon=300.0, split=0.5).apply(sparse.csr_array((5, 5))).edges == 0
    with pytest.raises(InputError, match="2 people"):
        protect.LapGraph(epsilon=1.0).apply(np.zeros((1, 1)))
    with pytest.raises(ParameterError, match="square"):
        protect.LapGraph(epsilon=1.0).apply(np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="loops"):
        protect.LapGraph(epsilon=1.0).apply(np.eye(3))
    with pytest.raises(ParameterError, match="zeros and ones"):
        protect.LapGraph(epsilon=1.0).apply(np.array([[0, 2], [2, 0]]))
    twice = sparse.coo_array((np.ones(3), ([0, 0, 1], [1, 1, 0])), shape=(3, 3))
    with pytest.raises(ParameterError, match="twice"):
        protect.LapGraph(epsilon=1.0).apply(twice)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(DiscreetError, match="epsilon"):
            protect.LapGraph(epsilon=wrong)
    with pytest.raises(ParameterError, match="split"):
        protect.LapGraph(epsilon=1.0, split=1.0)


def test_rare_places_come_as_often_as_their_coins_say():
    words = dp.seeded_words(np.random.default_rng(3))
    rate = Fraction(1, 100)
    for chance in (tail_chance(rate, Fraction(700)), slab_chance(rate, Fraction(600), Fraction(700))):
        p = float(chance(Context(prec=30)))
        counts = [len(rare_places(chance, 200_000, words)) for _ in range(20)]
        assert np.mean(counts) == pytest.approx(200_000 * p, abs=5 * np.sqrt(200_000 * p / 20))
    found = np.concatenate([rare_places(lambda _: Decimal("0.3"), 10, words) for _ in range(4000)])
    assert np.bincount(found, minlength=10) / 4000 == pytest.approx(np.full(10, 0.3), abs=0.04)


@pytest.mark.parametrize("rate", [Fraction(1, 128), Fraction(1), Fraction(7, 2)])
def test_waits_and_rounded_noise_have_their_law(rate):
    words = dp.seeded_words(np.random.default_rng(4))
    size = 40_000
    drawn = waiting_steps(fixed_rate(rate), size, words)
    noise = rounded_noise(rate, size, words)
    for k in (1, 2, 5, 100, 400):
        for seen, chance in (
            (drawn >= k, np.exp(-float(rate) * k)),
            (np.abs(noise) >= k, np.exp(-float(rate) * (k - 0.5))),
            (noise >= k, np.exp(-float(rate) * (k - 0.5)) / 2),
        ):
            assert seen.mean() == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / size) + 1e-9)


@given(
    st.integers(1, 15), st.sampled_from([Fraction(1, 128), Fraction(3, 7), Fraction(2)]), st.integers(-3, 3)
)
def test_a_word_beside_a_border_between_two_numbers_of_steps_is_worked_out_to_the_right_one(
    steps, rate, away
):
    """The words nearest to exp(-rate k) are those that double precision cannot tell."""
    context = Context(prec=80)
    power = context.divide(Decimal(-rate.numerator * steps), Decimal(rate.denominator))
    border = int(context.multiply(context.exp(power), Decimal(2**64))) + away

    def words(size):
        return np.full(size, border if size == 1 and not asked else 2**63, dtype=np.uint64)

    asked = []
    found = waiting_steps(fixed_rate(rate), 1, lambda size: (words(size), asked.append(size))[0])
    # Below the border the wait is as long as the border says, or longer; above it is shorter.
    if away:
        assert found[0] == (steps if away < 0 else steps - 1)
    else:
        assert len(asked) > 1
        assert found[0] in {steps, steps - 1}


@pytest.mark.slow
def test_a_million_people_with_ten_million_edges():
    rng = np.random.default_rng(1)
    numbers = np.unique(rng.integers(10**6 * (10**6 - 1) // 2, size=10**7))
    graph = lapgraph._Pairs(10**6, numbers, directed=False).graph(numbers)
    shown = protect.LapGraph(epsilon=8.0).apply(graph, seed=1)
    kept = graph.multiply(shown.adjacency).sum() / graph.nnz
    assert kept == pytest.approx(protect.lapgraph_expected_recall(10**6, len(numbers), 8.0), abs=0.002)
