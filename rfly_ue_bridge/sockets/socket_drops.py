# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams that the system drops because a socket's buffer is full."""

from __future__ import annotations

import socket
import struct
import sys

# socket(7); Python's socket module does not name it
_SO_MEMINFO = 55
_SK_MEMINFO = struct.Struct("=9I")


def dropped_by_system(sock: socket.socket) -> int:
    """Return the datagrams for which the socket's buffer had no room.

    0 if the system does not count them.
    """
    if sys.platform != "linux":
        return 0
    try:
        meminfo = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _SK_MEMINFO.size)
        return int(_SK_MEMINFO.unpack(meminfo)[8])
    except (OSError, struct.error):  # an old kernel, or closed meanwhile
        return 0
