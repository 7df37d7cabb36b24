"""Pooling: against a loop over reviewers, empty profiles included."""

import itertools

import numpy as np
import pytest

from matching.scores.pooling import pool_lse, pool_mean, pool_top

INDPTR = np.array([0, 0, 3, 4, 4, 11, 13, 13])  # empty first, middle and last


def drawn(seed=0, n_rows=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, INDPTR[-1])), rng.uniform(0.1, 2.0, size=INDPTR[-1])


def by_loop(similarities, weights, pool):
    out = np.full((len(similarities), len(INDPTR) - 1), np.nan)
    for row, line in enumerate(similarities):
        for column, (start, stop) in enumerate(itertools.pairwise(INDPTR)):
            if stop > start:
                share = weights[start:stop] / weights[start:stop].sum()
                out[row, column] = pool(line[start:stop], share)
    return out


def top(best):
    def pool(values, share):
        left, total, taken = best / len(values), 0.0, 0.0
        for at in np.argsort(-values):
            part = min(left - taken, share[at])
            if part <= 0:
                break
            total, taken = total + part * values[at], taken + part
        return total / taken

    return pool


def test_every_pool_equals_its_loop():
    similarities, weights = drawn()
    cases = [
        (pool_mean(similarities, INDPTR, weights), lambda v, s: (v * s).sum()),
        (pool_lse(similarities, INDPTR, weights, 0.2), lambda v, s: 0.2 * np.log((s * np.exp(v / 0.2)).sum())),
        (pool_top(similarities, INDPTR, weights, 3), top(3)),
        (pool_top(similarities, INDPTR, weights, 2.5), top(2.5)),
    ]
    for pooled, pool in cases:
        np.testing.assert_allclose(pooled, by_loop(similarities, weights, pool), atol=1e-12)


def test_equal_weights_give_the_plain_mean_of_the_best():
    similarities, _ = drawn(1)
    pooled = pool_top(similarities, INDPTR, np.full(INDPTR[-1], 7.0), 3)
    wanted = by_loop(similarities, np.ones(INDPTR[-1]), lambda values, _: np.sort(values)[-3:].mean())
    np.testing.assert_allclose(pooled, wanted, atol=1e-12)


def test_soft_maximum_lies_between_mean_and_maximum():
    similarities, weights = drawn(2)
    mean, known = pool_mean(similarities, INDPTR, weights), np.diff(INDPTR) > 0
    most = by_loop(similarities, weights, lambda values, _: values.max())
    soft = pool_lse(similarities, INDPTR, weights, 0.3)
    assert (soft[:, known] >= mean[:, known] - 1e-12).all()
    assert (soft[:, known] <= most[:, known] + 1e-12).all()


@pytest.mark.parametrize("pool", [pool_mean, lambda *a: pool_lse(*a, 0.2), lambda *a: pool_top(*a, 2)])
def test_only_ratios_of_weights_matter_and_empty_profiles_are_nan(pool):
    """Very old publications have weights near the smallest float; they must not become 0 / 0."""
    similarities, weights = drawn(3)
    once = pool(similarities, INDPTR, weights)
    np.testing.assert_allclose(pool(similarities, INDPTR, weights * 1e-300), once, atol=1e-12)
    assert (np.isnan(once) == (np.diff(INDPTR) == 0)).all()


def test_soft_maximum_survives_huge_similarities():
    with np.errstate(all="raise", under="ignore"):
        pooled = pool_lse(np.array([[1e6, -1e6, 5.0]]), np.array([0, 2, 3]), np.ones(3), 1e-3)
    np.testing.assert_allclose(pooled, [[1e6, 5.0]], atol=1e-2)


@pytest.mark.parametrize("pool", [pool_mean, lambda *a: pool_lse(*a, 0.2), lambda *a: pool_top(*a, 2)])
def test_no_documents_and_no_rows_are_fine(pool):
    assert np.isnan(pool(np.empty((2, 0)), np.zeros(4, dtype=np.int64), np.empty(0))).all()
    assert pool(np.empty((0, 3)), np.array([0, 3]), np.ones(3)).shape == (0, 1)
