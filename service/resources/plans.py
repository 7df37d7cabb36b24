"""Plans: start, watch, cancel, and read what was found."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import Response, request
from flask.views import MethodView
from flask_smorest import Blueprint

from service import handlers
from service.edge import (
    CREATED_AT,
    ETAG,
    JsonBody,
    answer,
    csv_answer,
    every_page,
    found,
    listing,
    operation,
    page_size,
    path_of,
    path_parameters,
    record,
    services,
    wants_csv,
)
from service.edge.replay import claim
from service.schemas import explanations
from service.schemas import plans as schemas
from service.schemas.common import PageQuery, WriteQuery

__all__ = ["blueprint"]

blueprint = Blueprint("plans", __name__, url_prefix="/v1", description="Assignments with proof and reasons.")

FINAL = frozenset(schemas.STATES) - {"queued", "running"}
LONGEST_WAIT = 30  # seconds a request may wait for its plan; proxies in between give up after 60
MOST_WAITING = 4  # requests of one process that wait for their plans, a quarter of the threads of `revmatch serve`
POLL = 0.05  # seconds between two looks at a plan somebody waits for
RETRY_AFTER = "1"  # seconds
LATER = "5"  # seconds; evidence that is not there within the time a request waits takes a while
COLUMNS = ("submission", "reviewer", "role", "affinity", "locked", "probability", "reasons")
CSV_EXAMPLE = "submission,reviewer,affinity,locked,reasons\np1,~Ada_Quell1,0.71,false,text 0.71\n"
WAIT = {
    "name": "Prefer",
    "in": "header",
    "description": f"`wait=N`: wait up to N seconds, at most {LONGEST_WAIT}, for the plan to end. A busy server may "
    "not wait, and then answers 202 without Preference-Applied.",
    "schema": {"type": "string"},
    "example": "wait=5",
}
RETRY = {"Retry-After": {"description": "Seconds until a second look is worth it.", "schema": {"type": "string"}}}


@blueprint.route("/venues/<venue>/plans", parameters=path_parameters("venue"))
class Plans(MethodView):
    """All plans of a venue."""

    @operation(blueprint, "listPlans", {200: found("One page.", schemas.PlanPage)}, problems=(404,), query=PageQuery)
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List plans."""
        return listing(*handlers.list_plans(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "createPlan",
        {
            201: found("It has ended within the time to wait.", schemas.PlanSchema, headers={**CREATED_AT, **ETAG}),
            202: found("It is queued or running.", schemas.PlanSchema, headers={**CREATED_AT, **ETAG, **RETRY}),
        },
        problems=(404, 409),
        body=JsonBody(schemas.PlanRequestSchema, schemas.EXAMPLE),
        query=WriteQuery,
        creates=True,
        parameters=(WAIT,),
    )
    def post(self, venue: str, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Start a plan over the venue as it is now. Watch it at Location."""
        params = {name: value for name, value in body.items() if name not in ("locks", "start")}
        dry_run, start = query.get("dry_run", False), body.get("start")
        plan = handlers.create_plan(services(), venue, params, body.get("locks", ()), dry_run, claim(), start)
        if dry_run:  # there is no such plan, so there is no address to watch
            return record(plan, 202)
        with _waiting(wait_seconds(request.headers.get("Prefer", ""))) as seconds:
            until = time.monotonic() + seconds
            while plan["state"] not in FINAL and time.monotonic() < until:
                time.sleep(POLL)
                plan = handlers.get_plan(services(), plan["id"])
        applied = {"Preference_Applied": f"wait={seconds}"} if seconds else {}
        location = path_of("plans", plan["id"])
        if seconds and plan["state"] in FINAL:
            return record(plan, 201, location, **applied)
        return record(plan, 202, location, Retry_After=RETRY_AFTER, **applied)


@blueprint.route("/plans/<plan>", parameters=path_parameters("plan"))
class Plan(MethodView):
    """One plan."""

    @operation(
        blueprint,
        "getPlan",
        {200: found("The plan's state.", schemas.PlanSchema, headers=ETAG)},
        problems=(404,),
        reads_version=True,
    )
    def get(self, plan: str) -> Response:
        """Read the state of a plan; 200 while it runs as well."""
        return record(handlers.get_plan(services(), plan))

    @operation(
        blueprint,
        "cancelPlan",
        {202: found("It stops; the state says when.", schemas.PlanSchema, headers=ETAG)},
        problems=(404, 409),
    )
    def delete(self, plan: str) -> Response:
        """Cancel a plan. A cancelled plan never becomes a successful one."""
        return record(handlers.cancel_plan(services(), plan), 202, path_of("plans", plan))


@blueprint.route("/plans/<plan>/assignments", parameters=path_parameters("plan"))
class Assignments(MethodView):
    """Who reviews what."""

    @operation(
        blueprint,
        "listAssignments",
        {200: found("One page, or the whole list as CSV.", schemas.AssignmentPage, csv=CSV_EXAMPLE)},
        problems=(404, 409),
        query=schemas.AssignmentsQuery,
    )
    def get(self, plan: str, query: dict[str, Any]) -> Response:
        """List assignments, by page as JSON or as a whole as CSV."""
        submission, reviewer = query.get("submission"), query.get("reviewer")
        if not wants_csv(query):
            limit = page_size(query)
            page = handlers.plan_assignments(services(), plan, submission, reviewer, query.get("cursor"), limit)
            response = listing(*page)
        else:
            items = every_page(
                lambda cursor, limit: handlers.plan_assignments(services(), plan, submission, reviewer, cursor, limit)
            )
            shown = {"probability": any(item["probability"] is not None for item in items),
                     "role": any("role" in item for item in items)}  # fmt: skip
            columns = [name for name in COLUMNS if shown.get(name, True)]
            rows = ([*(item[name] for name in columns[:-1]), "; ".join(item.get("reasons") or ())] for item in items)
            response = csv_answer(columns, rows, "assignments.csv", query.get("format") == "csv-spreadsheet")
        response.vary.add("Accept")
        return response


@blueprint.route("/plans/<plan>/probabilities", parameters=path_parameters("plan"))
class Probabilities(MethodView):
    """What a randomised plan was drawn from."""

    @operation(
        blueprint,
        "listProbabilities",
        {200: found("One page; empty for plans that are not randomised.", schemas.ProbabilityPage)},
        problems=(404, 409),
        query=schemas.ProbabilitiesQuery,
    )
    def get(self, plan: str, query: dict[str, Any]) -> Response:
        """List the pairs a randomised plan might have drawn, each with its probability."""
        sides = query.get("submission"), query.get("reviewer")
        return listing(*handlers.plan_probabilities(services(), plan, *sides, query.get("cursor"), page_size(query)))


@blueprint.route("/plans/<plan>/alternates", parameters=path_parameters("plan"))
class Alternates(MethodView):
    """Who could stand in."""

    @operation(
        blueprint,
        "listAlternates",
        {200: found("One page.", schemas.AlternatePage)},
        problems=(404, 409),
        query=schemas.AlternatesQuery,
    )
    def get(self, plan: str, query: dict[str, Any]) -> Response:
        """List alternates, ranked for each submission."""
        cursor = query.get("cursor")
        return listing(*handlers.plan_alternates(services(), plan, query.get("submission"), cursor, page_size(query)))


@blueprint.route("/plans/<plan>/explanations", parameters=path_parameters("plan"))
class Explanations(MethodView):
    """Why these pairs."""

    @operation(
        blueprint,
        "getExplanations",
        {200: found("One page of pairs with reasons and evidence.", explanations.ExplanationPage, headers=RETRY)},
        problems=(404, 409),
        query=explanations.ExplanationsQuery,
    )
    def get(self, plan: str, query: dict[str, Any]) -> Response:
        """Explain the pairs of a submission, of a reviewer, or one pair: who is there, who is not, and why.

        All of it is about the venue as it was stored with the plan, whatever has been uploaded since.
        """
        sides = query.get("submission"), query.get("reviewer")
        items, following = handlers.plan_explanations(services(), plan, *sides, query.get("cursor"), page_size(query))
        response = listing(items, following)
        if any(item["evidence_state"] == "waiting" for item in items):
            response.headers["Retry-After"] = LATER
        return response


@blueprint.route("/plans/<plan>/diagnosis", parameters=path_parameters("plan"))
class Diagnosis(MethodView):
    """Why no full plan exists."""

    @operation(
        blueprint,
        "getDiagnosis",
        {200: found("What is missing and why.", schemas.DiagnosisSchema)},
        problems=(404, 409),
    )
    def get(self, plan: str) -> Response:
        """Say why no full plan exists, and the cheapest repairs."""
        return answer(handlers.plan_diagnosis(services(), plan))


@blueprint.route("/plans/<plan>/certificate", parameters=path_parameters("plan"))
class Certificate(MethodView):
    """The proof."""

    @operation(
        blueprint, "getCertificate", {200: found("Prices and bound.", schemas.CertificateSchema)}, problems=(404, 409)
    )
    def get(self, plan: str) -> Response:
        """Numbers from which anybody recomputes the bound without a solver."""
        return answer(handlers.plan_certificate(services(), plan))


_WAITERS = threading.BoundedSemaphore(MOST_WAITING)


@contextmanager
def _waiting(seconds: int) -> Iterator[int]:
    """Seconds a request may wait: as asked, or 0 while as many as may wait already do."""
    if not seconds or not _WAITERS.acquire(blocking=False):
        yield 0
        return
    try:
        yield seconds
    finally:
        _WAITERS.release()


def wait_seconds(prefer: str) -> int:
    """Seconds of ``wait=N`` in a Prefer header (RFC 7240), at most LONGEST_WAIT; 0 where it asks for none."""
    match = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?(?=$|[,;\s])", prefer, re.IGNORECASE)
    return min(int(match[1]), LONGEST_WAIT) if match else 0
