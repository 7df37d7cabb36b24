"""Flows by reduced costs: any prices and any cut give the optimum of the plain costs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.solvers import reduced
from matching.solvers.flow import Scale
from matching.solvers.prices import Prices
from matching.solvers.reduced import best_flow


def worth(case, flow, penalty):
    load = np.bincount(case["cols"], weights=flow.amount, minlength=case["shape"][1])
    short = np.maximum(case["load_min"] - load, 0).sum()
    return (case["gain"] * flow.amount).sum() - penalty * (flow.unfilled.sum() + short)


def drawn(seed, units):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, size=2).tolist())
    rows, cols = np.nonzero(rng.random(shape) < rng.choice([0.5, 1.0]))
    least = rng.integers(0, 2, size=shape[1])
    return {
        "shape": shape, "rows": rows, "cols": cols, "gain": rng.integers(-20, 60, size=rows.size),
        "supply": rng.integers(0, 4, size=shape[0]) * units, "load_min": least * units,
        "load_max": (least + rng.integers(0, 4, size=shape[1])) * units,
        "capacity": None if units == 1 else rng.integers(1, units + 1, size=rows.size),
    }, Prices(*(rng.integers(-70, 70, size=size) for size in shape))  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 5]), st.sampled_from([1, 10, 100, 10_000]))
def test_prices_and_cuts_change_no_optimum(seed, units, most):
    """Prices of a round before may be far off and cuts far too tight; then it costs a second flow and nothing else."""
    case, prices = drawn(seed, units)
    plain, cut = best_flow(**case, penalty=2000), best_flow(**case, penalty=2000, start=(prices, most))
    assert worth(case, cut, 2000) == worth(case, plain, 2000)


def test_good_prices_need_no_second_flow(monkeypatch):
    """Which is what they are for."""
    calls = []
    transport = reduced.transport
    monkeypatch.setattr(reduced, "transport", lambda *args: calls.append(args[3]) or transport(*args))
    gain = np.array([90, 10, 80, 70])
    case = {
        "shape": (2, 2), "rows": np.array([0, 0, 1, 1]), "cols": np.array([0, 1, 0, 1]), "gain": gain,
        "supply": np.array([1, 1]), "load_min": np.array([0, 0]), "load_max": np.array([1, 1]),
    }  # fmt: skip
    flow = best_flow(**case, penalty=2000, start=(Prices(np.array([75, 65]), np.array([10, 0])), 70))
    assert flow.amount.tolist() == [1, 0, 0, 1] and len(calls) == 1
    best_flow(**case, penalty=2000, start=(Prices(np.array([0, 0]), np.array([0, 0])), 5))
    assert len(calls) == 3


def test_an_eased_penalty_is_above_any_two_scores():
    """So that a review is left unfilled only where filling it costs others more than that."""
    scale = Scale.fit(-1.0, 3.0, (3000, 2000), 9000)
    eased = scale.eased()
    assert eased.factor == scale.factor and 2 * scale.steps(4.0) < eased.penalty < scale.penalty
    assert eased.penalty == pytest.approx(4 * 4.0 * scale.factor, rel=1e-6)
