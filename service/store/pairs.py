"""Bids, conflicts, locks and scores as rows; every function runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, func, insert, select, tuple_, update

from service.store.tables import reviewers, scores, signals, submissions

__all__ = [
    "count_pairs",
    "ensure_signal",
    "facts_of_pairs",
    "find_signal",
    "keys_of_pairs",
    "page_of_pairs",
    "remove_pairs",
    "remove_signal",
    "signals_of",
    "upsert_pairs",
    "values_of_pairs",
]

PAIR_CHUNK = 400  # pairs in one IN list, two variables each; SQLite of old builds takes 999


def _parent(table: Table) -> str:
    return "signal_key" if table is scores else "venue_key"


def count_pairs(connection: Connection, table: Table, parent_key: int) -> int:
    """Rows of a kind in a venue, or of a signal."""
    query = select(func.count()).select_from(table).where(table.c[_parent(table)] == parent_key)
    return connection.scalar(query) or 0


def upsert_pairs(
    connection: Connection, table: Table, parent_key: int, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> tuple[int, int]:
    """Store rows, each pair once; a pair that is stored already takes the new values.

    Parameters
    ----------
    columns : sequence of str
        Columns of the kind, besides the pair and ``given``.
    rows : sequence of tuple
        (submission_key, reviewer_key, one value for each of `columns`, given).

    Returns
    -------
    created, updated : int

    Notes
    -----
    Statements are written out: turning half a million dicts into parameters would take longer than storing them.
    """
    before = count_pairs(connection, table, parent_key)
    # in the order of the primary key every row goes beside the one before it: several times faster when there are many
    ordered = sorted(rows, key=itemgetter(0, 1))
    names = ("submission_key", "reviewer_key", *columns, "given")
    if connection.dialect.name == "postgresql":
        _upsert_by_copy(connection, table, parent_key, names, ordered)
    elif ordered:
        marks = ", ".join("?" * len(names))
        connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({_parent(table)}, {', '.join(names)}) VALUES ({int(parent_key)}, {marks}) "
            + _on_conflict(table, names),
            ordered,
        )
    created = count_pairs(connection, table, parent_key) - before
    return created, len(ordered) - created


def _on_conflict(table: Table, names: Sequence[str]) -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in names[2:])
    return f"ON CONFLICT ({_parent(table)}, submission_key, reviewer_key) DO UPDATE SET {sets}"


def _upsert_by_copy(
    connection: Connection, table: Table, parent_key: int, names: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Rows through COPY into a table of the transaction, then into the real one by a single statement."""
    columns = ", ".join(names)
    connection.exec_driver_sql(
        f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM {table.name} LIMIT 0"
    )
    driver = connection.connection.driver_connection
    assert driver is not None
    with driver.cursor() as cursor, cursor.copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    connection.exec_driver_sql(
        f"INSERT INTO {table.name} ({_parent(table)}, {columns}) SELECT {int(parent_key)}, {columns} FROM incoming "
        + _on_conflict(table, names)
    )
    connection.exec_driver_sql("DROP TABLE incoming")  # one transaction may store several kinds


def page_of_pairs(
    connection: Connection, table: Table, parent_key: int, after: tuple[int, int], limit: int | None
) -> Sequence[Row[Any]]:
    """Rows with the ids of both records, pairs above `after` in the order of (submission, reviewer) keys."""
    query = (
        select(table, submissions.c.id.label("submission"), reviewers.c.id.label("reviewer"))
        .join(submissions, submissions.c.key == table.c.submission_key)
        .join(reviewers, reviewers.c.key == table.c.reviewer_key)
        .where(
            table.c[_parent(table)] == parent_key,
            tuple_(table.c.submission_key, table.c.reviewer_key) > tuple_(*after),
        )
        .order_by(table.c.submission_key, table.c.reviewer_key)
    )
    return connection.execute(query if limit is None else query.limit(limit)).all()


def values_of_pairs(
    connection: Connection, table: Table, parent_key: int, columns: Sequence[str]
) -> list[tuple[Any, ...]]:
    """(submission id, reviewer id, one value for each of `columns`) of every row, sorted."""
    query: Select[Any] = (
        select(submissions.c.id, reviewers.c.id, *(table.c[name] for name in columns))
        .select_from(table)
        .join(submissions, submissions.c.key == table.c.submission_key)
        .join(reviewers, reviewers.c.key == table.c.reviewer_key)
        .where(table.c[_parent(table)] == parent_key)
    )
    return sorted(tuple(row) for row in connection.execute(query))


def keys_of_pairs(connection: Connection, table: Table, parent_key: int) -> list[tuple[int, int]]:
    """(submission key, reviewer key) of every row of a kind in a venue."""
    query = select(table.c.submission_key, table.c.reviewer_key).where(table.c[_parent(table)] == parent_key)
    return [(row[0], row[1]) for row in connection.execute(query)]


def facts_of_pairs(
    connection: Connection, table: Table, parent_key: int, wanted: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Pair of keys -> (rule, evidence) of those of `wanted` that are declared conflicts."""
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for start in range(0, len(wanted), PAIR_CHUNK):
        pair = tuple_(table.c.submission_key, table.c.reviewer_key)
        query: Select[Any] = select(table.c.submission_key, table.c.reviewer_key, table.c.rule, table.c.evidence).where(
            table.c[_parent(table)] == parent_key, pair.in_(wanted[start : start + PAIR_CHUNK])
        )
        found.update(((row[0], row[1]), (row[2], row[3])) for row in connection.execute(query))
    return found


def remove_pairs(connection: Connection, table: Table, parent_key: int) -> int:
    """Delete every row of a kind in a venue; returns how many."""
    return connection.execute(delete(table).where(table.c[_parent(table)] == parent_key)).rowcount


def find_signal(connection: Connection, venue_key: int, name: str) -> Row[Any] | None:
    """The row of a signal, None where nobody sent it."""
    return connection.execute(select(signals).where(signals.c.venue_key == venue_key, signals.c.name == name)).first()


def ensure_signal(connection: Connection, venue_key: int, name: str, default: float | None) -> int:
    """Key of a signal, made where it is new; a `default` that is not None replaces the stored one."""
    row = find_signal(connection, venue_key, name)
    if row is None:
        result = connection.execute(insert(signals).values(venue_key=venue_key, name=name, default_value=default))
        assert result.inserted_primary_key is not None
        return int(result.inserted_primary_key[0])
    if default is not None:
        connection.execute(update(signals).where(signals.c.key == row.key).values(default_value=default))
    return int(row.key)


def signals_of(connection: Connection, venue_key: int) -> Sequence[Row[Any]]:
    """Signals of a venue with the number of their scores, by name."""
    n_scores = select(func.count()).select_from(scores).where(scores.c.signal_key == signals.c.key).scalar_subquery()
    query = select(signals, n_scores.label("n_scores")).where(signals.c.venue_key == venue_key).order_by(signals.c.name)
    return connection.execute(query).all()


def remove_signal(connection: Connection, key: int) -> None:
    """Delete a signal; the foreign keys take its scores along."""
    connection.execute(delete(signals).where(signals.c.key == key))
