"""Random changes of random problems: what an earlier plan may have to be carried over, and how stale it may be."""

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.scores.base import DenseScores
from matching.solvers.start import Start
from tests.strategies import random_problem

KINDS = ("locks", "conflicts", "unknown", "minima", "negative")
STALE = ("fresh", "scale", "unknown", "noise", "junk", "huge")
"""What may be wrong with a start: nothing, its unit, missing prices, wrong prices, unlawful pairs, absurd prices."""


def changed(seed):
    """(problem, the problem after, rows that stay, columns that stay): lines come and go, and the rest changes."""
    rng = np.random.default_rng(seed)
    size = (int(rng.integers(1, 12)), int(rng.integers(2, 12))) if rng.random() < 0.7 else rng.integers(10, 40, 2)
    kinds = frozenset(kind for kind in KINDS if rng.random() < 0.5)
    before = random_problem(seed, kinds, tuple(map(int, size)), enumerated=False)
    stays = [rng.random(count) > rng.choice([0.0, 0.1, 0.3]) for count in before.shape]
    rows, cols = (np.flatnonzero(some) if some.any() else np.arange(some.size) for some in stays)
    come = rng.integers(0, 3, 2)
    scores = before.scores.matrix[np.ix_(rows, cols)].copy()
    known = scores[np.isfinite(scores)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    digits = int(rng.integers(1, 7))
    scores = np.vstack([scores, np.round(rng.uniform(low, high, (come[0], cols.size)), digits)])
    scores = np.hstack([scores, np.round(rng.uniform(low, high, (scores.shape[0], come[1])), digits)])
    other = rng.random(scores.shape) < rng.choice([0.0, 0.02, 0.3])
    scores[other] = np.round(rng.uniform(low, high, other.sum()), 2)
    if rng.random() < 0.2:
        scores = scores * rng.choice([1e-9, 1e6, 3.0])
    demand = np.concatenate([before.demand[rows], rng.integers(0, 3, come[0])])
    load_max = np.concatenate([before.load_max[cols], rng.integers(0, 4, come[1])])
    load_min = np.concatenate([before.load_min[cols], np.zeros(come[1], dtype=np.int64)])
    if rng.random() < 0.3:
        load_max = np.maximum(load_max + rng.integers(-1, 2, load_max.size), 0)
    if rng.random() < 0.2:
        load_min = load_min + rng.integers(0, 2, load_min.size)
    if rng.random() < 0.2:
        demand = np.maximum(demand + rng.integers(-1, 2, demand.size), 0)
    barred = rng.random(scores.shape) < rng.choice([0.0, 0.1, 0.4])
    locks, left, room = [], demand.copy(), load_max.copy()
    for row, col in np.argwhere(rng.random(scores.shape) < rng.choice([0.0, 0.05])):
        if not barred[row, col] and left[row] and room[col]:
            locks.append((row, col))
            left[row] -= 1
            room[col] -= 1
    after = AssignmentProblem.of(
        DenseScores(scores), demand=demand, load_max=load_max, load_min=np.minimum(load_min, load_max),
        conflicts=np.argwhere(barred), locks=locks,
    )  # fmt: skip
    return before, after, rows, cols


def carried(solution, shape, rows, cols, stale="fresh", seed=0):
    """The start that a solution of the first problem is for the changed one."""
    rng = np.random.default_rng(seed)
    row_of, col_of = dict(zip(rows.tolist(), range(rows.size))), dict(zip(cols.tolist(), range(cols.size)))
    pairs = [(row_of[row], col_of[col]) for row, col in solution.pairs.tolist() if row in row_of and col in col_of]
    u, w = np.full(shape[0], np.nan), np.full(shape[1], np.nan)
    u[: rows.size], w[: cols.size] = solution.submission_prices[rows], solution.reviewer_prices[cols]
    if stale == "scale":
        u, w = 1000 * u, 1000 * w
    elif stale == "unknown":
        u[rng.random(u.size) < 0.5] = np.nan
        w[:] = np.inf
    elif stale == "noise":
        u, w = u + rng.normal(0, 0.3, u.size), w + rng.normal(0, 0.3, w.size)
    elif stale == "junk":
        pairs = [*pairs, *pairs, *zip(rng.integers(shape[0], size=60), rng.integers(shape[1], size=60))]
    elif stale == "huge":
        with np.errstate(over="ignore"):
            u, w = u * 1e200, -w * 1e300 * 1e10
    return Start.of(Start(np.array(pairs, dtype=np.int64).reshape(-1, 2), u, w), shape)
