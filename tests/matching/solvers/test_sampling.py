"""Dependent rounding: marginals exact, sums kept, for every outcome of the coins."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.errors import InvalidParamsError
from matching.solvers.sampling import draw, entropy, round_units, to_units, unit_bits


class Coins:
    """A generator whose coins are given; it keeps the order of edges, and says how many coins were wanted."""

    def __init__(self, faces):
        self.faces = list(faces)
        self.used = 0

    def permutation(self, values):
        return values

    def integers(self, low, high, size, dtype):
        out = np.array([self.faces[self.used + at] if self.used + at < len(self.faces) else 0 for at in range(size)])
        self.used += size
        return out


def lottery(rows, cols, amount, bits, shape, coins):
    """Every outcome with its probability, by trying every sequence of coins."""
    outcomes = {}
    for faces in itertools.product((0, 1), repeat=coins):
        source = Coins(faces)
        taken = round_units(shape, rows, cols, np.array(amount), bits, source)
        assert source.used <= coins
        key = tuple(taken.tolist())
        outcomes[key] = outcomes.get(key, 0.0) + 0.5**coins
    return outcomes


@pytest.mark.parametrize(
    ("pairs", "amount", "bits", "coins"),
    [
        ([(0, 0), (0, 1)], [1, 1], 1, 4),
        ([(0, 0), (0, 1)], [1, 3], 2, 8),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [1, 3, 3, 1], 2, 12),
        ([(0, 0), (0, 1), (0, 2)], [1, 2, 1], 2, 10),
        ([(0, 0), (0, 1), (1, 1), (1, 2)], [1, 1, 1, 1], 1, 7),
        ([(0, 0)], [1], 1, 4),
        ([(0, 0), (1, 0)], [3, 2], 2, 11),
    ],
)
def test_every_marginal_is_exact_over_all_coins(pairs, amount, bits, coins):
    """Not a matter of statistics: the expectation over every sequence of coins is the amount, to the last bit."""
    rows, cols = np.array(pairs).T
    shape = (2, 3)
    outcomes = lottery(rows, cols, amount, bits, shape, coins)
    assert sum(outcomes.values()) == 1.0
    marginal = sum(np.array(key) * chance for key, chance in outcomes.items())
    assert (marginal == np.array(amount) / 2**bits).all()
    for axis in (rows, cols):
        expected = np.bincount(axis, np.array(amount), minlength=3) / 2**bits
        for key in outcomes:
            reached = np.bincount(axis, key, minlength=3)
            assert (np.abs(reached - expected) < 1.0).all()


@st.composite
def mixtures(draw_from):
    """Mixtures of plans that all give each row as many reviews: their shares have whole row sums by construction."""
    n_rows, n_cols = draw_from(st.integers(1, 5)), draw_from(st.integers(1, 6))
    demand = draw_from(st.lists(st.integers(0, n_cols), min_size=n_rows, max_size=n_rows))
    bits = draw_from(st.integers(1, 10))
    left, table = 1 << bits, np.zeros((n_rows, n_cols), dtype=np.int64)
    while left:
        part = draw_from(st.integers(1, left))
        for row, need in enumerate(demand):
            chosen = draw_from(st.permutations(range(n_cols)))[:need]
            table[row, list(chosen)] += part
        left -= part
    return table, bits, demand


@given(mixtures(), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_sums_are_kept_in_every_draw(mixture, seed):
    """Rows get their demand, columns their expectation rounded; certain pairs always come, absent ones never."""
    table, bits, demand = mixture
    rows, cols = np.indices(table.shape).reshape(2, -1)
    taken = round_units(table.shape, rows, cols, table.ravel(), bits, np.random.default_rng(seed)).reshape(table.shape)
    assert (taken.sum(axis=1) == demand).all()
    load = table.sum(axis=0)
    assert (taken.sum(axis=0) >= load >> bits).all() and (taken.sum(axis=0) <= -(-load >> bits)).all()
    assert taken[table == 1 << bits].all() and not taken[table == 0].any()


def test_frequencies_over_two_thousand_seeds_are_the_probabilities():
    """The statistical side: a chi-squared sum over pairs stays within what chance explains."""
    p = np.array([[0.5, 0.25, 0.25, 0.0], [0.5, 0.5, 0.75, 0.25], [0.0, 0.25, 0.5, 0.25]])
    rows, cols = np.indices(p.shape).reshape(2, -1)
    amount = np.rint(4 * p).astype(np.int64).ravel()
    count, seeds = np.zeros(p.shape), 2000
    for seed in range(seeds):
        taken = round_units(p.shape, rows, cols, amount, 2, np.random.default_rng(seed))
        assert np.bincount(rows[taken]).tolist() == [1, 2, 1]
        count[rows[taken], cols[taken]] += 1
    some = (p > 0) & (p < 1)
    z = (count - seeds * p)[some] / np.sqrt(seeds * p * (1 - p))[some]
    assert np.abs(z).max() < 4.0 and (z**2).mean() < 2.0


def test_the_same_seed_draws_the_same_plan():
    """A published lottery can be drawn again by anybody who knows the seed."""
    p = np.random.default_rng(0).dirichlet(np.ones(8), 20)
    one, other = draw(sparse.csr_array(p), 5), draw(sparse.csr_array(p), 5)
    assert (one == other).all()
    assert any((draw(sparse.csr_array(p), seed) != one).any() for seed in range(6, 10))


def test_rounded_probabilities_still_give_every_submission_its_reviews():
    """Six digits, as in a file: three times 0.333333 is meant to be one review, and no draw may say none."""
    p = np.round(np.random.default_rng(1).dirichlet(np.ones(7), 30), 6)
    for seed in range(20):
        assert (np.bincount(draw(sparse.csr_array(p), seed)[:, 0], minlength=30) == 1).all()


def test_floats_become_units_with_exact_sums():
    """Tenths have no exact binary form, their row sums do."""
    rows, cols = np.indices((4, 10)).reshape(2, -1)
    units = to_units((4, 10), rows, cols, np.full(40, 0.1))
    assert (np.bincount(rows, units) == 2.0**40).all()
    assert np.abs(units / 2.0**40 - 0.1).max() < 1e-11


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_numbers_that_are_no_probabilities_are_refused(bad):
    """They would otherwise be cut to something nobody asked for."""
    with pytest.raises(InvalidParamsError, match="between 0 and 1"):
        draw(sparse.csr_array(np.array([[bad, 0.5]])), 0)


def test_units_stay_inside_64_bits():
    """However many reviews there are, their units must add up without overflow."""
    for reviews in (1, 10**3, 10**6, 10**9):
        assert reviews << unit_bits(reviews) < 2**62
    assert unit_bits(100_000) == 40


def test_entropy_is_that_of_the_pairs():
    """Certain pairs have none; a fair coin between two has ln 2."""
    assert entropy(sparse.csr_array(np.array([[1.0, 0.0]]))) == 0.0
    assert entropy(sparse.csr_array(np.array([[0.5, 0.5]]))) == pytest.approx(np.log(2))
