"""The command line `tacit`."""

from tacit_client.cli.app import main

__all__ = ["main"]
