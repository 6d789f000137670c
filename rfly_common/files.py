"""File path type and size limit for all readers and writers."""

from __future__ import annotations

import os

StrPath = str | os.PathLike[str]


MAX_CELLS = 100_000_000
"""rows x columns of the largest map, 10,000 x 10,000: 400 MB of heights"""
