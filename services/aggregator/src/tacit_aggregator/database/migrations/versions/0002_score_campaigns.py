"""Score campaigns: rounds, their tallies; numbers that several processes give."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what rounds need, and go on numbering uploads where the database is."""
    op.add_column(
        "campaigns",
        sa.Column("method", sa.String(16), nullable=False, server_default="labels"),
    )
    op.add_column("campaigns", sa.Column("asked_n", sa.BigInteger()))
    op.add_column("campaigns", sa.Column("enrol_until", sa.Double()))
    op.add_column("campaigns", sa.Column("least", sa.BigInteger()))
    op.add_column(
        "models",
        sa.Column("for_sites", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column("sites", sa.Column("late", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("uploads", sa.Column("round", sa.Integer()))
    op.add_column("uploads", sa.Column("ones", sa.Integer()))
    _create_rounds()
    _create_counters()


def _create_rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("signed", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("extensions", sa.Integer(), nullable=False),
        sa.Column("closed_at", sa.Double()),
        sa.Column("ones", sa.BigInteger()),
        sa.Column("answers", sa.BigInteger()),
        sa.Column("sites", sa.Integer()),
        sa.PrimaryKeyConstraint("campaign", "round", name="pk_rounds"),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.digest"], name="fk_rounds_campaign"),
    )
    op.create_table(
        "tallies",
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("site", sa.String(100), nullable=False),
        sa.Column("answers", sa.BigInteger(), nullable=False),
        sa.Column("ones", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.Double()),
        sa.PrimaryKeyConstraint("campaign", "round", "site", name="pk_tallies"),
        sa.ForeignKeyConstraint(
            ["campaign", "round"],
            ["rounds.campaign", "rounds.round"],
            name="fk_tallies_campaign_round",
        ),
        sa.ForeignKeyConstraint(
            ["campaign", "site"], ["sites.campaign", "sites.site"], name="fk_tallies_campaign_site"
        ),
    )


def _create_counters() -> None:
    counters = op.create_table(
        "counters",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    last: sa.Select[str, int] = sa.select(
        sa.literal("uploads"), sa.func.coalesce(sa.func.max(sa.column("number")), 0)
    ).select_from(sa.table("uploads"))
    op.execute(sa.insert(counters).from_select(["name", "value"], last))
