"""Conflicts of a venue. Dropping a row would drop a hard rule, so an upload is never stored in part."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from flask.views import MethodView
from flask_smorest import Blueprint

from service import handlers
from service.edge import Upload, answer, found, listing, operation, page_size, path_parameters, services, write_batch
from service.edge.batch import Batch
from service.edge.csvrows import conflict_rows
from service.schemas import conflicts as schemas
from service.schemas.bids import DeletedSchema, PairsQuery, PairsStoredSchema
from service.schemas.common import MOST_PAIRS, PageQuery, WriteQuery

__all__ = ["blueprint"]

blueprint = Blueprint(
    "conflicts",
    __name__,
    url_prefix="/v1/venues/<venue>/conflicts",
    description="Pairs that must never be assigned, with the reason for each.",
)

UPLOAD = Upload(
    "conflicts",
    schemas.ConflictsSchema,
    schemas.ConflictSchema,
    MOST_PAIRS,
    schemas.EXAMPLE,
    csv=conflict_rows,
    csv_example=schemas.CSV_EXAMPLE,
)
STORED = {"created": 1, "updated": 0, "rejected": [], "warnings": []}


@blueprint.route("", parameters=path_parameters("venue"))
class Conflicts(MethodView):
    """All conflicts of a venue."""

    @operation(
        blueprint, "listConflicts", {200: found("One page.", schemas.ConflictPage)}, problems=(404,), query=PageQuery
    )
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List conflicts."""
        return listing(*handlers.list_conflicts(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "putConflicts",
        {200: found("What was stored.", PairsStoredSchema, example=STORED)},
        problems=(404,),
        body=UPLOAD,
        query=PairsQuery,
        creates=True,
    )
    def post(self, venue: str, body: Batch, query: dict[str, Any]) -> Response:
        """Store conflicts, all or none; one on a pair that has one replaces it."""
        write = partial(handlers.put_conflicts, services(), venue)
        return answer(write_batch(body, write, dry_run=query.get("dry_run", False)))

    @operation(
        blueprint,
        "deleteConflicts",
        {200: found("All are gone.", DeletedSchema, example={"deleted": 1})},
        problems=(404,),
        query=WriteQuery,
    )
    def delete(self, venue: str, query: dict[str, Any]) -> Response:
        """Delete all conflicts of the venue."""
        return answer(handlers.delete_conflicts(services(), venue, query.get("dry_run", False)))
