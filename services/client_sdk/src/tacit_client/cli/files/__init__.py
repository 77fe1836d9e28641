"""Reading a site's records from the files it has."""

from tacit_client.cli.files.layout import Layout
from tacit_client.cli.files.open_file import open_source
from tacit_client.cli.files.records import Records, Table, read_records, read_table

__all__ = ["Layout", "Records", "Table", "open_source", "read_records", "read_table"]
