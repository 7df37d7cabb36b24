"""Small venues solved by other means: enumeration and a plain integer program. They know nothing of the engine."""

import itertools

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit

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


def by_ruled_program(problem, objective="total", cap=None):
    """The best value of a whole AssignmentProblem, rules and all, by HiGHS on one plain model of every pair.

    Parameters
    ----------
    objective : str
        "total", "maximin" (the least sum), or "randomised": shares instead of pairs, none above `cap`.

    Returns
    -------
    (missing, value)
        What every plan lacks (reviews, load minima, units of hard rules), and the best value of those that lack no
        more, less the cost of priced rules.
    """
    model = _Model(problem, cap)
    missing = model.solve(model.lacking, objective != "randomised")
    model.rows([(model.lacking, -np.inf, missing + 1e-7)])
    if objective == "maximin":
        level = model.column(-1e6, 1e6)
        for row in np.flatnonzero(problem.demand > 0):
            line = {model.pair(row, col): model.score[row, col] for col in range(problem.shape[1])}
            model.rows([({**line, level: -1.0}, 0.0, np.inf)])
        goal = {level: -1.0, **model.cost}
    else:
        goal = {model.pair(*at): -value for at, value in np.ndenumerate(model.score)} | model.cost
    return missing, -model.solve(goal, objective != "randomised")


class _Model:
    """Columns and rows as dictionaries; slow, and easy to read."""

    def __init__(self, problem, cap):
        self.problem = problem
        n_submissions, n_reviewers = problem.shape
        scores = np.array(problem.scores.block(slice(0, n_submissions), slice(0, n_reviewers)), dtype=float)
        self.score = np.nan_to_num(scores)
        self.low, self.high, self.whole = [], [], []
        self.lines = []
        self.lacking, self.cost = {}, {}
        locked = set(map(tuple, problem.locked.tolist()))
        barred = set(map(tuple, problem.barred.pairs().tolist()))
        for at, value in np.ndenumerate(scores):
            may = at not in barred and not np.isnan(value)
            most = 1.0 if cap is None else float(np.broadcast_to(cap, problem.shape)[at])
            self.column(float(at in locked), 1.0 if at in locked else most * may, whole=True)
        for row in range(n_submissions):
            line = {self.pair(row, col): 1.0 for col in range(n_reviewers)}
            self.rows([({**line, self.slack(self.lacking): 1.0}, problem.demand[row], problem.demand[row])])
        for col in range(n_reviewers):
            line = {self.pair(row, col): 1.0 for row in range(n_submissions)}
            self.rows([(line, -np.inf, problem.load_max[col])])
            self.rows([({**line, self.slack(self.lacking): 1.0}, problem.load_min[col], np.inf)])
        for rule in problem.rules:
            self.rule(rule, locked)

    def pair(self, row, col):
        return row * self.problem.shape[1] + col

    def column(self, low, high, whole=False):
        self.low.append(low)
        self.high.append(high)
        self.whole.append(whole)
        return len(self.low) - 1

    def slack(self, paid, price=1.0):
        at = self.column(0.0, np.inf)
        paid[at] = price
        return at

    def rows(self, lines):
        self.lines += lines

    def rule(self, rule, locked):
        n_reviewers = self.problem.shape[1]
        paid, price = (self.lacking, 1.0) if rule.price is None else (self.cost, rule.price)

        def bound(line, low, high):
            if high < NO_UPPER:
                held = sum(part for at, part in line.items() if at < len(self.score.ravel()) and self.low[at] == 1.0)
                if rule.price is None:  # never exceeded, unless locks do it alone
                    self.rows([(line, -np.inf, max(high, held))])
                    if held > high:
                        self.rows([({self.slack(paid): 1.0}, held - high, np.inf)])
                else:
                    self.rows([({**line, self.slack(paid, price): -1.0}, -np.inf, high)])
            if low > 0:
                self.rows([({**line, self.slack(paid, price): 1.0}, low, np.inf)])

        if isinstance(rule, GroupBound):
            left, right = rule.submissions.toarray(), rule.reviewers.toarray()
            for a, b in np.ndindex(rule.shape):
                weight = np.outer(left[a], right[b])
                line = {self.pair(*at): part for at, part in np.ndenumerate(weight) if part}
                bound(line, rule.lower[a, b], rule.upper[a, b])
        elif isinstance(rule, PairLimit):
            for k, upper in enumerate(rule.upper):
                line = {}
                for row, col in rule.pairs[rule.which == k]:
                    line[self.pair(row, col)] = line.get(self.pair(row, col), 0.0) + 1.0
                bound(line, 0, upper)
        else:
            for (p, q), least in zip(rule.pairs, rule.least, strict=True):
                line = {}
                for col in range(n_reviewers):
                    both = self.column(0.0, 1.0)
                    for row in (p, q):
                        self.rows([({both: 1.0, self.pair(row, col): -1.0}, -np.inf, 0.0)])
                    line[both] = 1.0
                bound(line, least, NO_UPPER)

    def solve(self, goal, integral):
        data, where = [], ([], [])
        for at, (line, _, _) in enumerate(self.lines):
            where[0].extend([at] * len(line))
            where[1].extend(line)
            data.extend(line.values())
        width = len(self.low)
        matrix = sparse.csr_array((data, where), shape=(len(self.lines), width))
        cost = np.zeros(width)
        cost[list(goal)] = list(goal.values())
        result = milp(
            cost,
            constraints=LinearConstraint(matrix, [line[1] for line in self.lines], [line[2] for line in self.lines]),
            bounds=Bounds(self.low, self.high),
            integrality=np.array(self.whole) * integral,
            options={"mip_rel_gap": 0.0},
        )
        assert result.x is not None, result.message
        return float(result.fun)
