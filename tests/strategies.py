"""Random problems for property-based tests: small, often infeasible, with ties, conflicts, locks and minima."""

import math

import numpy as np
from hypothesis import note
from hypothesis import strategies as st

from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit, SharedReviewers
from matching.constraints.problem import AssignmentProblem
from matching.scores.base import DenseScores


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


KINDS = (
    "locks", "conflicts", "unknown", "minima", "group", "second-group", "pairs", "shared", "priced", "weights",
    "negative",
)  # fmt: skip
"""What a random problem may have besides scores, demand and load_max."""

MOST_PLANS = 30_000  # subsets of reviewers a row, multiplied: what an enumeration may have to look at


@st.composite
def ruled_problems(draw, kinds=KINDS, largest=5):
    """An AssignmentProblem of at most `largest` x `largest` with any combination of `kinds`."""
    chosen = draw(st.frozensets(st.sampled_from(kinds)))
    size = draw(st.integers(1, largest)), draw(st.integers(2, largest))
    seed = draw(st.integers(0, 2**32 - 1))
    note(f"random_problem({seed}, {sorted(chosen)}, {size})")
    return random_problem(seed, chosen, size)


def random_problem(seed, kinds=KINDS, size=None, largest=5, enumerated=True):
    """The problem of a seed; sizes are drawn where none is given. Small enough to enumerate, unless told otherwise."""
    rng = np.random.default_rng(seed)
    n_submissions, n_reviewers = size or (rng.integers(1, largest + 1), rng.integers(2, largest + 1))
    shape = (int(n_submissions), int(n_reviewers))
    digits = int(rng.choice([0, 1, 2, 6]))
    scores = np.round(rng.random(shape) * rng.choice([1, 2, 5]), digits)
    if "negative" in kinds:
        scores -= np.round(0.5 * scores.max(), digits)
    demand = np.minimum(rng.choice([0, 1, 1, 1, 2, 2, 2, 3], shape[0]), shape[1] - 1)
    while enumerated and np.prod([_subsets(shape[1], wanted) for wanted in demand]) > MOST_PLANS:
        demand[rng.integers(shape[0])] -= 1
        demand = np.maximum(demand, 0)
    slack = int(rng.integers(1, 4))
    load_max = np.minimum(rng.multinomial(int(demand.sum()), np.full(shape[1], 1 / shape[1])) + slack, shape[0])
    load_min = np.zeros(shape[1], dtype=int)
    if "minima" in kinds:
        load_min = np.minimum(rng.integers(0, 2, shape[1]), load_max)
    barred = rng.random(shape) < (0.2 if "conflicts" in kinds else 0.0)
    if "unknown" in kinds:
        scores[rng.random(shape) < 0.15] = np.nan
    locks, left, room = [], demand.copy(), load_max.copy()
    for row, col in np.argwhere(rng.random(shape) < 0.12) if "locks" in kinds else ():
        if not barred[row, col] and left[row] and room[col]:
            locks.append((row, col))
            left[row] -= 1
            room[col] -= 1
    rules = [
        rule
        for kind, make in (("group", _group), ("second-group", _group), ("pairs", _pair_limit), ("shared", _shared))
        if kind in kinds and (rule := make(rng, shape, kinds)) is not None
    ]
    return AssignmentProblem.of(
        DenseScores(scores), demand=demand, load_max=load_max, load_min=load_min,
        conflicts=np.argwhere(barred), locks=np.array(locks, dtype=int).reshape(-1, 2), rules=rules,
    )  # fmt: skip


def _subsets(n, most):
    return sum(math.comb(n, size) for size in range(min(n, int(most)) + 1))


def _price(rng, kinds):
    return float(rng.choice([0.05, 0.3, 1.0, 4.0])) if "priced" in kinds and rng.random() < 0.6 else None


def _classes(rng, n, weights):
    """Each alone, all together, a partition, or any overlapping classes."""
    form = rng.integers(4)
    if form == 0:
        table = np.eye(n)
    elif form == 1:
        table = np.ones((1, n))
    elif form == 2:
        table = np.eye(3)[rng.integers(0, 3, n)].T
    else:
        table = (rng.random((rng.integers(1, 4), n)) < 0.4).astype(float)
    return table * rng.choice([0.5, 1.0, 2.0, 0.1], n) if weights else table


def _group(rng, shape, kinds):
    left, right = _classes(rng, shape[0], "weights" in kinds), _classes(rng, shape[1], False)
    size = (len(left), len(right)) if rng.random() < 0.5 else (1, 1)
    sides = int(rng.integers(4))  # a lower bound alone, one of both kinds, or twice as often an upper one alone
    lower = rng.integers(0, 2, size).astype(float) if sides < 2 else np.zeros(size)
    upper = lower + rng.integers(0, 3, size) if sides > 0 else np.full(size, float(NO_UPPER))
    if "weights" in kinds:
        lower, upper = lower / 2, np.where(upper < NO_UPPER, upper / 2 + 0.5, upper)
    return GroupBound.of("classes", left, right, lower=lower, upper=upper, price=_price(rng, kinds))


def _pair_limit(rng, shape, kinds):
    count = int(rng.integers(1, 4))
    which, pairs = [], []
    for k in range(count):
        every = np.array(list(np.ndindex(shape)))
        some = every[rng.permutation(len(every))[: rng.integers(1, 5)]]
        pairs.append(some)
        which += [k] * len(some)
    return PairLimit(
        "pairs", np.array(which), np.concatenate(pairs), rng.integers(0, 3, count), _price(rng, kinds),
        tuple(map(str, range(count))),
    )  # fmt: skip


def _shared(rng, shape, kinds):
    if shape[0] < 2:
        return None
    count = int(rng.integers(1, 3))
    pairs = np.array([rng.permutation(shape[0])[:2] for _ in range(count)])
    return SharedReviewers(
        "shared", pairs, rng.integers(1, 3, count), _price(rng, kinds), tuple(map(str, range(count)))
    )
