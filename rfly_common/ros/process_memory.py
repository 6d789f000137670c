"""How much memory this process has used."""

from __future__ import annotations

import ctypes
import sys

_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20
try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def largest_memory() -> int:
    """Bytes that were resident at most since the process began; 0 where the system does not tell."""
    if resource is None:
        return 0
    told = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return told if sys.platform == "darwin" else 1024 * told


def give_back_large_arrays() -> None:
    """Arrays of a megabyte or more go back to the system as soon as they are freed, where malloc is
    glibc's.

    By itself it keeps freed ones of up to 32 MB, in pieces that the next array may not fit in:
    mallopt(3).
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
