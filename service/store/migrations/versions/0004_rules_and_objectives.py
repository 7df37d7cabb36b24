"""The rules of a venue, and what each objective of a plan reached.

Revision: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# as in 0001
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "venue_rules",
        sa.Column("venue_key", KEY, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["venue_key"], ["venues.key"], name=op.f("fk_venue_rules_venue_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("venue_key", name=op.f("pk_venue_rules")),
    )
    op.add_column("plans", sa.Column("objectives", sa.Text(), nullable=True))
