"""Plans: readiness, start, state, cancel."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import Connection, Row

from matching.errors import InputError, InvalidParamsError, InvalidVenueError, Issue
from matching.params import DEFAULT_WEIGHTS, Params
from service.engine import engine_or_default
from service.errors import NotFoundError, NotReadyError, StateConflictError
from service.handlers.common import Page, Record, page_of, page_start, timestamp
from service.handlers.idempotency import Claim, bind_plan
from service.handlers.precheck import check_asked, check_names, missing_sides
from service.handlers.uploads import read_upload
from service.store import plans, records
from service.store.pairs import signals_of
from service.store.snapshot import keep_snapshot, read_venue, take_snapshot
from service.translate import dumps, issues_with_names, notice_to_dict, venue_from_snapshot
from service.wiring import Services

__all__ = ["COUNTS", "cancel_plan", "create_plan", "get_plan", "list_plans", "readiness"]

log = structlog.get_logger(__name__)

STATES_WITH_PAIRS = ("succeeded", "infeasible")
HANDOVER_SECONDS = 60.0  # between the row of a plan and its being taken over by `jobs`

COUNTS = (
    "submissions", "reviewers", "reviews_needed", "reviews_available", "conflicts", "bids", "locks",
    "reviewers_without_evidence", "submissions_without_text",
)  # fmt: skip
"""Numbers of a readiness answer; null where faults of the records keep them from being counted."""

STORED_COUNTS = ("submissions", "reviewers", "bids", "locks")  # those that can be counted in any case


def readiness(services: Services, venue: str, params: Mapping[str, Any] | None = None) -> Record:
    """What is missing or odd before a run.

    Parameters
    ----------
    params : mapping or None
        As for `create_plan`; None for the defaults.

    Returns
    -------
    dict
        {"ready": bool, "counts": {...}, "items": [{code, message, submissions, reviewers, severity, data}]}; what
        stops a full plan is of severity "error", faults of the stored records among it.

    Raises
    ------
    NotFoundError, InvalidParamsError
    """
    wanted = Params.from_mapping(dict(params or {}))
    with services.store.read() as connection:
        key = records.find_venue(connection, venue).key
        _check_signals(connection, key, wanted)
        snapshot = read_venue(connection, key)
        missing = missing_sides(connection, key, wanted)
    items = [
        {
            "code": f"no-{side}", "message": f"the venue has no active {side}", "submissions": [], "reviewers": [],
            "severity": "error", "data": {},
        }
        for side in missing
    ]  # fmt: skip
    try:
        found = engine_or_default(services.engine).readiness(venue_from_snapshot(snapshot), wanted)
    except InputError as error:
        items += [
            {
                "code": entry["code"], "message": entry["reason"], "submissions": entry["submissions"],
                "reviewers": entry["reviewers"], "severity": "error", "data": {"field": entry["field"]},
            }
            for entry in issues_with_names(error.issues, snapshot)
        ]  # fmt: skip
        counts = {name: len(snapshot[name]) for name in STORED_COUNTS}
        return {"ready": False, "counts": {name: counts.get(name) for name in COUNTS}, "items": items}
    items += [notice_to_dict(item) for item in found["items"]]
    ready = bool(found["ready"]) and not missing
    return {"ready": ready, "counts": {name: found["counts"].get(name) for name in COUNTS}, "items": items}


def create_plan(
    services: Services,
    venue: str,
    params: Mapping[str, Any],
    locks: Sequence[Mapping[str, Any]] = (),
    dry_run: bool = False,
    claim: Claim | None = None,
    start: str | None = None,
) -> Record:
    """Queue a plan over the venue as it is now.

    Parameters
    ----------
    params : mapping
        Fields of `Params`; those left out keep their default.
    locks : sequence of mapping
        submission, reviewer: pairs this plan keeps besides the venue's own locks.
    claim : Claim or None
        The Idempotency-Key of the request; it and the plan are stored together.
    start : str or None
        Id of a plan of this venue that has ended with pairs; the new one begins from it.

    Returns
    -------
    dict
        The plan, state "queued".

    Raises
    ------
    NotFoundError
    InvalidParamsError
        ``invalid-params``: an option out of range, an unknown scorer, load_min above load_max, a weight of a
        signal the venue does not have, a rule about attributes and ids it does not have, or a start that is no plan of
        this venue or has no pairs to begin from.
    InvalidVenueError
        ``invalid-venue``: locks that name nobody, contradict a declared conflict, or exceed a demand or a load.
    NotReadyError
        ``not-ready``: no active submissions or no active reviewers.
    """
    wanted = Params.from_mapping(dict(params))
    with services.store.read() as connection:
        row = records.find_venue(connection, venue)
        venue_key = row.key
        _check_signals(connection, venue_key, wanted)
        if missing := missing_sides(connection, venue_key, wanted):
            words = f"venue {venue!r} has no active {' and no active '.join(missing)}; add some first"
            raise NotReadyError(words, missing=missing)
        upload = read_upload(connection, venue_key, locks, "locks", ())
        if upload.issues:
            raise InvalidVenueError(issues=upload.issues)
        check_asked(connection, row, wanted, locks, upload)
        check_names(connection, venue_key, wanted, locks, upload)
        if start is not None:
            _check_start(connection, row, start)
        snapshot = take_snapshot(connection, venue_key, records.ids_of_pairs(connection, upload.rows))
    plan_id = uuid.uuid4().hex

    def work(connection: Connection) -> Record:
        if records.find_venue(connection, venue).key != venue_key:
            raise StateConflictError(f"venue {venue!r} was deleted and made anew meanwhile; ask again")
        keep_snapshot(connection, snapshot)
        plans.insert_plan(
            connection,
            {
                "id": plan_id, "venue_key": venue_key, "venue_hash": snapshot.hash, "params": dumps(wanted.to_dict()),
                "lease_until": time.time() + HANDOVER_SECONDS, "start": start,
            },
        )  # fmt: skip
        if claim is not None:
            bind_plan(connection, claim, plan_id)
        return show_plan(plans.find_plan(connection, plan_id))

    shown = services.store.write(work, dry_run)
    log.info("plan_queued", venue=venue, plan=plan_id, dry_run=dry_run)
    if not dry_run:
        services.jobs.submit(plan_id)
    return shown


def list_plans(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Plans of a venue in the order of their creation, and the next cursor or None. Raises NotFoundError."""
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        rows = plans.page_of_plans(connection, records.find_venue(connection, venue).key, after, size + 1)
    return page_of(rows, size, show_plan, lambda row: [row.key])


def get_plan(services: Services, plan: str) -> Record:
    """State, progress, totals and parameters of one plan, with "etag". Raises NotFoundError."""
    with services.store.read() as connection:
        return show_plan(plans.find_plan(connection, plan))


def cancel_plan(services: Services, plan: str) -> Record:
    """Ask a plan to stop: a queued one is cancelled at once, a running one at its next step.

    Raises
    ------
    NotFoundError
    StateConflictError
        ``state-conflict``: it has ended already, other than by being cancelled.
    """

    def work(connection: Connection) -> Record:
        row = plans.find_plan(connection, plan)
        if row.state in plans.ENDED and row.state != "cancelled":
            raise StateConflictError(f"the plan has ended: {row.state}", state=row.state)
        plans.request_cancel(connection, plan)
        return show_plan(plans.find_plan(connection, plan))

    shown = services.store.write(work)
    log.info("plan_cancel_requested", plan=plan)
    services.jobs.cancel(plan)
    return shown


def show_plan(row: Row[Any]) -> Record:
    """The row of a plan as JSON."""

    def parsed(text: str | None) -> Any:
        return None if text is None else json.loads(text)

    return {
        "id": row.id,
        "venue": row.venue,
        "state": row.state,
        "phase": row.phase,
        "progress": row.progress,
        "value": row.value,
        "bound": row.bound,
        "gap": row.gap,
        "objectives": parsed(row.objectives),
        "created_at": timestamp(row.created_at),
        "started_at": timestamp(row.started_at),
        "ended_at": timestamp(row.ended_at),
        "heartbeat_at": timestamp(row.heartbeat_at),
        "params": parsed(row.params),
        "start": row.start,
        "status": row.status,
        "summary": parsed(row.summary),
        "problem": parsed(row.problem),
        "input_hash": row.input_hash,
        "venue_hash": row.venue_hash,
        "versions": parsed(row.versions),
        "etag": str(row.version),
    }


def _check_start(connection: Connection, venue: Row[Any], start: str) -> None:
    """A plan begins from one of its own venue that has pairs."""
    try:
        row = plans.find_plan(connection, start)
    except NotFoundError:
        row = None
    if row is None or row.venue_key != venue.key:
        issue = Issue(f"the venue has no plan {start!r}", "unknown-plan", "start", value=start, source="params")
    elif row.state not in STATES_WITH_PAIRS:
        reason = f"the plan is {row.state}; a start must be {' or '.join(STATES_WITH_PAIRS)}"
        issue = Issue(reason, "plan-without-pairs", "start", value=start, source="params")
    else:
        return
    raise InvalidParamsError(issues=[issue])


def _check_signals(connection: Connection, venue_key: int, params: Params) -> None:
    known = sorted(DEFAULT_WEIGHTS.keys() | {row.name for row in signals_of(connection, venue_key)})
    issues = [
        Issue(
            f"the venue has no signal {name!r}; it has {', '.join(known)}",
            "unknown-signal",
            f"{field}.{name}",
            source="params",
        )
        for field in ("weights", "defaults")
        for name in getattr(params, field)
        if name not in known
    ]
    if issues:
        raise InvalidParamsError(issues=issues)
