# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Memory of this process."""

from __future__ import annotations

import ctypes
import sys

# parameters of mallopt(3)
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGE = 1 << 20
"""Bytes from which an array is returned to the system when it is freed."""
_KEPT = 1 << 25
"""Size of arrays that stay in the process when they are freed, and freed memory of a thread that
does, bytes."""

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def largest_memory() -> int:
    """Return the peak resident memory of the process, bytes; 0 if it is unknown."""
    if resource is None:
        return 0
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def give_back_large_arrays() -> None:
    """Return arrays of a megabyte or more to the system as soon as they are freed, with glibc.

    By default glibc keeps freed ones of up to 32 MB, in pieces that the next array may not fit in:
    mallopt(3).
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def keep_freed_arrays() -> None:
    """Keep freed arrays of up to 32 MB for the next one, with glibc.

    By default glibc returns them to the system once a thread has freed some of them, and every page
    of the next array is a fault: with pictures of a megabyte half of the processor time.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, _KEPT)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)
