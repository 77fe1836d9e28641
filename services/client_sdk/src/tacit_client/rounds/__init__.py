"""Score campaigns at a site: records are dealt out to rounds, and answer once, in their own."""

from tacit_client.rounds.contributing import contribute, resend
from tacit_client.rounds.preview import preview
from tacit_client.rounds.records import ScoreRecords

__all__ = ["ScoreRecords", "contribute", "preview", "resend"]
