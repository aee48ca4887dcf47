import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import ParameterError
from discreet.randomness import generator


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
