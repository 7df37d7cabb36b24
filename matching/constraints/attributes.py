"""What rules may ask about people and submissions: attributes as sparse tables of records x values.

Rules over a venue and rules over a plain score matrix read the same tables: `Attributes.of_columns` makes them from
lists, `matching.constraints.venue_attributes` from profiles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.columns import Column, canonical, entries_of, key_of
from matching.errors import InvalidParamsError, Issue
from matching.pairs import PairSet
from matching.profiles.identity import fold_institution
from matching.rules.readers import Faults
from matching.rules.values import Condition, Scalar, Selection
from matching.types import IntArray

__all__ = ["Attributes", "Links", "Side", "incidence"]

INSTITUTIONS = ("affiliation", "author_affiliation")
NAMES_SHOWN = 5
HINTS = 20  # values nobody has that are compared with those there are


class Side:
    """All records of one side with their attributes, made on first use.

    Parameters
    ----------
    what : {"submissions", "reviewers"}
    ids : sequence of str
        Those that take part in the run first, in row or column order; then those out of the run, which only tell
        "nobody takes part now" from "nobody is known".
    n : int
        How many take part.
    getters : mapping of str to callable
        Attribute -> a list with one entry a record.
    keys : mapping of str to callable
        Attribute -> how its values compare, where not by `key_of`.
    """

    def __init__(
        self,
        what: str,
        ids: Sequence[str],
        n: int,
        getters: Mapping[str, Callable[[], Sequence[Any]]],
        keys: Mapping[str, Callable[[Any], str]] | None = None,
    ) -> None:
        self.what, self.ids, self.n = what, tuple(ids), n
        self._getters = dict(getters)
        self._keys = dict.fromkeys(INSTITUTIONS, _institution) | dict(keys or {})
        self._columns: dict[str, Column] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every attribute there is."""
        return tuple(sorted(self._getters))

    def column(self, attribute: str, where: str, faults: Faults) -> Column | None:
        """The table of an attribute; None, with a fault that names it, for one that no record can have."""
        name = canonical(attribute)
        if name not in self._getters:
            near = get_close_matches(name, self._getters, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            reason = f"{self.what} have no attribute {attribute!r}{hint}; known: {', '.join(self.names)}"
            faults.add(where, reason, "unknown-attribute", attribute)
            return None
        if name not in self._columns:
            key = self._keys.get(name, key_of)
            self._columns[name] = Column(self._getters[name](), key, exact=name == "id")
        column = self._columns[name]
        if column.odd:
            who = ", ".join(self.ids[at] for at in column.odd[:NAMES_SHOWN])
            more = len(column.odd) - NAMES_SHOWN
            who += f" and {more} more" if more > 0 else ""
            reason = f"{attribute} of {who} holds something that is no text, number, true or false"
            faults.add(where, reason, "wrong-type")
            return None
        return column

    def choose(self, selection: Selection, where: str, faults: Faults) -> tuple[NDArray[np.bool_], list[str]]:
        """Who satisfies a selection, bool of shape (n_records,), and the values it names that nobody has.

        An id nobody has is a fault, and so is a selection that no record satisfies.
        """
        mask = np.ones(len(self.ids), dtype=bool)
        strange: list[str] = []
        before = len(faults.issues)
        for condition in selection:
            place = f"{where}.{condition.attribute}"
            column = self.column(condition.attribute, place, faults)
            if column is not None:
                mask &= _satisfies(column, condition, place, faults, strange)
        if len(faults.issues) == before and not mask.any():
            reason = (
                f"nobody matches: no {self.what[:-1]} has {_in_words(selection)}" if selection else "there are none"
            )
            faults.add(where, reason, "rule-matches-nobody")
        return mask, strange


def _institution(value: Scalar) -> str:
    return fold_institution(str(value))


def _satisfies(
    column: Column, condition: Condition, place: str, faults: Faults, strange: list[str]
) -> NDArray[np.bool_]:
    def among(values: Sequence[Scalar]) -> NDArray[np.bool_]:
        codes: list[int] = []
        for value in values:
            found = [] if value is None else column.find(value)
            codes += found
            if value is not None and not found:
                if canonical(condition.attribute) == "id":
                    faults.add(place, f"there is nobody and nothing with the id {value!r}", "unknown-id", value)
                else:
                    # comparing with every value there is takes its time: a list of thousands gets no hints
                    near = get_close_matches(key_of(value), column.keys, 1) if len(strange) < HINTS else ()
                    hint = f" (there is {near[0]!r})" if near else ""
                    strange.append(f"{condition.attribute} {value!r}{hint}")
        mask = column.having(codes)
        return mask | ~column.known if None in values else mask

    mask = np.ones(column.member.shape[0], dtype=bool)
    if condition.values is not None:
        mask &= among(condition.values)
    if condition.excluded:
        mask &= ~among(condition.excluded)
    if condition.at_least is not None or condition.at_most is not None:
        mask &= column.within(condition.at_least, condition.at_most)
    return mask


def _in_words(selection: Selection) -> str:
    def listed(values: Sequence[Scalar], word: str) -> str:
        shown = ["no value" if value is None else str(value) for value in values[:NAMES_SHOWN]]
        return f" {word} ".join(shown) + (f" {word} {more} more" if (more := len(values) - NAMES_SHOWN) > 0 else "")

    said = []
    for condition in selection:
        if condition.values is not None:
            said.append(f"{condition.attribute} {listed(condition.values, 'or')}")
        if condition.excluded:
            said.append(f"{condition.attribute} other than {listed(condition.excluded, 'and')}")
        for words, limit in (("at least", condition.at_least), ("at most", condition.at_most)):
            if limit is not None:
                shown = f"{limit:%Y-%m-%d}" if isinstance(limit, datetime) else f"{limit:g}"
                said.append(f"{condition.attribute} {words} {shown}")
    return ", ".join(said)


@dataclass(frozen=True, eq=False)
class Links:
    """Who wrote what with whom. Nodes are the reviewers of the run, then other people.

    Attributes
    ----------
    authors : scipy.sparse.csr_array of shape (n_submissions, n_nodes)
        1 where a person wrote the submission; submissions of the run.
    together : scipy.sparse.csr_array of shape (n_works, n_nodes)
        1 for everybody who wrote a work, submissions included.
    """

    authors: sparse.csr_array
    together: sparse.csr_array


@dataclass(frozen=True, eq=False)
class Attributes:
    """Everything rules are compiled from.

    Attributes
    ----------
    submissions, reviewers : Side
    demand, load_max, load_min : ndarray, int64
        Of the run, in reviews; demand of all roles together.
    links : callable
        Makes the Links; called at most once for a list of rules.
    bids : PairSet or None
        Pairs the reviewer asked for; None where nothing is known of bids.
    role_columns : ndarray of shape (n_roles + 1,), int64, or None
        Columns of role k are those from ``role_columns[k]`` up to ``role_columns[k + 1]``; None for one role.
    role_demand : ndarray of shape (n_roles, n_submissions), int64, or None
    """

    submissions: Side
    reviewers: Side
    demand: IntArray
    load_max: IntArray
    load_min: IntArray
    links: Callable[[], Links]
    bids: PairSet | None = None
    role_columns: IntArray | None = None
    role_demand: IntArray | None = None

    def roles_of(self, cols: IntArray) -> IntArray:
        """Places of the roles that columns stand for, each once, ascending; 0 where there is one role."""
        if self.role_columns is None:
            return np.zeros(1, dtype=np.int64)
        return np.unique(np.searchsorted(self.role_columns, cols, side="right") - 1)

    def demand_for(self, cols: IntArray) -> IntArray:
        """How many people of the roles of these columns each submission needs, int64 of shape (n_submissions,)."""
        if self.role_demand is None:
            return self.demand
        return np.asarray(self.role_demand[self.roles_of(cols)].sum(axis=0), dtype=np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_submissions, n_reviewers)`` of the run."""
        return self.submissions.n, self.reviewers.n

    @classmethod
    def of_columns(
        cls,
        *,
        demand: IntArray,
        load_max: IntArray,
        load_min: IntArray,
        submissions: Mapping[str, Sequence[Any]] | None = None,
        reviewers: Mapping[str, Sequence[Any]] | None = None,
        bids: PairSet | None = None,
    ) -> Attributes:
        """Attributes of the rows and columns of a score matrix.

        Parameters
        ----------
        demand : ndarray of shape (n_submissions,), int64
        load_max, load_min : ndarray of shape (n_reviewers,), int64
        submissions, reviewers : mapping of str to sequence
            Attribute -> one entry a row or column: a value, a list of values, or None (NaN) for none. "id" is the row
            or column number where not given. "author" of submissions names reviewers by id; "publication" of
            reviewers names works, shared by their authors.

        Raises
        ------
        InvalidParamsError
            Not mappings, lists of a wrong length, an id that is missing or given twice.
        """
        issues: list[Issue] = []
        tables = {
            "submission_attributes": _checked(submissions, len(demand), "submission_attributes", issues),
            "reviewer_attributes": _checked(reviewers, len(load_max), "reviewer_attributes", issues),
        }
        if issues:
            raise InvalidParamsError(issues=issues)
        left, right = tables.values()
        left.setdefault("demand", demand.tolist())
        right.setdefault("load_max", load_max.tolist())
        sides = [
            Side(what, [str(name) for name in table["id"]], len(table["id"]), _getters(table))
            for what, table in (("submissions", left), ("reviewers", right))
        ]
        return cls(
            sides[0], sides[1], demand, load_max, load_min,
            lambda: _links(left.get("author"), right.get("publication"), right["id"], len(demand)), bids,
        )  # fmt: skip


def _checked(table: Any, n: int, name: str, issues: list[Issue]) -> dict[str, Sequence[Any]]:
    out: dict[str, Sequence[Any]] = {}
    if table is not None and not isinstance(table, Mapping):
        issues.append(Issue("must map attributes to lists", "wrong-type", name, source="params"))
        table = None
    for attribute, entries in (table or {}).items():
        where = f"{name}.{attribute}"
        if hasattr(entries, "tolist"):
            entries = entries.tolist()
        if not isinstance(entries, list | tuple):
            issues.append(Issue("must be a list with one entry each", "wrong-type", where, source="params"))
        elif len(entries) != n:
            issues.append(Issue(f"must have {n} entries, got {len(entries)}", "wrong-shape", where, source="params"))
        else:
            out[canonical(str(attribute))] = entries
    names = out.setdefault("id", [str(at) for at in range(n)])
    seen = {str(one) for one in names}
    if len(seen) < len(names) or not all(isinstance(one, str | int) and str(one).strip() for one in names):
        reason = "must hold one text or number each, none blank and none twice"
        issues.append(Issue(reason, "duplicate-id", f"{name}.id", source="params"))
    return out


def _getters(table: Mapping[str, Sequence[Any]]) -> dict[str, Callable[[], Sequence[Any]]]:
    found: dict[str, Callable[[], Sequence[Any]]] = {}
    for name, entries in table.items():
        found[name] = partial(tuple, entries)
        if "." not in name and name != "id":
            found.setdefault(f"extra.{name}", found[name])  # a rule written for a venue reads the same list
    return found


def _links(authors: Sequence[Any] | None, works: Sequence[Any] | None, ids: Sequence[Any], n_submissions: int) -> Links:
    nodes: dict[str, int] = {key_of(str(name)): at for at, name in enumerate(ids)}
    n_reviewers = len(ids)
    rows, cols = [], []
    for row, names in enumerate(authors or ()):
        for name in entries_of(names):
            rows.append(row)
            cols.append(nodes.setdefault(key_of(name), len(nodes)))
    wrote = incidence(rows, cols, (n_submissions, len(nodes)))
    column = Column(works if works is not None else [None] * n_reviewers)
    published = sparse.csr_array(column.member.T)
    published.resize((published.shape[0], len(nodes)))
    return Links(wrote, sparse.csr_array(sparse.vstack([published, wrote])))


def incidence(rows: Sequence[int], cols: Sequence[int], shape: tuple[int, int]) -> sparse.csr_array:
    """1 at each place named, once or several times."""
    table = sparse.csr_array(sparse.coo_array((np.ones(len(rows)), (rows, cols)), shape=shape))
    table.data[:] = 1.0  # somebody named twice is one author
    return table
