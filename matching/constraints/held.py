"""Locks that contradict a bar, a demand or a load: each fault with its pair and the rules that have a part in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.rules import CompiledRules
from matching.errors import Issue
from matching.pairs import PairSet
from matching.rules.values import Rule
from matching.types import IntArray, PairArray

__all__ = ["RoleDemand", "lock_faults"]

REQUEST = "params"  # source of rules that came with the run


@dataclass(frozen=True, eq=False)
class RoleDemand:
    """What the people of one role may be held for.

    Attributes
    ----------
    columns : slice
        Those of the role.
    demand : ndarray of shape (n_submissions,), int64
    words : str
        What a message says behind "reviews"; empty where there is one role.
    """

    columns: slice
    demand: IntArray
    words: str = ""


def lock_faults(
    held: PairArray,
    barred: PairSet,
    demands: Sequence[RoleDemand],
    load_max: IntArray,
    ids: tuple[Sequence[str], Sequence[str]],
    evidence: Callable[[int, int], Iterable[str]],
    made: CompiledRules | None = None,
) -> list[Issue]:
    """What keeps locked pairs from standing in any plan.

    Parameters
    ----------
    held : ndarray of shape (n, 2), int64
        All locked pairs, each once.
    barred : PairSet
        Conflicts, those of rules among them.
    demands : sequence of RoleDemand
        One for each role of the run.
    load_max : ndarray of shape (n_reviewers,), int64
    ids : of the submissions and of the reviewers
    evidence : callable
        Why a pair is in conflict, apart from rules.
    made : CompiledRules, optional

    Returns
    -------
    list of Issue
        ``locked-conflict`` with the value ``[submission, reviewer]``, ``too-many-locks`` with the id. Where a rule is
        to blame, its source and place are the issue's: one that came with the run before the venue's, one that locks
        before one that bars.
    """
    lockers = {} if made is None else made.locked_by
    issues = []
    for row, col in held[barred.contains(held[:, 0], held[:, 1])].tolist():
        locking = [rule for rule, pairs in lockers.values() if (pairs == (row, col)).all(axis=1).any()]
        bars = (
            []
            if made is None
            else [(made.rules[reason.rule], reason.evidence) for reason in made.bars.reasons(row, col)]
        )
        why = [*evidence(row, col), *(f"rule {rule.name}: {words}" for rule, words in bars)]
        said = f"locked by {_names(locking)}" if locking else "locked"
        words = f"{ids[0][row]} and {ids[1][col]} are {said} and in conflict ({'; '.join(dict.fromkeys(why))}); "
        source, place = _blamed([*locking, *(rule for rule, _ in bars)])
        value = [ids[0][row], ids[1][col]]
        issues.append(
            Issue(words + "a conflict is never lifted by a lock", "locked-conflict", place, None, value, source)
        )
    limits = [(0, entry.columns, entry.demand, entry.words) for entry in demands]
    for axis, columns, limit, of_role in (*limits, (1, slice(0, load_max.size), load_max, "")):
        name, key = (("demand", "submissions"), ("load_max", "reviewers"))[axis]
        mine = held[(held[:, 1] >= columns.start) & (held[:, 1] < columns.stop)]
        count = np.bincount(mine[:, axis], minlength=limit.size)
        for at in np.flatnonzero(count > limit).tolist():
            locking = [rule for rule, pairs in lockers.values() if (pairs[:, axis] == at).any()]
            by = f" ({_names(locking)})" if locking else ""
            words = f"{ids[axis][at]} holds {count[at]} locked reviews{of_role}{by}, its {name} is {limit[at]}"
            source, place = _blamed(locking)
            field = name if place is None else f"{place}.{key}"
            issues.append(Issue(words, "too-many-locks", field, None, ids[axis][at], source))
    return issues


def _names(rules: Sequence[Rule]) -> str:
    return " and ".join(f"rule {rule.name}" for rule in rules)


def _blamed(rules: Sequence[Rule]) -> tuple[str, str | None]:
    """Source and place of the rule to blame; the locks themselves where there is none."""
    for rule in (*(rule for rule in rules if rule.source == REQUEST), *rules):
        return rule.source, rule.place
    return "locks", None
