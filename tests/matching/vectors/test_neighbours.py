"""Nearest neighbours in blocks against all at once, and the smoothing against its formula."""

import numpy as np
import pytest

from matching.vectors import neighbours
from matching.vectors.neighbours import nearest, smoothed


def drawn(n, width=6, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def plainly(queries, pool, count, skip):
    """Every product, sorted."""
    products = queries @ pool.T
    products[skip >= 0, skip[skip >= 0]] = -np.inf
    order = np.argsort(-products, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(products, order, axis=1)


@pytest.mark.parametrize(("rows", "columns"), [(256, 16384), (1, 1), (7, 5), (3, 16)])
@pytest.mark.parametrize("count", [1, 4, 40])
def test_blocks_find_what_sorting_everything_finds(monkeypatch, rows, columns, count):
    """Blocks are there for memory alone."""
    monkeypatch.setattr(neighbours, "ROWS", rows)
    monkeypatch.setattr(neighbours, "COLUMNS", columns)
    queries, pool = drawn(9), drawn(33, seed=1)
    skip = np.array([0, -1, 32, 5, -1, 7, 7, -1, 31])
    found, products = nearest(queries, pool, count, skip)
    wanted, values = plainly(queries, pool, count, skip)
    np.testing.assert_allclose(products, values, atol=1e-6)
    np.testing.assert_array_equal(found[np.isfinite(products)], wanted[np.isfinite(values)])


@pytest.mark.parametrize("columns", [2, 3, 100])
def test_among_equals_the_earlier_one_is_taken(monkeypatch, columns):
    """Otherwise the block size would decide."""
    monkeypatch.setattr(neighbours, "COLUMNS", columns)
    pool = np.tile(np.array([[1, 0]], np.float32), (6, 1))
    found, _ = nearest(pool[:2], pool, 3, np.array([1, -1]))
    assert found.tolist() == [[0, 2, 3], [0, 1, 2]]


def test_vectors_move_as_the_formula_says():
    """x + share * (mean of neighbours weighted by cosine), unit length; those that point away count nothing."""
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], np.float32)
    out = smoothed(vectors, np.array([1, 2, 3]), np.array([-1, 0, 1, 2]), count=3, share=0.5)
    moved = vectors[0] + 0.5 * vectors[1]  # the others have cosine 0 and -1
    np.testing.assert_allclose(out[0], moved / np.linalg.norm(moved), atol=1e-6)
    moved = vectors[1] + 0.5 * vectors[2]  # its own row does not count, nor does the one that points away
    np.testing.assert_allclose(out[1], moved / np.linalg.norm(moved), atol=1e-6)
    np.testing.assert_allclose(out[3], vectors[3], atol=1e-6)


def test_without_neighbours_nothing_moves():
    """An empty archive, a count of 0, a share of 0."""
    vectors = drawn(3)
    nobody = np.full(3, -1)
    for archive, count, share in ((np.empty(0, np.int64), 5, 0.5), (np.arange(2), 0, 0.5), (np.arange(2), 5, 0.0)):
        np.testing.assert_array_equal(smoothed(vectors, archive, nobody, count, share), vectors)
    alone = smoothed(vectors, np.array([0]), np.array([0, -1, -1]), 5, 0.5)
    np.testing.assert_allclose(alone[0], vectors[0], atol=1e-6)
