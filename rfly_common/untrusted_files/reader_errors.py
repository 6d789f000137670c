"""Typed errors for whatever a reader of foreign bytes raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rfly_common.errors import RflyError, TerrainFileNotFound, TerrainFormatError
from rfly_common.files import StrPath

_LONGEST = 200


@contextmanager
def reader_errors(refuse: Callable[[str], RflyError]) -> Iterator[None]:
    """Raises `refuse(reason)` for whatever is raised inside but our own errors; the cause stays
    with it.

    It goes around the call of a library that reads a file (NumPy, zipfile, GDAL, OpenCV, an XML or
    JSON parser). What damaged bytes make such a library raise is listed nowhere and changes with
    its version, so nothing is listed here.
    """
    try:
        yield
    except RflyError:
        raise
    except Exception as error:
        raise refuse(_reason(error)) from error


@contextmanager
def terrain_file_errors(path: StrPath) -> Iterator[None]:
    """Raises TerrainFileNotFound or TerrainFormatError, which begin with the path, for a file that
    can't be opened.
    """
    try:
        yield
    except FileNotFoundError:
        raise TerrainFileNotFound(f"{path}: no such file") from None
    except OSError as error:
        raise TerrainFormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def _reason(error: Exception) -> str:
    """One line of limited length."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = " ".join(
        (
            error.strerror or "" if isinstance(error, OSError) and error.strerror else str(error)
        ).split()
    )
    text = text or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
