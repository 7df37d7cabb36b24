"""The API described: as OpenAPI, as a page to read, and every problem with its meaning."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from flask import Response, current_app, render_template, request
from flask.views import MethodView
from flask_smorest import Blueprint
from marshmallow import Schema, fields
from werkzeug.exceptions import NotFound

from service.edge import answer, operation, path_parameters
from service.kinds import KINDS, PROBLEMS
from service.pages.outline import outline
from service.schemas.fields import ListOf, NestedRecord, Text

__all__ = ["blueprint"]

PAGES = Path(__file__).parents[1] / "pages"
blueprint = Blueprint(
    "docs", __name__, description="This description; no token needed.", template_folder=str(PAGES / "templates")
)

HTML = {"text/html": {"schema": {"type": "string"}}}
POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class KindSchema(Schema):
    """One kind of problem."""

    code = Text(required=True)
    type = Text(required=True, metadata={"description": "Address of this explanation."})
    status = fields.Integer(required=True)
    title = Text(required=True)
    description = Text(required=True, metadata={"description": "What it means and what to do."})


class KindsSchema(Schema):
    """Every kind of problem."""

    items = ListOf(NestedRecord(KindSchema), required=True)


def _document() -> dict[str, Any]:
    """The OpenAPI document, built once for each application."""
    kept = current_app.extensions.setdefault("revmatch-document", {})
    if not kept:
        kept.update(current_app.extensions["revmatch-api"].spec.to_dict())
    return dict(kept)


def _page(template: str, **values: Any) -> Response:
    response = Response(render_template(template, **values), mimetype="text/html")
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-cache"
    return response


def _described(code: str) -> dict[str, Any]:
    kind = PROBLEMS[code]
    return {
        "code": kind.code,
        "type": f"/v1/problems/{kind.code}",
        "status": kind.status,
        "title": kind.title,
        "description": kind.words,
    }


def _wants_page() -> bool:
    return request.accept_mimetypes.best_match(("application/json", "text/html")) == "text/html"


@blueprint.route("/v1/openapi.json")
class OpenApi(MethodView):
    """The document."""

    @operation(
        blueprint,
        "getOpenApi",
        {200: {"description": "OpenAPI 3.1.", "content": {"application/json": {"schema": {"type": "object"}}}}},
        needs_token=False,
    )
    def get(self) -> Response:
        """Read this description as OpenAPI 3.1."""
        return Response(json.dumps(_document(), ensure_ascii=False, indent=1), mimetype="application/json")


@blueprint.route("/v1/docs")
class Docs(MethodView):
    """The page."""

    @operation(blueprint, "getDocs", {200: {"description": "A page.", "content": HTML}}, needs_token=False)
    def get(self) -> Response:
        """Read this description as a page."""
        return _page("docs.html", api=outline(_document()))


@blueprint.route("/v1/docs/style.css")
class Style(MethodView):
    """How the pages look."""

    @operation(
        blueprint,
        "getDocsStyle",
        {200: {"description": "A style sheet.", "content": {"text/css": {"schema": {"type": "string"}}}}},
        needs_token=False,
    )
    def get(self) -> Response:
        """The style of the pages."""
        response = Response(_style(), mimetype="text/css")
        response.headers["Cache-Control"] = "no-cache"
        return response


@cache
def _style() -> str:
    return (PAGES / "style.css").read_text(encoding="utf-8")


@blueprint.route("/v1/problems")
class Problems(MethodView):
    """Every kind of problem."""

    @operation(
        blueprint,
        "listProblems",
        {
            200: {
                "description": "Every code with its meaning.",
                "content": {"application/json": {"schema": KindsSchema}, **HTML},
            }
        },
        needs_token=False,
    )
    def get(self) -> Response:
        """List every problem this API answers with."""
        kinds = [_described(kind.code) for kind in KINDS]
        response = _page("problems.html", kinds=kinds) if _wants_page() else answer({"items": kinds})
        response.vary.add("Accept")
        return response


@blueprint.route("/v1/problems/<code>", parameters=path_parameters("code"))
class Problem(MethodView):
    """One kind of problem."""

    @operation(
        blueprint,
        "getProblem",
        {
            200: {
                "description": "What the code means and what to do.",
                "content": {"application/json": {"schema": KindSchema, "example": _described("not-found")}, **HTML},
            }
        },
        problems=(404,),
        needs_token=False,
    )
    def get(self, code: str) -> Response:
        """Explain one problem; `type` of every problem leads here."""
        if code not in PROBLEMS:
            raise NotFound("no problem has this code")
        kind = _described(code)
        response = _page("problems.html", kinds=[kind]) if _wants_page() else answer(kind)
        response.vary.add("Accept")
        return response
