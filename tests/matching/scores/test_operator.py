"""The weighted sum of signals: unknown, zero and default are three things, and the parts add up exactly."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from matching.errors import InvalidScoresError
from matching.pairs import PairSet
from matching.scores import AffinityOperator, AreaScores, DenseScores, Signal, SparseScores, build_affinity, operator

NAN = np.nan


def whole(affinity):
    return affinity.block(slice(0, affinity.shape[0]), slice(0, affinity.shape[1]))


def exact(affinity):
    rows, cols = (part.ravel() for part in np.indices(affinity.shape))
    return affinity.values(rows, cols).reshape(affinity.shape)


def drawn(seed, shape=(21, 16), **switches):
    """Signals of every kind, each silent about many pairs, with zeros that cancel now and then."""
    rng = np.random.default_rng(seed)
    text = rng.choice([0.0, 0.25, 0.5, 0.3], size=shape).astype(np.float32)
    text[rng.random(shape) < 0.4] = NAN
    text[3], text[:, 2] = NAN, NAN
    names = ["a", "b", "c"]
    lists = [list(rng.choice(names, size=rng.integers(0, 3), replace=False)) for _ in range(sum(shape))]

    def table(values):
        rows, cols = np.nonzero(rng.random(shape) < 0.2)
        return SparseScores(sparse.coo_array((rng.choice(values, rows.size), (rows, cols)), shape=shape), NAN)

    signals = [
        Signal("text", 1.0, DenseScores(text), switches.pop("text_default", None)),
        Signal("areas", 0.1, AreaScores(lists[: shape[0]], lists[shape[0] :]), 0.0),
        Signal("bids", 0.5, table([-1.0, -0.5, 0.0, 0.5]), 0.0),
        Signal("idle", 0.0, table([7.0]), 3.0),
        Signal("ours", 2.0, table([0.1, 0.7, 0.0]), switches.pop("own_default", None), True),
    ]
    return AffinityOperator(shape, signals, **switches)


SWITCHES = [
    {"allow_unknown": unknown, "allow_zero": zero, "text_default": text, "own_default": own}
    for unknown, zero, text, own in itertools.product([True, False], [True, False], [None, 0.3], [None, 0.2])
]


@pytest.mark.parametrize("switches", SWITCHES)
@pytest.mark.parametrize("cached", [True, False])
def test_blocks_equal_single_pairs_within_tolerance(switches, cached, monkeypatch):
    """The solver prices blocks and the audit adds up pairs; they must know the same pairs and values."""
    if not cached:
        monkeypatch.setattr(operator, "CACHED_PAIRS", 0)
    affinity = drawn(0, **switches)
    assert affinity.tolerance < 1e-5
    np.testing.assert_allclose(whole(affinity), exact(affinity), atol=affinity.tolerance, rtol=0)
    np.testing.assert_array_equal(affinity.block(slice(2, 9), slice(1, 5)), whole(affinity)[2:9, 1:5])


@pytest.mark.parametrize("switches", SWITCHES)
def test_b30_parts_add_up_to_the_affinity_exactly(switches):
    """What is shown to the chair is what the solver used, to the last bit."""
    affinity = drawn(1, **switches)
    rows, cols = (part.ravel() for part in np.indices(affinity.shape))
    total = np.zeros(rows.size)
    for signal, value, used in affinity.parts(rows, cols):
        measured = ~np.isnan(value)
        np.testing.assert_array_equal(used[measured], value[measured])
        np.testing.assert_array_equal(used[~measured], signal.stand_in)
        total += signal.weight * used
    value = affinity.values(rows, cols)
    known = ~np.isnan(value)
    np.testing.assert_array_equal(total[known], value[known])
    np.testing.assert_array_equal(~known & affinity.allow_unknown & affinity.allow_zero, False)


def test_solver_sweeps_see_only_allowed_pairs():
    affinity = drawn(2, allow_unknown=False, allow_zero=False)
    pairs = affinity.top_pairs(3, PairSet(None, affinity.shape), np.random.default_rng(0))
    assert np.isfinite(affinity.values(pairs[:, 0], pairs[:, 1])).all()
    found, *_ = affinity.exceeding(np.full(21, -9.0), np.zeros(16), 0.0)
    assert len(found) == np.isfinite(exact(affinity)).sum()


def test_b24_unknown_zero_and_default_are_told_apart():
    text = np.array([[0.0, NAN, 0.6]])
    plain = build_affinity((1, 3), text=text, defaults={"text": None})
    assert exact(plain).tolist() == [[0.0, 0.0, 0.6]]
    known = build_affinity((1, 3), text=text, defaults={"text": None}, allow_unknown=False)
    np.testing.assert_array_equal(exact(known), [[0.0, NAN, 0.6]])
    above = build_affinity((1, 3), text=text, defaults={"text": None}, allow_unknown=False, allow_zero=False)
    np.testing.assert_array_equal(exact(above), [[NAN, NAN, 0.6]])
    shrunk = build_affinity((1, 3), text=text, allow_zero=False)
    np.testing.assert_allclose(exact(shrunk), [[NAN, 0.3, 0.6]])
    still_unknown = build_affinity((1, 3), text=text, defaults={"text": 0.9}, allow_unknown=False)
    np.testing.assert_array_equal(exact(still_unknown), [[0.0, NAN, 0.6]])
    cells = np.array([0, 0, 0]), np.array([0, 1, 2])
    assert still_unknown.unknown(*cells).tolist() == [False, True, False]


def test_b24_without_any_signal_every_pair_may_be_used():
    """Class use: no scores at all is a plan under loads and conflicts, whatever the switches."""
    for unknown, zero in itertools.product([True, False], repeat=2):
        affinity = build_affinity((2, 2), allow_unknown=unknown, allow_zero=zero)
        assert whole(affinity).tolist() == exact(affinity).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert affinity.summary() == []


def test_b24_one_signal_measured_makes_a_pair_known():
    bids = ([0], [1], [0.0])
    affinity = build_affinity((1, 2), text=np.array([[NAN, NAN]]), bids=bids, allow_unknown=False)
    np.testing.assert_array_equal(exact(affinity), [[NAN, 0.0]])


def test_b30_a_tables_default_is_a_value():
    """r1-p1 0.2, r2-p1 missing, default 0.5: r2 is the better choice and is shown with 0.5."""
    for options in ({}, {"allow_unknown": False, "allow_zero": False}):
        affinity = build_affinity((1, 2), scores=[("ours", [0], [0], [0.2], 0.5)], **options)
        assert exact(affinity).tolist() == [[0.2, 0.5]]
        (signal, value, used), *_ = affinity.parts(np.array([0]), np.array([1]))
        assert signal.name == "ours" and np.isnan(value[0]) and used[0] == 0.5
        assert not affinity.unknown(np.array([0]), np.array([1]))[0]
    absent = build_affinity((1, 2), scores=[("ours", [0], [0], [0.2], None)], allow_unknown=False)
    np.testing.assert_array_equal(exact(absent), [[0.2, NAN]])
    overruled = build_affinity((1, 2), scores=[("ours", [0], [0], [0.2], None)], defaults={"ours": 0.4})
    assert exact(overruled).tolist() == [[0.2, 0.4]]


def test_b30_bids_alone_with_weight_one_give_the_bid():
    affinity = build_affinity((1, 1), bids=([0], [0], [0.5]), weights={"bids": 1.0})
    assert exact(affinity).tolist() == [[0.5]]


def test_b31_no_bid_equals_neutral_and_beats_a_negative_one():
    """r1 no bid, r2 neutral, r3 negative, equal text: r1 and r2 tie, r3 comes last."""
    affinity = build_affinity((1, 3), text=np.full((1, 3), 0.5), bids=([0, 0], [1, 2], [0.0, -0.5]))
    first, second, third = exact(affinity)[0]
    assert first == second > third


def test_b31_a_signal_of_weight_zero_stays_in_the_record():
    bids = (np.arange(20) % 4, np.arange(20) // 4, np.full(20, 0.5))
    affinity = build_affinity((4, 5), text=np.full((4, 5), 0.5), bids=bids, weights={"bids": 0.0})
    record = {signal["name"]: signal for signal in affinity.summary()}
    assert (record["bids"]["pairs"], record["bids"]["weight"]) == (20, 0.0)
    assert affinity.known_counts() == {"text": 20, "bids": 20}
    assert (exact(affinity) == 0.5).all()
    assert [signal.name for signal, _, _ in affinity.parts(np.array([0]), np.array([0]))] == ["text", "bids"]


def test_a_better_bid_never_lowers_a_pair():
    values = [
        exact(build_affinity((1, 1), text=np.array([[0.4]]), bids=([0], [0], [bid])))[0, 0]
        for bid in (-1.0, -0.5, 0.0, 0.5, 1.0)
    ]
    assert values == sorted(values) and len(set(values)) == 5


def test_exact_zeros_are_found_in_operators_with_rounding():
    """With a tolerance a block cannot tell 0 from almost 0 by itself."""

    class Rounded(DenseScores):
        tolerance = 1e-6

        def block(self, rows, cols):
            return (self.matrix[rows, cols] + 5e-7).astype(np.float32)

    affinity = AffinityOperator((1, 3), [Signal("x", 1.0, Rounded(np.array([[0.0, 1e-7, 0.5]])))], allow_zero=False)
    np.testing.assert_array_equal(np.isnan(whole(affinity)), [[True, False, False]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Signal("x", -1.0, None),
        lambda: Signal("x", NAN, None),
        lambda: Signal("x", 1.0, DenseScores(np.ones((1, 1))), np.inf),
        lambda: AffinityOperator((1, 1), [Signal("x", 1.0, None)]),
        lambda: AffinityOperator((1, 2), [Signal("x", 1.0, DenseScores(np.ones((1, 1))))]),
        lambda: build_affinity((1, 1), text=np.array([[np.inf]])),
    ],
)
def test_signals_that_cannot_be_summed_are_refused(make):
    with pytest.raises(InvalidScoresError):
        make()


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty_venues_have_empty_affinity(shape):
    affinity = build_affinity(shape, text=np.empty(shape), areas=([[]] * shape[0], [[]] * shape[1]), bids=([], [], []))
    assert whole(affinity).shape == shape
    assert affinity.bounds() == (0.0, 0.0)
