"""Tables: the same on SQLite and PostgreSQL.

Records have an integer ``key`` in the order of insertion: pages are cut by it, so a page never shifts while others
write, and pair tables hold small numbers instead of long ids. Whole records are canonical JSON text, so that a
venue's snapshot is put together from strings without parsing any of them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = [
    "PAIR_TABLES",
    "alternates",
    "assignments",
    "bids",
    "conflicts",
    "idempotency",
    "locks",
    "metadata",
    "plan_documents",
    "plan_evidence",
    "plan_inputs",
    "plans",
    "reviewers",
    "scores",
    "signals",
    "submissions",
    "venue_rules",
    "venues",
]

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only for a column of the very type INTEGER, which holds 64 bits there.
Key = BigInteger().with_variant(Integer(), "sqlite")


def _key() -> Column[int]:
    return Column("key", Key, primary_key=True, autoincrement=True)


def _parent(table: str, primary: bool = False) -> Column[int]:
    return Column(
        f"{table[:-1]}_key", Key, ForeignKey(f"{table}.key", ondelete="CASCADE"), nullable=False, primary_key=primary
    )


venues = Table(
    "venues",
    metadata,
    _key(),
    Column("id", Text, nullable=False, unique=True),
    Column("version", Integer, nullable=False),
    Column("people", Text, nullable=False),  # another random text whenever the name of any reviewer changes
    Column("record", Text, nullable=False),  # JSON: name, defaults, domain tables
    Column("created_at", Float, nullable=False),  # seconds since 1970, UTC, as every time below
)


venue_rules = Table(
    "venue_rules",
    metadata,
    Column("venue_key", Key, ForeignKey("venues.key", ondelete="CASCADE"), primary_key=True),
    # no row is version 0, without a rule; a row that once was there stays, so that no version ever comes back
    Column("version", Integer, nullable=False),
    Column("body", Text, nullable=False),  # JSON: the list of rules as given
)


def _records(name: str) -> Table:
    """Reviewers or submissions of a venue.

    ``names`` is JSON with the aliases, addresses and link by which other uploads may call a reviewer, "" for a
    submission. It is kept beside the record: reading 10,000 whole profiles to resolve one bid would take seconds.
    """
    return Table(
        name,
        metadata,
        _key(),
        _parent("venues"),
        Column("id", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("names", Text, nullable=False),
        Column("record", Text, nullable=False),  # last: SQLite reads a row from its beginning
        UniqueConstraint("venue_key", "id"),
    )


reviewers = _records("reviewers")
submissions = _records("submissions")


def _pairs(name: str, parent: str, *columns: Column[Any]) -> Table:
    """One fact about a pair, pages cut by the pair.

    ``given`` is JSON with the names used in the upload, null where they were the ids.
    """
    return Table(
        name,
        metadata,
        _parent(parent, primary=True),
        _parent("submissions", primary=True),
        _parent("reviewers", primary=True),
        *columns,
        Column("given", Text),
        # without these a deleted record would be searched for in the whole table
        Index(None, "submission_key"),
        Index(None, "reviewer_key"),
        sqlite_with_rowid=False,  # half the bytes: the primary key is the table
    )


bids = _pairs("bids", "venues", Column("bid", Text, nullable=False))
conflicts = _pairs(
    "conflicts",
    "venues",
    Column("rule", Text, nullable=False),
    Column("evidence", Text, nullable=False),
    Column("source", Text, nullable=False),
)
locks = _pairs("locks", "venues")

signals = Table(
    "signals",
    metadata,
    _key(),
    _parent("venues"),
    Column("name", Text, nullable=False),
    Column("default_value", Float),  # null leaves pairs without a score unknown
    UniqueConstraint("venue_key", "name"),
)

scores = _pairs("scores", "signals", Column("score", Float, nullable=False))

PAIR_TABLES = {"bids": bids, "conflicts": conflicts, "locks": locks}
"""Kind of fact -> its table; scores hang on a signal and are apart."""

plan_inputs = Table(
    "plan_inputs",
    metadata,
    Column("hash", Text, primary_key=True),  # SHA-256 of the uncompressed snapshot, hexadecimal
    Column("body", LargeBinary, nullable=False),  # zlib
    Column("size", BigInteger, nullable=False),  # bytes uncompressed
)

plans = Table(
    "plans",
    metadata,
    _key(),
    _parent("venues"),
    Column("id", Text, nullable=False, unique=True),
    # the name of the constraint is from when the column was called input_hash; SQLite renames no constraint
    Column("venue_hash", Text, ForeignKey("plan_inputs.hash", name="fk_plans_input_hash"), nullable=False),
    Column("params", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("phase", Text),
    Column("progress", Float, nullable=False),
    Column("value", Float),
    Column("bound", Float),
    Column("gap", Float),
    Column("status", Text),
    Column("summary", Text),
    Column("problem", Text),
    Column("versions", Text),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("heartbeat_at", Float),
    Column("owner", Text),  # the web process that answers for the plan
    Column("lease_until", Float),  # renewed by the owner; past it, others may declare the plan interrupted
    Column("claim", Text),  # the one run that may write to the plan
    Column("worker", Text),  # where that run is
    Column("cancel_requested_at", Float),
    Index(None, "venue_key"),
    Index(None, "state"),
    Column("input_hash", Text),  # the engine's, over venue and options; null before there is a result
    Index(None, "venue_hash"),
    Column("objectives", Text),  # JSON: name, options, value, bound and gap of each; null before there is a result
    Column("start", Text),  # id of the plan this one begins from; null for none
)

plan_documents = Table(
    "plan_documents",
    metadata,
    Column("plan_key", Key, ForeignKey("plans.key", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),  # those of service.translate.PLAN_DOCUMENTS
    Column("body", Text, nullable=False),
)

plan_evidence = Table(
    "plan_evidence",
    metadata,
    Column("plan_key", Key, ForeignKey("plans.key", ondelete="CASCADE"), primary_key=True),
    Column("submission", Text, primary_key=True),
    Column("reviewer", Text, primary_key=True),  # "" for those the submission was given
    Column("body", LargeBinary, nullable=False),  # zlib over JSON: an explanation, or what kept it from being made
    Column("failed", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
)


def _results(name: str, *columns: Column[Any]) -> Table:
    """Pairs of a plan in outside ids, in the plan's own order."""
    return Table(
        name,
        metadata,
        _parent("plans", primary=True),
        Column("position", Integer, primary_key=True),  # from 0
        Column("submission", Text, nullable=False),
        Column("reviewer", Text, nullable=False),
        Column("affinity", Float, nullable=False),
        *columns,
        UniqueConstraint("plan_key", "submission", "reviewer"),
        Index(None, "plan_key", "reviewer"),
        sqlite_with_rowid=False,
    )


assignments = _results(
    "assignments",
    Column("locked", Boolean, nullable=False),
    Column("detail", Text, nullable=False),  # JSON: parts, reasons
    Column("role", Text),  # null in plans that name no roles
)

alternates = _results(
    "alternates",
    Column("rank", Integer, nullable=False),
    Column("spare_load", Integer, nullable=False),
    Column("full", Boolean, nullable=False),
    Column("role", Text),  # as of assignments
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("answer", Text),  # JSON; null while the first request runs
    Column("created_at", Float, nullable=False),
    Column("owner", Text),  # the process and request that hold the key
    Column("plan", Text),  # id of the plan the request made, noted in the transaction that made it
    Index(None, "created_at"),
)
