# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Limits on the chunks of MCAP files in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rfly_common.errors import CaptureError

MOST_CHUNK_BYTES = 256_000_000
"""Bytes of an unpacked chunk; rosbag2 and this suite write a megabyte."""


def check_chunk(path: Path, size: int) -> None:
    """Raise CaptureError for a chunk of more than MOST_CHUNK_BYTES."""
    if size > MOST_CHUNK_BYTES:
        raise CaptureError(
            f"{path}: a chunk of {size:,} bytes, expected at most {MOST_CHUNK_BYTES:,}"
        )


def check_chunks(path: Path, summary: Any) -> None:
    """Check all chunks in a file's summary (mcap.reader)."""
    for index in summary.chunk_indexes:
        check_chunk(path, index.uncompressed_size)
