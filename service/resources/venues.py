"""Venues and their readiness."""

from __future__ import annotations

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
    found,
    listing,
    nothing,
    operation,
    page_size,
    path_of,
    path_parameters,
    record,
    services,
)
from service.schemas import plans as plan_schemas
from service.schemas import venues as schemas
from service.schemas.common import PageQuery, WriteQuery

__all__ = ["blueprint"]

blueprint = Blueprint("venues", __name__, url_prefix="/v1", description="A conference, journal, workshop or panel.")

SHOWN_EXAMPLE = {**schemas.EXAMPLE, "created_at": "2026-03-01T12:00:00+00:00"}


@blueprint.route("/venues")
class Venues(MethodView):
    """All venues."""

    @operation(blueprint, "listVenues", {200: found("One page.", schemas.VenuePage)}, query=PageQuery)
    def get(self, query: dict[str, Any]) -> Response:
        """List venues."""
        return listing(*handlers.list_venues(services(), query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "createVenue",
        {
            201: found(
                "The stored venue.", schemas.VenueShownSchema, example=SHOWN_EXAMPLE, headers={**ETAG, **CREATED_AT}
            )
        },
        body=JsonBody(schemas.VenueSchema, schemas.EXAMPLE),
        query=WriteQuery,
        creates=True,
    )
    def post(self, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Create a venue."""
        stored = handlers.create_venue(services(), body, query.get("dry_run", False))
        return record(stored, 201, path_of("venues", body["id"]))


@blueprint.route("/venues/<venue>", parameters=path_parameters("venue"))
class Venue(MethodView):
    """One venue."""

    @operation(
        blueprint,
        "getVenue",
        {200: found("The venue.", schemas.VenueShownSchema, headers=ETAG)},
        problems=(404,),
        reads_version=True,
    )
    def get(self, venue: str) -> Response:
        """Read a venue."""
        return record(handlers.get_venue(services(), venue))

    @operation(
        blueprint,
        "updateVenue",
        {200: found("The venue as it is now.", schemas.VenueShownSchema, headers=ETAG)},
        problems=(404,),
        body=JsonBody(schemas.VenueChangeSchema, {"load_max": 4}, ("application/json", "application/merge-patch+json")),
        query=WriteQuery,
        version_required=True,
    )
    def patch(self, venue: str, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Change some fields of a venue."""
        if_match = request.headers.get("If-Match")
        return record(handlers.update_venue(services(), venue, body, if_match, query.get("dry_run", False)))

    @operation(
        blueprint, "deleteVenue", {204: found("Gone.")}, problems=(404, 409), query=WriteQuery, checks_version=True
    )
    def delete(self, venue: str, query: dict[str, Any]) -> Response:
        """Delete a venue with its records and plans."""
        handlers.delete_venue(services(), venue, request.headers.get("If-Match"), query.get("dry_run", False))
        return nothing()


@blueprint.route("/venues/<venue>/rules", parameters=path_parameters("venue"))
class Rules(MethodView):
    """Rules by attributes."""

    @operation(
        blueprint,
        "getRules",
        {200: found("The list, empty where there are none.", schemas.RulesSchema, example=schemas.RULES, headers=ETAG)},
        problems=(404,),
        reads_version=True,
    )
    def get(self, venue: str) -> Response:
        """Read the rules of a venue."""
        return record(handlers.get_rules(services(), venue))

    @operation(
        blueprint,
        "replaceRules",
        {200: found("The list as it is now.", schemas.RulesSchema, example=schemas.RULES, headers=ETAG)},
        problems=(404,),
        body=JsonBody(schemas.RulesSchema, schemas.RULES),
        query=WriteQuery,
        version_required=True,
    )
    def put(self, venue: str, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Replace the whole list of rules. The first list of a venue needs no If-Match."""
        if_match = request.headers.get("If-Match")
        return record(handlers.put_rules(services(), venue, body["rules"], if_match, query.get("dry_run", False)))

    @operation(blueprint, "deleteRules", {204: found("Gone.")}, problems=(404,), query=WriteQuery, checks_version=True)
    def delete(self, venue: str, query: dict[str, Any]) -> Response:
        """Delete all rules of a venue."""
        handlers.delete_rules(services(), venue, request.headers.get("If-Match"), query.get("dry_run", False))
        return nothing()


@blueprint.route("/venues/<venue>/readiness", parameters=path_parameters("venue"))
class Readiness(MethodView):
    """What a run would find."""

    @operation(
        blueprint, "getReadiness", {200: found("What is missing or odd.", schemas.ReadinessSchema)}, problems=(404,)
    )
    def get(self, venue: str) -> Response:
        """Check a venue before a run with default options."""
        return answer(handlers.readiness(services(), venue, {}))

    @operation(
        blueprint,
        "checkReadiness",
        {200: found("What is missing or odd.", schemas.ReadinessSchema)},
        problems=(404,),
        body=JsonBody(plan_schemas.ParamsSchema, plan_schemas.EXAMPLE),
    )
    def post(self, venue: str, body: dict[str, Any]) -> Response:
        """Check a venue before a run with the options of that run. Stores nothing."""
        return answer(handlers.readiness(services(), venue, body))
