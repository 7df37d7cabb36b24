"""Locks of a venue. Dropping a row would drop a hard rule, so an upload is never stored in part."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response
from flask.views import MethodView
from flask_smorest import Blueprint

from service import handlers
from service.edge import Upload, answer, found, listing, operation, page_size, path_parameters, services, write_batch
from service.edge.batch import Batch
from service.edge.csvrows import lock_rows
from service.schemas import conflicts as schemas
from service.schemas.bids import DeletedSchema, PairsQuery, PairsStoredSchema
from service.schemas.common import MOST_PAIRS, PageQuery, WriteQuery

__all__ = ["blueprint"]

blueprint = Blueprint(
    "locks", __name__, url_prefix="/v1/venues/<venue>/locks", description="Pairs that are held already and never move."
)

UPLOAD = Upload(
    "locks",
    schemas.LocksSchema,
    schemas.LockSchema,
    MOST_PAIRS,
    schemas.LOCK_EXAMPLE,
    csv=lock_rows,
    csv_example=schemas.LOCK_CSV_EXAMPLE,
)
STORED = {"created": 1, "updated": 0, "rejected": [], "warnings": []}


@blueprint.route("", parameters=path_parameters("venue"))
class Locks(MethodView):
    """All locks of a venue."""

    @operation(blueprint, "listLocks", {200: found("One page.", schemas.LockPage)}, problems=(404,), query=PageQuery)
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List locks."""
        return listing(*handlers.list_locks(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "putLocks",
        {200: found("What was stored.", PairsStoredSchema, example=STORED)},
        problems=(404, 409),
        body=UPLOAD,
        query=PairsQuery,
        creates=True,
    )
    def post(self, venue: str, body: Batch, query: dict[str, Any]) -> Response:
        """Store locks, all or none; one on a pair that has one replaces it."""
        write = partial(handlers.put_locks, services(), venue)
        return answer(write_batch(body, write, dry_run=query.get("dry_run", False)))

    @operation(
        blueprint,
        "deleteLocks",
        {200: found("All are gone.", DeletedSchema, example={"deleted": 1})},
        problems=(404,),
        query=WriteQuery,
    )
    def delete(self, venue: str, query: dict[str, Any]) -> Response:
        """Delete all locks of the venue."""
        return answer(handlers.delete_locks(services(), venue, query.get("dry_run", False)))
