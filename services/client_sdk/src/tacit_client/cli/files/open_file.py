"""Which kind of file it is, by its name."""

from pathlib import Path

from tacit_client.cli.errors import BadFile, BadOption
from tacit_client.cli.files.csv_file import CsvSource
from tacit_client.cli.files.npz_file import NpzSource
from tacit_client.cli.files.parquet_file import ParquetSource
from tacit_client.cli.files.source import Source

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def open_source(path: Path, delimiter: str | None = None) -> Source:
    """The file, read as CSV, NPZ or Parquet."""
    if not path.is_file():
        raise BadFile(f"There is no file {path}. Check the name and the folder.")
    if delimiter is not None and len(delimiter) != 1:
        raise BadOption("--delimiter is a single character, such as ';'.")
    kind = path.suffix.lower()
    try:
        path.open("rb").close()
        if kind in _DELIMITERS:
            return CsvSource(path, delimiter or _DELIMITERS[kind])
        if kind == ".npz":
            return NpzSource(path)
        if kind in (".parquet", ".pq"):
            return ParquetSource(path)
    except PermissionError:
        raise BadFile(f"{path} may not be read by this user. Change its permissions.") from None
    raise BadFile(f"{path.name} is of no known kind. Its name must end in .csv, .npz or .parquet.")
