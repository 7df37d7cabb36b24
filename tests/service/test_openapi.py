"""The API document is valid, complete, and says what the code does."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from matching.params import Params
from matching.plan.plan import Alternate, Assignment, ScorePart
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, DeclaredConflict, Lock
from service.problems import MEDIA_TYPE
from service.schemas import bids, conflicts, plans, reviewers, submissions
from tests.service.api import ok

METHODS = ("get", "post", "put", "patch", "delete")


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    """The document as served."""
    return dict(ok(client.get("/v1/openapi.json")))


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and operation."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


def test_the_document_is_valid_openapi_31(document: dict[str, Any]) -> None:
    """By an independent validator."""
    assert document["openapi"] == "3.1.0"
    validate(document)


def test_the_document_names_the_version_of_the_package(document: dict[str, Any]) -> None:
    """One number, in one place more than wished: kept equal here."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert document["info"]["version"] == project["version"]


def test_every_route_is_documented(app: Flask, document: dict[str, Any]) -> None:
    """And nothing else is."""
    served = {
        (rule.rule.replace("<", "{").replace(">", "}"), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if rule.endpoint != "root"
    }
    assert {(path, method) for path, method, _ in operations(document)} == served


def test_every_operation_has_an_id_a_summary_and_its_problems(document: dict[str, Any]) -> None:
    """Generated clients name their methods after the ids; readers need the rest."""
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    for path, method, operation in operations(document):
        place = f"{method} {path}"
        answers = set(operation["responses"])
        assert operation["summary"] and set(operation["tags"]) <= tags, place
        assert "default" not in answers, place
        assert {"422", "500"} <= answers, place
        if operation.get("security") != []:
            assert {"401", "403", "503"} <= answers, place
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= answers, place
            for content in operation["requestBody"]["content"].values():
                assert "example" in content or "examples" in content, place
        headers = {
            parameter["name"] for parameter in operation.get("parameters", ()) if parameter.get("in") == "header"
        }
        assert ("If-None-Match" in headers) == ("304" in answers), place
        assert ("If-Match" in headers) == ("412" in answers), place
        if "{venue}" in path or "{plan}" in path:
            assert "404" in answers, place
    for name, response in document["components"]["responses"].items():
        if name != "NOT_MODIFIED":
            assert set(response["content"]) == {MEDIA_TYPE}, name


def follow(document: dict[str, Any], item: Any) -> Any:
    """The target of a reference."""
    while isinstance(item, dict) and "$ref" in item:
        target: Any = document
        for step in item["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        item = target
    return item


def test_examples_are_valid_by_their_own_schemas(document: dict[str, Any]) -> None:
    """An example that the API refuses is worse than none."""
    seen = 0
    for path, method, operation in operations(document):
        contents = [operation["requestBody"]["content"]] if "requestBody" in operation else []
        contents += [follow(document, response).get("content", {}) for response in operation["responses"].values()]
        for content in contents:
            for part in content.values():
                values = [part["example"]] if "example" in part else []
                values += [example["value"] for example in part.get("examples", {}).values()]
                for value in values:
                    schema = {**part["schema"], "components": document["components"]}
                    problems = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
                    assert not problems, f"{method} {path}: {problems}"
                    seen += 1
    assert seen > 60


@pytest.mark.parametrize(
    ("schema", "value", "besides"),
    [
        (reviewers.ReviewerSchema, Reviewer, set()),
        (reviewers.PublicationSchema, Publication, set()),
        (submissions.SubmissionSchema, Submission, set()),
        (submissions.AuthorSchema, Author, set()),
        (bids.BidSchema, Bid, set()),
        (conflicts.ConflictSchema, DeclaredConflict, set()),
        (conflicts.LockSchema, Lock, set()),
        (plans.ParamsSchema, Params, set()),
        (plans.PlanRequestSchema, Params, {"locks", "start"}),
        (plans.AssignmentSchema, Assignment, set()),
        (plans.ScorePartSchema, ScorePart, set()),
        (plans.AlternateSchema, Alternate, set()),
    ],
)
def test_json_uses_the_words_of_the_engine(schema: Any, value: Any, besides: set[str]) -> None:
    """One word for one idea; a field the engine gains must reach the API."""
    assert set(schema().fields) == {field.name for field in dataclass_fields(value)} | besides


class Links(HTMLParser):
    """Every address a page loads or leads to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            if name in ("href", "src", "action"):
                self.links.add(value or "")
            assert not name.startswith("on") and name != "style", (tag, name)


def test_the_page_loads_nothing_from_outside_and_needs_no_scripts(
    client: FlaskClient, document: dict[str, Any]
) -> None:
    """Readable on a laptop without a network."""
    response = client.get("/v1/docs")
    assert response.mimetype == "text/html"
    assert "script-src" not in response.headers["Content-Security-Policy"]
    page = Links()
    page.feed(response.get_data(as_text=True))
    assert not page.tags & {"script", "iframe", "img", "style", "form"}
    for link in page.links:
        parts = urlsplit(link)
        assert not parts.scheme and not parts.netloc, link
        if link.startswith("#"):
            assert link[1:] in page.ids, link
        else:
            assert client.get(parts.path).status_code == 200, link
    assert {operation["operationId"] for _, _, operation in operations(document)} <= page.ids
    style = client.get("/v1/docs/style.css").get_data(as_text=True)
    assert "url(" not in style and "@import" not in style
