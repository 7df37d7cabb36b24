"""Whom one rule chooses, with the faults and notices found on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.attributes import Attributes, Side
from matching.constraints.columns import Column
from matching.notices import Notice, in_words
from matching.rules.readers import Faults
from matching.rules.values import Rule, Scalar, Sharing
from matching.types import IntArray

__all__ = ["Choice", "Classes", "ValueSets"]

SHOWN = 20  # values nobody has that a notice names


@dataclass(frozen=True, eq=False)
class Classes:
    """Those chosen of one side by the value they have.

    Attributes
    ----------
    labels : tuple of str, length n_classes
    member : scipy.sparse.csr_array of shape (n_classes, n), float64
        Of the run. Somebody with two values is in two classes.
    """

    labels: tuple[str, ...]
    member: sparse.csr_array


@dataclass(frozen=True, eq=False)
class ValueSets:
    """Lines of one side by the set of their values, and who on the other side shares one.

    Attributes
    ----------
    lines : ndarray of shape (k,), int64
        The chosen lines that have a value.
    of_line : ndarray of shape (k,), int64
        The set of each, in [0, n_sets).
    labels : tuple of str, length n_sets
    shared : scipy.sparse.csr_array of shape (n_sets, n_others), bool
        The chosen of the other side with a value of the set.
    """

    lines: IntArray
    of_line: IntArray
    labels: tuple[str, ...]
    shared: sparse.csr_array


@dataclass
class Choice:
    """One rule looked up in the attributes.

    Attributes
    ----------
    rows, cols : ndarray, int64
        Chosen submissions and reviewers of the run, ascending; not usable once `sound` is False.
    sound : bool
        Whether no fault was found so far.
    """

    rule: Rule
    attributes: Attributes
    faults: Faults
    notices: list[Notice]
    rows: IntArray = field(init=False)
    cols: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self._before = len(self.faults.issues)
        strange: list[str] = []
        for name in ("submissions", "reviewers"):
            side: Side = getattr(self.attributes, name)
            mask, odd = side.choose(getattr(self.rule, name), f"{self.rule.place}.{name}", self.faults)
            strange += [f"{entry} of {name}" for entry in odd]
            taking = np.flatnonzero(mask[: side.n])
            if mask.any() and not taking.size:
                self.tell("rule-matches-idle", f"all {name} it is about are out of this run")
            setattr(self, "rows" if name == "submissions" else "cols", taking)
        if strange:
            more = f"; and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
            self.tell("unmatched-value", f"nobody has {'; '.join(strange[:SHOWN])}{more}")

    @property
    def sound(self) -> bool:
        return len(self.faults.issues) == self._before

    def fault(self, key: str, reason: str, code: str, value: Any = None) -> None:
        """A fault of one key of the rule; "" for the rule as a whole."""
        self.faults.add(f"{self.rule.place}.{key}" if key else self.rule.place, reason, code, value)

    def tell(self, code: str, message: str, side: Side | None = None, lines: Sequence[int] | IntArray = ()) -> None:
        """A notice about the rule, with the names of lines it speaks of."""
        names = tuple(side.ids[int(line)] for line in lines) if side is not None else ()
        words = f"rule {self.rule.name}: {message}" + (f": {in_words(names)}" if names else "")
        is_rows = side is self.attributes.submissions
        self.notices.append(
            Notice(
                code,
                words,
                names if is_rows else (),
                () if is_rows else names,
                {"rule": self.rule.name, "count": len(names)},
            )
        )

    def side(self, name: str) -> tuple[Side, IntArray]:
        """A side by name, and its chosen lines."""
        return getattr(self.attributes, name), self.rows if name == "submissions" else self.cols

    def column(self, name: str, attribute: str, key: str) -> Column | None:
        """An attribute's table; None with a fault naming the rule's `key`."""
        side: Side = getattr(self.attributes, name)
        return side.column(attribute, f"{self.rule.place}.{key}", self.faults)

    def classes(self, name: str, attribute: str | None, groups: Mapping[str, tuple[Scalar, ...]] | None) -> Classes:
        """The chosen of a side by value; all of them as one class without an attribute.

        Whoever has no value is in no class, and the notices say so.
        """
        side, chosen = self.side(name)
        mask = np.zeros(side.n)
        mask[chosen] = 1.0
        if attribute is None:
            whole = sparse.csr_array(mask[None, :])
            return Classes((f"all {name} of the rule",), whole)
        column = self.column(name, attribute, "each")
        if column is None:
            return Classes((), sparse.csr_array((0, side.n)))
        labels: list[str] = list(column.labels) or [""]
        table = sparse.csr_array(column.member[: side.n].T)
        if groups:
            labels, merge = self._merged(column, groups)
            table = sparse.csr_array(merge @ table)
            table.data[:] = 1.0
        member = sparse.csr_array(table @ sparse.diags_array(mask, format="csr"))
        member.eliminate_zeros()
        held = np.flatnonzero(np.diff(member.indptr))
        # by label, so that the order of records changes nothing
        held = np.array(sorted(held.tolist(), key=lambda at: labels[at]), dtype=np.int64)
        without = chosen[~column.known[chosen]]
        if without.size:
            text = f"{name} without {attribute} are not counted"
            self.tell("rule-without-value", text, side, without)
        if not held.size:
            self.fault(
                "each", f"none of the {name} the rule is about has {attribute}", "rule-matches-nobody", attribute
            )
        return Classes(tuple(labels[at] for at in held), sparse.csr_array(member[held]))

    def _merged(self, column: Column, groups: Mapping[str, tuple[Scalar, ...]]) -> tuple[list[str], sparse.csr_array]:
        """Labels and a table of shape (n_classes, n_values): the groups, then each value that is in none."""
        rows: list[int] = []
        cols: list[int] = []
        for at, (name, values) in enumerate(groups.items()):
            found = [code for value in values for code in column.find(value)]
            if not found:
                self.fault(f"groups.{name}", "nobody has any of these values", "rule-matches-nobody", name)
            rows += [at] * len(found)
            cols += found
        labels = list(groups)
        for code in sorted(set(range(len(column.values))) - set(cols)):
            rows.append(len(labels))
            cols.append(code)
            labels.append(column.labels[code])
        shape = (len(labels), column.member.shape[1])
        return labels, sparse.csr_array(sparse.coo_array((np.ones(len(rows)), (rows, cols)), shape=shape))

    def value_sets(self, name: str, sharing: Sharing, key: str) -> ValueSets | None:
        """Chosen lines of the side `name` by the set of their values of an attribute; None after a fault."""
        other = "reviewers" if name == "submissions" else "submissions"
        mine = self.column(name, getattr(sharing, name), key)
        theirs = self.column(other, getattr(sharing, other), key)
        if mine is None or theirs is None or not self.sound:
            return None
        side, chosen = self.side(name)
        other_side, other_chosen = self.side(other)
        numbers: dict[tuple[int, ...], int] = {}
        lines, of_line = [], []
        for line in chosen.tolist():
            held = tuple(mine.member.indices[mine.member.indptr[line] : mine.member.indptr[line + 1]].tolist())
            if held:
                lines.append(line)
                of_line.append(numbers.setdefault(held, len(numbers)))
        if not numbers:
            self.fault(key, f"none of the {name} has {getattr(sharing, name)}", "rule-matches-nobody")
            return None
        if not theirs.known[: other_side.n][other_chosen].any():
            self.fault(key, f"none of the {other} has {getattr(sharing, other)}", "rule-matches-nobody")
            return None
        without = np.setdiff1d(chosen, lines)
        if without.size:
            text = f"it does not bind {name} without {getattr(sharing, name)}"
            self.tell("rule-without-value", text, side, without)
        sets = sparse.csr_array(
            (
                np.ones(sum(map(len, numbers))),
                np.array([code for held in numbers for code in held], dtype=np.int32),
                np.concatenate([[0], np.cumsum([len(held) for held in numbers])]),
            ),
            shape=(len(numbers), mine.member.shape[1]),
        )
        pairs = [(at, code) for at, value in enumerate(mine.values) for code in theirs.find(value)]
        same = sparse.coo_array(
            (np.ones(len(pairs)), ([at for at, _ in pairs], [code for _, code in pairs])),
            shape=(mine.member.shape[1], theirs.member.shape[1]),
        )
        mask = np.zeros(other_side.n)
        mask[other_chosen] = 1.0
        members = sparse.csr_array(theirs.member[: other_side.n].T @ sparse.diags_array(mask, format="csr"))
        members.eliminate_zeros()
        # products of truth values: five bytes for every reviewer of a set, not twelve
        shared = sparse.csr_array((sets @ sparse.csr_array(same)).astype(bool) @ members.astype(bool))
        shared.sort_indices()
        labels = tuple(" or ".join(mine.labels[code] for code in held) for held in numbers)
        return ValueSets(np.array(lines, dtype=np.int64), np.array(of_line, dtype=np.int64), labels, shared)
