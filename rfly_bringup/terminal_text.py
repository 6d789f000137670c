"""Texts of others, on their way to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""What a terminal would act on is spelt out: escape sequences (\x1b), line ends, marks that turn the direction."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
