"""Sets that cannot be served: true, minimal, disjoint, and found whenever there are any."""

import itertools

import numpy as np
from hypothesis import given, settings

from matching.constraints.problem import AssignmentProblem
from matching.explain.unserved import MOST_SETS, open_pairs, short_minima, short_sets
from matching.solvers.pricing import PricingSolver
from tests.strategies import problems


def problem_of(case):
    return AssignmentProblem.of(case.pop("scores"), **case)


def lines_of(problem, minima=False):
    """Who is open to whom, what each line needs and what each line across has left, by the words of the module."""
    table = open_pairs(problem, np.arange(problem.shape[0]))
    held = [np.bincount(problem.locked[:, axis], minlength=problem.shape[axis]) for axis in (0, 1)]
    if minima:
        return table.T, np.maximum(problem.load_min - held[1], 0), problem.demand - held[0]
    return table, problem.demand - held[0], problem.load_max - held[1]


def lack(lines, table, needs, room):
    lines = list(lines)
    return int(needs[lines].sum() - np.minimum(table[lines].sum(axis=0), room).sum())


def some_subset_is_short(lines, table, needs, room):
    return any(
        lack(chosen, table, needs, room) > 0
        for size in range(1, len(lines) + 1)
        for chosen in itertools.combinations(lines, size)
    )


def check(found, table, needs, room):
    left = [line for line in range(len(needs)) if needs[line]]
    for entry in found:
        lines = entry.lines.tolist()
        assert entry.minimal and set(lines) <= set(left)
        assert entry.needed - entry.capacity == lack(lines, table, needs, room) > 0
        assert entry.gives.sum() == entry.capacity
        for out in lines:
            assert not some_subset_is_short([line for line in lines if line != out], table, needs, room)
        left = [line for line in left if line not in lines]
    assert len(found) == MOST_SETS or not some_subset_is_short(left, table, needs, room)


@settings(max_examples=60, deadline=None)
@given(problems(largest=5))
def test_every_set_is_short_minimal_and_disjoint_and_none_is_left_out(case):
    """By brute force over all subsets, on both sides, whatever plan the search starts from."""
    problem = problem_of(case)
    solution = PricingSolver().solve(problem)
    for start in (solution.pairs, np.empty((0, 2), dtype=np.int64)):
        short, minima = short_sets(problem, start), short_minima(problem, start)
        check(short, *lines_of(problem))
        check(minima, *lines_of(problem, minima=True))
        # where neither side is short a full plan exists
        assert bool(short or minima) == bool(solution.unfilled.any() or solution.below_min.any())


def test_a_set_that_is_short_by_count_with_any_two_of_its_three_is_not_taken_for_minimal():
    """p1 is short alone. p2 with it is not, nor p3 with it, nor p2 with p3; all three are: counting after taking
    single members out would stop at three."""
    open_to = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=bool)
    problem = AssignmentProblem.of(
        np.ones((3, 3)), demand=[2, 1, 1], load_max=[5, 1, 1], conflicts=np.argwhere(~open_to)
    )
    lines = lines_of(problem)
    assert [lack(chosen, *lines) for chosen in ([0, 1, 2], [0, 1], [0, 2], [1, 2], [0])] == [1, 0, 0, 0, 1]
    (found,) = short_sets(problem, np.empty((0, 2), dtype=np.int64))
    assert found.lines.tolist() == [0]


def test_a_chain_of_submissions_is_short_only_as_a_whole():
    """Joint shortage: everybody has people enough, loads suffice in all, and every smaller set can be served."""
    n = 7
    open_to = np.zeros((n, n), dtype=bool)
    for row in range(n):  # neighbours share a person: n submissions, n - 1 people, and one who is open to nobody
        open_to[row, [max(row - 1, 0), min(row, n - 2)]] = True
    problem = AssignmentProblem.of(
        np.ones((n, n)), demand=1, load_max=np.r_[np.ones(n - 1, dtype=int), 9], conflicts=np.argwhere(~open_to)
    )
    (found,) = short_sets(problem, np.empty((0, 2), dtype=np.int64))
    assert found.lines.tolist() == list(range(n)) and (found.needed, found.capacity) == (n, n - 1)
    check((found,), *lines_of(problem))


def test_a_venue_short_of_load_comes_down_to_just_too_many_submissions():
    """300 x 3 reviews, 850 in all: 284 submissions are too many, 283 are not, and it is found without 300 searches."""
    rng = np.random.default_rng(0)
    load_max = rng.multinomial(850, np.full(100, 0.01))
    problem = AssignmentProblem.of(np.zeros((300, 100)), demand=3, load_max=load_max)
    (found,) = short_sets(problem, np.empty((0, 2), dtype=np.int64))
    assert found.minimal and found.lines.size == 284 and (found.needed, found.capacity) == (852, 850)
