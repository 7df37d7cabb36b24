"""What would close a shortage, each with what it does exactly, found by solving again.

Candidates come from the minimal short sets and from clashing rules; none is named whose effect is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matching.constraints.bounds import GroupBound
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import ONE_ROLE
from matching.explain.changes import filled, more_load, more_people, without_bars
from matching.explain.clash import Clash, relaxed
from matching.explain.names import Names, listed, some
from matching.explain.resolves import Resolves
from matching.explain.unserved import Shortage, open_pairs
from matching.roles import one_of
from matching.types import IntArray

__all__ = ["cheapest_repairs"]

MOST_TRIED = 40
MOST_TOLD = 10
OF_A_KIND = 6  # candidates of one kind for one short set


@dataclass(frozen=True, eq=False)
class _Repair:
    """A change, in words and as a problem."""

    kind: str
    sentence: str
    changes: int
    problem: AssignmentProblem
    facts: dict[str, Any]


def cheapest_repairs(
    problem: AssignmentProblem,
    missing: float,
    short: Sequence[Shortage],
    minima: Sequence[Shortage],
    clash: Clash | None,
    below_min: IntArray,
    names: Names,
    resolves: Resolves,
) -> tuple[list[dict[str, Any]], str | None]:
    """At most ten changes that leave less missing: those that leave nothing first, by their steps.

    Parameters
    ----------
    missing : float
        What the fullest plan misses now: reviews, load minima and units of hard rules.
    below_min : ndarray of shape (n_reviewers,), int64
        Reviews the fullest plan leaves people below load_min.

    Returns
    -------
    repairs : list of dict
        ``kind`` ("load_max", "conflict", "allow_unknown", "recruit", "load_min" or "rule"), ``sentence``,
        ``changes`` (single steps: reviews, pairs, bounds, people), ``filled`` and ``missing`` (closed by it, and still
        missing after it; of a solve of the changed problem), and who or what is changed: ``submissions``,
        ``reviewers``, ``areas``, ``rule``, and of recruits for one of several roles ``role``.
    note : str or None
        What was not looked at, and why.
    """
    most = resolves.count(problem, MOST_TRIED)
    if not most:
        return [], "Repairs were not looked for: the venue is too large to be solved again for each of them."
    found: list[tuple[float, _Repair, float]] = []
    note = None
    for tried, repair in enumerate(_in_turns(_candidates(problem, short, minima, clash, below_min, names))):
        left = resolves.missing(repair.problem) if tried < most else None
        if left is None:
            why = "; there are more." if tried == most else "; for the next one the time did not suffice."
            note = some(tried, "repair was", "repairs were") + f" tried{why}"
            break
        if left < missing:
            found.append((missing - left, repair, left))
    found = [entry for entry in found if not any(_is_less_for_more(entry, other) for other in found)]
    found.sort(key=_rank)
    return [
        {
            "kind": repair.kind,
            "sentence": f"{repair.sentence}: closes {filled:g} of {missing:g}, {_what_is_left(left)}.",
            "changes": repair.changes,
            "filled": filled,
            "missing": left,
            **repair.facts,
        }
        for filled, repair, left in found[:MOST_TOLD]
    ], note


def _rank(entry: tuple[float, _Repair, float]) -> tuple[bool, int, float, int, str]:
    """Changes that leave nothing missing by their steps, then the others by what they close."""
    filled, repair, left = entry
    return left > 0, repair.changes if not left else 0, -filled, repair.changes, repair.sentence


def _what_is_left(left: float) -> str:
    return f"{left:g} still missing" if left else "nothing is missing then"


def _is_less_for_more(entry: tuple[float, _Repair, float], other: tuple[float, _Repair, float]) -> bool:
    """Whether another change of the same kind does as much with fewer steps."""
    mine, theirs = entry[1], other[1]
    alike = mine.kind == theirs.kind and mine.facts.get("rule") == theirs.facts.get("rule")
    return alike and theirs.changes < mine.changes and other[0] >= entry[0]


def _in_turns(kinds: Sequence[Iterator[_Repair]]) -> Iterator[_Repair]:
    """One of each kind after another, so that none keeps the others from being tried."""
    left = list(kinds)
    while left:
        going = []
        for kind in left:
            if (repair := next(kind, None)) is not None:
                yield repair
                going.append(kind)
        left = going


def _candidates(
    problem: AssignmentProblem,
    short: Sequence[Shortage],
    minima: Sequence[Shortage],
    clash: Clash | None,
    below_min: IntArray,
    names: Names,
) -> list[Iterator[_Repair]]:
    out = [
        _rules(problem, clash, names),
        _class_recruits(problem, clash),
        _class_loads(problem, clash, names),
        _minima(problem, minima, below_min, names),
    ]
    if len(short) > 1:
        out.append(_recruits(problem, short, names))
    for group in short:
        out += [_recruits(problem, [group], names), _loads(problem, group, names), _conflicts(problem, group, names)]
    out += [_everyone(problem, short, names), _unknown(problem, names)]
    return out


def _loads(problem: AssignmentProblem, group: Shortage, names: Names) -> Iterator[_Repair]:
    """People of a short set who give all they have while more of its submissions are open to them."""
    table = open_pairs(problem, group.lines)
    room = problem.load_max - np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    reach = table.sum(axis=0)
    full = np.flatnonzero(reach > room)
    lacking = group.needed - group.capacity
    if full.size > 1 and lacking > 1:
        some_people = full[np.argsort(-reach[full], kind="stable")][:lacking]
        yield _load(problem, some_people, names)
    for col in full[np.lexsort((full, problem.load_max[full] == 0, -reach[full]))][:OF_A_KIND].tolist():
        yield _load(problem, np.array([col]), names)


def _load(problem: AssignmentProblem, cols: IntArray, names: Names) -> _Repair:
    ids = [names.reviewers[col] for col in cols.tolist()]
    each = "" if len(ids) == 1 else " each"
    return _Repair(
        "load_max", f"One more review{each} by {listed(ids)}", len(ids), more_load(problem, cols), {"reviewers": ids}
    )


def _class_loads(problem: AssignmentProblem, clash: Clash | None, names: Names) -> Iterator[_Repair]:
    """People of whom a clashing rule asks for more."""
    asked = np.zeros(problem.shape[1], dtype=bool)
    for _, rule, b in _asked_for(problem, clash):
        asked[rule.reviewers[[b]].indices] = True
    rank = np.lexsort((np.arange(asked.size), problem.load_max == 0))
    for col in rank[asked[rank]][:OF_A_KIND].tolist():
        yield _load(problem, np.array([col]), names)


def _class_recruits(problem: AssignmentProblem, clash: Clash | None) -> Iterator[_Repair]:
    """A new person of each class of whom a clashing rule asks for more."""
    for at, rule, b in _asked_for(problem, clash)[:OF_A_KIND]:
        anywhere = np.zeros((problem.shape[0], 1))
        yield _Repair(
            "recruit",
            f'1 more reviewer for the rule "{rule.name}" ({rule.reviewer_labels[b]}), free of conflicts, 1 review',
            1, more_people(problem, anywhere, classes={at: [b]}), {"rule": rule.name},
        )  # fmt: skip


def _asked_for(problem: AssignmentProblem, clash: Clash | None) -> list[tuple[int, GroupBound, int]]:
    """(place of the rule, rule, class of reviewers) of every lower bound of a clash."""
    found: dict[tuple[int, int], GroupBound] = {}
    for at, keys in (clash.parts if clash is not None else {}).items():
        rule = problem.rules[at]
        if isinstance(rule, GroupBound):
            found.update({(at, key // 2 % rule.shape[1]): rule for key in keys[keys % 2 == 1].tolist()})
    return [(at, rule, b) for (at, b), rule in found.items()]


def _everyone(problem: AssignmentProblem, short: Sequence[Shortage], names: Names) -> Iterator[_Repair]:
    """Everybody who takes reviews and is of a role that is short."""
    if not short:
        return
    concerned = np.zeros(problem.shape[1], dtype=bool)
    for group in short:
        concerned |= names.people(int(group.lines[0]))
        concerned |= names.people(int(group.lines[-1]))
    able = np.flatnonzero((problem.load_max > 0) & concerned)
    if able.size:
        yield _Repair(
            "load_max", f"One more review by each of all {some(able.size, 'reviewer')}", able.size,
            more_load(problem, able), {"reviewers": []},
        )  # fmt: skip


def _conflicts(problem: AssignmentProblem, group: Shortage, names: Names) -> Iterator[_Repair]:
    """Barred pairs of a short set that may be guesses, with people who have load to spare."""
    room = problem.load_max - np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    spare = room > open_pairs(problem, group.lines).sum(axis=0)
    count = 0
    for row in group.lines.tolist():
        for col in problem.barred.row(row).tolist():
            if count == OF_A_KIND:
                return
            if not spare[col] or not names.may_be_lifted(row, col):
                continue
            count += 1
            what, who, why = names.submissions[row], names.reviewers[col], "; ".join(names.reasons(row, col))
            yield _Repair(
                "conflict", f"Looking again at the conflict of {who} with {what} ({why})",
                1, without_bars(problem, np.array([[row, col]])), {"submissions": [what], "reviewers": [who]},
            )  # fmt: skip


def _unknown(problem: AssignmentProblem, names: Names) -> Iterator[_Repair]:
    """Pairs that only the switches keep out."""
    if not getattr(problem.scores, "may_be_unknown", True):
        return
    everyone = slice(0, problem.shape[1])
    if any(
        (np.isnan(problem.scores.block(slice(row, row + 1), everyone)[0]) & names.people(row)).any()
        for row in range(problem.shape[0])
    ):
        yield _Repair(
            "allow_unknown", "Switching on allow_unknown and allow_zero", 1,
            replace(problem, scores=filled(problem.scores)), {},
        )  # fmt: skip


def _recruits(problem: AssignmentProblem, short: Sequence[Shortage], names: Names) -> Iterator[_Repair]:
    """New people free of conflict with short sets."""
    lines = np.concatenate([group.lines for group in short])
    ids = [names.submissions[row] for row in lines.tolist()]
    count = sum(group.needed - group.capacity for group in short)
    areas: Counter[str] = Counter()
    if len(names.submission_areas) == problem.shape[0]:
        for row in lines.tolist():
            areas.update(set(names.submission_areas[row]))
    common = [area for area, _ in sorted(areas.items(), key=lambda item: (-item[1], item[0]))[:5]]
    open_to = np.full((problem.shape[0], count), np.nan)
    open_to[lines] = 0.0
    about = f" (areas {', '.join(common)})" if common else ""
    roles = {names.role(row) for row in lines.tolist()}
    role = roles.pop() if len(roles) == 1 else None
    who = some(count, "more reviewer") if role is None else some(count, f"more {one_of(role)}")
    of_role = {} if role is None else {"role": role}
    each = " who takes 1 review" if count == 1 else " who take 1 review each"
    yield _Repair(
        "recruit", f"{who} free of conflict with {listed(ids)}{about}{each}",
        count, more_people(problem, open_to), {"submissions": ids, "areas": common, **of_role},
    )  # fmt: skip


def _minima(
    problem: AssignmentProblem, minima: Sequence[Shortage], below_min: IntArray, names: Names
) -> Iterator[_Repair]:
    """Lower load minima: of those the fullest plan leaves short, then one by one of the people of a short set."""
    short = np.flatnonzero(below_min)
    if short.size:
        yield _minimum(problem, short, below_min[short], names)
    for group in minima:
        for col in group.lines[:OF_A_KIND].tolist():
            if not (short.size == 1 and col == short[0] and below_min[col] == 1):
                yield _minimum(problem, np.array([col]), np.array([1]), names)


def _minimum(problem: AssignmentProblem, cols: IntArray, by: IntArray, names: Names) -> _Repair:
    least = problem.load_min.copy()
    least[cols] -= by
    least.setflags(write=False)
    ids = [names.reviewers[col] for col in cols.tolist()]
    told = [f"{name} to {limit}" for name, limit in zip(ids, least[cols].tolist(), strict=True)]
    return _Repair(
        "load_min", f"Lowering load_min of {listed(told)}", int(by.sum()), replace(problem, load_min=least),
        {"reviewers": ids},
    )  # fmt: skip


def _rules(problem: AssignmentProblem, clash: Clash | None, names: Names) -> Iterator[_Repair]:
    """Each bound of a clash moved by one, then each of its rules; then each load minimum of it lowered by one."""
    if clash is None:
        return
    for at, keys in clash.parts.items():
        if problem.rules[at].name == ONE_ROLE:
            continue  # no wish of a chair: nobody is reviewer and area chair of one submission
        steps = [keys[place : place + 1] for place in range(min(len(keys), OF_A_KIND))]
        for part in steps + ([keys] if len(keys) > 1 else []):
            rules = list(problem.rules)
            rules[at] = relaxed(rules[at], part)
            told = replace(clash, parts={at: part}, minima=clash.minima[:0]).told(problem, names)["rules"]
            where = [
                " and ".join(entry[key] for key in ("submissions", "reviewers", "where") if key in entry)
                for entry in told
            ]
            yield _Repair(
                "rule", f'Relaxing the rule "{rules[at].name}" by one for {listed(where, 6)}', len(part),
                replace(problem, rules=tuple(rules)), {"rule": rules[at].name},
            )  # fmt: skip
    for col in clash.minima[:OF_A_KIND].tolist():
        yield _minimum(problem, np.array([col]), np.array([1]), names)
