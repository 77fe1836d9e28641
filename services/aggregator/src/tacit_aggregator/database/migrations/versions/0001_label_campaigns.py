"""The first tables: keys, tokens, models, and label campaigns from enrolment to threshold."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create them."""
    _create_operators_tables()
    _create_campaigns()
    _create_sites()
    _create_uploads()
    _create_thresholds()


def _create_operators_tables() -> None:
    op.create_table(
        "signing_keys",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("private_pem", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("retired_at", sa.Double()),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_signing_keys"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("campaign", sa.String(64)),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double()),
        sa.Column("revoked_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
    )
    op.create_table(
        "models",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("module", sa.Text()),
        sa.Column("dtype", sa.String(16), nullable=False),
        sa.Column("shape", sa.String(200), nullable=False),
        sa.Column("classes", sa.Integer(), nullable=False),
        sa.Column("outputs", sa.String(16), nullable=False),
        sa.Column("registered_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_models"),
    )


def _create_campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("signed", sa.Text(), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("title", sa.String(100), nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("planned_n", sa.BigInteger(), nullable=False),
        sa.Column("opens_at", sa.Double(), nullable=False),
        sa.Column("closes_at", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("closed_by", sa.String(16)),
        sa.Column("closed_at", sa.Double()),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_campaigns"),
        sa.ForeignKeyConstraint(["key"], ["signing_keys.fingerprint"], name="fk_campaigns_key"),
    )
    op.create_index("ix_campaigns_owner", "campaigns", ["owner"])
    op.create_index("ix_campaigns_state", "campaigns", ["state"])


def _create_sites() -> None:
    op.create_table(
        "sites",
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("site", sa.String(100), nullable=False),
        sa.Column("enrolled", sa.BigInteger(), nullable=False),
        sa.Column("enrolled_at", sa.Double(), nullable=False),
        sa.Column("left_at", sa.Double()),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("dropped", sa.BigInteger(), nullable=False),
        sa.Column("counted_at", sa.Double()),
        sa.Column("noisy", sa.LargeBinary()),
        sa.Column("every", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("campaign", "site", name="pk_sites"),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.digest"], name="fk_sites_campaign"),
    )


def _create_uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("number", _ROW_NUMBER, nullable=False, autoincrement=True),
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("site", sa.String(100), nullable=False),
        sa.Column("upload", sa.String(32), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_uploads"),
        sa.UniqueConstraint("campaign", "site", "upload", name="uq_uploads_campaign_site_upload"),
        sa.ForeignKeyConstraint(
            ["campaign", "site"],
            ["sites.campaign", "sites.site"],
            name="fk_uploads_campaign_site",
        ),
    )
    op.create_table(
        "pending",
        sa.Column("number", _ROW_NUMBER, nullable=False),
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("site", sa.String(100), nullable=False),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("labels", sa.LargeBinary(), nullable=False),
        sa.Column("evidence", sa.LargeBinary(), nullable=False),
        sa.Column("evidence_dtype", sa.String(16), nullable=False),
        sa.Column("uniforms", sa.LargeBinary()),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_pending"),
        sa.ForeignKeyConstraint(["number"], ["uploads.number"], name="fk_pending_number"),
    )
    op.create_index("ix_pending_campaign_site", "pending", ["campaign", "site"])


def _create_thresholds() -> None:
    op.create_table(
        "thresholds",
        sa.Column("campaign", sa.String(64), nullable=False),
        sa.Column("which", sa.String(16), nullable=False),
        sa.Column("signed", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("campaign", "which", name="pk_thresholds"),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.digest"], name="fk_thresholds_campaign"),
    )
