"""Reviewers of a venue: bulk add, read, replace, delete."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response, request
from flask.views import MethodView
from flask_smorest import Blueprint

from service import handlers
from service.edge import (
    ETAG,
    JsonBody,
    Upload,
    answer,
    found,
    listing,
    operation,
    page_size,
    path_of,
    path_parameters,
    record,
    services,
    write_batch,
)
from service.edge.batch import Batch
from service.schemas import reviewers as schemas
from service.schemas.common import MOST_RECORDS, PageQuery, WriteQuery
from service.schemas.reviewers import AddedSchema, RemovedSchema

__all__ = ["blueprint"]

blueprint = Blueprint(
    "reviewers",
    __name__,
    url_prefix="/v1/venues/<venue>/reviewers",
    description="The people who can review, with what shows their expertise.",
)

UPLOAD = Upload(
    "reviewers",
    schemas.ReviewersSchema,
    schemas.ReviewerSchema,
    MOST_RECORDS,
    {"reviewers": [schemas.EXAMPLE]},
    single=True,
)
ADDED = {"created": 1, "warnings": []}
STORED_AT = {"Location": {"description": "Where the record is, for an upload of one.", "schema": {"type": "string"}}}


@blueprint.route("", parameters=path_parameters("venue"))
class Reviewers(MethodView):
    """All reviewers of a venue."""

    @operation(
        blueprint, "listReviewers", {200: found("One page.", schemas.ReviewerPage)}, problems=(404,), query=PageQuery
    )
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List reviewers."""
        return listing(*handlers.list_reviewers(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "addReviewers",
        {201: found("All are stored.", AddedSchema, example=ADDED, headers=STORED_AT)},
        problems=(404, 409),
        body=UPLOAD,
        query=WriteQuery,
        creates=True,
    )
    def post(self, venue: str, body: Batch, query: dict[str, Any]) -> Response:
        """Add one reviewer or many, all or none."""
        done = write_batch(
            body, partial(handlers.add_reviewers, services(), venue), dry_run=query.get("dry_run", False)
        )
        headers = {"Location": path_of("venues", venue, "reviewers", body.rows[0]["id"])} if body.single else None
        return answer(done, 201, headers)


@blueprint.route("/<reviewer>", parameters=path_parameters("venue", "reviewer"))
class Reviewer(MethodView):
    """One reviewer."""

    @operation(
        blueprint,
        "getReviewer",
        {200: found("The reviewer.", schemas.ReviewerSchema, example=schemas.EXAMPLE, headers=ETAG)},
        problems=(404,),
        reads_version=True,
    )
    def get(self, venue: str, reviewer: str) -> Response:
        """Read a reviewer."""
        return record(handlers.get_reviewer(services(), venue, reviewer))

    @operation(
        blueprint,
        "replaceReviewer",
        {200: found("The reviewer as it is now.", schemas.ReviewerSchema, headers=ETAG)},
        problems=(404,),
        body=JsonBody(schemas.ReviewerChangeSchema, schemas.EXAMPLE),
        query=WriteQuery,
        version_required=True,
    )
    def put(self, venue: str, reviewer: str, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Replace a stored reviewer. New ones are added by POST."""
        if_match = request.headers.get("If-Match")
        return record(handlers.put_reviewer(services(), venue, reviewer, body, if_match, query.get("dry_run", False)))

    @operation(
        blueprint,
        "deleteReviewer",
        {200: found("Gone, and what went with it.", RemovedSchema, example={"bids": 2, "conflicts": 0, "scores": 40})},
        problems=(404, 409),
        query=WriteQuery,
        checks_version=True,
    )
    def delete(self, venue: str, reviewer: str, query: dict[str, Any]) -> Response:
        """Delete a reviewer with its bids, conflicts and scores. Plans made before keep it."""
        if_match = request.headers.get("If-Match")
        return answer(handlers.delete_reviewer(services(), venue, reviewer, if_match, query.get("dry_run", False)))
