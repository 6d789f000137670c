# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Typed errors for bytes of unknown origin that a library cannot read, and a count of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from rfly_common.errors import RflyError, TerrainFileNotFound, TerrainFormatError
from rfly_common.files import StrPath

_LONGEST = 200
"""Characters of a reason."""
_MOST_KINDS = 8
"""Topics or kinds that a line names."""


class LeftOut(Counter[str]):
    """Count of what is not used of a file, by topic or kind, and why the first of each is not.

    A kind without a reason is a reason itself, such as `not_udp`.
    """

    def __init__(self, counted: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__(counted)
        self._reasons: dict[str, str] = {}

    def add(self, kind: str, reason: str, count: int = 1) -> None:
        """Count something of a kind."""
        self[kind] += count
        self._reasons.setdefault(kind, reason)

    def clear(self) -> None:
        """Forget everything, because the file is read anew."""
        super().clear()
        self._reasons.clear()

    def text(self) -> str:
        """Return a line with the most frequent kinds; empty if everything is used."""
        kinds = []
        for kind, count in self.most_common(_MOST_KINDS):
            if kind in self._reasons:
                first = _shortened(self._reasons[kind])
                kinds.append(f"{_shortened(kind)} ({count}; the first: {first})")
            else:
                kinds.append(f"{kind.replace('_', ' ')} ({count})")
        others = len(self) - len(kinds)
        if others:
            kinds.append(f"{others} other kinds")
        return f"left out: {', '.join(kinds)}" if kinds else ""


@contextmanager
def reader_errors(refuse: Callable[[str], RflyError]) -> Iterator[None]:
    """Raise `refuse(reason)` for whatever is raised inside except RflyError.

    The cause stays with it. Put this around the call of a library that reads a file (NumPy,
    zipfile, GDAL, OpenCV, an XML or JSON parser). What damaged bytes make such a library raise is
    documented nowhere and changes with its version, so no exception types are listed here.
    """
    try:
        yield
    except RflyError:
        raise
    except Exception as error:
        raise refuse(_reason(error)) from error


@contextmanager
def terrain_file_errors(path: StrPath) -> Iterator[None]:
    """Raise TerrainFileNotFound or TerrainFormatError for a file that cannot be opened.

    The error contains the path.
    """
    try:
        yield
    except FileNotFoundError:
        raise TerrainFileNotFound(f"{path}: no such file") from None
    except OSError as error:
        raise TerrainFormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def _reason(error: Exception) -> str:
    """Return the error's text as one line of limited length."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return _shortened(text) or type(error).__name__


def _shortened(text: str) -> str:
    """Return a text as one line of limited length."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
