"""What a finished plan holds: assignments, alternates, diagnosis."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row, Table

from service.errors import StateConflictError
from service.handlers.common import Page, Record, cut_page, page_of, page_start
from service.store import plans
from service.store.tables import alternates, assignments
from service.wiring import Services

__all__ = [
    "document",
    "finished",
    "plan_alternates",
    "plan_assignments",
    "plan_diagnosis",
    "plan_probabilities",
    "show_alternate",
    "show_assignment",
]


def plan_assignments(
    services: Services,
    plan: str,
    submission: str | None = None,
    reviewer: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Assigned pairs in the plan's own order: by submission, then role, then falling affinity.

    Parameters
    ----------
    submission, reviewer : str or None
        Only those of this submission or reviewer. An id the plan does not know gives an empty page.

    Returns
    -------
    items : list of {"submission", "reviewer", "affinity", "locked", "parts", "reasons", "probability"}
        With "role" where the plan names roles.
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


def plan_diagnosis(services: Services, plan: str) -> Record:
    """Why no full plan exists, empty for a full one, and where rules are missed.

    {"plan", "state", "status", "diagnosis", "unfilled", "rule_shortfalls", "notices"}.

    Raises NotFoundError, StateConflictError as `plan_assignments`.
    """
    with services.store.read() as connection:
        row = finished(connection, plan)
        parts = {name: document(connection, row, name) for name in ("diagnosis", "unfilled", "notices")}
        parts["rule_shortfalls"] = document(connection, row, "rule_shortfalls") or []
    return {"plan": row.id, "state": row.state, "status": row.status, **parts}


def plan_probabilities(
    services: Services,
    plan: str,
    submission: str | None = None,
    reviewer: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Pairs a randomised plan might have drawn: {"submission", "reviewer", "probability"}, by submission and reviewer.

    Empty for every other plan. Parameters and errors as of `plan_assignments`.
    """
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        row = finished(connection, plan)
        found = document(connection, row, "probabilities") or []
    items = [
        {"submission": paper, "reviewer": person, "probability": chance}
        for paper, person, chance in found
        if submission in (None, paper) and reviewer in (None, person)
    ]
    return cut_page(items, after, size)


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
        row = finished(connection, plan)
        rows = plans.page_of_results(connection, table, row.key, submission, reviewer, after, size + 1)
    return page_of(
        rows, size, show_assignment if table is assignments else show_alternate, lambda entry: [entry.position]
    )


def finished(connection: Connection, plan: str) -> Row[Any]:
    """The row of a plan that has a result. Raises NotFoundError, StateConflictError."""
    row = plans.find_plan(connection, plan)
    if row.state in plans.OPEN:
        raise StateConflictError(f"the plan is {row.state}; ask again when it has ended", state=row.state)
    if row.status is None:
        raise StateConflictError(f"the plan ended as {row.state} and has no result", state=row.state)
    return row


def document(connection: Connection, row: Row[Any], name: str) -> Any:
    """One document of a plan, parsed; None where there is none."""
    text = plans.load_document(connection, row.key, name)
    return None if text is None else json.loads(text)


def show_assignment(row: Row[Any]) -> Record:
    """An assigned pair as JSON."""
    shown = {"submission": row.submission, "reviewer": row.reviewer, "affinity": row.affinity, "locked": row.locked}
    return {**shown, "probability": None, **json.loads(row.detail), **_role(row)}


def show_alternate(row: Row[Any]) -> Record:
    """An alternate as JSON."""
    names = ("submission", "reviewer", "rank", "affinity", "spare_load", "full")
    return {**{name: getattr(row, name) for name in names}, **_role(row)}


def _role(row: Row[Any]) -> Record:
    """The role of a pair, where the plan names roles."""
    return {} if row.role is None else {"role": row.role}
