"""The role in which somebody is on a submission.

Revision: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("assignments", "alternates"):
        op.add_column(table, sa.Column("role", sa.Text(), nullable=True))
