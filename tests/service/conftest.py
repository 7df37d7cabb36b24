"""An application over the real handlers, with SQLite in a temporary folder and plans computed in the same thread."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import create_engine, make_url

from service import logs
from service.app import create_app
from service.config import Settings
from service.jobs import InlineJobs
from service.store import Store
from service.wiring import Services


@pytest.fixture(scope="session", autouse=True)
def log_as_shipped() -> None:
    """Before any test captures it: setting up the log in the middle of a capture would end it."""
    logs.configure()


@pytest.fixture
def make_app(tmp_path: Path) -> Iterator[Callable[..., Flask]]:
    """Builds applications with other settings; each over the same temporary database."""
    made: list[Services] = []

    def make(**settings: Any) -> Flask:
        chosen = Settings(database_url="sqlite:///api.db", data_dir=tmp_path, **settings)
        store = Store(chosen.database_url, chosen.data_dir)
        store.upgrade()
        services = Services(chosen, store, InlineJobs(store))
        made.append(services)
        return create_app(services=services)

    yield make
    for services in made:
        services.close()


@pytest.fixture
def app(make_app: Callable[..., Flask]) -> Flask:
    """The application as shipped, without a token."""
    return make_app()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A program on the same machine."""
    return app.test_client()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind; PostgreSQL where REVMATCH_TEST_POSTGRES_URL names one to make schemas in."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    url = os.environ.get("REVMATCH_TEST_POSTGRES_URL")
    if not url:
        pytest.skip("REVMATCH_TEST_POSTGRES_URL is not set")
    schema = f"test_{uuid.uuid4().hex}"
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    chosen = make_url(url).update_query_dict({"options": f"-csearch_path={schema}"})
    yield chosen.render_as_string(hide_password=False)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {schema} CASCADE")
    engine.dispose()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store with its tables."""
    made = Store(database_url)
    made.upgrade()
    yield made
    made.close()
