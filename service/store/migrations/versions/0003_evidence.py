"""What the pairs of a plan rest on, as far as it has been worked out.

Revision: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# as in 0001
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "plan_evidence",
        sa.Column("plan_key", KEY, nullable=False),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["plan_key"], ["plans.key"], name=op.f("fk_plan_evidence_plan_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("plan_key", "submission", "reviewer", name=op.f("pk_plan_evidence")),
    )
