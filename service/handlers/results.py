"""What a finished plan holds: assignments, alternates, explanations, diagnosis, certificate."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row, Table

from matching.errors import InputError, Issue
from service.errors import NotFoundError, StateConflictError
from service.handlers.common import Page, Record, page_of, page_start
from service.store import plans
from service.store.tables import alternates, assignments
from service.wiring import Services

__all__ = ["plan_alternates", "plan_assignments", "plan_certificate", "plan_diagnosis", "plan_explanations"]


def plan_assignments(
    services: Services,
    plan: str,
    submission: str | None = None,
    reviewer: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Assigned pairs in the plan's own order: by submission, then falling affinity.

    Parameters
    ----------
    submission, reviewer : str or None
        Only those of this submission or reviewer. An id the plan does not know gives an empty page.

    Returns
    -------
    items : list of {"submission", "reviewer", "affinity", "locked", "parts", "reasons"}
    cursor : str or None

    Raises
    ------
    NotFoundError
    StateConflictError
        ``state-conflict``: the plan has no result, or none yet.
    """
    return _page(services, assignments, plan, submission, reviewer, cursor, limit)


def plan_alternates(
    services: Services,
    plan: str,
    submission: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Ranked stand-ins: {"submission", "reviewer", "rank", "affinity", "spare_load", "full"}. As `plan_assignments`."""
    return _page(services, alternates, plan, submission, None, cursor, limit)


def plan_explanations(
    services: Services, plan: str, submission: str | None = None, reviewer: str | None = None
) -> Record:
    """Why these pairs: those of a submission, of a reviewer, or the one pair of both, assigned or not.

    Returns
    -------
    dict
        {"items": [{"submission", "reviewer", "assigned", "affinity", "locked", "parts", "reasons", "alternate"}]};
        affinity is None for a pair that is neither assigned nor an alternate.

    Raises
    ------
    InputError
        ``invalid-input``: neither is given.
    NotFoundError
        No such plan, or an id the plan does not know.
    StateConflictError
    """
    if submission is None and reviewer is None:
        reason = "give a submission, a reviewer, or both"
        raise InputError(issues=[Issue(reason, "missing", "submission", source="query")])
    with services.store.read() as connection:
        row = _finished(connection, plan)
        assigned = plans.page_of_results(connection, assignments, row.key, submission, reviewer, -1, None)
        prices = _document(connection, row, "certificate") or {}
        if assigned:
            return {"items": [_explain_assigned(entry) for entry in assigned]}
        for name, kind in ((submission, "submission"), (reviewer, "reviewer")):
            if name is not None and name not in prices.get(f"{kind}_prices", {}):
                raise NotFoundError(f"{kind} {name!r} has no part in this plan", kind=kind, id=name)
        if submission is None or reviewer is None:
            return {"items": []}
        spare = plans.page_of_results(connection, alternates, row.key, submission, reviewer, -1, None)
    return {"items": [_explain_other(submission, reviewer, spare[0] if spare else None)]}


def plan_diagnosis(services: Services, plan: str) -> Record:
    """Why no full plan exists: {"plan", "state", "status", "diagnosis", "unfilled", "notices"}; empty for a full one.

    Raises NotFoundError, StateConflictError as `plan_assignments`.
    """
    with services.store.read() as connection:
        row = _finished(connection, plan)
        parts = {name: _document(connection, row, name) for name in ("diagnosis", "unfilled", "notices")}
    return {"plan": row.id, "state": row.state, "status": row.status, **parts}


def plan_certificate(services: Services, plan: str) -> Record:
    """The proof: {"plan", "status", "value", "bound", "gap", "certificate", "input_hash", "provenance"}.

    Raises NotFoundError, StateConflictError as `plan_assignments`.
    """
    with services.store.read() as connection:
        row = _finished(connection, plan)
        parts = {name: _document(connection, row, name) for name in ("certificate", "provenance")}
    numbers = {"status": row.status, "value": row.value, "bound": row.bound, "gap": row.gap}
    return {"plan": row.id, **numbers, "input_hash": row.input_hash, **parts}


def _page(
    services: Services,
    table: Table,
    plan: str,
    submission: str | None,
    reviewer: str | None,
    cursor: str | None,
    limit: int | None,
) -> Page:
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        row = _finished(connection, plan)
        rows = plans.page_of_results(connection, table, row.key, submission, reviewer, after, size + 1)
    return page_of(
        rows, size, _show_assignment if table is assignments else _show_alternate, lambda entry: [entry.position]
    )


def _finished(connection: Connection, plan: str) -> Row[Any]:
    """The row of a plan that has a result."""
    row = plans.find_plan(connection, plan)
    if row.state in plans.OPEN:
        raise StateConflictError(f"the plan is {row.state}; ask again when it has ended", state=row.state)
    if row.status is None:
        raise StateConflictError(f"the plan ended as {row.state} and has no result", state=row.state)
    return row


def _document(connection: Connection, row: Row[Any], name: str) -> Any:
    text = plans.load_document(connection, row.key, name)
    return None if text is None else json.loads(text)


def _show_assignment(row: Row[Any]) -> Record:
    shown = {"submission": row.submission, "reviewer": row.reviewer, "affinity": row.affinity, "locked": row.locked}
    return {**shown, **json.loads(row.detail)}


def _show_alternate(row: Row[Any]) -> Record:
    return {name: getattr(row, name) for name in ("submission", "reviewer", "rank", "affinity", "spare_load", "full")}


def _explain_assigned(row: Row[Any]) -> Record:
    return {**_show_assignment(row), "assigned": True, "alternate": None}


def _explain_other(submission: str, reviewer: str, alternate: Row[Any] | None) -> Record:
    if alternate is None:
        reasons = ["not assigned, and not among the alternates listed: barred, or below them in affinity"]
    elif alternate.full:
        reasons = [
            f"alternate number {alternate.rank}; not assigned: the reviewer's load is full with other submissions"
        ]
    else:
        reasons = [f"alternate number {alternate.rank}; not assigned: the plan as a whole is better without this pair"]
    return {
        "submission": submission,
        "reviewer": reviewer,
        "assigned": False,
        "affinity": None if alternate is None else alternate.affinity,
        "locked": False,
        "parts": [],
        "reasons": reasons,
        "alternate": None if alternate is None else _show_alternate(alternate),
    }
