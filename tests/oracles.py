"""Small venues solved by other means: enumeration and a plain integer program. They know nothing of the engine."""

import itertools

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

MISSING = 1e4  # price of a missing review in the integer program, far above any score the tests use


def by_enumeration(scores, demand, load_max, load_min=None, conflicts=(), locks=()):
    """(fewest missing reviews, best value among such plans) over all plans, one subset of reviewers a row at a time."""
    n_submissions, n_reviewers = np.shape(scores)
    load_min = np.zeros(n_reviewers, int) if load_min is None else np.asarray(load_min)
    barred, held = (
        set(map(tuple, np.asarray(conflicts).reshape(-1, 2).tolist())),
        set(map(tuple, np.asarray(locks).reshape(-1, 2).tolist())),
    )
    states = {(0,) * n_reviewers: (0, 0.0)}
    for row in range(n_submissions):
        must = {col for p, col in held if p == row}
        may = [col for col in range(n_reviewers) if (row, col) not in barred]
        fresh = {}
        for size in range(demand[row] + 1):
            for chosen in itertools.combinations(may, size):
                if not must <= set(chosen):
                    continue
                gain = float(sum(scores[row][col] for col in chosen))
                for loads, (missing, value) in states.items():
                    after = list(loads)
                    for col in chosen:
                        after[col] += 1
                    if any(after[col] > load_max[col] for col in chosen):
                        continue
                    key = tuple(after)
                    entry = (missing + demand[row] - size, value + gain)
                    old = fresh.get(key)
                    if old is None or (entry[0], -entry[1]) < (old[0], -old[1]):
                        fresh[key] = entry
        states = fresh
    best = None
    for loads, (missing, value) in states.items():
        total = missing + int(np.maximum(load_min - np.array(loads), 0).sum())
        if best is None or (total, -value) < (best[0], -best[1]):
            best = (total, value)
    return best


def by_integer_program(scores, demand, load_max, load_min=None, conflicts=(), locks=()):
    """(fewest missing reviews, best value among such plans) by HiGHS on the textbook model."""
    scores = np.asarray(scores, dtype=float)
    n_submissions, n_reviewers = scores.shape
    load_min = np.zeros(n_reviewers) if load_min is None else np.asarray(load_min)
    pairs = n_submissions * n_reviewers
    of_row = sparse.kron(sparse.eye_array(n_submissions), np.ones((1, n_reviewers)))
    of_col = sparse.kron(np.ones((1, n_submissions)), sparse.eye_array(n_reviewers))
    unfilled, below = sparse.eye_array(n_submissions), sparse.eye_array(n_reviewers)
    nothing = sparse.csr_array((n_reviewers, n_submissions))
    matrix = sparse.block_array(
        [
            [of_row, unfilled, sparse.csr_array((n_submissions, n_reviewers))],
            [of_col, nothing, sparse.csr_array((n_reviewers, n_reviewers))],
            [of_col, nothing, below],
        ],
        format="csr",
    )
    low = np.concatenate([demand, np.full(n_reviewers, -np.inf), load_min])
    high = np.concatenate([demand, load_max, np.full(n_reviewers, np.inf)])
    lower, upper = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    upper[pairs:] = np.inf
    for row, col in np.asarray(conflicts).reshape(-1, 2):
        upper[row * n_reviewers + col] = 0
    for row, col in np.asarray(locks).reshape(-1, 2):
        lower[row * n_reviewers + col] = 1
    cost = np.concatenate([-scores.ravel(), np.full(n_submissions + n_reviewers, MISSING)])
    result = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        bounds=Bounds(lower, upper),
        integrality=np.ones(cost.size),
        options={"mip_rel_gap": 0.0},
    )
    assert result.x is not None, result.message
    x = np.rint(result.x)
    return int(x[pairs:].sum()), float((x[:pairs] * scores.ravel()).sum())
