"""Rules that cannot hold together: an irreducible set of them, found by leaving out what is not needed for the clash.

The deletion filter (Chinneck and Dravnieks, 1991): take a part out; if still no full plan exists, it stays out. Rules
are taken out whole first, then by halves of their single bounds, so a rule over a thousand submissions comes down to
the few it fails for. Leaving out constraints never makes a full plan impossible, so one pass is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matching.constraints.bounds import NO_UPPER, Bound, GroupBound, PairLimit
from matching.constraints.problem import AssignmentProblem
from matching.explain.names import Names
from matching.explain.resolves import Resolves
from matching.types import IntArray

__all__ = ["Clash", "clashing_rules", "relaxed"]

MOST_SOLVES = 200  # for one clash; what is then not looked at stays in
MOST_CELLS = 1 << 22  # class pairs of a rule whose bounds are looked at one by one
NAMED = 12  # bounds in the sentence; the list is complete


@dataclass(frozen=True, eq=False)
class Clash:
    """Bounds of which no plan keeps all, while every selection without one of them can be kept.

    Attributes
    ----------
    parts : mapping of int to ndarray of int64
        Rule -> its bounds that take part, as `_sides` numbers them.
    minima : ndarray of int64
        Reviewers whose load_min takes part.
    irreducible : bool
        Whether each of them is needed for the clash; False where the solves for it ran out.
    """

    parts: dict[int, IntArray]
    minima: IntArray
    irreducible: bool

    def told(self, problem: AssignmentProblem, names: Names) -> dict[str, Any]:
        """``rules``, a list of {rule, submissions, reviewers | where, at_least | at_most}; ``load_min``, a list of
        {reviewer, load_min}; ``irreducible``; ``sentence``."""
        rules = [entry for at, keys in self.parts.items() for entry in _entries(problem.rules[at], keys)]
        minima = [
            {"reviewer": names.reviewers[col], "load_min": int(problem.load_min[col])} for col in self.minima.tolist()
        ]
        words = [_in_words(entry) for entry in rules]
        words += [f"load_min of {entry['reviewer']} is {entry['load_min']}" for entry in minima]
        shown = "; ".join(words[:NAMED]) + (f"; and {len(words) - NAMED} more" if len(words) > NAMED else "")
        if len(words) == 1:
            sentence = f"One bound alone cannot be kept with these people, loads and conflicts: {shown}."
        else:
            sentence = f"These {len(words)} bounds cannot all be kept with these people, loads and conflicts: {shown}."
            if self.irreducible:
                sentence += " Without any one of them the others of this list can."
        return {"rules": rules, "load_min": minima, "irreducible": self.irreducible, "sentence": sentence}


def clashing_rules(problem: AssignmentProblem, resolves: Resolves) -> Clash | None:
    """An irreducible set of hard bounds and load minima that keeps every plan from being full.

    Returns
    -------
    Clash or None
        None where there are no hard rules, where demand, loads and conflicts alone rule out a full plan, or where
        the problem is too large or time too short to say.
    """
    hard = [at for at, rule in enumerate(problem.rules) if rule.price is None and _sides(rule).size]
    most = resolves.count(problem, MOST_SOLVES)
    if not hard or most < 2:
        return None
    minima = np.flatnonzero(problem.load_min)
    filter_ = _Filter(problem, resolves, most)
    if filter_.clashes({}, minima[:0]) is not False:
        return None
    parts = {at: _sides(problem.rules[at]) for at in hard}
    if minima.size and filter_.clashes(parts, minima[:0]):
        minima = minima[:0]
    for at in hard:
        without = {other: keys for other, keys in parts.items() if other != at}
        if filter_.clashes(without, minima):
            parts = without
    for at in list(parts):
        parts[at] = filter_.needed(parts[at], lambda keys, at=at: ({**parts, at: keys}, minima))  # type: ignore[misc]
    minima = filter_.needed(minima, lambda cols: (parts, cols))
    parts = {at: keys for at, keys in parts.items() if keys.size}
    return Clash(parts, minima, filter_.sure)


class _Filter:
    """Asks whether a full plan exists under some of the bounds."""

    def __init__(self, problem: AssignmentProblem, resolves: Resolves, most: int) -> None:
        self.problem = problem
        self.resolves = resolves
        self.left = most
        self.sure = True

    def clashes(self, parts: dict[int, IntArray], minima: IntArray) -> bool | None:
        """Whether no full plan keeps these; None where that stays open."""
        self.left -= 1
        least = np.zeros_like(self.problem.load_min)
        least[minima] = self.problem.load_min[minima]
        rules = tuple(_only(self.problem.rules[at], keys) for at, keys in sorted(parts.items()))
        missing = self.resolves.missing(replace(self.problem, rules=rules, load_min=least)) if self.left >= 0 else None
        if missing is None:
            self.sure = False
            return None
        return missing > 0

    def needed(self, keys: IntArray, given: Callable[[IntArray], tuple[dict[int, IntArray], IntArray]]) -> IntArray:
        """Those of `keys` without which the clash would go away; whole stretches are tried first."""
        size = 1 << max(0, int(keys.size - 1).bit_length() - 1)
        while size and keys.size:
            at = 0
            while at < keys.size and self.left > 0:
                rest = np.concatenate([keys[:at], keys[at + size :]])
                if self.clashes(*given(rest)):
                    keys = rest
                else:
                    at += size
            if self.left <= 0:
                self.sure = False
                break
            size //= 2
        return keys


def _sides(rule: Bound) -> IntArray:
    """Numbers of the bounds that can bind: 2 * constraint for upper ones, 2 * constraint + 1 for lower ones."""
    if isinstance(rule, GroupBound):
        if rule.lower.size > MOST_CELLS:
            return np.empty(0, dtype=np.int64)
        upper, lower = np.flatnonzero(rule.upper < NO_UPPER), np.flatnonzero(rule.lower > 0)
        return np.sort(np.concatenate([2 * upper, 2 * lower + 1]))
    if isinstance(rule, PairLimit):
        return 2 * np.flatnonzero(rule.upper < np.bincount(rule.which, minlength=len(rule.upper)))
    return 2 * np.flatnonzero(rule.least > 0) + 1


def _only(rule: Bound, keys: IntArray) -> Bound:
    """The rule with these bounds alone."""
    if isinstance(rule, GroupBound):
        lower, upper = np.zeros(rule.shape), np.full(rule.shape, float(NO_UPPER))
        low, high = keys[keys % 2 == 1] // 2, keys[keys % 2 == 0] // 2
        lower.flat[low] = rule.lower.flat[low]
        upper.flat[high] = rule.upper.flat[high]
        return replace(rule, lower=lower, upper=upper)
    if isinstance(rule, PairLimit):
        free = np.full(len(rule.upper), NO_UPPER, dtype=np.int64)
        free[keys // 2] = rule.upper[keys // 2]
        return replace(rule, upper=free)
    least = np.zeros_like(rule.least)
    least[keys // 2] = rule.least[keys // 2]
    return replace(rule, least=least)


def relaxed(rule: Bound, keys: IntArray) -> Bound:
    """The rule with these bounds moved by one: upper ones up, lower ones down, to 0 at the least."""
    if isinstance(rule, GroupBound):
        lower, upper = np.array(rule.lower), np.array(rule.upper)
        low, high = keys[keys % 2 == 1] // 2, keys[keys % 2 == 0] // 2
        lower.flat[low] = np.maximum(lower.flat[low] - 1, 0)
        upper.flat[high] += 1
        return replace(rule, lower=lower, upper=upper)
    if isinstance(rule, PairLimit):
        more = rule.upper.copy()
        more[keys // 2] += 1
        return replace(rule, upper=more)
    fewer = rule.least.copy()
    fewer[keys // 2] = np.maximum(fewer[keys // 2] - 1, 0)
    return replace(rule, least=fewer)


def _entries(rule: Bound, keys: IntArray) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for key in keys.tolist():
        at, low = key // 2, key % 2 == 1
        if isinstance(rule, GroupBound):
            a, b = divmod(at, rule.shape[1])
            where = {"submissions": rule.submission_labels[a], "reviewers": rule.reviewer_labels[b]}
            limit = float((rule.lower if low else rule.upper)[a, b])
        else:
            where = {"where": rule.labels[at] if rule.labels else str(at)}
            limit = float(rule.upper[at] if isinstance(rule, PairLimit) else rule.least[at])
        out.append({"rule": rule.name, **where, "at_least" if low else "at_most": limit})
    return out


def _in_words(entry: dict[str, Any]) -> str:
    where: Sequence[str] = [entry[key] for key in ("submissions", "reviewers", "where") if key in entry]
    side = f"at least {entry['at_least']:g}" if "at_least" in entry else f"at most {entry['at_most']:g}"
    return f'rule "{entry["rule"]}" for {" and ".join(where)}: {side}'
