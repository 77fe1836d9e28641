"""Words of others on a terminal."""

import unicodedata


def printable(text: str) -> str:
    """`text` without control characters: a server's words must not steer a terminal."""
    return "".join(
        character if character == "\n" or unicodedata.category(character)[0] != "C" else "�"
        for character in text
    )
