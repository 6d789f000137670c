"""How large the chunks of an MCAP file become in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rfly_common.errors import CaptureError

MOST_CHUNK_BYTES = 256_000_000
"""unpacked; rosbag2 and ours write a megabyte"""


def check_chunk(path: Path, size: int) -> None:
    """Raises CaptureError for a chunk of more bytes than MOST_CHUNK_BYTES."""
    if size > MOST_CHUNK_BYTES:
        raise CaptureError(
            f"{path}: a chunk of {size:,} bytes, expected at most {MOST_CHUNK_BYTES:,}"
        )


def check_chunks(path: Path, summary: Any) -> None:
    """The same for all that a file's summary (mcap.reader) tells of."""
    for index in summary.chunk_indexes:
        check_chunk(path, index.uncompressed_size)
