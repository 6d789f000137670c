"""builtin_interfaces/Time <-> nanoseconds."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time


def stamp_to_ns(stamp: Any) -> int:
    """builtin_interfaces/Time -> nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def ns_to_stamp(nanoseconds: int) -> Any:
    """Nanoseconds -> builtin_interfaces/Time."""
    seconds, rest = divmod(
        int(nanoseconds), 1_000_000_000
    )  # rclpy's Time raises where a message's is negative
    return Time(sec=seconds, nanosec=rest)
