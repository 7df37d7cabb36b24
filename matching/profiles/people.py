"""Accounts joined into people, and every name by which a person may be referred to.

An account is a record of the reviewer pool; a person is one account or several that are linked by
`same_person_as`. Accounts are kept sorted by id, so nothing depends on the order in which they came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from matching.errors import Issue
from matching.profiles.identity import fold_address, fold_id, is_address
from matching.profiles.reviewer import Publication, Reviewer
from matching.roles import REVIEWER

__all__ = ["People", "join_people", "merge_accounts"]

UNKNOWN, AMBIGUOUS = -1, -2


@dataclass(frozen=True, eq=False)
class People:
    """Who is who in the reviewer pool.

    Attributes
    ----------
    accounts : tuple of Reviewer
        Every account, active or not, of any role, sorted by id.
    rows : tuple of int
        Where each account stood in the venue.
    person : tuple of int
        For each account the number of its person; persons are numbered by their head account's id.
    members : tuple of tuple of int
        For each person its accounts, the head first: the account the others are linked to.
    exact : dict of str to int
        Id or alias -> account.
    folded : dict of str to tuple of int
        Folded id, alias or address -> accounts that have it, one for each person.
    """

    accounts: tuple[Reviewer, ...]
    rows: tuple[int, ...]
    person: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]
    exact: dict[str, int]
    folded: dict[str, tuple[int, ...]]

    def find(self, name: object) -> tuple[int, ...]:
        """Accounts a reference means: one for an id or alias; for an address all that share it; else none."""
        if not isinstance(name, str):
            return ()
        account = self.exact.get(name)
        return self.folded.get(fold_id(name), ()) if account is None else (account,)

    def everyone(self, name: str) -> tuple[int, ...]:
        """Accounts to which a name may belong, exactly or folded: for rules where one too many is the safe side."""
        account = self.exact.get(name)
        found = self.folded.get(fold_id(name), ())
        return found if account is None or account in found else (account, *found)


def is_pool_member(account: Reviewer, roles: Sequence[str] = (REVIEWER,)) -> bool:
    """Whether an account by itself takes part in a plan of these roles."""
    return account.active and account.role in roles


def join_people(records: Sequence[tuple[int, Reviewer]]) -> tuple[People, list[Issue]]:
    """Join the accounts of one person and index all names.

    Parameters
    ----------
    records : sequence of (row, Reviewer)
        Cleaned; ids are not blank.

    Returns
    -------
    people : People
        Without the records an issue speaks of where they cannot be kept.
    issues : list of Issue
        ``duplicate-id`` for an id or alias that names two records, ``unknown-id`` for a link to nobody.
    """
    issues: list[Issue] = []
    kept: dict[str, tuple[int, Reviewer]] = {}
    for row, account in records:
        first = kept.setdefault(account.id.strip(), (row, account))
        if first[0] != row:
            issues.append(
                Issue(
                    f"id {account.id!r} is given twice, at rows {first[0]} and {row}; an id names one record",
                    "duplicate-id",
                    "id",
                    row,
                    account.id,
                    "reviewers",
                )
            )
    ordered = sorted(kept.values(), key=lambda record: record[1].id)
    rows, accounts = [row for row, _ in ordered], [account for _, account in ordered]
    exact: dict[str, int] = {}
    for at, account in enumerate(accounts):
        exact[account.id] = at
        exact.setdefault(account.id.strip(), at)
    clashes = []
    for at, account in enumerate(accounts):
        for alias in account.aliases:
            if (holder := exact.setdefault(alias.strip(), at)) != at:
                clashes.append((alias, holder, at))
            exact.setdefault(alias, holder)
    addresses = _holders(accounts)
    heads, unknown = _heads(accounts, exact, addresses)
    issues += [
        Issue(
            f"same_person_as names {accounts[at].same_person_as!r}, which "
            + ("more than one account has" if many else "is nobody here"),
            "unknown-id",
            "same_person_as",
            rows[at],
            accounts[at].same_person_as,
            "reviewers",
        )
        for at, many in unknown
    ]
    issues += [
        Issue(
            f"alias {alias!r} of {accounts[at].id!r} (row {rows[at]}) also names {accounts[holder].id!r} "
            f"(row {rows[holder]}); if both are one person, link them by same_person_as",
            "duplicate-id",
            "aliases",
            rows[at],
            alias,
            "reviewers",
        )
        for alias, holder, at in clashes
        if heads[holder] != heads[at]
    ]
    number = {head: person for person, head in enumerate(sorted(set(heads)))}
    person = tuple(number[head] for head in heads)
    members: list[list[int]] = [[head] for head in sorted(number)]
    for at, head in enumerate(heads):
        if at != head:
            members[number[head]].append(at)
    # within a person the head stands for a shared address: sorting by (person, not head) puts it first
    folded = {name: _one_each(holders, heads) for name, holders in addresses.items()}
    return People(tuple(accounts), tuple(rows), person, tuple(map(tuple, members)), exact, folded), issues


def _holders(accounts: Iterable[Reviewer]) -> dict[str, list[int]]:
    """Folded name -> accounts that have it."""
    table: dict[str, list[int]] = defaultdict(list)
    for at, account in enumerate(accounts):
        names = {fold_id(account.id), *map(fold_id, account.aliases)}
        names.update(address for text in account.emails if is_address(address := fold_address(text)))
        for name in names:
            table[name].append(at)
    return dict(table)


def _one_each(holders: list[int], heads: list[int]) -> tuple[int, ...]:
    if len(holders) == 1:
        return (holders[0],)
    chosen: dict[int, int] = {}
    for at in holders:
        head = heads[at]
        if chosen.setdefault(head, at) != at and at == head:
            chosen[head] = at
    return tuple(chosen[head] for head in sorted(chosen))


def _heads(
    accounts: list[Reviewer], exact: dict[str, int], addresses: dict[str, list[int]]
) -> tuple[list[int], list[tuple[int, bool]]]:
    """For each account the one at the end of its chain of links, and the accounts whose link leads nowhere.

    Accounts that link to each other in a circle have no end: the first of them by id stands for all.
    """
    target = list(range(len(accounts)))
    unknown = []
    for at, account in enumerate(accounts):
        if account.same_person_as is None:
            continue
        name = account.same_person_as
        found = [exact[name]] if name in exact else addresses.get(fold_id(name), [])
        others = [other for other in found if other != at]
        if len(others) > 1 or not found:
            unknown.append((at, bool(found)))
        elif others:
            target[at] = others[0]
    heads = [-1] * len(accounts)
    for start in range(len(accounts)):
        path: list[int] = []
        place: dict[int, int] = {}
        at = start
        while heads[at] < 0 and at not in place:
            place[at] = len(path)
            path.append(at)
            at = target[at]
        head = heads[at] if heads[at] >= 0 else min(path[place[at] :])
        for visited in path:
            heads[visited] = head
    return heads, unknown


def merge_accounts(accounts: Sequence[Reviewer], identity: Sequence[Reviewer]) -> Reviewer:
    """One reviewer made of the accounts of a person.

    Parameters
    ----------
    accounts : sequence of Reviewer
        Those that take part in the plan, the one whose id is kept first: their publications, areas, keywords
        and loads count. The smallest stated load_max and the largest stated load_min hold.
    identity : sequence of Reviewer
        All accounts of the person, also retired ones and other roles: their ids, addresses and institutions
        still are this person's.
    """
    head = accounts[0]
    if len(identity) == 1:
        return head
    highs = [account.load_max for account in accounts if account.load_max is not None]
    lows = [account.load_min for account in accounts if account.load_min is not None]
    ids = [name for account in identity for name in (account.id, *account.aliases) if name != head.id]
    return replace(
        head,
        name=head.name or _first(account.name for account in accounts) or "",
        emails=_union(fold_address, (account.emails for account in identity)),
        aliases=tuple(dict.fromkeys(ids)),
        publications=_publications(accounts),
        keywords=_union(str, (account.keywords for account in accounts)),
        areas=_union(str, (account.areas for account in accounts)),
        seniority=_first(account.seniority for account in accounts),
        country=_first(account.country for account in accounts),
        affiliations=_union(str, (account.affiliations for account in identity)),
        conflict_domains=_union(str, (account.conflict_domains for account in identity)),
        load_max=min(highs, default=None),
        load_min=max(lows, default=None),
        same_person_as=None,
    )


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _union(key: Callable[[str], str], lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """All entries in order, each once after folding by `key`."""
    seen: dict[str, str] = {}
    for entries in lists:
        for entry in entries:
            seen.setdefault(key(entry), entry)
    return tuple(seen.values())


def _publications(accounts: Iterable[Reviewer]) -> tuple[Publication, ...]:
    """All publications; one id names one publication, and of two versions the one with an abstract is kept."""
    seen: dict[tuple[str, str], Publication] = {}
    for account in accounts:
        for publication in account.publications:
            # without an id the text tells publications apart
            key = (publication.id, "") if publication.id.strip() else (publication.title, publication.abstract)
            known = seen.setdefault(key, publication)
            if not known.abstract.strip() and publication.abstract.strip():
                seen[key] = publication
    return tuple(seen.values())
