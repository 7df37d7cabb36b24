"""Five thousand by five thousand vectors: exact over all pairs from 16 candidates a side."""

import numpy as np
import pytest

from matching.constraints.problem import AssignmentProblem
from matching.objectives import parse_objective
from matching.params import Params
from matching.scores.base import VectorScores
from matching.solved import solve_audited
from tests.benchmarks.bench_solve import topic_vectors


@pytest.mark.slow
@pytest.mark.parametrize("load_max", [4, 3])
def test_five_thousand_by_five_thousand_is_solved_over_all_pairs(load_max):
    """25 million pairs, of which the flow sees a few; load 3 leaves no slack at all.

    The sweep at the end is this test's own: float64, block by block, against the prices alone.
    """
    n = 5000
    left, right = topic_vectors(n, 128, 1, 0.45), topic_vectors(n, 128, 2, 0.35)
    rng = np.random.default_rng(0)
    barred = np.column_stack([np.arange(n).repeat(50), rng.integers(n, size=50 * n)])
    problem = AssignmentProblem.of(VectorScores(left, right), demand=3, load_max=load_max, conflicts=barred)
    solution, report = solve_audited(problem, parse_objective("total"), Params(candidates=16), None)
    assert solution.status == "optimal" and solution.gap == 0.0
    assert report.clean and report.improving_pairs == 0 and report.gap == 0.0
    assert solution.meta["active_pairs"] < n * n / 25
    assert len(solution.pairs) == 3 * n

    outside = np.zeros(n, dtype=np.int64)
    for top in range(0, n, 500):
        rows = slice(top, top + 500)
        excess = left[rows].astype(np.float64) @ right.T.astype(np.float64)
        excess -= solution.submission_prices[rows, None] + solution.reviewer_prices[None, :]
        excess[problem.barred.within(rows, slice(0, n))] = -1.0
        mine = solution.pairs[(solution.pairs[:, 0] >= top) & (solution.pairs[:, 0] < top + 500)]
        excess[mine[:, 0] - top, mine[:, 1]] = -1.0
        outside[rows] = (excess > 1e-7).sum(axis=1)
    assert outside.sum() == 0
