"""The database: schema, transactions, and what happens when it is busy."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, func, insert, inspect, select, text

from matching.errors import MissingExtraError
from service.errors import SettingsError, UnavailableError
from service.store import Store, schema
from service.store.evidence import Finding, load_findings, store_findings
from service.store.plans import find_plan
from service.store.records import insert_venue
from service.store.tables import metadata, reviewers, venues
from tests.service import running
from tests.service.stand_ins import StandIn


@contextmanager
def monkey_head(revision: str) -> Iterator[None]:
    """Upgrades stop at a revision."""
    with pytest.MonkeyPatch.context() as patch:
        real = schema.command.upgrade
        patch.setattr(schema.command, "upgrade", lambda config, _: real(config, revision))
        yield


def count(store: Store) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(venues)) or 0


def test_migrations_give_exactly_the_tables_the_code_uses(store: Store) -> None:
    """A table or column added to the one and forgotten in the other breaks only on a user's machine."""
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrations_give_every_index_and_cascade(store: Store) -> None:
    """The comparison above does not look at ON DELETE, on which erasing a venue rests."""
    with store.read() as connection:
        found = inspect(connection)
        for table in metadata.tables.values():
            stored = {key["name"]: key["options"].get("ondelete") for key in found.get_foreign_keys(table.name)}
            assert stored == {key.name: key.ondelete for key in table.foreign_key_constraints}
            assert {index["name"] for index in found.get_indexes(table.name)} >= {index.name for index in table.indexes}


def test_upgrading_twice_and_at_once_does_no_harm(database_url: str) -> None:
    """Several web processes start together."""
    stores = [Store(database_url) for _ in range(3)]
    failures: list[Exception] = []

    def run(store: Store) -> None:
        try:
            store.upgrade()
            store.upgrade()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert count(stores[0]) == 0
    for store in stores:
        store.close()


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    """All or nothing, also when the second half fails."""

    def work(connection: Connection) -> None:
        insert_venue(connection, "v", "{}")
        raise ValueError

    with pytest.raises(ValueError):
        store.write(work)
    assert count(store) == 0


def test_a_dry_run_returns_what_it_would_do_and_leaves_nothing(store: Store) -> None:
    """`?dry_run=true` runs the very same code."""

    def work(connection: Connection) -> int:
        insert_venue(connection, "v", "{}")
        return connection.scalar(select(func.count()).select_from(venues)) or 0

    assert store.write(work, dry_run=True) == 1
    assert count(store) == 0


def test_foreign_keys_are_enforced(store: Store) -> None:
    """SQLite ignores them unless told; a fact about a reviewer nobody has must not be stored."""
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        store.write(
            lambda connection: connection.execute(
                insert(reviewers).values(venue_key=7, id="r", names="", record="{}", version=1)
            )
        )


def test_a_reader_sees_one_moment(store: Store) -> None:
    """A snapshot read while others write must not be half old and half new."""
    with store.read() as connection:
        before = connection.scalar(select(func.count()).select_from(venues))
        store.write(lambda other: insert_venue(other, "v", "{}"))
        assert connection.scalar(select(func.count()).select_from(venues)) == before
    assert count(store) == 1


def test_b50_many_writers_at_once_all_succeed(store: Store) -> None:
    """Writers queue for the lock instead of failing with "database is locked"."""
    failures: list[Exception] = []

    def run(number: int) -> None:
        for step in range(5):
            try:
                store.write(lambda connection, name=f"v{number}-{step}": insert_venue(connection, name, "{}"))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert count(store) == 100


def test_b50_a_database_that_stays_locked_is_unavailable(tmp_path: Path) -> None:
    """After one retry the answer is 503, not 500."""
    store = Store(f"sqlite:///{tmp_path / 'a.db'}", busy_seconds=0.05)
    store.upgrade()
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError):
        store.write(lambda connection: insert_venue(connection, "v", "{}"))
    assert count(store) == 0  # readers are not disturbed
    other.execute("ROLLBACK")
    store.write(lambda connection: insert_venue(connection, "v", "{}"))
    assert count(store) == 1
    other.close()
    store.close()


def test_a_database_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    """The health check says so and requests get 503."""
    store = Store(f"sqlite:///{tmp_path / 'missing' / 'a.db'}")
    assert not store.ping()
    with pytest.raises(UnavailableError), store.read():
        pass
    store.close()


def start(url: str) -> None:
    """As a server does."""
    store = Store(url)
    try:
        store.upgrade()
    finally:
        store.close()


def test_a_file_that_cannot_be_the_database_is_told_at_the_start(tmp_path: Path) -> None:
    """ "Busy, try again" would send somebody waiting for ever."""
    (tmp_path / "junk.db").write_bytes(b"no database at all" * 100)
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "empty.db").touch()
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE venues (a)")
    foreign.close()
    start(f"sqlite:///{tmp_path / 'later.db'}")
    later = sqlite3.connect(tmp_path / "later.db")
    later.execute("UPDATE alembic_version SET version_num = '9999'")
    later.commit()
    later.close()
    for name, words in {
        "junk.db": "no SQLite database",
        "folder.db": "names a folder",
        "missing/a.db": "no such folder",
        "foreign.db": "tables of another program",
        "later.db": "later version",
    }.items():
        with pytest.raises(SettingsError, match=words):
            start(f"sqlite:///{tmp_path / name}")
    start(f"sqlite:///{tmp_path / 'empty.db'}")


def test_a_broken_database_is_told_at_the_start(tmp_path: Path) -> None:
    """It begins as it should, and goes on as it should not."""
    start(f"sqlite:///{tmp_path / 'a.db'}")
    data = bytearray((tmp_path / "a.db").read_bytes())
    data[100:4000] = b"x" * 3900
    (tmp_path / "a.db").write_bytes(data)
    with pytest.raises(SettingsError, match="cannot be used"):
        start(f"sqlite:///{tmp_path / 'a.db'}")


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg", "postgresql+psycopg2"])
def test_a_missing_driver_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch, driver: str) -> None:
    """With what to install."""
    for name in ("psycopg", "psycopg2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"revmatch\[postgres\]"):
        Store(f"{driver}://u:secret@127.0.0.1:1/x")
    with pytest.raises(SettingsError, match="driver") as caught:
        Store("postgresql+nonsense://u:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_a_database_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """Plans made before keep their venue under its new name."""
    path = tmp_path / "old.db"
    store = Store(f"sqlite:///{path}")
    with monkey_head("0001"):
        store.upgrade()
    store.close()
    old = sqlite3.connect(path)
    old.execute("INSERT INTO venues VALUES (1, 'v', 1, 'x', '{}', 0)")
    old.execute("INSERT INTO plan_inputs VALUES ('h', x'00', 1)")
    old.execute(
        "INSERT INTO plans (venue_key, id, input_hash, params, state, version, progress, created_at) "
        "VALUES (1, 'a', 'h', '{}', 'succeeded', 1, 1, 0)"
    )
    old.commit()
    old.close()
    start(f"sqlite:///{path}")
    new = sqlite3.connect(path)
    assert new.execute("SELECT venue_hash, input_hash FROM plans").fetchall() == [("h", None)]
    new.close()


def test_sqlite_writes_ahead(tmp_path: Path) -> None:
    """Pages are read while a plan is being stored."""
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    store.upgrade()
    with store.read() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA foreign_keys")) == 1
    store.close()


def test_a_relative_file_lies_in_the_data_folder(tmp_path: Path) -> None:
    """The worker process may have another current folder, so the path is made complete once."""
    store = Store("sqlite:///a.db", tmp_path)
    assert store.url == f"sqlite:///{tmp_path.resolve() / 'a.db'}"
    store.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "nonsense", "x://"])
def test_urls_that_cannot_work_are_refused_without_being_repeated(url: str) -> None:
    """The message must not carry a password into a log."""
    with pytest.raises(SettingsError, match="REVMATCH_DATABASE_URL") as caught:
        Store(url)
    assert "secret" not in str(caught.value)


def test_findings_are_kept_by_question_and_replaced(store: Store) -> None:
    """An answer that failed gives way to a better one; thousands of questions are several statements."""
    services = running.inline(store, StandIn())
    plan = running.start(services)
    with store.read() as connection:
        key = find_plan(connection, plan).key
    questions = [(f"p{at}", "" if at % 2 else "r\u00e4") for at in range(501)]
    found = {question: Finding({"at": at, "words": "\u6df1 \ud800"}) for at, question in enumerate(questions)}
    store.write(lambda connection: store_findings(connection, key, found))
    better = {questions[7]: Finding({"code": "x", "detail": "y"}, True), ("p1", "new"): Finding({})}
    store.write(lambda connection: store_findings(connection, key, better))
    with store.read() as connection:
        read = load_findings(connection, key, [*questions, ("p1", "new"), ("p1", "never"), questions[0]])
        assert load_findings(connection, key + 1, questions) == {}
        assert load_findings(connection, key, []) == {}
    assert {name: (entry.body, entry.failed) for name, entry in read.items()} == {
        name: (entry.body, entry.failed) for name, entry in (found | better).items()
    }
