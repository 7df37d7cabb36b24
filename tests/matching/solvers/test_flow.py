"""The oracle's borders: ranges are checked before the solver can go wrong."""

import numpy as np
import pytest

from matching.errors import SolverRangeError
from matching.solvers.flow import Scale, Segments, transport


def test_scores_are_scaled_at_the_promised_resolution_up_to_a_million_by_a_million():
    """At 30,000 x 30,000 the resolution is still far finer than the 1e-6 promised."""
    scale = Scale.fit(0.0, 1.0, (30_000, 30_000), 90_000)
    assert 1.0 / scale.factor < 1e-7
    assert Scale.fit(0.0, 1.0, (57, 45), 171).factor == 2.0**40


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 2.0), (1e6, 1e6 + 1e-3), (0.0, 1e-9), (0.0, 0.0)])
def test_the_scale_resolves_a_millionth_of_the_range_whatever_the_unit(low, high):
    """The span counts the offset too, since integers carry it."""
    scale = Scale.fit(low, high, (100, 80), 300)
    assert scale.factor * max(high - low, abs(low), abs(high), 1e-300) >= 1e6 or high == low == 0.0


def test_a_problem_beyond_the_range_raises_our_own_error_not_infeasible():
    """A hundred million lines cannot be priced exactly in 64 bits."""
    with pytest.raises(SolverRangeError) as caught:
        Scale.fit(0.0, 1.0, (10**8, 10**8), 3 * 10**8)
    assert caught.value.code == "solver-range"


def test_costs_outside_the_exact_range_are_refused_before_the_solver_sees_them():
    """The native solver would answer with a wrong flow or end the process."""
    one = np.array([0])
    with pytest.raises(SolverRangeError):
        transport((1, 1), one, one, np.array([1 << 61]), np.array([1]), Segments(one, np.array([1]), one), 10)


def test_what_cannot_be_sent_is_unfilled_and_never_an_error():
    """No pair at all is offered to the second submission."""
    flow = transport(
        (2, 1),
        np.array([0]),
        np.array([0]),
        np.array([-5]),
        np.array([1, 2]),
        Segments(np.array([0]), np.array([1]), np.array([0])),
        1000,
    )
    assert flow.taken.tolist() == [True]
    assert flow.unfilled.tolist() == [0, 2]
