"""Typed errors for whatever a reader of foreign bytes raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rfly_common.errors import RflyError

_LONGEST = 200


@contextmanager
def reader_errors(refuse: Callable[[str], RflyError]) -> Iterator[None]:
    """Raises `refuse(reason)` for whatever is raised inside but our own errors; the cause stays with it.

    It goes around the call of a library that reads a file (NumPy, zipfile, GDAL, OpenCV, an XML or JSON parser). What
    damaged bytes make such a library raise is listed nowhere and changes with its version, so nothing is listed here.
    """
    try:
        yield
    except RflyError:
        raise
    except Exception as error:
        raise refuse(_reason(error)) from error


def _reason(error: Exception) -> str:
    """One line of limited length."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = " ".join((error.strerror or "" if isinstance(error, OSError) and error.strerror else str(error)).split())
    text = text or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
