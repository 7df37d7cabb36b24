"""Imported scores of a venue, one signal a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Response
from flask.views import MethodView
from flask_smorest import Blueprint
from marshmallow import ValidationError

from service import handlers
from service.edge import Upload, answer, found, listing, operation, page_size, path_parameters, services, write_batch
from service.edge.batch import Batch
from service.edge.csvrows import score_rows
from service.edge.errors import InvalidRequestError, PlacedIssue, unfold
from service.schemas import scores as schemas
from service.schemas.bids import DeletedSchema, PairsStoredSchema
from service.schemas.common import MOST_PAIRS, PageQuery, WriteQuery
from service.schemas.fields import Key

__all__ = ["blueprint"]

blueprint = Blueprint(
    "scores", __name__, url_prefix="/v1/venues/<venue>/scores", description="Scores from outside, each table a signal."
)

UPLOAD = Upload(
    "scores",
    schemas.ScoresSchema,
    schemas.ScoreSchema,
    MOST_PAIRS,
    schemas.EXAMPLE,
    csv=score_rows,
    csv_example=schemas.CSV_EXAMPLE,
)
STORED = {"signal": "hand", "created": 2, "updated": 0, "rejected": [], "warnings": []}
SIGNALS = {"items": [{"signal": "hand", "default": None, "scores": 2}]}
NAME = Key()


@blueprint.route("", parameters=path_parameters("venue"))
class Signals(MethodView):
    """All tables of a venue."""

    @operation(
        blueprint, "listSignals", {200: found("Every table.", schemas.SignalsSchema, example=SIGNALS)}, problems=(404,)
    )
    def get(self, venue: str) -> Response:
        """List the tables of scores."""
        return answer({"items": handlers.list_signals(services(), venue)})


@blueprint.route("/<signal>", parameters=path_parameters("venue", "signal"))
class Scores(MethodView):
    """One table."""

    @operation(blueprint, "listScores", {200: found("One page.", schemas.ScorePage)}, problems=(404,), query=PageQuery)
    def get(self, venue: str, signal: str, query: dict[str, Any]) -> Response:
        """List the scores of a signal."""
        return listing(*handlers.list_scores(services(), venue, signal, query.get("cursor"), page_size(query)))

    @operation(
        blueprint,
        "putScores",
        {200: found("What was stored.", PairsStoredSchema, example=STORED)},
        problems=(404,),
        body=UPLOAD,
        query=schemas.ScoresQuery,
        creates=True,
    )
    def post(self, venue: str, signal: str, body: Batch, query: dict[str, Any]) -> Response:
        """Store scores of a signal; a score of a pair that has one replaces it."""
        _check_name(signal)
        if "default" in query and not body.csv:
            words = "belongs into the JSON body"
            raise InvalidRequestError(issues=[PlacedIssue(words, "misplaced", "default", source="query", path=None)])
        lenient = query.get("on_error") == "skip"
        default = body.options.get("default")
        done = write_batch(
            body,
            lambda rows, dry_run: handlers.put_scores(services(), venue, signal, rows, default, dry_run, lenient),
            dry_run=query.get("dry_run", False),
            lenient=lenient,
        )
        return answer(done)

    @operation(
        blueprint,
        "deleteScores",
        {200: found("The table is gone.", DeletedSchema, example={"deleted": 2})},
        problems=(404,),
        query=WriteQuery,
    )
    def delete(self, venue: str, signal: str, query: dict[str, Any]) -> Response:
        """Delete a signal with its scores."""
        return answer(handlers.delete_scores(services(), venue, signal, query.get("dry_run", False)))


def _check_name(signal: str) -> None:
    """A signal is created by its address, so the address is judged like an id."""
    try:
        NAME.deserialize(signal)
    except ValidationError as error:
        issues = [replace(issue, field="signal", source="path", path=None) for issue in unfold(error.messages, signal)]
        raise InvalidRequestError(issues=issues) from None
