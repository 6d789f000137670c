# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of MAVLink's common.xml that pymavlink's `common` lacks, or has without extensions.

https://mavlink.io/en/messages/common.html; a message's CRC_EXTRA follows from its definition
(https://mavlink.io/en/guide/serialization.html#crc_extra).
"""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from rfly_mavlink.dialect.wire import load_dialect


class Layout(NamedTuple):
    """A message on the wire."""

    number: int
    crc_extra: int
    format: str
    """Format of `struct`: the fields in the order of the wire, largest types first."""


NEWER_MESSAGES = {
    "TIMESYNC": Layout(111, 34, "<qqBB"),
    "PROTOCOL_VERSION": Layout(300, 217, "<HHH8s8s"),
    "COMPONENT_METADATA": Layout(397, 182, "<II100s"),
    "AVAILABLE_MODES": Layout(435, 134, "<IIBBB35s"),
    "CURRENT_MODE": Layout(436, 193, "<IIB"),
    "AVAILABLE_MODES_MONITOR": Layout(437, 30, "<B"),
}


@functools.cache
def _message_class() -> type:
    base: Any = load_dialect().MAVLink_message

    class NewerMessage(base):
        """A message of which only the packed fields are known."""

        def __init__(self, name: str, payload: bytes) -> None:
            super().__init__(NEWER_MESSAGES[name].number, name)
            self._content = payload

        def pack(self, mav: Any, force_mavlink1: bool = False) -> bytes:
            crc_extra = NEWER_MESSAGES[self.get_type()].crc_extra
            return bytes(self._pack(mav, crc_extra, self._content, force_mavlink1))

    return NewerMessage


def newer_message(name: str, *fields: Any) -> Any:
    """Return a message that pymavlink can send; fields are in the order of the wire."""
    return _message_class()(name, struct.pack(NEWER_MESSAGES[name].format, *fields))


def message_number(name: str) -> int:
    """Return a message's number, whether pymavlink knows the message or not."""
    newer = NEWER_MESSAGES.get(name)
    return newer.number if newer else int(getattr(load_dialect(), f"MAVLINK_MSG_ID_{name}"))
