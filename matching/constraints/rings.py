"""Rules about who wrote what with whom: distance between co-reviewers, and rings of people who review each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.attributes import Links
from matching.constraints.bars import singles
from matching.constraints.bounds import GroupBound, PairLimit, SharedReviewers
from matching.constraints.choice import Choice
from matching.pairs import PairSet
from matching.types import IntArray

__all__ = ["MOST_LIMITS", "coreviewer_distance", "no_cycles", "share_reviewers"]

MOST_LIMITS = 1_000_000  # constraints one rule may spell out
MOST_WATCHED = 20_000_000  # pairs of an author and a submission that are looked at for rings


def coreviewer_distance(choice: Choice, links: Links) -> list[GroupBound]:
    """At most one reviewer of each submission out of every set of people who are too close to one another.

    Notes
    -----
    At distance 2 the sets are the authors of one work: everybody in one is a co-author of everybody else in it. At
    distance 3 they are each person with all co-authors: two of them are co-authors or have that person in common, and
    two people with a common co-author are both in that co-author's set.
    """
    rule = choice.rule
    side = choice.attributes.reviewers
    chosen = np.zeros(links.together.shape[1], dtype=bool)
    chosen[choice.cols] = True
    near = links.together
    if rule.options["at_least"] == 3:
        near = sparse.csr_array(links.together.T @ links.together)
    sets = _largest(near, chosen)
    if not sets:
        choice.tell("rule-without-effect", "no two of its reviewers are close by publications or submissions")
        return []
    if not choice.rows.size:
        return []
    lengths = [len(group) for group in sets]
    member = sparse.csr_array(
        (
            np.ones(sum(lengths)),
            np.array([col for group in sets for col in group], dtype=np.int32),
            np.concatenate([[0], np.cumsum(lengths)]),
        ),
        shape=(len(sets), side.n),
    )
    papers = choice.attributes.submissions
    labels = [", ".join(side.ids[col] for col in group[:4]) + (", …" if len(group) > 4 else "") for group in sets]
    return [
        GroupBound.of(
            rule.name,
            singles(choice.rows, papers.n),
            member,
            upper=1,
            price=rule.price,
            submission_labels=[papers.ids[row] for row in choice.rows.tolist()],
            reviewer_labels=labels,
        )
    ]


def _largest(near: sparse.csr_array, chosen: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The rows of a table as sets of chosen columns, of two or more, without those inside another; sorted."""
    found = set()
    for row in range(near.shape[0]):
        line = near.indices[near.indptr[row] : near.indptr[row + 1]]
        line = line[chosen[line]]
        if line.size > 1:
            found.add(tuple(sorted(line.tolist())))
    kept: list[tuple[int, ...]] = []
    holding: dict[int, set[int]] = {}  # column -> kept sets that hold it
    for group in sorted(found, key=lambda one: (-len(one), one)):
        if holding.keys() >= set(group) and set.intersection(*(holding[col] for col in group)):
            continue
        for col in group:
            holding.setdefault(col, set()).add(len(kept))
        kept.append(group)
    return sorted(kept)


def no_cycles(choice: Choice, links: Links, barred: PairSet) -> list[PairLimit]:
    """Of the reviews that would close a ring at least one is not given.

    Parameters
    ----------
    barred : PairSet
        Pairs that cannot be in a plan; no ring goes through them.

    Notes
    -----
    A node stands for "this author of this submission"; an edge from (a, p) to (b, q) is "a reviews q, which b wrote".
    Rings of people are rings of nodes, so a ring of length k is k pairs of which at most k - 1 may be assigned.
    """
    rule = choice.rule
    n_reviewers = choice.attributes.reviewers.n
    papers = np.zeros(links.authors.shape[0], dtype=bool)
    papers[choice.rows] = True
    people = np.zeros(links.authors.shape[1], dtype=bool)
    people[choice.cols] = True
    people[:n_reviewers] &= choice.attributes.load_max > 0
    wrote = sparse.coo_array(links.authors)
    rows, cols = wrote.coords
    keep = papers[rows] & people[cols]
    order = np.lexsort((cols[keep], rows[keep]))
    nodes = np.column_stack([rows[keep][order], cols[keep][order]]).astype(np.int64)
    if not len(nodes):
        choice.tell("rule-without-effect", "no author of its submissions is among its reviewers")
        return []
    edges = _edges(choice, nodes, links, barred)
    if edges is None:
        return []
    which: list[IntArray] = []
    pairs: list[IntArray] = []
    lengths: list[int] = []
    for ring in _rings(edges, nodes, rule.options["length"]):
        n_rings, length = ring.shape
        if len(lengths) + n_rings > MOST_LIMITS:
            reason = f"there are more than {MOST_LIMITS} possible rings; choose fewer people, or rings among bids only"
            choice.fault("length", reason, "rule-too-large", rule.options["length"])
            return []
        following = np.roll(ring, -1, axis=1)
        pairs.append(np.column_stack([nodes[following.ravel(), 0], nodes[ring.ravel(), 1]]))
        which.append(np.repeat(np.arange(len(lengths), len(lengths) + n_rings), length))
        lengths += [length] * n_rings
    if not lengths:
        return []
    ids = choice.attributes.reviewers.ids
    held = np.concatenate(pairs)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    names = [ids[col] for col in held[:, 1].tolist()]
    labels = tuple(", ".join(names[start:stop]) for start, stop in zip(starts[:-1].tolist(), starts[1:].tolist()))
    upper = np.array(lengths, dtype=np.int64) - 1
    return [PairLimit(rule.name, np.concatenate(which), held, upper, rule.price, labels)]


def _edges(choice: Choice, nodes: IntArray, links: Links, barred: PairSet) -> sparse.csr_array | None:
    """Nodes x nodes: the author of the first may review the submission of the second."""
    attributes = choice.attributes
    papers, paper_of = np.unique(nodes[:, 0], return_inverse=True)
    people, person_of = np.unique(nodes[:, 1], return_inverse=True)
    own = links.authors[:, : attributes.reviewers.n].astype(bool)
    if choice.rule.options["among"] == "bids":
        if attributes.bids is None:
            choice.fault("among", "nothing is known of bids here", "rule-matches-nobody", "bids")
            return None
        may = sparse.csr_array(attributes.bids.table()[papers][:, people])
    elif papers.size * people.size > MOST_WATCHED:
        reason = (
            f"{people.size} authors of {papers.size} submissions could form too many rings; choose fewer people, "
            'or say "among": "bids"'
        )
        choice.fault("among", reason, "rule-too-large")
        return None
    else:
        may = sparse.csr_array(np.ones((papers.size, people.size), dtype=bool))
    shut = sparse.csr_array(own + barred.table())[papers][:, people]
    may = sparse.csr_array(may.astype(np.int8) - may.multiply(shut).astype(np.int8))
    may.eliminate_zeros()
    if may.nnz * (len(nodes) / papers.size) * (len(nodes) / people.size) > 20 * MOST_LIMITS:
        choice.fault("length", "there are too many possible rings; choose fewer people", "rule-too-large")
        return None
    table = sparse.csr_array(may.T[person_of][:, paper_of])
    table.sort_indices()
    return table


def _rings(edges: sparse.csr_array, nodes: IntArray, length: int) -> Iterator[IntArray]:
    """Rings of 2 to `length` nodes, each once, its lowest node first; arrays of shape (n, k)."""
    ahead, back = edges, sparse.csr_array(edges.T)
    back.sort_indices()
    for first in range(edges.shape[0]):
        after = _line(ahead, first)
        before = _line(back, first)
        after, before = after[after > first], before[before > first]
        both = np.intersect1d(after, before)
        if both.size:
            yield np.column_stack([np.full(both.size, first), both])
        if length >= 3 and after.size and before.size:
            second, third = sparse.coo_array(edges[after][:, before]).coords
            if second.size:
                yield np.column_stack([np.full(second.size, first), after[second], before[third]])
        if length >= 4 and after.size and before.size:
            for second in after.tolist():
                middle = _line(ahead, second)
                # a person met twice is two shorter rings, which are out already
                middle = middle[(middle > first) & (nodes[middle, 1] != nodes[first, 1])]
                if not middle.size:
                    continue
                last = before[nodes[before, 1] != nodes[second, 1]]
                third, fourth = sparse.coo_array(edges[middle][:, last]).coords
                if third.size:
                    n = third.size
                    yield np.column_stack([np.full(n, first), np.full(n, second), middle[third], last[fourth]])


def _line(table: sparse.csr_array, row: int) -> IntArray:
    line: IntArray = table.indices[table.indptr[row] : table.indptr[row + 1]].astype(np.int64)
    return line


def share_reviewers(choice: Choice) -> list[SharedReviewers]:
    """Every two submissions of a class have reviewers in common.

    In a plan of several roles the rule is about one of them, and its pairs are rows of that role.
    """
    rule = choice.rule
    role = _role_of(choice)
    classes = choice.classes("submissions", rule.options.get("each"), rule.options.get("groups"))
    if not choice.sound:
        return []
    sizes = np.diff(classes.member.indptr).astype(np.int64)
    if int((sizes * (sizes - 1) // 2).sum()) > MOST_LIMITS:
        reason = f"more than {MOST_LIMITS} pairs of submissions would have to share; use smaller classes"
        choice.fault("each", reason, "rule-too-large")
        return []
    pairs = sorted(
        {
            (int(one), int(other))
            for at in range(classes.member.shape[0])
            for one, other in combinations(sorted(_line(classes.member, at).tolist()), 2)
        }
    )
    if not pairs:
        choice.tell("rule-without-effect", "no two of its submissions belong together")
        return []
    demand = choice.attributes.demand_for(choice.cols)
    ends = np.array(pairs, dtype=np.int64)
    least = np.minimum(rule.options["at_least"], demand[ends].min(axis=1)).astype(np.int64)
    ids = choice.attributes.submissions.ids
    labels = tuple(f"{ids[one]} and {ids[other]}" for one, other in pairs)
    return [SharedReviewers(rule.name, ends + role * len(demand), least, rule.price, labels)]


def _role_of(choice: Choice) -> int:
    """Place of the one role whose people a rule is about; 0 after a fault."""
    attributes = choice.attributes
    roles = attributes.roles_of(choice.cols)
    edges = attributes.role_columns
    whole = choice.cols.size == attributes.shape[1] if edges is None else False
    if edges is not None and roles.size == 1:
        whole = choice.cols.size == int(edges[roles[0] + 1] - edges[roles[0]])
    if roles.size > 1 or not (whole or not choice.cols.size):
        reason = "share_reviewers is about all people of one role; " + (
            'say which, as {"role": "reviewer"}' if edges is not None else "leave reviewers out"
        )
        choice.fault("reviewers", reason, "not-one-role")
    return int(roles[0]) if roles.size else 0
