"""Random problems for property-based tests: small, often infeasible, with ties, conflicts, locks and minima."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def problems(draw, largest=4, with_locks=True):
    """Keyword arguments for `matching.assign` plus "scores"; at most `largest` x `largest`."""
    n_submissions, n_reviewers = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    digits = draw(st.sampled_from([0, 1, 3]))
    grid = st.integers(-(10**digits) // 2, 10**digits).map(lambda value: value / 10**digits)
    scores = np.array(
        draw(st.lists(grid, min_size=n_submissions * n_reviewers, max_size=n_submissions * n_reviewers))
    ).reshape(n_submissions, n_reviewers)
    demand = draw(st.lists(st.integers(0, 3), min_size=n_submissions, max_size=n_submissions))
    load_max = draw(st.lists(st.integers(0, 3), min_size=n_reviewers, max_size=n_reviewers))
    load_min = [draw(st.integers(0, most)) if draw(st.booleans()) else 0 for most in load_max]
    every = [(row, col) for row in range(n_submissions) for col in range(n_reviewers)]
    conflicts = draw(st.lists(st.sampled_from(every), max_size=len(every) // 2, unique=True))
    locks, left, room = [], list(demand), list(load_max)
    if with_locks:
        for row, col in draw(st.lists(st.sampled_from(every), max_size=3, unique=True)):
            if (row, col) not in conflicts and left[row] and room[col]:
                locks.append((row, col))
                left[row] -= 1
                room[col] -= 1
    return {
        "scores": scores,
        "demand": demand,
        "load_max": load_max,
        "load_min": load_min,
        "conflicts": conflicts,
        "locks": locks,
    }
