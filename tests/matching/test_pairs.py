"""Sets of pairs, against Python's own."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.pairs import PairSet

SHAPE = (7, 11)
PAIR = st.tuples(st.integers(0, SHAPE[0] - 1), st.integers(0, SHAPE[1] - 1))


@settings(max_examples=200, deadline=None)
@given(st.lists(PAIR, max_size=77), st.lists(PAIR, max_size=40))
def test_membership_is_that_of_a_set(held, asked):
    """Rows may be empty or full, pairs asked for twice, and in any order."""
    pairs = PairSet(held, SHAPE)
    rows, cols = np.array(asked, dtype=np.int64).reshape(-1, 2).T
    np.testing.assert_array_equal(pairs.contains(rows, cols), [pair in set(held) for pair in asked])
    assert len(pairs) == len(set(held)) and set(pairs) == set(held)


def test_every_pair_of_every_form_of_a_set_is_found():
    """However it was built: pairs, rows, or the places of a sparse table."""
    rng = np.random.default_rng(0)
    mask = rng.random(SHAPE) < 0.4
    mask[2], mask[4] = False, True
    drawn = PairSet(np.argwhere(mask), SHAPE)
    by_rows = PairSet.of_rows([np.flatnonzero(line) for line in mask], SHAPE)
    for pairs in (drawn, by_rows, PairSet.of_table(drawn.table())):
        rows, cols = (part.ravel() for part in np.indices(SHAPE))
        np.testing.assert_array_equal(pairs.contains(rows, cols).reshape(SHAPE), mask)


def test_an_empty_set_and_an_empty_question_have_answers():
    nobody = np.empty(0, dtype=np.int64)
    assert not PairSet(None, SHAPE).contains(np.array([0, 6]), np.array([0, 10])).any()
    assert PairSet([(0, 0)], SHAPE).contains(nobody, nobody).shape == (0,)
