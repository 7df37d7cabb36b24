"""Whether the process lives, and whether it can work."""

from __future__ import annotations

from flask import Response
from flask.views import MethodView
from flask_smorest import Blueprint
from marshmallow import Schema

from service import handlers
from service.edge import answer, found, operation, services
from service.schemas.fields import Text

__all__ = ["blueprint"]

blueprint = Blueprint("health", __name__, description="For load balancers and container runtimes; no token needed.")


class AliveSchema(Schema):
    """The process answers."""

    status = Text(required=True)


class ReadySchema(Schema):
    """Whether the parts answer."""

    status = Text(required=True, metadata={"description": "ok or degraded."})
    database = Text(required=True, metadata={"description": "ok or down."})
    worker = Text(required=True, metadata={"description": "ok or down."})


@blueprint.route("/healthz")
class Alive(MethodView):
    """The process answers."""

    @operation(
        blueprint, "getHealth", {200: found("It lives.", AliveSchema, example={"status": "ok"})}, needs_token=False
    )
    def get(self) -> Response:
        """Say whether the process lives."""
        return answer({"status": "ok"})


@blueprint.route("/readyz")
class Ready(MethodView):
    """The parts answer."""

    @operation(
        blueprint,
        "getReady",
        {
            200: found("It can work.", ReadySchema, example={"status": "ok", "database": "ok", "worker": "ok"}),
            503: found(
                "A part is down.", ReadySchema, example={"status": "degraded", "database": "ok", "worker": "down"}
            ),
        },
        needs_token=False,
    )
    def get(self) -> Response:
        """Say whether database and worker answer."""
        state = handlers.health(services())
        return answer(state, 200 if state["status"] == "ok" else 503)
