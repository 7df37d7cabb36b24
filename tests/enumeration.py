"""Every plan of a tiny problem, and what each is worth for every objective. Knows the problem's numbers, no solver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.bounds import GroupBound, PairLimit
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Wish

SAME = 1e-9  # values this close are equal


@dataclass(frozen=True, eq=False)
class Plans:
    """All plans that keep bars, locks, loads and hard upper bounds, and lack as little as any.

    Attributes
    ----------
    taken : ndarray of shape (n, n_submissions, n_reviewers), bool
    lacking : float
        Reviews, load minima and units of hard rules that even these plans lack.
    """

    problem: AssignmentProblem
    scores: np.ndarray
    taken: np.ndarray
    lacking: float
    cost: np.ndarray

    @property
    def sums(self):
        """(n, n_submissions) sums of scores."""
        return np.einsum("npr,pr->np", self.taken, np.nan_to_num(self.scores))

    def only(self, keep):
        return Plans(self.problem, self.scores, self.taken[keep], self.lacking, self.cost[keep])

    def worth(self, wish: Wish) -> np.ndarray:
        """What each plan is worth, higher is better, shape (n,); natural unit (leximin: its rank)."""
        name, options = wish.name, wish.options
        wanting = self.problem.demand > 0
        sums = self.sums
        loads = self.taken.sum(axis=1)
        if name == "total":
            return sums.sum(axis=1) - self.cost
        if name == "maximin":
            return sums[:, wanting].min(axis=1) - self.cost
        if name == "threshold":
            return np.minimum(sums[:, wanting], options["t"]).sum(axis=1) - self.cost
        if name == "leximin":
            table = np.round(np.sort(sums[:, wanting], axis=1) / SAME)
            rank = np.empty(len(sums))
            _, rank = np.unique(table, axis=0, return_inverse=True)
            return rank.ravel().astype(float)
        if name == "welfare":
            return self.equivalent(options["alpha"])
        if name == "evenness":
            return -(loads.astype(float) ** 2).sum(axis=1)
        if name == "envy":
            return -np.array([envy_of(self.problem, self.scores, taken) for taken in self.taken])
        if name == "robust":
            spread = (self.taken * np.broadcast_to(options["standard_error"], self.scores.shape) ** 2).sum(axis=(1, 2))
            return sums.sum(axis=1) - self.cost - options["radius"] * np.sqrt(spread)
        raise AssertionError(name)

    def equivalent(self, alpha: float) -> np.ndarray:
        """The equally distributed equivalent, by the words of the documentation."""
        problem = self.problem
        ideal = np.array([ideal_of(problem, self.scores, row) for row in range(problem.shape[0])])
        among = (problem.demand > 0) & ((ideal > 0) | (alpha == 0))  # at 0 it is the total, of all
        if not among.any():
            return np.zeros(len(self.taken))
        floor = 0.01 * np.median(ideal[among])

        def curve(u):
            return np.log(u) if alpha == 1 else u ** (1 - alpha) / (1 - alpha)

        sums = self.sums[:, among]
        at = np.maximum(sums, floor)
        mean = (curve(at) + at**-alpha * (sums - at)).mean(axis=1)
        out = floor + (mean - curve(floor)) * floor**alpha
        high = mean >= curve(floor)
        if alpha == 1:
            out[high] = np.exp(mean[high])
        else:
            out[high] = ((1 - alpha) * mean[high]) ** (1 / (1 - alpha))
        return out

    def best(self, wishes: Sequence[Wish]) -> list[float]:
        """The best value of each wish among the plans that the wishes before it leave."""
        left, out = self, []
        for wish in wishes:
            worth = left.worth(wish)
            top = float(worth.max())
            out.append(top)
            left = left.only(worth >= top - wish.loss * abs(top) - SAME)
        return out


def every_plan(problem: AssignmentProblem) -> Plans:
    """All plans of a tiny problem that lack as little as any, by going through every subset of reviewers a row."""
    n_submissions, n_reviewers = problem.shape
    scores = np.array(problem.scores.block(slice(0, n_submissions), slice(0, n_reviewers)), dtype=float)
    for whole in (True, False):  # plans that lack reviews are many; they matter only where no other plan is lawful
        plans = _plans(problem, scores, whole)
        if len(plans.taken) and (plans.lacking == 0 or not whole):
            return plans
    raise AssertionError("the locked pairs alone are always a plan")


def _plans(problem, scores, whole):
    n_submissions, n_reviewers = problem.shape
    locked = np.zeros(problem.shape, dtype=bool)
    locked[problem.locked[:, 0], problem.locked[:, 1]] = True
    barred = np.zeros(problem.shape, dtype=bool)
    pairs = problem.barred.pairs()
    barred[pairs[:, 0], pairs[:, 1]] = True
    may = (~barred & ~np.isnan(scores)) | locked
    taken = np.zeros((1, 0, n_reviewers), dtype=bool)
    loads = np.zeros((1, n_reviewers), dtype=int)
    for row in range(n_submissions):
        choices = _subsets(may[row], locked[row], int(problem.demand[row]), whole)
        after = loads[:, None, :] + choices[None, :, :]
        old, new = np.nonzero((after <= problem.load_max).all(axis=2))
        loads = after[old, new]
        taken = np.concatenate([taken[old], choices[new][:, None, :]], axis=1)
    lacking = (problem.demand - taken.sum(axis=2)).sum(axis=1).astype(float)
    lacking += np.maximum(problem.load_min - loads, 0).sum(axis=1)
    cost = np.zeros(len(taken))
    lawful = np.ones(len(taken), dtype=bool)
    for rule in problem.rules:
        above, below = units(rule, taken)
        if rule.price is not None:
            cost += rule.price * (above + below).sum(axis=1)
            continue
        forced = units(rule, locked[None])[0]
        lawful &= (above <= forced + SAME).all(axis=1)
        lacking += (above + below).sum(axis=1)
    taken, lacking, cost = taken[lawful], lacking[lawful], cost[lawful]
    least = lacking.min(initial=np.inf)
    keep = lacking <= least + SAME
    return Plans(problem, scores, taken[keep], 0.0 if abs(least) <= SAME else float(least), cost[keep])


def _subsets(may, must, demand, whole):
    open_cols = np.flatnonzero(may & ~must)
    size = demand - int(must.sum())
    sizes = [size] if whole else range(size + 1)
    rows = []
    for count in sizes:
        for chosen in itertools.combinations(open_cols, count):
            row = must.copy()
            row[list(chosen)] = True
            rows.append(row)
    return np.array(rows, dtype=bool).reshape(-1, may.size)


def units(rule, taken):
    """(n, constraints) units above and below the bounds of a rule, for `taken` of shape (n, rows, columns)."""
    number = len(taken)
    if isinstance(rule, GroupBound):
        count = np.einsum("ap,npr,br->nab", rule.submissions.toarray(), taken, rule.reviewers.toarray(), optimize=True)
        above, below = count - rule.upper, rule.lower - count
    elif isinstance(rule, PairLimit):
        count = np.zeros((number, len(rule.upper)))
        for which, (row, col) in zip(rule.which, rule.pairs, strict=True):
            count[:, which] += taken[:, row, col]
        above, below = count - rule.upper, -np.ones_like(count)
    else:
        both = [(taken[:, p] & taken[:, q]).sum(axis=1) for p, q in rule.pairs]
        count = np.array(both).reshape(len(rule.least), number).T
        above, below = -np.ones_like(count), rule.least - count
    return tuple(
        np.where(part > SAME, part, 0.0).reshape(number, int(np.prod(part.shape[1:]))) for part in (above, below)
    )


def ideal_of(problem, scores, row):
    """The best sum a submission could have alone."""
    held = problem.locked[problem.locked[:, 0] == row, 1]
    used = np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    out = float(np.nan_to_num(scores[row, held]).sum())
    free = [
        scores[row, col]
        for col in range(problem.shape[1])
        if col not in held and used[col] < problem.load_max[col] and not np.isnan(scores[row, col])
        and not problem.barred.contains(np.array([row]), np.array([col]))[0]
    ]  # fmt: skip
    return out + float(sum(sorted(free, reverse=True)[: int(problem.demand[row]) - len(held)]))


def envy_of(problem, scores, taken):
    """The largest envy beyond one reviewer, pair of submissions by pair of submissions."""
    worst = 0.0
    rows, cols = np.nonzero(np.ones(problem.shape, dtype=bool))
    barred = problem.barred.contains(rows, cols).reshape(problem.shape)
    worth = np.maximum(np.where(barred, 0.0, np.nan_to_num(scores)), 0.0)
    demand = problem.demand
    for p in np.flatnonzero(demand > 0):
        mine = worth[p, taken[p]].sum() / demand[p]
        for q in np.flatnonzero(demand > 0):
            theirs = worth[p, taken[q]]
            if p != q and theirs.size:
                worst = max(worst, (theirs.sum() - theirs.max()) / demand[q] - mine)
    return worst
