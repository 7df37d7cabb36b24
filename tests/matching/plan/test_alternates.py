"""Alternates are lawful, ranked, and never counted as demand (B17)."""

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.plan.alternates import rank_alternates
from matching.solvers.pricing import PricingSolver


def alternates_of(n_alternates=2, **case):
    problem = AssignmentProblem.of(case.pop("scores"), **case)
    solution = PricingSolver().solve(problem)
    return solution, *rank_alternates(problem, solution.pairs, n_alternates)


def test_b17_alternates_do_not_consume_capacity_and_full_people_are_flagged():
    """Two people, two submissions, two alternates wanted: feasible, and the other person is there, full."""
    solution, alternates, _, spare = alternates_of(scores=[[0.9, 0.1, 0.8], [0.1, 0.9, 0.8]], demand=1,
                                                   load_max=[1, 1, 0], conflicts=[(0, 2)])  # fmt: skip
    assert solution.status == "optimal"
    assert alternates.tolist() == [[0, 1], [1, 0]]
    assert spare.tolist() == [0, 0]


def test_people_with_room_come_before_better_people_without():
    """A chair wants the name to ask first."""
    _, alternates, affinity, spare = alternates_of(3, scores=[[0.9, 0.2, 0.8], [0.95, 0.3, 0.99]], demand=1, load_max=1)
    first = alternates[alternates[:, 0] == 0]
    assert first[0].tolist() == [0, 1] and spare[0] == 1
    assert np.all(affinity[:1] < affinity[1:2])


def test_many_rows_agree_with_sorting_every_row():
    """The cut at n_alternates is the same as sorting everything, ties by column."""
    rng = np.random.default_rng(2)
    scores = np.round(rng.random((40, 25)), 1)
    conflicts = np.argwhere(rng.random((40, 25)) < 0.1)
    solution, alternates, _, _ = alternates_of(4, scores=scores, demand=2, load_max=5, conflicts=conflicts)
    loads = np.bincount(solution.pairs[:, 1], minlength=25)
    taken = set(map(tuple, solution.pairs.tolist())) | set(map(tuple, conflicts.tolist()))
    for row in range(40):
        free = [col for col in range(25) if (row, col) not in taken]
        free.sort(key=lambda col: (loads[col] >= 5, -scores[row, col], col))
        assert alternates[alternates[:, 0] == row, 1].tolist() == free[:4]
