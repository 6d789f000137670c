"""How much memory this process has used."""

from __future__ import annotations

import sys

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
