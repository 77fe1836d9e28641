"""Every table. Times are UTC seconds since 1970, as integers or floats; digests are hexadecimal."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite counts rows by itself only in a column of type INTEGER.
RowNumber = BigInteger().with_variant(Integer, "sqlite")

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("fingerprint", String(64), primary_key=True),
    Column("private_pem", LargeBinary, nullable=False),  # encrypted with the operator's secret
    Column("created_at", Double, nullable=False),
    Column("retired_at", Double),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("token_hash", LargeBinary(32), nullable=False, unique=True),
    Column("role", String(16), nullable=False),
    Column("name", String(100), nullable=False),  # the owner's or the site's
    Column("campaign", String(64)),  # the one it is scoped to; a contributor's always is
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)

models = Table(
    "models",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("format", String(16), nullable=False),  # pt2, onnx, safetensors
    Column("path", Text, nullable=False),
    Column("module", Text),  # of safetensors: package.module:callable that makes the module
    Column("dtype", String(16), nullable=False),
    Column("shape", String(200), nullable=False),  # of one record, as JSON
    Column("classes", Integer, nullable=False),
    Column("outputs", String(16), nullable=False),  # logits, probabilities
    Column("registered_at", Double, nullable=False),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("payload", Text, nullable=False),
    Column("signed", Text, nullable=False),  # the Signed message as JSON
    Column("key", String(64), ForeignKey("signing_keys.fingerprint"), nullable=False),
    Column("title", String(100), nullable=False),
    Column("owner", String(100), nullable=False, index=True),
    Column("planned_n", BigInteger, nullable=False),
    Column("opens_at", Double, nullable=False),
    Column("closes_at", Double, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("state", String(16), nullable=False, index=True),  # open, closing, closed, abandoned
    Column("closed_by", String(16)),
    Column("closed_at", Double),
    Column("received", BigInteger, nullable=False, default=0),  # records, of all sites
)

sites = Table(
    "sites",
    metadata,
    Column("campaign", String(64), ForeignKey("campaigns.digest"), primary_key=True),
    Column("site", String(100), primary_key=True),
    Column("enrolled", BigInteger, nullable=False),
    Column("enrolled_at", Double, nullable=False),
    Column("left_at", Double),
    Column("received", BigInteger, nullable=False, default=0),
    Column("counted", BigInteger, nullable=False, default=0),
    Column("dropped", BigInteger, nullable=False, default=0),
    Column("counted_at", Double),
    # The coverage sketch: counts as little-endian 64-bit integers, NULL before the first.
    Column("noisy", LargeBinary),
    Column("every", LargeBinary),
)

uploads = Table(
    "uploads",
    metadata,
    Column("number", RowNumber, primary_key=True, autoincrement=True),
    Column("campaign", String(64), nullable=False),
    Column("site", String(100), nullable=False),
    Column("upload", String(32), nullable=False),
    Column("body_hash", LargeBinary(32), nullable=False),
    Column("records", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", Text),
    Column("received_at", Double, nullable=False),
    UniqueConstraint("campaign", "site", "upload"),
    ForeignKeyConstraint(["campaign", "site"], ["sites.campaign", "sites.site"]),
)

# What is accepted and not yet counted. Rows are erased by the transaction that counts them; backups
# leave this table out.
pending = Table(
    "pending",
    metadata,
    Column("number", RowNumber, ForeignKey("uploads.number"), primary_key=True),
    Column("campaign", String(64), nullable=False),
    Column("site", String(100), nullable=False),
    Column("records", Integer, nullable=False),
    Column("labels", LargeBinary, nullable=False),
    Column("evidence", LargeBinary, nullable=False),
    Column("evidence_dtype", String(16), nullable=False),
    Column("uniforms", LargeBinary),
    Column("attempts", Integer, nullable=False, default=0),
    Index(None, "campaign", "site"),
)

thresholds = Table(
    "thresholds",
    metadata,
    Column("campaign", String(64), ForeignKey("campaigns.digest"), primary_key=True),
    Column("which", String(16), primary_key=True),
    Column("signed", Text, nullable=False),
    Column("created_at", Double, nullable=False),
)
