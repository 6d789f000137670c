# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Typed errors for whatever a library raises when it reads bytes of unknown origin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rfly_common.errors import RflyError, TerrainFileNotFound, TerrainFormatError
from rfly_common.files import StrPath

_LONGEST = 200
"""Characters of a reason."""


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
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
