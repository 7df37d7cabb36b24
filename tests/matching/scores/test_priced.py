"""Scores minus prices: blocks keep their tolerance where it matters, and sweeps find what brute force finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.constraints.linearised import Linearised
from matching.pairs import PairSet
from matching.scores import AffinityOperator, DenseScores, Signal, SparseScores, base, operator
from matching.scores.base import VectorScores

SHAPE = (19, 14)
KINDS = (
    "dense", "single", "vectors", "sparse", "sparse unknown", "affinity", "large bids", "small", "two lists", "mixed",
)  # fmt: skip
PRICES = ("ordinary", "closed", "penalty", "far", "tied")


def tiles(shape, entries=0):
    """Blocks so small that sweeps cross several in both directions."""
    for top in range(0, shape[0], 6):
        for left in range(0, shape[1], 5):
            yield slice(top, min(top + 6, shape[0])), slice(left, min(left + 5, shape[1]))


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Of the whole module, since hypothesis runs many examples in one call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "blocks", tiles)
        patch.setattr(operator, "blocks", tiles)
        yield


def listed(rng, values, share=0.3):
    rows, cols = np.nonzero(rng.random(SHAPE) < share)
    return SparseScores(sparse.coo_array((rng.choice(values, rows.size), (rows, cols)), shape=SHAPE), np.nan)


def drawn(kind, rng, dim=8):
    matrix = rng.normal(size=SHAPE)
    if kind == "dense":
        matrix[rng.random(SHAPE) < 0.2] = np.nan
        return DenseScores(matrix)
    if kind == "single":
        return DenseScores(matrix.astype(np.float32))
    if kind.startswith("sparse"):
        matrix[rng.random(SHAPE) < 0.7] = 0.0
        return SparseScores(sparse.csr_array(matrix), default=np.nan if kind == "sparse unknown" else 0.25)
    left, right = rng.normal(size=(SHAPE[0], dim)), rng.normal(size=(SHAPE[1], dim))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    vectors = VectorScores(left, right, offset=0.3, scale=0.5)
    if kind == "vectors":
        return vectors
    signals = [Signal("text", 1.0, vectors), Signal("bids", 0.1, listed(rng, [-1.0, -0.5, 0.5, 1.0]), 0.0)]
    if kind == "small":
        return AffinityOperator(SHAPE, signals)  # few enough pairs for the sum to be kept
    if kind == "large bids":
        signals[1] = Signal("bids", 20.0, signals[1].operator, 0.0)
    if kind == "two lists":
        signals.append(Signal("ours", 2.0, listed(rng, [0.0, 0.2, 0.7]), 0.4, True))
    if kind == "mixed":
        signals.append(Signal("table", 0.5, DenseScores(np.where(rng.random(SHAPE) < 0.3, np.nan, matrix)), 0.1))
    return _Uncached(SHAPE, signals)


class _Uncached(AffinityOperator):
    """As in a venue too large for the sum of its signals to be kept."""

    def block(self, rows, cols):
        return self._block(rows, cols)


def priced_at(kind, rng, value):
    """Prices of lines as solvers have them; "tied" ones leave each row's best pair within rounding of 0."""
    u, w = rng.normal(size=SHAPE[0]) * 0.3, np.abs(rng.normal(size=SHAPE[1])) * 0.2
    if kind == "closed":  # lines without room
        u[rng.random(SHAPE[0]) < 0.3] = 1e4
        w[rng.random(SHAPE[1]) < 0.3] = 1e4
    elif kind == "penalty":  # missing reviews, and load minima that bind
        u[rng.random(SHAPE[0]) < 0.3] = -1e5
        w[rng.random(SHAPE[1]) < 0.3] = -3.0
        u[rng.random(SHAPE[0]) < 0.2] = 1e6
    elif kind == "far":  # what weighted scores and imported tables lead to
        u += rng.choice([0.0, 5.0, 10.0, 40.0], SHAPE[0])
    elif kind == "tied":
        best = np.fmax.reduce(value - w[None, :], axis=1)
        u = np.where(np.isfinite(best), best, 0.0) + rng.choice([-1e-7, -1e-9, 0.0, 1e-9], SHAPE[0])
    return u, w


def exact(scores):
    rows, cols = (part.ravel() for part in np.indices(scores.shape))
    return scores.values(rows, cols).reshape(scores.shape)


def check(priced, over):
    """Within tolerance, or far from 0 on one side both in truth and in the block: all a search wants to know of it."""
    found = np.full(SHAPE, 7.0)
    for rows, cols in tiles(SHAPE):
        part = priced.block(rows, cols)
        assert part.flags.c_contiguous and part.shape == (rows.stop - rows.start, cols.stop - cols.start)
        found[rows, cols] = part
    np.testing.assert_array_equal(np.isnan(found), np.isnan(over))
    known = ~np.isnan(over)
    rounding = 1e-12 * np.abs(over[known])
    off = np.abs(found[known] - over[known]) > priced.tolerance + rounding
    truth, told = over[known][off], found[known][off]
    assert (np.sign(truth) == np.sign(told)).all() and (np.minimum(abs(truth), abs(told)) > 0.5).all()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(KINDS), st.sampled_from(PRICES), st.integers(0, 2**32 - 1), st.booleans())
def test_priced_blocks_are_weighted_scores_minus_prices(kind, prices, seed, weighted):
    """Also where lines are closed by prices far above any score, and reviews are missing at the price of a penalty."""
    rng = np.random.default_rng(seed)
    scores = drawn(kind, rng)
    weights = rng.choice([0.0, 0.01, 1.0, 30.0], SHAPE[0]) if weighted else None
    value = exact(scores) if weights is None else exact(scores) * weights[:, None]
    u, w = priced_at(prices, rng, value)
    before = u.copy(), w.copy()
    check(scores.priced(u, w, weights), value - u[:, None] - w[None, :])
    assert np.array_equal(u, before[0]) and np.array_equal(w, before[1])


@pytest.mark.parametrize("dim", [1, 300])
def test_the_tolerance_of_priced_vectors_holds_for_any_dimension(dim):
    rng = np.random.default_rng(dim)
    scores = drawn("affinity", rng, dim)
    u, w = priced_at("ordinary", rng, exact(scores))
    priced = scores.priced(u, w)
    assert priced.tolerance < 2e-5
    check(priced, exact(scores) - u[:, None] - w[None, :])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(KINDS), st.sampled_from(PRICES), st.integers(0, 2**32 - 1), st.booleans(), st.booleans(),
    st.sampled_from([None, 1, 2, 5, 99]), st.sampled_from([0.0, 1e-9, 0.1]),
)  # fmt: skip
def test_a_sweep_finds_exactly_what_double_precision_brute_force_finds(
    kind, prices, seed, weighted, skipping, limit, margin
):
    """Near ties included, or the proof has a hole; under a limit the largest of each row, and it says that it cut."""
    rng = np.random.default_rng(seed)
    scores = drawn(kind, rng)
    if weighted:
        scores = Linearised(scores, rng.choice([0.0, 0.01, 1.0, 30.0], SHAPE[0]))
    u, w = priced_at(prices, rng, exact(scores))
    skip = PairSet(np.argwhere(rng.random(SHAPE) < 0.3), SHAPE) if skipping else None
    over = exact(scores) - u[:, None] - w[None, :]
    with np.errstate(invalid="ignore"):
        wanted = over > margin
    if skip is not None:
        wanted[skip.rows(), skip.indices] = False
    pairs, excess, complete = scores.exceeding(u, w, margin, limit, skip)
    rows, cols = pairs.T
    np.testing.assert_array_equal(excess, over[rows, cols])
    found = np.zeros(SHAPE, dtype=bool)
    found[rows, cols] = True
    assert found.sum() == len(pairs) and not (found & ~wanted).any()
    if limit is None or complete:
        assert complete and np.array_equal(found, wanted)
        return
    assert found.sum(axis=1).max() <= limit
    slack = 2 * scores.priced(u, w).tolerance + 1e-12 * max(np.abs(u).max(), np.abs(w).max())
    for row in np.flatnonzero(wanted.any(axis=1)):
        left = over[row][wanted[row] & ~found[row]]
        if left.size:  # only what is no better than the worst that was kept, or than a near tie that took its place
            worst = over[row][found[row]].min() if found[row].sum() == limit else margin
            assert left.max() <= worst + slack


def test_a_line_without_room_costs_no_precision():
    """One price of a million beside prices of one: the product in single precision goes on as if it were not there."""
    rng = np.random.default_rng(0)
    scores = drawn("vectors", rng)
    u, w = priced_at("ordinary", rng, exact(scores))
    plain = scores.priced(u, w).tolerance
    u[3], w[5] = 1e6, 1e6
    shut = scores.priced(u, w)
    assert shut.block(slice(0, 2), slice(0, 2)).dtype == np.float32 and shut.tolerance < 10 * plain
    assert not set(scores.exceeding(u, w, 0.0)[0][:, 0].tolist()) & {3}


def test_weights_alone_reach_the_product_itself():
    """Linearised scores of welfare must not leave the fast way, which takes weights as part of the vectors."""
    rng = np.random.default_rng(1)
    scores, weights = drawn("affinity", rng), rng.random(SHAPE[0]) + 0.5
    u, w = priced_at("ordinary", rng, exact(scores))
    priced = Linearised(scores, weights).priced(u, w)
    assert priced.block(slice(0, 4), slice(0, 4)).dtype == np.float32
    check(priced, weights[:, None] * exact(scores) - u[:, None] - w[None, :])
    terms = sparse.csr_array(([0.5], ([2], [3])), shape=SHAPE)
    check(
        Linearised(scores, weights, terms).priced(u, w),
        weights[:, None] * exact(scores) + terms.toarray() - u[:, None] - w[None, :],
    )
