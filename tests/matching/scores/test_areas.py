"""Area overlap: the written formula, and blocks equal to single pairs."""

import numpy as np
import pytest

from matching.errors import InvalidScoresError
from matching.scores import AreaScores


def dense(scores):
    return scores.block(slice(0, scores.shape[0]), slice(0, scores.shape[1]))


def test_the_first_area_counts_double():
    scores = AreaScores([["graphs", "kernels"]], [["graphs"], ["kernels"], ["kernels", "graphs"], ["auctions"]])
    np.testing.assert_allclose(dense(scores), [[2 / 3, 1 / 3, 1.0, 0.0]])


def test_names_are_compared_trimmed_and_folded_and_repeats_count_once():
    scores = AreaScores([[" Machine  Learning", "machine learning", "NLP"]], [["MACHINE LEARNING"], ["", " nlp "]])
    np.testing.assert_allclose(dense(scores), [[2 / 3, 1 / 3]])


def test_whoever_states_no_area_is_unknown_and_not_unsuitable():
    scores = AreaScores([["graphs"], [], [" "]], [["graphs"], []])
    np.testing.assert_array_equal(np.isnan(dense(scores)), [[False, True], [True, True], [True, True]])
    assert scores.known == 1


def test_blocks_equal_single_pairs_exactly():
    rng = np.random.default_rng(0)
    names = [f"area {at}" for at in range(12)]
    lists = [list(rng.choice(names, size=rng.integers(0, 6), replace=False)) for _ in range(60)]
    scores = AreaScores(lists[:25], lists[25:])
    rows, cols = np.divmod(np.arange(25 * 35), 35)
    np.testing.assert_array_equal(dense(scores).ravel(), scores.values(rows, cols))
    np.testing.assert_array_equal(scores.block(slice(3, 9), slice(10, 30)), dense(scores)[3:9, 10:30])
    assert scores.values(rows[:0], cols[:0]).shape == (0,)


def test_no_areas_at_all_is_all_unknown():
    assert np.isnan(dense(AreaScores([[], []], [[]]))).all()


def test_a_text_is_not_taken_apart_into_letters():
    with pytest.raises(InvalidScoresError, match="list of names"):
        AreaScores(["graphs"], [["graphs"]])
