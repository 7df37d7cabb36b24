"""Bids of a venue."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView
from flask_smorest import Blueprint

from service import handlers
from service.edge import Upload, answer, found, listing, operation, page_size, path_parameters, services, write_batch
from service.edge.batch import Batch
from service.edge.csvrows import bid_rows
from service.schemas import bids as schemas
from service.schemas.common import MOST_PAIRS, PageQuery, WriteQuery

__all__ = ["STORED", "blueprint"]

blueprint = Blueprint("bids", __name__, url_prefix="/v1/venues/<venue>/bids", description="What reviewers wish.")

UPLOAD = Upload(
    "bids",
    schemas.BidsSchema,
    schemas.BidSchema,
    MOST_PAIRS,
    schemas.EXAMPLE,
    csv=bid_rows,
    csv_example=schemas.CSV_EXAMPLE,
)
STORED = {"created": 2, "updated": 0, "rejected": [], "warnings": []}


@blueprint.route("", parameters=path_parameters("venue"))
class Bids(MethodView):
    """All bids of a venue."""

    @operation(blueprint, "listBids", {200: found("One page.", schemas.BidPage)}, problems=(404,), query=PageQuery)
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List bids."""
        return listing(*handlers.list_bids(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "putBids",
        {200: found("What was stored.", schemas.PairsStoredSchema, example=STORED)},
        problems=(404,),
        body=UPLOAD,
        query=schemas.LenientQuery,
        creates=True,
    )
    def post(self, venue: str, body: Batch, query: dict[str, Any]) -> Response:
        """Store bids; a bid on a pair that has one replaces it."""
        lenient = query.get("on_error") == "skip"
        done = write_batch(
            body,
            lambda rows, dry_run: handlers.put_bids(services(), venue, rows, dry_run, lenient),
            dry_run=query.get("dry_run", False),
            lenient=lenient,
        )
        return answer(done)

    @operation(
        blueprint,
        "deleteBids",
        {200: found("All are gone.", schemas.DeletedSchema, example={"deleted": 2})},
        problems=(404,),
        query=WriteQuery,
    )
    def delete(self, venue: str, query: dict[str, Any]) -> Response:
        """Delete all bids of the venue."""
        return answer(handlers.delete_bids(services(), venue, query.get("dry_run", False)))
