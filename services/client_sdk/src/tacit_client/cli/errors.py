"""What the command line itself refuses, each as a sentence that says what to do."""


class CommandError(Exception):
    """The command cannot do this; see `tacit --help`."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class BadFile(CommandError):
    """The file cannot be used; check its name and its format."""


class BadOption(CommandError):
    """An option has a value that cannot be used; see the command's --help."""


class MissingPart(CommandError):
    """An optional part of Tacit is not installed."""
