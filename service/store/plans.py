"""Plans as rows: the states a run goes through, and what it leaves. The database is the truth.

    queued -> running -> succeeded | infeasible | failed | cancelled | timed_out | interrupted
    queued -> cancelled | interrupted | failed

Every change of state is one UPDATE that names the states it may come from, so that of several processes exactly
one wins and a state that ended never changes again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, func, insert, select, update

from service.errors import NotFoundError
from service.store.tables import alternates, assignments, plan_documents, plans, venues

__all__ = [
    "ENDED",
    "LOADING",
    "OPEN",
    "adopt_plan",
    "all_open_plans",
    "claim_plan",
    "end_plan",
    "find_plan",
    "insert_plan",
    "load_document",
    "load_in_plan",
    "locked_affinity",
    "open_plans",
    "page_of_plans",
    "page_of_results",
    "renew_leases",
    "report_progress",
    "request_cancel",
    "store_result",
]

OPEN = ("queued", "running")
ENDED = ("succeeded", "infeasible", "failed", "interrupted", "cancelled", "timed_out")
LOADING = "loading"  # phase of a running plan before the engine's first report
CHUNK = 5_000  # rows a statement


def insert_plan(connection: Connection, values: Mapping[str, Any]) -> None:
    """Store a new plan in state queued; `values` has id, venue_key, venue_hash, params, owner, lease_until."""
    connection.execute(insert(plans).values(state="queued", version=1, progress=0.0, created_at=time.time(), **values))


def _plans_with_venue() -> Any:
    return select(plans, venues.c.id.label("venue")).join(venues, venues.c.key == plans.c.venue_key)


def find_plan(connection: Connection, plan: str) -> Row[Any]:
    """The row of a plan with the id of its venue. Raises NotFoundError."""
    row: Row[Any] | None = connection.execute(_plans_with_venue().where(plans.c.id == plan)).first()
    if row is None:
        raise NotFoundError(f"there is no plan {plan!r}", kind="plan", id=plan)
    return row


def page_of_plans(connection: Connection, venue_key: int, after: int, limit: int) -> Sequence[Row[Any]]:
    """Plans of a venue whose key is above `after`, at most `limit`, in order."""
    query = (
        _plans_with_venue()
        .where(plans.c.venue_key == venue_key, plans.c.key > after)
        .order_by(plans.c.key)
        .limit(limit)
    )
    return connection.execute(query).all()


def open_plans(connection: Connection, venue_key: int) -> Sequence[str]:
    """Ids of the venue's plans that are queued or running."""
    query = select(plans.c.id).where(plans.c.venue_key == venue_key, plans.c.state.in_(OPEN)).order_by(plans.c.key)
    return connection.scalars(query).all()


def claim_plan(connection: Connection, plan: str, claim: str, worker: str) -> bool:
    """Take a queued plan for one run; False where it is not queued any more."""
    now = time.time()
    result = connection.execute(
        update(plans)
        .where(plans.c.id == plan, plans.c.state == "queued")
        .values(
            state="running", claim=claim, worker=worker, started_at=now, heartbeat_at=now, phase=LOADING,
            version=plans.c.version + 1,
        )
    )  # fmt: skip
    return result.rowcount == 1


def report_progress(connection: Connection, plan: str, claim: str, facts: Mapping[str, Any]) -> tuple[str, bool]:
    """Write a heartbeat and what is known of the run; returns the plan's state and whether it is to stop.

    A plan that is no longer this run's comes back with a state other than running.
    """
    connection.execute(
        update(plans)
        .where(plans.c.id == plan, plans.c.claim == claim, plans.c.state == "running")
        .values(heartbeat_at=time.time(), version=plans.c.version + 1, **facts)
    )
    row = connection.execute(
        select(plans.c.state, plans.c.claim, plans.c.cancel_requested_at).where(plans.c.id == plan)
    ).first()
    if row is None or row.claim != claim:
        return "gone", True
    return row.state, row.cancel_requested_at is not None or row.state != "running"


def request_cancel(connection: Connection, plan: str) -> None:
    """A queued plan is cancelled at once; a running one is asked to stop."""
    now = time.time()
    connection.execute(
        update(plans)
        .where(plans.c.id == plan, plans.c.state == "queued")
        .values(state="cancelled", cancel_requested_at=now, ended_at=now, version=plans.c.version + 1)
    )
    connection.execute(
        update(plans)
        .where(plans.c.id == plan, plans.c.state == "running", plans.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=now, version=plans.c.version + 1)
    )


def end_plan(
    connection: Connection,
    plan: str,
    state: str,
    problem: str | None = None,
    *,
    claim: str | None = None,
    before: Collection[str] = OPEN,
    columns: Mapping[str, Any] | None = None,
    unless_cancelled: bool = False,
) -> bool:
    """Bring a plan from one of the states `before` to an end; False where another end came first.

    Parameters
    ----------
    claim : str or None
        Only where the plan is still this run's.
    unless_cancelled : bool
        Only where nobody asked the plan to stop.
    """
    conditions = [plans.c.id == plan, plans.c.state.in_(before)]
    if claim is not None:
        conditions.append(plans.c.claim == claim)
    if unless_cancelled:
        conditions.append(plans.c.cancel_requested_at.is_(None))
    result = connection.execute(
        update(plans)
        .where(*conditions)
        .values(state=state, problem=problem, ended_at=time.time(), version=plans.c.version + 1, **(columns or {}))
    )
    return result.rowcount == 1


def store_result(
    connection: Connection,
    plan_key: int,
    assignment_rows: Sequence[Mapping[str, Any]],
    alternate_rows: Sequence[Mapping[str, Any]],
    documents: Mapping[str, str],
) -> None:
    """Store what a run found; the caller ends the plan in the same transaction, first."""
    for table, rows in ((assignments, assignment_rows), (alternates, alternate_rows)):
        for start in range(0, len(rows), CHUNK):
            connection.execute(insert(table), [{"plan_key": plan_key, **row} for row in rows[start : start + CHUNK]])
    connection.execute(delete(plan_documents).where(plan_documents.c.plan_key == plan_key))
    if documents:
        connection.execute(
            insert(plan_documents),
            [{"plan_key": plan_key, "name": name, "body": body} for name, body in documents.items()],
        )


def adopt_plan(connection: Connection, plan: str, former: str | None, owner: str, lease_until: float) -> bool:
    """Become the owner of an open plan that `former` owns; False where somebody else was faster."""
    result = connection.execute(
        update(plans)
        .where(plans.c.id == plan, plans.c.state.in_(OPEN), plans.c.owner.is_not_distinct_from(former))
        .values(owner=owner, lease_until=lease_until)
    )
    return result.rowcount == 1


def renew_leases(connection: Connection, owner: str, lease_until: float) -> None:
    """The owner still answers for its open plans."""
    connection.execute(
        update(plans).where(plans.c.owner == owner, plans.c.state.in_(OPEN)).values(lease_until=lease_until)
    )


def all_open_plans(connection: Connection) -> Sequence[Row[Any]]:
    """Every open plan with what says whether anybody still works on it."""
    query: Select[Any] = select(
        plans.c.id, plans.c.state, plans.c.owner, plans.c.lease_until, plans.c.heartbeat_at, plans.c.started_at,
        plans.c.cancel_requested_at, plans.c.worker, plans.c.phase,
    ).where(plans.c.state.in_(OPEN))  # fmt: skip
    return connection.execute(query).all()


def load_document(connection: Connection, plan_key: int, name: str) -> str | None:
    """The JSON text of one document of a plan, None where there is none."""
    return connection.scalar(
        select(plan_documents.c.body).where(plan_documents.c.plan_key == plan_key, plan_documents.c.name == name)
    )


def load_in_plan(connection: Connection, plan_key: int, reviewer: str) -> int:
    """Reviews a person carries in a plan."""
    query = select(func.count()).where(assignments.c.plan_key == plan_key, assignments.c.reviewer == reviewer)
    return connection.scalar(query) or 0


def locked_affinity(connection: Connection, plan_key: int) -> dict[str | None, float]:
    """Affinity of the locked pairs of a plan, summed for each role; None stands for plans that name no roles."""
    query = (
        select(assignments.c.role, func.sum(assignments.c.affinity))
        .where(assignments.c.plan_key == plan_key, assignments.c.locked.is_(True))
        .group_by(assignments.c.role)
    )
    return {role: float(affinity) for role, affinity in connection.execute(query)}


def page_of_results(
    connection: Connection,
    table: Table,
    plan_key: int,
    submission: str | None,
    reviewer: str | None,
    after: int,
    limit: int | None,
) -> Sequence[Row[Any]]:
    """Assignments or alternates at positions above `after`, of one submission or one reviewer where given."""
    query = select(table).where(table.c.plan_key == plan_key, table.c.position > after).order_by(table.c.position)
    if submission is not None:
        query = query.where(table.c.submission == submission)
    if reviewer is not None:
        query = query.where(table.c.reviewer == reviewer)
    return connection.execute(query if limit is None else query.limit(limit)).all()
