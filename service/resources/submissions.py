"""Submissions of a venue: bulk add, read, replace, delete."""

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
from service.schemas import submissions as schemas
from service.schemas.common import MOST_RECORDS, PageQuery, WriteQuery
from service.schemas.reviewers import AddedSchema, RemovedSchema

__all__ = ["blueprint"]

blueprint = Blueprint(
    "submissions", __name__, url_prefix="/v1/venues/<venue>/submissions", description="What is to be reviewed."
)

UPLOAD = Upload(
    "submissions",
    schemas.SubmissionsSchema,
    schemas.SubmissionSchema,
    MOST_RECORDS,
    {"submissions": [schemas.EXAMPLE]},
    single=True,
)
ADDED = {"created": 1, "warnings": []}
STORED_AT = {"Location": {"description": "Where the record is, for an upload of one.", "schema": {"type": "string"}}}


@blueprint.route("", parameters=path_parameters("venue"))
class Submissions(MethodView):
    """All submissions of a venue."""

    @operation(
        blueprint,
        "listSubmissions",
        {200: found("One page.", schemas.SubmissionPage)},
        problems=(404,),
        query=PageQuery,
    )
    def get(self, venue: str, query: dict[str, Any]) -> Response:
        """List submissions."""
        return listing(*handlers.list_submissions(services(), venue, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "addSubmissions",
        {201: found("All are stored.", AddedSchema, example=ADDED, headers=STORED_AT)},
        problems=(404, 409),
        body=UPLOAD,
        query=WriteQuery,
        creates=True,
    )
    def post(self, venue: str, body: Batch, query: dict[str, Any]) -> Response:
        """Add one submission or many, all or none."""
        done = write_batch(
            body, partial(handlers.add_submissions, services(), venue), dry_run=query.get("dry_run", False)
        )
        headers = {"Location": path_of("venues", venue, "submissions", body.rows[0]["id"])} if body.single else None
        return answer(done, 201, headers)


@blueprint.route("/<submission>", parameters=path_parameters("venue", "submission"))
class Submission(MethodView):
    """One submission."""

    @operation(
        blueprint,
        "getSubmission",
        {200: found("The submission.", schemas.SubmissionSchema, example=schemas.EXAMPLE, headers=ETAG)},
        problems=(404,),
        reads_version=True,
    )
    def get(self, venue: str, submission: str) -> Response:
        """Read a submission."""
        return record(handlers.get_submission(services(), venue, submission))

    @operation(
        blueprint,
        "replaceSubmission",
        {200: found("The submission as it is now.", schemas.SubmissionSchema, headers=ETAG)},
        problems=(404,),
        body=JsonBody(schemas.SubmissionChangeSchema, schemas.EXAMPLE),
        query=WriteQuery,
        version_required=True,
    )
    def put(self, venue: str, submission: str, body: dict[str, Any], query: dict[str, Any]) -> Response:
        """Replace a stored submission. New ones are added by POST."""
        if_match = request.headers.get("If-Match")
        return record(
            handlers.put_submission(services(), venue, submission, body, if_match, query.get("dry_run", False))
        )

    @operation(
        blueprint,
        "deleteSubmission",
        {200: found("Gone, and what went with it.", RemovedSchema, example={"bids": 2, "conflicts": 0, "scores": 40})},
        problems=(404, 409),
        query=WriteQuery,
        checks_version=True,
    )
    def delete(self, venue: str, submission: str, query: dict[str, Any]) -> Response:
        """Delete a submission with its bids, conflicts and scores. Plans made before keep it."""
        if_match = request.headers.get("If-Match")
        return answer(handlers.delete_submission(services(), venue, submission, if_match, query.get("dry_run", False)))
