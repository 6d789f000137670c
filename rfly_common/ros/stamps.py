# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Conversion between builtin_interfaces/Time and nanoseconds, and headers."""

from __future__ import annotations

from typing import Any, TypeVar

from builtin_interfaces.msg import Time

Message = TypeVar("Message", bound=Any)


def stamp_to_ns(stamp: Any) -> int:
    """Return builtin_interfaces/Time as nanoseconds."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def ns_to_stamp(nanoseconds: int) -> Any:
    """Return nanoseconds as builtin_interfaces/Time; negative ones too, unlike rclpy's Time."""
    seconds, rest = divmod(int(nanoseconds), 1_000_000_000)
    return Time(sec=seconds, nanosec=rest)


def fill_header(message: Message, stamp_ns: int, frame_id: str) -> Message:
    """Return a message with its header filled in."""
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.header.frame_id = frame_id
    return message
