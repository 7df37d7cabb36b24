"""A document's share is what the pooled similarity changes by when the document's own does."""

import numpy as np
import pytest

from matching.scores.shares import document_shares, pooled_similarity
from matching.vectors.base import Comparison

POOLS = [("mean", 0.0), ("lse", 0.2), ("top", 3.0)]


def comparison(pooling, amount):
    return Comparison("any", np.eye(1), np.eye(1), pooling=pooling, amount=amount)


@pytest.mark.parametrize(("pooling", "amount"), POOLS)
@pytest.mark.parametrize("even", [True, False])
def test_shares_sum_to_one_and_are_the_derivative_of_the_pool(pooling, amount, even):
    """One definition for three pools, checked by differences."""
    rng = np.random.default_rng(1)
    how = comparison(pooling, amount)
    for count in (1, 2, 3, 5, 9):
        values = rng.normal(size=count)
        weights = np.ones(count) if even else rng.uniform(0.2, 2.0, size=count)
        shares = document_shares(how, values, weights)
        assert shares.sum() == pytest.approx(1.0, abs=1e-12) and (shares >= 0).all()
        step = 1e-6
        for at in range(count):
            more = values + step * (np.arange(count) == at)
            slope = (pooled_similarity(how, more, weights) - pooled_similarity(how, values, weights)) / step
            assert slope == pytest.approx(shares[at], abs=1e-4)


@pytest.mark.parametrize(("pooling", "amount"), POOLS)
def test_unknown_documents_carry_nothing(pooling, amount):
    """A document in which a comparison finds nothing is no evidence for or against."""
    how = comparison(pooling, amount)
    values, weights = np.array([0.3, np.nan, 0.1]), np.array([1.0, 0.0, 1.0])
    shares = document_shares(how, values, weights)
    assert shares[1] == 0.0 and shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert pooled_similarity(how, values, weights) == pooled_similarity(how, values[[0, 2]], weights[[0, 2]])
    assert np.isnan(pooled_similarity(how, values[1:2], weights[1:2]))
    assert not document_shares(how, np.array([np.nan]), np.array([0.0])).any()


def test_equal_similarities_share_alike_whatever_their_order():
    """Which of two tied publications comes first says nothing about either."""
    how = comparison("top", 2.0)
    assert document_shares(how, np.array([0.5, 0.9, 0.5, 0.5]), np.ones(4)).tolist() == pytest.approx(
        [1 / 6, 0.5, 1 / 6, 1 / 6]
    )


@pytest.mark.parametrize(("pooling", "amount"), POOLS)
def test_weights_that_have_vanished_count_alike(pooling, amount):
    """Recency can leave nothing of very old publications."""
    how = comparison(pooling, amount)
    assert document_shares(how, np.array([0.3, 0.3]), np.zeros(2)).tolist() == [0.5, 0.5]
    first = np.array([True, False])
    assert pooled_similarity(how, np.array([0.2, 0.4]), np.array([0.0, 1.0]), first) == pytest.approx(0.2)
