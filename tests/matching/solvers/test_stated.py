"""What every solver says of what it found is said in one place, so what that place says must be right."""

import numpy as np
import pytest

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total
from matching.solvers.base import Proof, Status
from matching.solvers.clock import Clock
from matching.solvers.stated import bound_and_gap, stated


@pytest.mark.parametrize(
    ("value", "bound", "said"),
    [
        (2.0, 2.5, (2.5, 0.5)),
        (2.0, 2.0 + 1e-12, (2.0, 0.0)),  # rounding
        (2.0, 1.5, (2.0, 0.0)),  # a bound below what was reached is rounding, too; the audit has the last word
        (1e9, 1e9 + 0.5, (1e9, 0.0)),  # relative to the value
        (0.0, np.inf, (np.inf, np.inf)),
    ],
)
def test_a_gap_below_the_rounding_of_sums_is_none(value, bound, said):
    """The bound then is the value, so that nobody sees two numbers that mean the same."""
    assert bound_and_gap(value, bound) == said


def test_a_solution_has_the_value_of_the_first_proof_and_the_prices_of_the_last():
    """A stack is worth what its first wish is worth; prices of an earlier wish say nothing of later ones."""
    problem = AssignmentProblem.of(np.ones((2, 3)), demand=1, load_max=1)

    def proof(value, price):
        prices = np.full(2, price), np.full(3, price)
        return Proof({"name": "total"}, value, value, 0.0, Total(), (), np.ones(2), (), *prices)

    clock = Clock(None)
    with clock.stage("flow"):
        pairs = np.array([[1, 2], [0, 1]])
    found = stated(problem, Status.OPTIMAL, pairs, (proof(3.0, 0.1), proof(2.0, 0.2)), clock, 0.0, rounds=4, meta={})
    assert found.pairs.tolist() == [[0, 1], [1, 2]] and pairs.tolist() == [[1, 2], [0, 1]]
    assert (found.value, found.bound, found.gap) == (3.0, 3.0, 0.0)
    assert found.submission_prices.tolist() == [0.2, 0.2] and found.reviewer_prices.tolist() == [0.2] * 3
    assert not found.unfilled.any() and found.below_min.shape == (3,) and found.penalty == 0.0
    assert list(found.stages) == ["flow"] and found.solve_seconds >= 0.0 and found.rounds == 4
    assert not any(part.flags.writeable for part in (found.pairs, found.unfilled, found.below_min))
