"""After a backup was restored: uploads whose reports it does not hold can be sent again."""

import structlog

from tacit_aggregator.database.engine import Database
from tacit_aggregator.scoring import queries

_log = structlog.get_logger("tacit_aggregator.scoring")


def forget_lost(database: Database) -> None:
    """Forget uploads that were accepted and are neither counted nor waiting.

    Backups leave out what waits, so these were lost with the old database. Their sites have the
    bytes and send them again when they find that the server does not know them.

    Other servers may be storing and counting meanwhile. What is accepted and what waits of it
    become visible together, and so do counting and erasing, so one look sees nothing lost that is
    not; under the locks of its site it stays lost until it is forgotten.
    """
    with database.read() as connection:
        suspected = queries.lost(connection)
    if not suspected:
        return
    with database.transaction("forget lost uploads") as connection:
        places = {(row.campaign, row.site) for row in suspected}
        queries.lock_campaigns(connection, {campaign for campaign, _ in places})
        queries.lock_sites(connection, places)
        lost = [row for row in queries.lost(connection) if (row.campaign, row.site) in places]
        if lost:
            queries.forget(connection, lost)
    _log.warning("lost uploads forgotten", uploads=len(lost))
