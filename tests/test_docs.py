"""What is documented is read from the code, so that neither can move on without the other."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from flask import Flask
from werkzeug.exceptions import NotFound
from werkzeug.routing import RequestRedirect

import matching.errors
import service.edge.errors
import service.errors
from matching.errors import MatchingError
from matching.params import Params
from service.app import create_app
from service.cli import main
from service.config import SETTINGS_HELP, Settings
from service.jobs import InlineJobs
from service.store import Store
from service.wiring import Services

ROOT = Path(__file__).resolve().parents[1]
TEST_VARIABLES = {"REVMATCH_TEST_POSTGRES_URL", "REVMATCH_SHARED"}  # read by tests, not by the product
MARKER = "<!-- tests -->"


@cache
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Fenced blocks of the README in one language."""
    found = re.findall(r"^```([a-z]*)[^\n]*\n(.*?)^```", readme(), re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def commands() -> list[str]:
    """Shell lines of the README, continued ones joined, chained ones taken apart."""
    lines = "\n".join(blocks("sh") + blocks("bash") + blocks("console")).replace("\\\n", " ").splitlines()
    parts = [part.strip() for line in lines for part in re.split(r"&&|\|\||;|\|", line)]
    return [part.removeprefix("$ ") for part in parts if part and not part.startswith("#")]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    folder = tmp_path_factory.mktemp("docs")
    settings = Settings(database_url="sqlite:///docs.db", data_dir=folder)
    store = Store(settings.database_url, settings.data_dir)
    store.upgrade()
    services = Services(settings, store, InlineJobs(store))
    yield create_app(services=services)
    services.close()


@pytest.fixture(scope="module")
def document(app: Flask) -> Any:
    """The OpenAPI document, as served."""
    return app.test_client().get("/v1/openapi.json").get_json()


@pytest.mark.parametrize("setting", sorted(SETTINGS_HELP))
def test_every_setting_is_in_the_readme(setting: str) -> None:
    """A setting nobody can find is one nobody can use."""
    assert f"`{setting}`" in readme()


def test_the_readme_names_no_setting_that_is_not_there() -> None:
    """A setting that was renamed lives on in the README otherwise."""
    named = set(re.findall(r"REVMATCH_[A-Z_]+[A-Z]", readme()))
    assert named - set(SETTINGS_HELP) - TEST_VARIABLES == set()


def test_every_field_of_the_settings_has_its_variable() -> None:
    """Settings, their help and their docstring are written in three places of one file."""
    said = inspect.getdoc(Settings) or ""
    for field in dataclasses.fields(Settings):
        assert f"REVMATCH_{field.name.upper()}" in SETTINGS_HELP
    for variable in SETTINGS_HELP:
        assert variable in said


def operations(rule: Any) -> set[str]:
    return {method.lower() for method in rule.methods} - {"head", "options"}


def test_every_route_is_in_the_api_description(app: Flask, document: Any) -> None:
    """A route outside the description is one no client generator and no test walk finds."""
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:[a-z]+:)?(\w+)>", r"{\1}", rule.rule)
        if path == "/":
            continue  # sends a browser to the page about the API
        assert operations(rule) <= set(document["paths"].get(path, {})), path


def test_every_operation_says_what_it_does(document: Any) -> None:
    """The page for people is made of these sentences."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in ("get", "post", "put", "patch", "delete"):
                assert operation.get("summary") or operation.get("description"), f"{method} {path}"
                assert operation.get("operationId"), f"{method} {path}"


def test_every_route_the_readme_shows_is_there(app: Flask) -> None:
    """Examples are what people copy first."""
    adapter = app.url_map.bind("localhost")
    shown = set(re.findall(r"/v1/[A-Za-z0-9_{}<>$~%/.-]*[A-Za-z0-9}>]|/healthz|/readyz", readme()))
    assert shown
    for path in sorted(shown):
        try:
            known = any(adapter.test(path, method) for method in ("GET", "POST", "PUT", "PATCH", "DELETE"))
        except (NotFound, RequestRedirect):
            known = False
        assert known, path


def error_classes(module: ModuleType) -> list[type[MatchingError]]:
    return [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, MatchingError) and kind.__module__ == module.__name__
    ]


@pytest.mark.parametrize(
    "code",
    sorted(
        {
            kind.code
            for module in (matching.errors, service.errors, service.edge.errors)
            for kind in error_classes(module)
        }
    ),
)
def test_every_error_code_has_its_page(app: Flask, code: str) -> None:
    """The `type` of a problem leads to words about it."""
    client = app.test_client()
    answer = client.get(f"/v1/problems/{code}", headers={"Accept": "application/json"})
    assert answer.status_code == 200
    described = answer.get_json()
    assert described["code"] == code
    assert code in client.get("/v1/problems", headers={"Accept": "application/json"}).get_data(as_text=True)


def test_the_error_trees_in_the_docstrings_are_the_real_ones() -> None:
    """Both files open with a drawing of their classes and codes."""
    for module in (matching.errors, service.errors):
        for kind in error_classes(module):
            if kind is not MatchingError and kind.code != "service-error":
                assert re.search(rf"\b{kind.__name__}\s+{kind.code}\b", module.__doc__ or ""), kind


def test_every_option_of_a_plan_is_in_the_api_description(document: Any) -> None:
    """What the library can be asked for, the service can be asked for."""
    body = document["paths"]["/v1/venues/{venue}/plans"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    properties = document["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"]
    for field in dataclasses.fields(Params):
        assert properties[field.name].get("description"), field.name


def test_the_readme_holds_the_command_of_the_tests() -> None:
    """.ci/run takes it from there; the demo is the other command a stranger tries."""
    assert readme().count(MARKER) == 1
    after = readme().partition(MARKER)[2].lstrip()
    assert re.match(r"```[a-z]*\n.*-m pytest\b", after, re.DOTALL)
    assert "revmatch demo" in readme()


def test_every_revmatch_command_is_in_the_readme() -> None:
    """And every one the README shows is there, with the options it shows."""
    assert isinstance(main, click.Group)
    shown = [shlex.split(line)[1:] for line in commands() if re.match(r"(\S*/)?revmatch\s", line)]
    for words in shown:
        if words[0].startswith("-"):
            continue
        command = main.commands[words[0]]
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        given = {word.partition("=")[0] for word in words[1:] if word.startswith("--")}
        assert given <= options | {"--help"}, words
    for name in main.commands:
        assert re.search(rf"revmatch {name}\b", readme()), name


def test_what_the_readme_imports_can_be_imported() -> None:
    """Examples in Python are read as Python, and name what there is."""
    for block in blocks("python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("matching", "service"):
                for alias in node.names:
                    assert hasattr(importlib.import_module(node.module or ""), alias.name), ast.unparse(node)


def test_every_file_the_readme_points_to_is_there() -> None:
    """Links within the repository."""
    for target in re.findall(r"\]\(([^)#\s]+)", readme()):
        if not re.match(r"[a-z]+:", target):
            assert (ROOT / target).exists(), target
