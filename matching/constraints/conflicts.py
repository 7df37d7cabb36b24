"""Which pairs are barred, and every reason for each.

A pair is barred by what somebody declared, because the reviewer wrote the submission, or because an author and
the reviewer share an institution. Identity and institutions are joined through tables of keys, so the cost grows
with the records and the pairs found, never with all pairs. Reasons are worked out when they are asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np

from matching.notices import Notice, in_words
from matching.pairs import PairSet
from matching.params import Params
from matching.profiles.identity import (
    FREE_MAIL,
    Institutions,
    domain_of,
    fold_domain,
    fold_institution,
    fold_name,
    is_full_name,
)
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import DeclaredConflict
from matching.types import IntArray

__all__ = ["AFFILIATION", "AUTHORSHIP", "DECLARED", "SAME_ADDRESS", "ConflictReason", "Conflicts", "find_conflicts"]

DECLARED = "declared"
AUTHORSHIP = "authorship"
SAME_ADDRESS = "same-address"
AFFILIATION = "affiliation"
PAIRS_LISTED = 100  # pairs of namesakes a notice spells out; it always counts them all


@dataclass(frozen=True, slots=True)
class ConflictReason:
    """One reason why a pair is barred.

    Attributes
    ----------
    rule : str
        "authorship": the reviewer is an author, by id, alias or address. "same-address": an author who is somebody
        else by id has an address of the reviewer. "affiliation": an author and the reviewer share an institution.
        "declared", or the word a declared conflict came with. The name of a rule of the chair that bars the pair.
    evidence : str
        One sentence that names the id, address, domain or institution.
    source : str
        Who declared it; "" for what was found.
    """

    rule: str
    evidence: str
    source: str = ""


class _Trace(NamedTuple):
    """Where a key of an institution comes from: what was written, and for a submission by which author."""

    text: str
    author: int  # position among the authors; -1 for a reviewer


class MoreBars(Protocol):
    """Pairs barred by something else, `matching.constraints.bars.Bars` for one."""

    pairs: PairSet
    counts: Mapping[str, int]

    def reasons(self, row: int, col: int) -> Iterable[ConflictReason]:
        """Why a pair is barred; nothing where it is not."""
        ...


Traces = Mapping[str, _Trace]
Found = tuple[int, str, str]  # author, rule, what was written


class Conflicts:
    """Barred pairs with reasons; build it with `find_conflicts`.

    Attributes
    ----------
    pairs : PairSet
        Every barred pair.
    counts : mapping of str to int
        Rule -> pairs it bars; a pair barred by two rules counts for both.
    notices : tuple of Notice
        ``same-name``: an author bears the name of a reviewer, which alone bars nothing.
    """

    __slots__ = (
        "_authorship",
        "_by_reviewer",
        "_by_submission",
        "_declared",
        "_more",
        "_resolved",
        "counts",
        "notices",
        "pairs",
    )

    def __init__(
        self,
        resolved: ResolvedVenue,
        pairs: PairSet,
        counts: Mapping[str, int],
        notices: tuple[Notice, ...],
        declared: Mapping[tuple[int, int], list[DeclaredConflict]],
        authorship: Mapping[tuple[int, int], list[Found]],
        by_submission: tuple[Traces, ...],
        by_reviewer: tuple[Traces, ...],
    ) -> None:
        self.pairs = pairs
        self.counts = MappingProxyType(dict(counts))
        self.notices = notices
        self._resolved = resolved
        self._declared = declared
        self._authorship = authorship
        self._by_submission = by_submission
        self._by_reviewer = by_reviewer
        self._more: tuple[MoreBars, ...] = ()

    def joined(self, more: MoreBars) -> Conflicts:
        """These conflicts and other barred pairs, whose reasons come after these."""
        if not more.counts:
            return self
        counts = Counter(self.counts)
        counts.update(more.counts)
        out = Conflicts(
            self._resolved,
            PairSet.of_table(self.pairs.table() + more.pairs.table()),
            counts,
            self.notices,
            self._declared,
            self._authorship,
            self._by_submission,
            self._by_reviewer,
        )
        out._more = (*self._more, more)
        return out

    def reasons(self, row: int, col: int) -> tuple[ConflictReason, ...]:
        """Every reason for a pair: declared, authorship, affiliation, rules; empty if it is not barred."""
        return tuple(dict.fromkeys(self._reasons(row, col)))

    def _reasons(self, row: int, col: int) -> Iterator[ConflictReason]:
        submission, reviewer = self._resolved.submissions[row], self._resolved.reviewers[col]
        for conflict in self._declared.get((row, col), ()):
            words = conflict.evidence or f"{reviewer.id} and {submission.id} were declared to be in conflict"
            yield ConflictReason(conflict.rule or DECLARED, words, conflict.source)
        for author, rule, text in self._authorship.get((row, col), ()):
            who = _author_in_words(submission, author)
            yield ConflictReason(rule, f"{who} has {text}, which is reviewer {reviewer.id}")
        if self._by_submission:
            theirs, ours = self._by_submission[row], self._by_reviewer[col]
            for key in sorted(theirs.keys() & ours.keys()):
                yield ConflictReason(AFFILIATION, _shared_in_words(submission, reviewer, key, theirs[key], ours[key]))
        for more in self._more:
            yield from more.reasons(row, col)


def find_conflicts(resolved: ResolvedVenue, params: Params | None = None) -> Conflicts:
    """Bar every pair in conflict.

    Parameters
    ----------
    resolved : ResolvedVenue
        Its venue's `domain_aliases` and `free_mail` are read too.
    params : Params
        `affiliation_conflicts` False leaves out shared domains and institutions, and nothing else. Default
        ``Params()``.

    Notes
    -----
    Authorship is matched over all ids, aliases and addresses of all accounts of a person, by itself and without
    a declaration. Domains match as in `matching.profiles.identity.Institutions`, over every address of the reviewer
    and `conflict_domains`; mail providers and placeholder affiliations bar nothing. An author who has an account
    in the pool brings along the addresses and affiliations of that account. Institution names match when they are
    equal after folding. Time and memory grow with the pairs found; 4 bytes a pair are kept.
    """
    params = Params() if params is None else params
    width = max(len(resolved.reviewers), 1)
    declared: dict[tuple[int, int], list[DeclaredConflict]] = defaultdict(list)
    for row, col, conflict in resolved.declared:
        declared[row, col].append(conflict)
    authorship = _authorship(resolved)
    by_submission: tuple[Traces, ...] = ()
    by_reviewer: tuple[Traces, ...] = ()
    shared = np.empty(0, dtype=np.int64)
    if params.affiliation_conflicts:
        institutions = Institutions(resolved.venue.domain_aliases, FREE_MAIL | set(resolved.venue.free_mail))
        by_submission = tuple(_submission_traces(resolved, row, institutions) for row in range(resolved.shape[0]))
        by_reviewer = tuple(_reviewer_traces(reviewer, institutions) for reviewer in resolved.reviewers)
        shared = _join(by_submission, by_reviewer, width)

    counts = Counter({DECLARED: 0, AUTHORSHIP: 0, SAME_ADDRESS: 0, AFFILIATION: shared.size})
    for conflicts in declared.values():
        counts.update({conflict.rule or DECLARED for conflict in conflicts})
    for found in authorship.values():
        counts.update({rule for _, rule, _ in found})
    single = np.array([row * width + col for row, col in declared.keys() | authorship.keys()], dtype=np.int64)
    keys = np.unique(np.concatenate([single, shared]))
    pairs = PairSet(np.column_stack(np.divmod(keys, width)), resolved.shape, "conflicts")
    notices = tuple(_same_names(resolved, pairs))
    return Conflicts(resolved, pairs, counts, notices, dict(declared), authorship, by_submission, by_reviewer)


def _authorship(resolved: ResolvedVenue) -> dict[tuple[int, int], list[Found]]:
    """Pairs of a submission and a person who wrote it, with the author's position and what gave it away."""
    found: dict[tuple[int, int], list[Found]] = {}
    for row, submission in enumerate(resolved.submissions):
        for position, author in enumerate(submission.authors):
            by_id = resolved.columns_of(author.id) if author.id else ()
            for col in by_id:
                found.setdefault((row, col), []).append((position, AUTHORSHIP, f"the id {author.id!r}"))
            # an id of somebody else in the pool makes the address a second, separate fact
            rule = SAME_ADDRESS if by_id else AUTHORSHIP
            for col in resolved.columns_of(author.email) if author.email else ():
                same = AUTHORSHIP if col in by_id else rule
                found.setdefault((row, col), []).append((position, same, f"the address {author.email.strip()!r}"))
    return found


def _submission_traces(resolved: ResolvedVenue, row: int, institutions: Institutions) -> Traces:
    """Institution key -> the author's text behind it, the first author's first."""
    traces: dict[str, _Trace] = {}
    for position, author in enumerate(resolved.submissions[row].authors):
        for account in _accounts_of(resolved, author):
            for key, text in _account_keys(account, institutions):
                traces.setdefault(key, _Trace(text, position))
        for key, text in _keys((domain_of(author.email),), (author.affiliation,), institutions):
            traces.setdefault(key, _Trace(text, position))
    return traces


def _accounts_of(resolved: ResolvedVenue, author: Author) -> list[Reviewer]:
    """All accounts of the people an author is, whether or not they take part."""
    people = resolved.people
    named = [name for name in (author.id, author.email) if name]
    persons = {people.person[at] for name in named for at in people.everyone(name)}
    return [people.accounts[at] for person in sorted(persons) for at in people.members[person]]


def _reviewer_traces(reviewer: Reviewer, institutions: Institutions) -> Traces:
    traces: dict[str, _Trace] = {}
    for key, text in _account_keys(reviewer, institutions):
        traces.setdefault(key, _Trace(text, -1))
    return traces


def _account_keys(account: Reviewer, institutions: Institutions) -> Iterator[tuple[str, str]]:
    # ids that are addresses count as addresses: in some systems they are the only ones
    domains = [domain_of(text) for text in (*account.emails, account.id, *account.aliases) if "@" in text]
    domains += map(fold_domain, account.conflict_domains)
    return _keys(domains, account.affiliations, institutions)


def _keys(domains: Iterable[str], affiliations: Iterable[str], institutions: Institutions) -> Iterator[tuple[str, str]]:
    """Key -> what it was made from. Domains and names are told apart by the first character of the key."""
    for domain in domains:
        for key in sorted(institutions.keys(domain)) if domain else ():
            yield "@" + key, domain
    for affiliation in affiliations:
        if folded := fold_institution(affiliation):
            yield "=" + folded, " ".join(affiliation.split())


def _join(by_submission: tuple[Traces, ...], by_reviewer: tuple[Traces, ...], width: int) -> IntArray:
    """Pairs that share a key, as ``row * width + col``, sorted and each once."""
    cols_of: dict[str, list[int]] = defaultdict(list)
    for col, traces in enumerate(by_reviewer):
        for key in traces:
            cols_of[key].append(col)
    columns = {key: np.array(cols, dtype=np.int64) for key, cols in cols_of.items()}
    parts = []
    for row, traces in enumerate(by_submission):
        groups = [columns[key] for key in traces if key in columns]
        if groups:
            together = groups[0] if len(groups) == 1 else np.unique(np.concatenate(groups))
            parts.append(together + row * width)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _author_in_words(submission: Submission, position: int) -> str:
    name = submission.authors[position].name.strip()
    return f"author {position + 1} of {submission.id}" + (f" ({name})" if name else "")


def _shared_in_words(submission: Submission, reviewer: Reviewer, key: str, theirs: _Trace, ours: _Trace) -> str:
    who = _author_in_words(submission, theirs.author)
    if key.startswith("="):
        return f'{who} and reviewer {reviewer.id} both state the institution "{ours.text}"'
    if theirs.text == ours.text:
        return f"{who} and reviewer {reviewer.id} share the domain {ours.text}"
    return f"{who} is at the domain {theirs.text} and reviewer {reviewer.id} at {ours.text}; both belong to {key[1:]}"


def _same_names(resolved: ResolvedVenue, pairs: PairSet) -> Iterator[Notice]:
    """One notice for each name that an author and a reviewer share in pairs that are not barred."""
    cols_of: dict[str, list[int]] = defaultdict(list)
    for col, reviewer in enumerate(resolved.reviewers):
        if is_full_name(name := fold_name(reviewer.name)):
            cols_of[name].append(col)
    rows_of: dict[str, set[int]] = defaultdict(set)
    for row, submission in enumerate(resolved.submissions):
        for author in submission.authors:
            if (name := fold_name(author.name)) in cols_of:
                rows_of[name].add(row)
    for name in sorted(rows_of):
        cols = np.array(cols_of[name], dtype=np.int64)
        papers: list[str] = []
        listed: list[tuple[str, str]] = []
        seen, count = np.zeros(cols.size, dtype=bool), 0
        for row in sorted(rows_of[name]):
            free = ~np.isin(cols, pairs.row(row))
            if not free.any():
                continue
            seen |= free
            count += int(free.sum())
            papers.append(resolved.submissions[row].id)
            if len(listed) < PAIRS_LISTED:
                listed += [(papers[-1], resolved.reviewers[col].id) for col in cols[free].tolist()]
        if not count:
            continue
        people = tuple(resolved.reviewers[col].id for col in cols[seen].tolist())
        shown = resolved.reviewers[int(cols[seen][0])].name.strip()
        yield Notice(
            "same-name",
            f"{shown!r} is the name of an author of {in_words(papers)} and of reviewer {in_words(people)}; "
            "nothing else says that they are one person, so the name alone bars no pair",
            tuple(papers),
            people,
            {"pairs": tuple(listed[:PAIRS_LISTED]), "count": count},
        )
