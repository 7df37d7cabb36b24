"""The operator protocol: sparse equals dense, blocks equal single pairs, sweeps equal brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.errors import InvalidScoresError
from matching.pairs import PairSet
from matching.scores import base
from matching.scores.base import DenseScores, ScoreOperator, SparseScores, VectorScores, as_operator, blocks


def whole(scores: ScoreOperator):
    return np.array(scores.block(slice(0, scores.shape[0]), slice(0, scores.shape[1])), dtype=np.float64)


def exact(scores: ScoreOperator):
    rows, cols = (part.ravel() for part in np.indices(scores.shape))
    return scores.values(rows, cols).reshape(scores.shape)


def drawn(kind, seed=0, shape=(23, 17)):
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=shape)
    if kind == "dense":
        matrix[rng.random(shape) < 0.2] = np.nan
        return DenseScores(matrix)
    if kind == "single":
        return DenseScores(matrix.astype(np.float32))
    if kind == "vectors":
        return VectorScores(rng.normal(size=(shape[0], 8)), rng.normal(size=(shape[1], 8)), offset=0.3, scale=0.5)
    matrix[rng.random(shape) < 0.7] = 0.0
    return SparseScores(sparse.csr_array(matrix), default=np.nan if kind == "sparse unknown" else 0.25)


KINDS = ("dense", "single", "vectors", "sparse", "sparse unknown")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Sweeps cross several blocks in both directions, so their seams are tested too."""

    def tiles(shape, entries=0):
        for top in range(0, shape[0], 7):
            for left in range(0, shape[1], 5):
                yield slice(top, min(top + 7, shape[0])), slice(left, min(left + 5, shape[1]))

    monkeypatch.setattr(base, "blocks", tiles)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_equal_single_pairs_within_the_stated_tolerance(kind):
    scores = drawn(kind)
    np.testing.assert_allclose(whole(scores), exact(scores), atol=scores.tolerance, rtol=0)
    np.testing.assert_array_equal(
        scores.block(slice(3, 9), slice(2, 11)), scores.block(slice(0, 23), slice(0, 17))[3:9, 2:11]
    )
    assert scores.values(np.empty(0, np.int64), np.empty(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("default", [0.0, -0.5, np.nan])
def test_sparse_equals_dense(default):
    rng = np.random.default_rng(1)
    stored = rng.random((23, 17)) < 0.3
    matrix = np.where(stored, rng.normal(size=stored.shape), default)
    rows, cols = np.nonzero(stored)
    thin = SparseScores(sparse.coo_array((matrix[stored], (rows, cols)), shape=stored.shape), default)
    thick = DenseScores(matrix)
    np.testing.assert_array_equal(whole(thin), whole(thick))
    np.testing.assert_array_equal(exact(thin), exact(thick))
    u, w = rng.normal(size=23) * 0.2, rng.random(17) * 0.2
    ours, theirs = thin.exceeding(u, w, 1e-9), thick.exceeding(u, w, 1e-9)
    for pairs, excess, complete in (ours, theirs):  # blocks come in another order, what they hold is the same
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        np.testing.assert_array_equal(pairs[order], ours[0][np.lexsort((ours[0][:, 1], ours[0][:, 0]))])
        np.testing.assert_array_equal(excess[order], ours[1][np.lexsort((ours[0][:, 1], ours[0][:, 0]))])
        assert complete


def test_a_stored_zero_is_a_score_and_not_the_default():
    thin = SparseScores(sparse.coo_array(([0.0], ([0], [1])), shape=(1, 2)), np.nan)
    np.testing.assert_array_equal(whole(thin), [[np.nan, 0.0]])
    np.testing.assert_array_equal(exact(thin), [[np.nan, 0.0]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3, 40])
def test_top_pairs_equal_brute_force_up_to_near_ties(kind, k):
    scores, rng = drawn(kind, 2), np.random.default_rng(3)
    barred = PairSet(np.argwhere(rng.random(scores.shape) < 0.2), scores.shape)
    pairs = scores.top_pairs(k, barred, np.random.default_rng(0))
    value = exact(scores)
    value[barred.rows(), barred.indices] = np.nan
    chosen = np.zeros(scores.shape, dtype=bool)
    chosen[pairs[:, 0], pairs[:, 1]] = True
    assert not np.isnan(value[chosen]).any()
    assert len(np.unique(pairs, axis=0)) == len(pairs) <= k * sum(scores.shape)
    slack = 2e-3 * (np.nanmax(np.abs(value)) + np.nanmax(value) - np.nanmin(value))
    for axis in (0, 1):
        lines, picked = (value.T, chosen.T) if axis == 0 else (value, chosen)
        for line, got in zip(lines, picked):
            known = np.sort(line[~np.isnan(line)])[::-1]
            if known.size:
                cut = known[min(k, known.size) - 1]
                assert got[line > cut + slack].all()
                assert got.sum() >= min(k, known.size)


@pytest.mark.parametrize("kind", KINDS)
def test_exceeding_equals_brute_force(kind):
    scores, rng = drawn(kind, 4), np.random.default_rng(5)
    u, w = rng.normal(size=23), rng.random(17)
    pairs, excess, complete = scores.exceeding(u, w, 0.1)
    over = exact(scores) - u[:, None] - w[None, :]
    wanted = np.argwhere(over > 0.1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    np.testing.assert_array_equal(pairs[order], wanted)
    np.testing.assert_allclose(excess, over[pairs[:, 0], pairs[:, 1]])
    assert complete
    few, _, whole = scores.exceeding(u, w, 0.1, limit=1)
    assert whole == (np.bincount(wanted[:, 0], minlength=1).max() <= 1)
    assert set(map(tuple, few.tolist())) <= set(map(tuple, wanted.tolist()))
    assert bool(len(few)) == bool(len(wanted))


def test_exceeding_finds_what_single_precision_would_lose():
    """A pair better by less than a float32 can hold must still be found, or the proof has a hole."""
    matrix = np.full((2, 2), 1000.0, dtype=np.float32)
    prices = np.array([1000.0 - 1e-7, 1000.0])
    pairs, excess, _ = DenseScores(matrix).exceeding(prices, np.zeros(2), 1e-9)
    assert pairs.tolist() == [[0, 0], [0, 1]]
    np.testing.assert_allclose(excess, 1e-7, rtol=1e-3)


def test_all_unknown_gives_no_pairs():
    scores = DenseScores(np.full((9, 8), np.nan))
    assert scores.bounds() == (0.0, 0.0)
    assert len(scores.top_pairs(3, PairSet(None, (9, 8)), np.random.default_rng(0))) == 0
    assert len(scores.exceeding(np.full(9, -1e9), np.zeros(8), 0.0)[0]) == 0


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_empty_matrices_have_empty_answers(shape):
    scores = DenseScores(np.empty(shape))
    assert scores.bounds() == (0.0, 0.0)
    assert scores.top_pairs(2, PairSet(None, shape), np.random.default_rng(0)).shape == (0, 2)
    assert scores.exceeding(np.zeros(shape[0]), np.zeros(shape[1]), 0.0)[0].shape == (0, 2)


def test_tied_candidates_spread_over_both_sides():
    """With a fixed order of ties the first reviewers would be everybody's candidates and the rest nobody's."""
    scores = DenseScores(np.ones((40, 40)))
    pairs = scores.top_pairs(4, PairSet(None, (40, 40)), np.random.default_rng(0))
    for axis in (0, 1):
        count = np.bincount(pairs[:, axis], minlength=40)
        assert count.min() >= 4 and count.max() <= 20


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 1 << 14))
@settings(max_examples=50, deadline=None)
def test_blocks_tile_the_matrix_once(n_rows, n_cols, entries):
    area = 0
    for rows, cols in blocks((n_rows, n_cols), entries):
        assert 0 <= rows.start < rows.stop <= n_rows and 0 <= cols.start < cols.stop <= n_cols
        area += (rows.stop - rows.start) * (cols.stop - cols.start)
    assert area == n_rows * n_cols


@pytest.mark.parametrize(
    "scores",
    [[1.0, 2.0], [["a"]], [[1.0], [1.0, 2.0]], [[1j]], [[np.nan]], [[np.inf]], sparse.csr_array([[np.nan]]), None],
)
def test_b41_what_is_no_finite_matrix_is_refused(scores):
    with pytest.raises(InvalidScoresError):
        as_operator(scores)


def test_matrices_of_any_number_type_become_operators():
    for given_scores in ([[1, 2]], np.array([[True, False]]), np.ones((1, 2), np.float16), sparse.coo_array([[1, 0]])):
        assert as_operator(given_scores).shape == (1, 2)
    repeated = sparse.coo_array(([0.5, 0.25], ([0, 0], [1, 1])), shape=(1, 2))
    assert exact(as_operator(repeated)).tolist() == [[0.0, 0.75]]
    scores = as_operator(np.ones((2, 2)))
    assert as_operator(scores) is scores
