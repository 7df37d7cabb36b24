"""Rules by attributes, compiled for one venue: bounds for the solvers, barred pairs with reasons, locks, loads.

The language is described in `matching.rules.language`. Every fault of every rule is reported together, at its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from matching.constraints.attributes import Attributes, Links
from matching.constraints.bars import MOST_BARRED, Bars, ClassBar
from matching.constraints.bounds import Bound
from matching.constraints.choice import Choice
from matching.constraints.counting import load_bound, per_line, reviews_in_all, same_value_once
from matching.constraints.pair_rules import PAIR_RULES
from matching.constraints.rings import coreviewer_distance, no_cycles, share_reviewers
from matching.errors import InvalidParamsError, InvalidVenueError
from matching.notices import Notice
from matching.pairs import PairSet
from matching.rules.language import parse_rules
from matching.rules.readers import Faults
from matching.rules.values import Rule
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["CompiledRules", "compile_rules", "parse_rules"]

MOST_CLASSES = 1000  # classes by which bars too many to list may be said


@dataclass(frozen=True, eq=False)
class CompiledRules:
    """What rules mean for one problem.

    Attributes
    ----------
    bounds : tuple of Bound
        For `AssignmentProblem.of(rules=...)`, in the order of the rules.
    bars : Bars
        Pairs that hard rules bar, with reasons; they belong among the problem's conflicts.
    locks : ndarray of shape (n, 2), int64
        Pairs that rules lock, sorted.
    load_max, load_min : ndarray of shape (n_reviewers,), int64
        Limits in submissions for the problem. Those given to `Attributes`, unless submissions weigh differently: then
        what the bound "load" among `bounds` leaves of them.
    notices : tuple of Notice
    rules : mapping of str to Rule
        Name of a bound or bar -> the rule it came from; the bound "load" is not among them.
    locked_by : mapping of str to (Rule, ndarray of shape (n, 2), int64)
        Name of a rule that locks -> the rule and its pairs.
    """

    bounds: tuple[Bound, ...]
    bars: Bars
    locks: PairArray
    load_max: IntArray
    load_min: IntArray
    notices: tuple[Notice, ...]
    rules: Mapping[str, Rule]
    locked_by: Mapping[str, tuple[Rule, PairArray]]

    @property
    def barred(self) -> PairSet:
        """The pairs of `bars`."""
        return self.bars.pairs


def compile_rules(rules: Sequence[Rule], attributes: Attributes, *, barred: PairSet | None = None) -> CompiledRules:
    """Look rules up in the attributes of a venue or a score matrix.

    Parameters
    ----------
    rules : sequence of Rule
        Of one list or of several (`parse_rules`); all of them apply.
    attributes : Attributes
    barred : PairSet, optional
        Conflicts. Rings of reviewers are not looked for among them.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        The first if a rule of the venue is at fault. Every fault, at its place: an attribute no record can have
        (``unknown-attribute``), an id nobody has (``unknown-id``), a selection, class or group that nobody on record
        belongs to (``rule-matches-nobody``), values of a wrong type, submissions with two weights (``contradiction``),
        rules with more constraints or bars than can be held (``rule-too-large``).

    Notes
    -----
    Selections that match only people or submissions out of the run are notices (``rule-matches-idle``): the rule binds
    nobody now. Time and memory grow with the records and the pairs that rules list, never with all pairs, except for
    bars, which are listed up to 2**27 pairs.
    """
    made = _Compiler(attributes, PairSet(None, attributes.shape) if barred is None else barred)
    names: dict[str, Rule] = {}
    for rule in rules:
        name, count = rule.name, 1
        while name in names:  # lists are named apart from one another
            count += 1
            name = f"{rule.name} ({count})"
        names[name] = replace(rule, name=name)
    for rule in sorted(names.values(), key=lambda one: one.kind != "load_weight"):  # others ask how many fit a load
        made.add(rule)
    return made.result(names)


class _Compiler:
    def __init__(self, attributes: Attributes, barred: PairSet) -> None:
        self.attributes = attributes
        self.barred = barred
        self.faults: dict[str, Faults] = {}
        self.notices: list[Notice] = []
        self.bounds: dict[str, list[Any]] = {}
        self.bars: dict[str, ClassBar] = {}
        self.locks: dict[str, tuple[Rule, PairArray]] = {}
        self.weight_of: FloatArray = np.full(attributes.shape[0], np.nan)
        self._links: Links | None = None
        self.load_max, self.load_min = attributes.load_max, attributes.load_min

    @property
    def links(self) -> Links:
        if self._links is None:
            self._links = self.attributes.links()
        return self._links

    def add(self, rule: Rule) -> None:
        faults = self.faults.setdefault(rule.source, Faults(rule.source))
        choice = Choice(rule, self.attributes, faults, self.notices)
        if not choice.sound:
            return
        out: list[Any] = []
        if rule.kind in ("reviewers_per_submission", "submissions_per_reviewer"):
            out += per_line(choice, self._most())
        elif rule.kind == "reviews_in_all":
            out += reviews_in_all(choice)
        elif rule.kind == "no_shared_reviewers":
            out += same_value_once(choice)
        elif rule.kind == "share_reviewers":
            out += share_reviewers(choice)
        elif rule.kind == "coreviewer_distance":
            out += coreviewer_distance(choice, self.links)
        elif rule.kind == "no_cycles":
            out += no_cycles(choice, self.links, self.barred)
        elif rule.kind == "load_weight":
            self._weigh(choice)
        elif rule.kind == "lock":
            self._lock(choice)
        else:
            bar = PAIR_RULES[rule.kind](choice)
            if bar is not None and bar.count:
                out += self._bar(choice, bar)
        self.bounds[rule.name] = out

    def _bar(self, choice: Choice, bar: ClassBar) -> list[Any]:
        rule = choice.rule
        if rule.price is not None:
            return list(bar.priced(rule.price, self.attributes.submissions.ids[: self.attributes.shape[0]]))
        if bar.count <= MOST_BARRED:
            self.bars[rule.name] = bar
            return []
        if bar.barred.shape[0] > MOST_CLASSES:
            choice.fault("", f"bars {bar.count} pairs in too many classes of submissions", "rule-too-large")
            return []
        return [bar.by_class()]

    def _weigh(self, choice: Choice) -> None:
        weight = choice.rule.options["weight"]
        held = self.weight_of[choice.rows]
        twice = choice.rows[~np.isnan(held) & (held != weight)]
        if twice.size:
            first = self.attributes.submissions.ids[int(twice[0])]
            reason = f"another rule gives {twice.size} of these submissions a different weight, first {first}"
            choice.fault("weight", reason, "contradiction", weight)
        self.weight_of[choice.rows] = weight

    def _most(self) -> IntArray:
        """Most submissions each reviewer can have, by weights where there are any."""
        if np.isnan(self.weight_of).all():
            return self.attributes.load_max
        return load_bound(self._weights(), self.attributes.load_max, self.attributes.load_min, self._reviewer_ids())[1]

    def _weights(self) -> FloatArray:
        return np.where(np.isnan(self.weight_of), 1.0, self.weight_of)

    def _reviewer_ids(self) -> Sequence[str]:
        return self.attributes.reviewers.ids[: self.attributes.shape[1]]

    def _lock(self, choice: Choice) -> None:
        other_roles: set[int] = set()
        for name in ("submissions", "reviewers"):
            side, _ = choice.side(name)
            for condition in getattr(choice.rule, name):
                column = choice.column(name, "id", f"{name}.id")
                for value in condition.values if column is not None and condition.values else ():
                    meant = np.flatnonzero(column.having(column.find(value))).tolist() if column is not None else []
                    own = [at for at in meant if side.ids[at] == str(value).strip()]
                    in_roles = name == "reviewers" and self.attributes.role_columns is not None
                    if len(meant) > 1 and len(own) == 1 and in_roles:
                        other_roles.update(set(meant) - set(own))  # the account named says the role
                    elif len(meant) > 1:
                        choice.fault(f"{name}.id", f"{value!r} may mean more than one", "ambiguous-id", value)
        cols = [col for col in choice.cols.tolist() if col not in other_roles]
        pairs = np.array([(row, col) for row in choice.rows for col in cols], dtype=np.int64).reshape(-1, 2)
        self.locks[choice.rule.name] = (choice.rule, pairs)

    def result(self, rules: Mapping[str, Rule]) -> CompiledRules:
        issues = [issue for faults in self.faults.values() for issue in faults.issues]
        if issues:
            of_venue = any(faults.issues for source, faults in self.faults.items() if source != "params")
            raise (InvalidVenueError if of_venue else InvalidParamsError)(issues=issues)
        bounds = [bound for name in rules for bound in self.bounds.get(name, ())]
        load_max, load_min = self.attributes.load_max, self.attributes.load_min
        if not np.isnan(self.weight_of).all():
            bound, load_max, load_min = load_bound(self._weights(), load_max, load_min, self._reviewer_ids())
            bounds.append(bound)
        pairs = [held for _, held in self.locks.values()]
        locks = PairSet(np.concatenate(pairs) if pairs else None, self.attributes.shape, "locks").pairs()
        for array in (load_max, load_min, locks):
            array.setflags(write=False)
        bars = Bars(self.attributes.shape, [self.bars[name] for name in rules if name in self.bars])
        return CompiledRules(
            tuple(bounds), bars, locks, load_max, load_min, tuple(self.notices), MappingProxyType(dict(rules)),
            MappingProxyType(self.locks),
        )  # fmt: skip
