"""A plan's two hashes apart; who holds an Idempotency-Key, and the plan it made.

Revision: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # plain statements: both databases know them, and copying the table would set off its cascades
    op.drop_index(op.f("ix_plans_input_hash"), table_name="plans")
    op.execute("ALTER TABLE plans RENAME COLUMN input_hash TO venue_hash")
    op.create_index(op.f("ix_plans_venue_hash"), "plans", ["venue_hash"], unique=False)
    op.add_column("plans", sa.Column("input_hash", sa.Text(), nullable=True))
    op.add_column("idempotency", sa.Column("owner", sa.Text(), nullable=True))
    op.add_column("idempotency", sa.Column("plan", sa.Text(), nullable=True))
