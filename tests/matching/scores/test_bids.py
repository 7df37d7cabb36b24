"""Sparse pair terms: what is not listed is unknown, and bad rows are named."""

import numpy as np
import pytest

from matching.errors import InvalidScoresError
from matching.scores import bid_scores, table_scores


def test_only_stated_bids_have_values_and_neutral_is_one_of_them():
    """A neutral bid is a statement; no bid is none. Both are 0 later, and only one is counted."""
    scores = bid_scores([0, 1], [1, 0], [0.0, -0.5], (2, 2))
    np.testing.assert_array_equal(scores.block(slice(0, 2), slice(0, 2)), [[np.nan, 0.0], [-0.5, np.nan]])
    assert scores.matrix.nnz == 2


def test_several_bids_on_one_pair_count_as_the_less_willing_in_any_order():
    for values in ([0.5, -1.0], [-1.0, 0.5]):
        scores = bid_scores([0, 0], [0, 0], values, (1, 1))
        assert scores.values(np.array([0]), np.array([0])).tolist() == [-1.0]


def test_a_better_bid_never_lowers_a_pair():
    for low, high in [(-1.0, -0.5), (-0.5, 0.0), (0.0, 0.5), (0.5, 1.0)]:
        pair = np.array([0]), np.array([0])
        assert bid_scores([0], [0], [low], (1, 1)).values(*pair) < bid_scores([0], [0], [high], (1, 1)).values(*pair)


def test_b41_a_value_that_is_not_finite_is_refused_with_its_row():
    with pytest.raises(InvalidScoresError) as caught:
        table_scores([0, 0, 5], [0, 1, 0], [0.5, np.nan, 0.1], (1, 2), "ours")
    assert [(issue.row, issue.code, issue.source) for issue in caught.value.issues] == [
        (1, "not-finite", "ours"),
        (2, "out-of-range", "ours"),
    ]


def test_a_table_lists_a_pair_once():
    with pytest.raises(InvalidScoresError, match="more than once"):
        table_scores([0, 0], [1, 1], [0.1, 0.2], (1, 2))


def test_empty_tables_are_all_unknown():
    scores = table_scores([], [], [], (2, 3))
    assert np.isnan(scores.block(slice(0, 2), slice(0, 3))).all()
