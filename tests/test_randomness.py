import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.core.randomness import generator


@given(st.integers(0, 2**64), st.lists(st.text(max_size=5), max_size=3))
def test_the_same_seed_and_path_give_the_same_numbers(seed, path):
    assert generator(seed, *path).random(3).tolist() == generator(seed, *path).random(3).tolist()


def test_child_streams_do_not_disturb_one_another():
    assert generator(1, "a").random() != generator(1, "b").random()
    assert generator(1, "a", "b").random() != generator(1, "ab").random()


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_a_seed_that_is_no_whole_number_is_refused(seed):
    with pytest.raises(ParameterError, match="seed"):
        generator(seed)


def test_without_a_seed_every_call_differs():
    assert generator().random() != generator().random()


def test_keyed_draws_are_siphash_as_its_authors_print_it():
    # Aumasson and Bernstein (2012), appendix A: key 00…0f, message 00…0e.
    from discreet.core.draw_kernels import words_of_numbers, words_of_texts

    low, high = (np.uint64(int.from_bytes(bytes(range(start, start + 8)), "little")) for start in (0, 8))
    words = np.empty(1, dtype=np.uint64)
    words_of_texts(low, high, np.arange(15, dtype=np.uint8), np.array([0, 15]), words)
    assert int(words[0]) == 0xA129CA6149BE45E5
    words_of_texts(low, high, np.arange(16, dtype=np.uint8), np.array([0, 16]), words)
    other = np.empty(1, dtype=np.uint64)
    words_of_numbers(low, high, np.array([low]), high, other)
    assert words[0] == other[0]


def test_keyed_draws_have_the_laws_they_are_named_after():
    from scipy import stats

    from discreet.core.randomness import KeyedDraws

    draws, records = KeyedDraws.of(7, "a", "b"), np.arange(50_000, dtype=np.uint64)
    assert stats.kstest(draws.uniforms(records), "uniform").pvalue > 0.001
    assert stats.kstest(draws.normals(records), "norm").pvalue > 0.001
    assert stats.kstest(draws.laplace(records), "laplace").pvalue > 0.001
    assert stats.chisquare(np.bincount(draws.integers(records, 7), minlength=7)).pvalue > 0.001
    assert abs(np.corrcoef(draws.normals(records), draws.normals(records, 1))[0, 1]) < 0.02
    assert abs(np.corrcoef(draws.normals(records[:-1]), draws.normals(records[1:]))[0, 1]) < 0.02


def test_no_two_paths_of_keyed_draws_read_alike():
    from discreet.core.randomness import KeyedDraws

    assert KeyedDraws.of(1, "ab", "c") != KeyedDraws.of(1, "a", "bc")
    assert KeyedDraws.of(1, "a") != KeyedDraws.of(11, "a")
