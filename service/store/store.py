"""The database: connections, short transactions, schema. What the rows mean is in the files beside this one."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import structlog
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from matching.errors import Issue, MissingExtraError
from service.errors import SettingsError, UnavailableError
from service.store.schema import upgrade
from service.store.tables import metadata

__all__ = ["Store"]

log = structlog.get_logger(__name__)

T = TypeVar("T")

BUSY_SECONDS = 20.0  # how long a writer waits for another one before it is told "locked"
SQLITE_MAGIC = b"SQLite format 3\x00"  # how every such file begins
RETRY_SECONDS = 0.1  # pause before the one retry, plus as much again at random so that two losers do not meet


class Store:
    """A SQLite file or a PostgreSQL database.

    Parameters
    ----------
    url : str
        SQLAlchemy URL. ``postgresql://`` means psycopg 3. SQLite in memory is refused: the worker is another process.
    data_dir : Path or None
        Folder of a relative SQLite file; None for the current one.
    busy_seconds : float
        How long SQLite waits for a lock, [0, inf).

    Raises
    ------
    SettingsError
        ``invalid-settings``: a URL that cannot be read, of another database, or in memory.
    MissingExtraError
        ``missing-extra``: PostgreSQL without its driver.
    """

    def __init__(self, url: str, data_dir: Path | None = None, busy_seconds: float = BUSY_SECONDS) -> None:
        self._url = _complete(url, data_dir)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        pool: dict[str, Any] = (
            {"connect_args": {"timeout": busy_seconds, "check_same_thread": False}, "pool_size": 16, "max_overflow": 32}
            if self.is_sqlite
            else {"pool_pre_ping": True, "pool_size": 8, "max_overflow": 24}
        )
        try:
            # the text of an error must not repeat what somebody uploaded, hence no parameters in it
            self.engine = create_engine(self._url, hide_parameters=True, pool_timeout=busy_seconds, **pool)
        except ImportError as error:
            raise MissingExtraError(
                f"{self._url.drivername} needs a driver that is not installed; install revmatch[postgres]",
                extra="postgres",
            ) from error
        except SQLAlchemyError as error:
            raise _refused(f"names the driver {self._url.drivername}, which there is not") from error
        if self.is_sqlite:
            _prepare_sqlite(self.engine)

    @property
    def url(self) -> str:
        """The complete URL, password included: hand it to a worker, never to a log."""
        return self._url.render_as_string(hide_password=False)

    def upgrade(self) -> None:
        """Bring the schema to this version; safe in several processes at once.

        Raises
        ------
        SettingsError
            ``invalid-settings``: no database of ours can be there: a folder, another kind of file, tables of another
            program or of a later version.
        UnavailableError
            ``unavailable``: locked, or it cannot be reached.
        """

        def run(connection: Connection) -> None:
            if not self.is_sqlite:
                # two processes that start together must not both create the tables; the number is ours alone
                connection.execute(text("SELECT pg_advisory_xact_lock(7226241983)"))
            tables = set(inspect(connection).get_table_names())
            if "alembic_version" not in tables and tables & metadata.tables.keys():
                raise _refused("names a database that holds tables of another program")
            upgrade(connection)

        if self.is_sqlite:
            _check_file(Path(self._url.database or ""))
        try:
            self.write(run)
        except CommandError as error:
            raise _refused("names a database that a later version of revmatch made") from error
        except DatabaseError as error:
            raise _refused(f"names a database that cannot be used: {error.orig}") from error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one moment of the database and writes nothing. Raises UnavailableError."""
        options: dict[str, Any] = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with _ours(), self.engine.connect() as connection:
            yield connection.execution_options(**options)

    def write(self, work: Callable[[Connection], T], dry_run: bool = False) -> T:
        """Run `work` in one transaction: everything it did is stored, or nothing.

        Parameters
        ----------
        work : callable
            Takes the connection. It may be run twice, so it changes nothing outside the database.
        dry_run : bool
            Undo everything at the end and return what `work` returned.

        Raises
        ------
        UnavailableError
            ``unavailable``: locked even after one retry, or the database cannot be reached.
        """
        try:
            return self._write_once(work, dry_run)
        except SQLAlchemyError as error:
            # A broken constraint means that another process stored the same id between our look and our insert; the
            # second run sees it and says so in words.
            if not (_is_passing(error) or isinstance(error, IntegrityError)):
                raise
            log.info("write_retried", reason=type(error).__name__)
        time.sleep(RETRY_SECONDS * (1.0 + random.random()))
        with _ours():
            return self._write_once(work, dry_run)

    def _write_once(self, work: Callable[[Connection], T], dry_run: bool) -> T:
        with (
            self.engine.connect().execution_options(revmatch_write=True) as connection,
            connection.begin() as transaction,
        ):
            result = work(connection)
            if dry_run:
                transaction.rollback()
            return result

    def ping(self) -> bool:
        """Whether the database answers."""
        try:
            with self.read() as connection:
                connection.execute(text("SELECT 1"))
        except (UnavailableError, SQLAlchemyError):
            return False
        return True

    def close(self) -> None:
        """Give back every connection."""
        self.engine.dispose()


def _refused(reason: str) -> SettingsError:
    """The URL may hold a password, so the message does not repeat it."""
    return SettingsError(issues=[Issue(f"REVMATCH_DATABASE_URL {reason}", "invalid-url", "REVMATCH_DATABASE_URL")])


def _check_file(path: Path) -> None:
    """Refuse what SQLite would call an error of the moment: a missing folder, a folder, another kind of file."""
    if path.is_dir():
        raise _refused(f"names a folder, {path}; name a file in it")
    if not path.parent.is_dir():
        raise _refused(f"names a file in {path.parent}, and there is no such folder; make it, or set REVMATCH_DATA_DIR")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _refused(f"names {path}, which this user may not write")
    if path.is_file() and path.stat().st_size and not _begins_as_sqlite(path):
        raise _refused(f"names {path}, which is no SQLite database")


def _begins_as_sqlite(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def _complete(url: str, data_dir: Path | None) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (SQLAlchemyError, ValueError) as error:
        raise _refused("is not a database URL, such as sqlite:///revmatch.db or postgresql://user@host/name") from error
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg") if "+" not in parsed.drivername else parsed
    if backend != "sqlite":
        raise _refused(f"names {backend}; this service runs on sqlite and postgresql")
    if not parsed.database or parsed.database == ":memory:" or parsed.query.get("mode") == "memory":
        raise _refused("must name a file: plans are computed in another process, which cannot see a database in memory")
    path = Path(parsed.database)
    return parsed.set(database=str(path if path.is_absolute() else ((data_dir or Path()) / path).resolve()))


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver would begin transactions by itself, and too late
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")  # readers and one writer at the same time
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once when another writer came between; asking
        # for the write lock at the start waits for it instead.
        immediate = connection.get_execution_options().get("revmatch_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


PASSING_STATES = ("40001", "40P01", "55P03")  # PostgreSQL: serialisation failure, deadlock, lock not available


def _is_passing(error: SQLAlchemyError) -> bool:
    """Whether the same transaction may work a moment later."""
    if isinstance(error, PoolTimeoutError):
        return True
    if isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in PASSING_STATES:
        return True
    return isinstance(error, (OperationalError, InterfaceError))


@contextmanager
def _ours() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        if not _is_passing(error):
            raise
        log.warning("database_unavailable", reason=type(error).__name__)
        raise UnavailableError("the database is busy or cannot be reached; try again in a moment") from error
