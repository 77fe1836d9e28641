"""After a backup was restored: uploads whose reports it does not hold can be sent again."""

import structlog

from tacit_aggregator.database.engine import Database
from tacit_aggregator.scoring import queries

_log = structlog.get_logger("tacit_aggregator.scoring")


def forget_lost(database: Database) -> None:
    """Forget uploads that were accepted and are neither counted nor waiting.

    Backups leave out what waits, so these were lost with the old database. Their sites have the
    bytes and send them again when they find that the server does not know them.
    """
    with database.read() as connection:
        if not queries.lost(connection):
            return
    with database.transaction("forget lost uploads") as connection:
        lost = queries.lost(connection)
        queries.forget(connection, lost)
    _log.warning("lost uploads forgotten", uploads=len(lost))
