"""The first tables.

Revision: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite numbers rows by itself only for a column of the very type INTEGER
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_created_at"), "idempotency", ["created_at"], unique=False)
    op.create_table(
        "plan_inputs",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_plan_inputs")),
    )
    op.create_table(
        "venues",
        sa.Column("key", KEY, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("people", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_venues")),
        sa.UniqueConstraint("id", name=op.f("uq_venues_id")),
    )
    op.create_table(
        "plans",
        sa.Column("key", KEY, autoincrement=True, nullable=False),
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("params", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("bound", sa.Float(), nullable=True),
        sa.Column("gap", sa.Float(), nullable=True),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("versions", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float(), nullable=True),
        sa.Column("ended_at", sa.Float(), nullable=True),
        sa.Column("heartbeat_at", sa.Float(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("cancel_requested_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["input_hash"], ["plan_inputs.hash"], name=op.f("fk_plans_input_hash")),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_plans_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_plans")),
        sa.UniqueConstraint("id", name=op.f("uq_plans_id")),
    )
    op.create_index(op.f("ix_plans_input_hash"), "plans", ["input_hash"], unique=False)
    op.create_index(op.f("ix_plans_state"), "plans", ["state"], unique=False)
    op.create_index(op.f("ix_plans_venue_key"), "plans", ["venue_key"], unique=False)
    op.create_table(
        "reviewers",
        sa.Column("key", KEY, autoincrement=True, nullable=False),
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_reviewers_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_reviewers")),
        sa.UniqueConstraint("venue_key", "id", name=op.f("uq_reviewers_venue_key_id")),
    )
    op.create_table(
        "signals",
        sa.Column("key", KEY, autoincrement=True, nullable=False),
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("default_value", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_signals_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_signals")),
        sa.UniqueConstraint("venue_key", "name", name=op.f("uq_signals_venue_key_name")),
    )
    op.create_table(
        "submissions",
        sa.Column("key", KEY, autoincrement=True, nullable=False),
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.Column("record", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["venue_key"], ["venues.key"], name=op.f("fk_submissions_venue_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_submissions")),
        sa.UniqueConstraint("venue_key", "id", name=op.f("uq_submissions_venue_key_id")),
    )
    op.create_table(
        "alternates",
        sa.Column("plan_key", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("affinity", sa.Float(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("spare_load", sa.Integer(), nullable=False),
        sa.Column("full", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["plan_key"], ["plans.key"], name=op.f("fk_alternates_plan_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("plan_key", "position", name=op.f("pk_alternates")),
        sa.UniqueConstraint(
            "plan_key", "submission", "reviewer", name=op.f("uq_alternates_plan_key_submission_reviewer")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_alternates_plan_key_reviewer"), "alternates", ["plan_key", "reviewer"], unique=False)
    op.create_table(
        "assignments",
        sa.Column("plan_key", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("affinity", sa.Float(), nullable=False),
        sa.Column("locked", sa.Boolean(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["plan_key"], ["plans.key"], name=op.f("fk_assignments_plan_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("plan_key", "position", name=op.f("pk_assignments")),
        sa.UniqueConstraint(
            "plan_key", "submission", "reviewer", name=op.f("uq_assignments_plan_key_submission_reviewer")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_assignments_plan_key_reviewer"), "assignments", ["plan_key", "reviewer"], unique=False)
    op.create_table(
        "bids",
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("submission_key", KEY, nullable=False),
        sa.Column("reviewer_key", KEY, nullable=False),
        sa.Column("bid", sa.Text(), nullable=False),
        sa.Column("given", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reviewer_key"], ["reviewers.key"], name=op.f("fk_bids_reviewer_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_key"], ["submissions.key"], name=op.f("fk_bids_submission_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_bids_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("venue_key", "submission_key", "reviewer_key", name=op.f("pk_bids")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_bids_reviewer_key"), "bids", ["reviewer_key"], unique=False)
    op.create_index(op.f("ix_bids_submission_key"), "bids", ["submission_key"], unique=False)
    op.create_table(
        "conflicts",
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("submission_key", KEY, nullable=False),
        sa.Column("reviewer_key", KEY, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("given", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reviewer_key"], ["reviewers.key"], name=op.f("fk_conflicts_reviewer_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_key"], ["submissions.key"], name=op.f("fk_conflicts_submission_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_conflicts_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("venue_key", "submission_key", "reviewer_key", name=op.f("pk_conflicts")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_conflicts_reviewer_key"), "conflicts", ["reviewer_key"], unique=False)
    op.create_index(op.f("ix_conflicts_submission_key"), "conflicts", ["submission_key"], unique=False)
    op.create_table(
        "locks",
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("submission_key", KEY, nullable=False),
        sa.Column("reviewer_key", KEY, nullable=False),
        sa.Column("given", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reviewer_key"], ["reviewers.key"], name=op.f("fk_locks_reviewer_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_key"], ["submissions.key"], name=op.f("fk_locks_submission_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["venue_key"], ["venues.key"], name=op.f("fk_locks_venue_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("venue_key", "submission_key", "reviewer_key", name=op.f("pk_locks")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_locks_reviewer_key"), "locks", ["reviewer_key"], unique=False)
    op.create_index(op.f("ix_locks_submission_key"), "locks", ["submission_key"], unique=False)
    op.create_table(
        "plan_documents",
        sa.Column("plan_key", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_key"], ["plans.key"], name=op.f("fk_plan_documents_plan_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("plan_key", "name", name=op.f("pk_plan_documents")),
    )
    op.create_table(
        "scores",
        sa.Column("signal_key", KEY, nullable=False),
        sa.Column("submission_key", KEY, nullable=False),
        sa.Column("reviewer_key", KEY, nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("given", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["reviewer_key"], ["reviewers.key"], name=op.f("fk_scores_reviewer_key"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["signal_key"], ["signals.key"], name=op.f("fk_scores_signal_key"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["submission_key"], ["submissions.key"], name=op.f("fk_scores_submission_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("signal_key", "submission_key", "reviewer_key", name=op.f("pk_scores")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_scores_reviewer_key"), "scores", ["reviewer_key"], unique=False)
    op.create_index(op.f("ix_scores_submission_key"), "scores", ["submission_key"], unique=False)
