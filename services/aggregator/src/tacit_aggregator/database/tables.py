"""Every table. Times are UTC seconds since 1970, as integers or floats; digests are hexadecimal."""

from sqlalchemy import (
    BigInteger,
    Boolean,
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
    false,
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
    Column(
        "for_sites", Boolean, nullable=False, server_default=false()
    ),  # whether the file may leave this server
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
    Column("received", BigInteger, nullable=False, default=0),  # records of labels, of all sites
    Column("method", String(16), nullable=False, server_default="labels"),  # labels, scores
    # Of score campaigns: the records enrolled when the first question was asked, when that happens
    # at the latest, and the fewest answers that a round needs at its end.
    Column("asked_n", BigInteger),
    Column("enrol_until", Double),
    Column("least", BigInteger),
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
    # Answers that came after their round had closed.
    Column("late", BigInteger, nullable=False, server_default="0"),
)

# The last number given to an upload. Whoever stores uploads holds this row until the commit, so
# numbers become visible in their order, whichever process gave them.
counters = Table(
    "counters",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# The rounds of a score campaign that were opened. The question is the state of its search.
rounds = Table(
    "rounds",
    metadata,
    Column("campaign", String(64), ForeignKey("campaigns.digest"), primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("question", Text, nullable=False),  # the core's, as JSON
    Column("signed", Text, nullable=False),  # what sites get, the Signed message as JSON
    Column("digest", String(64), nullable=False),  # of the signed question
    Column("state", String(16), nullable=False),  # open, closed, dropped
    Column("opened_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("extensions", Integer, nullable=False),
    # Set when it closes, from the tallies of its sites.
    Column("closed_at", Double),
    Column("ones", BigInteger),
    Column("answers", BigInteger),
    Column("sites", Integer),
)

# What each site has answered in a round, and when it said that this was all. An upload of answers
# that was accepted is counted, or dropped, with its round.
tallies = Table(
    "tallies",
    metadata,
    Column("campaign", String(64), primary_key=True),
    Column("round", Integer, primary_key=True, autoincrement=False),
    Column("site", String(100), primary_key=True),
    Column("answers", BigInteger, nullable=False),
    Column("ones", BigInteger, nullable=False),
    Column("done_at", Double),
    ForeignKeyConstraint(["campaign", "round"], ["rounds.campaign", "rounds.round"]),
    ForeignKeyConstraint(["campaign", "site"], ["sites.campaign", "sites.site"]),
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
    # Of answers: which round they are for, and how many of the randomized bits are 1.
    Column("round", Integer),
    Column("ones", Integer),
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
