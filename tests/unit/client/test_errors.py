"""The tree of errors is documented, complete, and says what to do."""

import inspect

from tacit_client import errors

CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if kind.__module__ == errors.__name__
}


def test_every_error_is_in_the_tree_of_the_docstring() -> None:
    assert errors.__doc__ is not None
    words = set(errors.__doc__.replace(",", " ").split())
    assert CLASSES.keys() <= words


def test_every_error_is_one_of_the_clients() -> None:
    assert all(issubclass(kind, errors.TacitClientError) for kind in CLASSES.values())


def test_an_error_says_its_docstring_unless_told_otherwise() -> None:
    assert str(errors.LedgerError()) == errors.LedgerError.__doc__
    assert str(errors.LedgerError("Something else.")) == "Something else."
    assert "\n" not in str(errors.LedgerRestored())
