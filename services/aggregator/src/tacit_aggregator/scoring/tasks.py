"""From a group of uploads to the task of a worker."""

from tacit.protocol import Features
from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.database.engine import Database
from tacit_aggregator.models.registered import RegisteredModel
from tacit_aggregator.models.service import find as find_model
from tacit_aggregator.scoring.batches import Group
from tacit_aggregator.scoring.worker import ModelTrouble, Task

GONE = "The model of this campaign is not registered any more; register it again."


def task_of(group: Group, documents: Documents, database: Database) -> Task | ModelTrouble:
    """What a worker needs to score a group, or why there is no model to score it with."""
    terms = documents.get(group.campaign)
    if terms is None:
        return ModelTrouble("A campaign is gone from the database.")
    model: RegisteredModel | None = None
    evidence = terms.labels.evidence
    if isinstance(evidence, Features):
        with database.read() as connection:
            model = find_model(connection, evidence.model)
        if model is None:
            return ModelTrouble(GONE)
    rows = group.rows
    drawn = [row.uniforms for row in rows if row.uniforms is not None]
    return Task(
        payload=terms.payload,
        model=model,
        sizes=tuple(row.records for row in rows),
        labels=b"".join([row.labels for row in rows]),
        evidence=b"".join([row.evidence for row in rows]),
        evidence_dtype=group.evidence_dtype,
        uniforms=b"".join(drawn) if drawn else None,
    )
