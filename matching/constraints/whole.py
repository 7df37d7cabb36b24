"""Bounds on welfare that know a submission gets whole people, not shares of them.

For any reviewer prices w and rule prices, no lawful plan has a larger welfare than

    sum over submissions of max over sets R of d lawful people of [phi(U_R) - sum of prices of R]
    + sum l_max max(w, 0) - sum l_min max(-w, 0) + sum of rule price * bound

(Lagrange duality over the loads alone; Geoffrion, 1974). Shares of people would allow each submission a point on the
line between two sets, where the concave phi is larger than on either; where scores are few and far apart that alone
is a per cent. The best set of each submission is found by best-first search below the tangent of phi, which the
weights give: its value is linear in the people, so it bounds every set that goes on from a first few.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matching.constraints.linearised import Linearised, rule_terms
from matching.constraints.problem import AssignmentProblem
from matching.constraints.worth import Worth
from matching.objectives import Welfare
from matching.types import FloatArray, IntArray

__all__ = ["WholeSets", "ruled_out", "whole_bound", "whole_sets"]

ENTRIES = 1 << 21  # pairs looked at together
STEPS = 300_000  # of the searches together; then the linear bounds of the submissions left are taken
STEPS_EACH = 20_000  # of one search; then what it has not ruled out bounds it
ROUNDING = 1e-9  # relative, of what sets cost against what loads pay
SLIGHT = 1e-12  # a search that could lower its submission's bound by less, relative to the largest, is not begun


@dataclass(frozen=True, eq=False)
class WholeSets:
    """A bound and the sets it is made of.

    Attributes
    ----------
    bound : float
        In units of the measure; inf where the weights prove nothing.
    each : ndarray of shape (n_submissions,), float64
        What no set of the submission exceeds: phi less the prices of its people.
    sets : tuple of n_submissions ndarray of int64
        The best set found for each, locked people left out.
    last : ndarray of shape (n_submissions,), float64
        Linear worth, by tangent and prices, of the last of the best people for each: a price u that goes with w.
    """

    bound: float
    each: FloatArray
    sets: tuple[IntArray, ...]
    last: FloatArray


def _worths(welfare: Welfare | Worth, row: int) -> Callable[[FloatArray], FloatArray]:
    """What sums of one submission are worth."""
    return welfare.of(row) if isinstance(welfare, Worth) else welfare.parts


def whole_bound(
    problem: AssignmentProblem,
    welfare: Welfare | Worth,
    weights: FloatArray,
    reviewer_prices: FloatArray,
    rule_prices: Sequence[Any] = (),
) -> float:
    """Largest welfare any full lawful plan can have, by the prices given; see `whole_sets`."""
    return whole_sets(problem, welfare, weights, reviewer_prices, rule_prices).bound


def ruled_out(problem: AssignmentProblem, worth: Worth, weights: FloatArray, reviewer_prices: FloatArray) -> bool:
    """Whether no plan has every sum at its floor: for a worth of 0 the bound is 0 where one does."""
    slopes = worth.fitting(weights)
    floors = np.where(np.isfinite(worth.floor), np.abs(worth.floor), 0.0)
    rounding = ROUNDING * float(problem.load_max @ np.abs(reviewer_prices) + slopes @ floors)
    return whole_bound(problem, worth, slopes, reviewer_prices) < -rounding


def whole_sets(
    problem: AssignmentProblem,
    welfare: Welfare | Worth,
    weights: FloatArray,
    reviewer_prices: FloatArray,
    rule_prices: Sequence[Any] = (),
) -> WholeSets:
    """The best whole set of people for each submission at the prices given, and the bound they make.

    Parameters
    ----------
    problem : AssignmentProblem
    welfare : Welfare or Worth
    weights : ndarray of shape (n_submissions,), float64
        Slope of the tangent for each submission, as `Welfare.weights` gives it. Any that make the conjugate finite
        serve; good ones shorten the searches.
    reviewer_prices : ndarray of shape (n_reviewers,), float64
        Any numbers.
    rule_prices : sequence
        As `matching.constraints.linearised.rule_terms` takes them; empty for no rules.

    Returns
    -------
    WholeSets
        Its bound is never above what weak duality gives for the same numbers. One sweep over all pairs, then up to
        STEPS steps of the searches.
    """
    n_submissions, n_reviewers = problem.shape
    nothing = WholeSets(
        math.inf, np.full(n_submissions, math.inf), (np.empty(0, dtype=np.int64),) * n_submissions,
        np.zeros(n_submissions),
    )  # fmt: skip
    if weights[~welfare.among].any():
        return nothing
    held = problem.locked
    closed = problem.barred.union(held)
    wanted = problem.demand - np.bincount(held[:, 0], minlength=n_submissions)
    carried = np.bincount(held[:, 1], minlength=n_reviewers)
    load_max = problem.load_max - carried
    load_min = np.maximum(problem.load_min - carried, 0)
    w = np.where(load_max > 0, reviewer_prices, 0.0)
    groups, terms, paid = rule_terms(problem.rules, rule_prices, problem.shape) if len(rule_prices) else ([], None, 0.0)
    given = Linearised(problem.scores, np.zeros(n_submissions), terms, groups)
    held_score = np.nan_to_num(problem.scores.values(held[:, 0], held[:, 1]))
    base = np.bincount(held[:, 0], weights=held_score, minlength=n_submissions).astype(np.float64)
    level = np.zeros(n_submissions)
    level[welfare.among] = welfare.conjugate_parts(weights[welfare.among])
    level += weights * base
    parts = [
        paid,
        float(given.linear(held[:, 0], held[:, 1], np.zeros(len(held))).sum()),
        float(load_max @ np.maximum(w, 0.0) - load_min @ np.maximum(-w, 0.0)),
    ]
    if not np.isfinite(level).all():
        return nothing
    linear, last, searches = np.array(level), np.zeros(n_submissions), []
    sets = list(nothing.sets)
    everyone = slice(0, n_reviewers)
    step = max(1, ENTRIES // max(1, n_reviewers))
    for top in range(0, n_submissions, step):
        rows = slice(top, min(top + step, n_submissions))
        score = np.array(problem.scores.block(rows, everyone), dtype=np.float64)
        gift = given.block(rows, everyone) if groups or terms is not None else np.zeros(score.shape)
        gift = np.where(np.isnan(gift), 0.0, gift) - w
        value = weights[rows, None] * score + gift
        value[np.isnan(value)] = -np.inf
        value[closed.within(rows, everyone)] = -np.inf
        value[:, load_max <= 0] = -np.inf
        slack = 2.0 * problem.scores.tolerance * weights[rows]
        for at in range(rows.stop - rows.start):
            row = rows.start + at
            count = int(min(wanted[row], np.isfinite(value[at]).sum()))
            if not count:
                continue
            least = np.partition(value[at], n_reviewers - count)[n_reviewers - count]
            best = np.flatnonzero(value[at] >= least - slack[at])
            exact = problem.scores.values(np.full(best.size, row), best)
            worth = weights[row] * exact + gift[at, best]
            order = np.argsort(-worth, kind="stable")[:count]
            linear[row] += worth[order].sum()
            last[row] = worth[order[-1]]
            sets[row] = best[order].astype(np.int64)
            if not welfare.among[row]:
                continue
            worth_at = _worths(welfare, row)
            reached = float(worth_at(base[row : row + 1] + exact[order].sum())[0] + gift[at, best[order]].sum())
            distance = float(linear[row] - reached)
            use = np.flatnonzero((value[at] >= least - distance - slack[at]) & np.isfinite(value[at]))
            if distance > 0.0 and use.size > count:
                searches.append((distance, row, use, gift[at, use], count, reached))
            elif distance > 0.0:
                linear[row] = reached
    searches.sort(key=lambda search: (-search[0], search[1]))
    left = STEPS
    largest = max((abs(value) for value in linear.tolist()), default=0.0)
    for distance, row, use, gift_of, count, reached in searches:
        if left <= 0 or distance <= SLIGHT * largest:
            break
        exact = problem.scores.values(np.full(use.size, row), use)
        most, chosen, steps = _best_set(
            _worths(welfare, row), exact, gift_of, count, float(base[row]), float(weights[row]), float(level[row]),
            reached, min(left, STEPS_EACH),
        )  # fmt: skip
        linear[row] = min(linear[row], most)
        if chosen:
            sets[row] = use[list(chosen)].astype(np.int64)
        left -= steps
    return WholeSets(math.fsum([*parts, *linear.tolist()]), linear, tuple(sets), last)


def _best_set(
    worth_at: Callable[[FloatArray], FloatArray],
    score: FloatArray,
    gift: FloatArray,
    count: int,
    base: float,
    weight: float,
    level: float,
    reached: float,
    steps: int,
) -> tuple[float, tuple[int, ...], int]:
    """The largest phi(base + scores) + gifts over sets of `count` people, or a bound on it; the set; steps taken.

    Best first: a node is a first few people in order of ``weight * score + gift``, taken or left, and its promise is
    the tangent's value with the best people still open. `reached` is the value of some set; where it is the best, the
    set returned is empty.
    """
    worth = weight * score + gift
    order = np.argsort(-worth, kind="stable")
    score, gift, worth = score[order], gift[order], worth[order]
    sums = np.concatenate([[0.0], np.cumsum(worth)]).tolist()
    # people alike in score and gift are one kind: leaving one of them means leaving the rest
    alike = np.concatenate([(np.diff(score) == 0) & (np.diff(gift) == 0), [False]])
    after = np.arange(1, score.size + 1)
    for at in range(score.size - 2, -1, -1):
        if alike[at]:
            after[at] = after[at + 1]
    following, scores, gifts, worths = after.tolist(), score.tolist(), gift.tolist(), worth.tolist()
    places = order.tolist()
    best, best_set = reached, ()
    none: tuple[int, ...] = ()
    heap = [(-(level + sums[count]), 0, count, base, 0.0, level, none)]
    taken = 0
    while heap:
        promise, at, open_, total, gifted, linear, chosen = heapq.heappop(heap)
        if -promise <= best:
            break
        if taken >= steps:
            return -promise, best_set, taken
        taken += 1
        if open_ == 1:
            # the last one: all that are left at once
            values = worth_at(total + score[at:]) + (gifted + gift[at:])
            top = int(np.argmax(values))
            if values[top] > best:
                best, best_set = float(values[top]), (*chosen, places[at + top])
            continue
        onward = following[at]
        if onward + open_ <= len(scores):
            ahead = linear + sums[onward + open_] - sums[onward]
            if ahead > best:
                heapq.heappush(heap, (-ahead, onward, open_, total, gifted, linear, chosen))
        ahead = linear + worths[at] + sums[at + open_] - sums[at + 1]
        if ahead > best:
            heapq.heappush(
                heap,
                (
                    -ahead, at + 1, open_ - 1, total + scores[at], gifted + gifts[at], linear + worths[at],
                    (*chosen, places[at]),
                ),
            )  # fmt: skip
    return best, best_set, taken
