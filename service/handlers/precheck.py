"""What can be refused before a plan is queued, at the price of a few look-ups; the engine checks everything later."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Table

from matching.errors import InputError, InvalidParamsError, InvalidVenueError, Issue
from matching.params import Params
from matching.profiles.venue import Lock
from service.handlers.uploads import Upload
from service.store import pairs, records
from service.store.snapshot import read_venue
from service.store.tables import conflicts, locks, reviewers, submissions
from service.translate import venue_from_snapshot

__all__ = ["check_asked", "check_names", "missing_sides"]

DEFAULT_SCORER = "lexical"
MOST_RECORDS = 5_000  # people and submissions of a venue up to which rules are looked up here, within a second or two
MOST_LOCKS = 10_000  # locks of one request that are looked at here; more are left to the run


def missing_sides(connection: Connection, venue_key: int, params: Params) -> list[str]:
    """Those of "submissions" and "reviewers" of which nobody takes part; usually the first record read is enough."""
    roles = {wish.name for wish in params.role_wishes}
    sides: tuple[tuple[Table, Callable[[Mapping[str, Any]], bool]], ...] = (
        (submissions, lambda record: bool(record["active"])),
        (reviewers, lambda record: bool(record["active"]) and record["role"] in roles),
    )
    return [
        table.name
        for table, takes_part in sides
        if not any(takes_part(json.loads(text)) for text in records.texts_of(connection, table, venue_key))
    ]


def check_asked(
    connection: Connection, venue: Row[Any], params: Params, given: Sequence[Mapping[str, Any]], upload: Upload
) -> None:
    """Refuse options and locks that contradict each other or the venue.

    Parameters
    ----------
    venue : row
        Of the venues' table.
    given : sequence of mapping
        The locks of the request as sent, for the places of faults.
    upload : Upload
        The same, resolved and without a fault.

    Raises
    ------
    InvalidParamsError, InvalidVenueError
    """
    record = json.loads(venue.record)
    if params.scorer != DEFAULT_SCORER:
        # imported here: it loads scikit-learn, which a web process otherwise never needs
        from matching.scores.text import named_scorer

        named_scorer(params.scorer)
    least = record["load_min"] if params.load_min is None else params.load_min
    most = record["load_max"] if params.load_max is None else params.load_max
    if least > most and not params.roles:  # of roles `check_names` tells
        field, value = ("load_max", most) if params.load_min is None else ("load_min", least)
        words = f"load_min {least} is above load_max {most}; where the options name none, the venue's holds"
        raise InvalidParamsError(issues=[Issue(words, "contradiction", field, value=value, source="params")])
    if 0 < len(upload.rows) <= MOST_LOCKS:
        issues = _lock_issues(connection, venue.key, record, params, given, upload)
        if issues:
            raise InvalidVenueError(issues=issues)


def check_names(
    connection: Connection, venue_key: int, params: Params, given: Sequence[Mapping[str, Any]], upload: Upload
) -> None:
    """Refuse rules, roles, numbers by id and locks of a request that the venue's records or rules contradict.

    That is, attributes and ids the venue does not have, locks on pairs that a rule or an affiliation bars, more locks
    than demand or load allow, and chance under rules. What the venue's own rules and locks get wrong among themselves
    is left to readiness and the run: it is no fault of the request.

    Parameters
    ----------
    given, upload
        As for `check_asked`.

    Raises
    ------
    InvalidParamsError, InvalidVenueError
    """
    by_id = [name for wish in params.wishes for name in wish.options if not isinstance(wish.options[name], int | float)]
    if not params.rules and not by_id and not params.roles and not 0 < len(upload.rows) <= MOST_LOCKS:
        return
    counts = records.count_venue(connection, venue_key)
    if counts["reviewers"] + counts["submissions"] > MOST_RECORDS:
        return
    # imported here: most requests never need it
    from matching.prepared import prepare, wishes_by_id

    venue = venue_from_snapshot(read_venue(connection, venue_key))
    asked = dict(zip(records.ids_of_pairs(connection, upload.rows), upload.origins, strict=True))
    issues: list[Issue] = []
    try:
        resolved = prepare(replace(venue, locks=(*venue.locks, *(Lock(*pair) for pair in asked))), params)[0]
    except InputError as error:
        issues += [issue for issue in error.issues if issue.source == "params" and _is_of_request(issue)]
        issues += _of_locks(error.issues, asked)
    else:
        place = "objective[0]." if isinstance(params.objective, tuple) else "objective."
        try:
            wishes_by_id(params.wishes, resolved)
        except InvalidParamsError as error:
            issues += [replace(issue, field=f"{place}{issue.field}") for issue in error.issues]
    if issues:
        of_locks = all(issue.source == "locks" for issue in issues)
        raise (InvalidVenueError if of_locks else InvalidParamsError)(issues=issues)


def _of_locks(issues: Sequence[Issue], asked: Mapping[tuple[str, str], int]) -> list[Issue]:
    """Those about a lock of the request that no rule of the request is to blame for, each at the place of the lock."""
    found = []
    for issue in issues:
        if issue.source == "params":
            continue
        if issue.code == "locked-conflict" and isinstance(issue.value, list) and tuple(issue.value) in asked:
            at, field = asked[issue.value[0], issue.value[1]], None
        elif issue.code == "too-many-locks":
            side = 0 if (issue.field or "").endswith(("demand", ".submissions")) else 1
            places = [place for pair, place in asked.items() if pair[side] == issue.value]
            if not places:
                continue
            at, field = min(places), ("submission", "reviewer")[side]
        else:
            continue
        found.append(replace(issue, source="locks", field=field, row=at))
    return sorted(found, key=lambda issue: issue.row or 0)


def _is_of_request(issue: Issue) -> bool:
    return (issue.field or "").startswith(("rules", "roles", "load_min"))


def _lock_issues(
    connection: Connection,
    venue_key: int,
    venue: Mapping[str, Any],
    params: Params,
    given: Sequence[Mapping[str, Any]],
    upload: Upload,
) -> list[Issue]:
    asked = {(row[0], row[1]): at for row, at in zip(upload.rows, upload.origins, strict=True)}
    issues = [
        Issue(
            f"{given[asked[pair]]['submission']!r} and {given[asked[pair]]['reviewer']!r} are in conflict "
            f"({rule}{': ' if evidence else ''}{evidence}); a conflict is never lifted by a lock",
            "locked-conflict", None, asked[pair], None, "locks",
        )
        for pair, (rule, evidence) in pairs.facts_of_pairs(connection, conflicts, venue_key, list(asked)).items()
    ]  # fmt: skip
    if params.roles:  # whose demand and load a lock counts in is for the run to say
        return sorted(issues, key=lambda issue: issue.row or 0)
    stored = set(pairs.keys_of_pairs(connection, locks, venue_key))
    for place, table, name, default in (
        (0, submissions, "demand", venue["demand"] if params.demand is None else params.demand),
        (1, reviewers, "load_max", venue["load_max"] if params.load_max is None else params.load_max),
    ):
        held = Counter(pair[place] for pair in stored | asked.keys())
        kind = table.name.removesuffix("s")
        first: dict[int, int] = {}
        for pair, at in asked.items():
            first.setdefault(pair[place], at)
        for key, text in records.texts_by_key(connection, table, list(first)).items():
            record = json.loads(text)
            if not record["active"] or record.get("role", "reviewer") != "reviewer":
                continue  # takes no part, and neither does the lock; the run says so
            own = record[name]
            limit = default if own is None else own if name == "demand" else min(own, default)
            if held[key] > limit:
                words = f"{kind} {record['id']!r} would hold {held[key]} locked reviews, its {name} is {limit}"
                issues.append(Issue(words, "too-many-locks", kind, first[key], record["id"], "locks"))
    return sorted(issues, key=lambda issue: issue.row or 0)
