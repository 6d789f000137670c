# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySendUE4CMD and RflyCameraPosAng: RflySim's two MATLAB calls, with their defaults.

Both broadcast to UDP 20010, as MATLAB's do; `host` sends elsewhere. Numbers are written as in
MATLAB.
"""

from __future__ import annotations

import logging
import math
import socket
import struct

from rfly_ue_bridge.codec.addresses import WINDOW_PORT
from rfly_ue_bridge.codec.commands import encode_command
from rfly_ue_bridge.codec.to_rflysim3d import CHECKSUM

BROADCAST = "255.255.255.255"
_TEXT_BYTES = 52
_logger = logging.getLogger(__name__)


def RflySendUE4CMD(text: str = "RflyChangeMapbyName Grasslands", host: str = BROADCAST) -> None:
    """Send one console command: checksum and text in UTF-8, filled with zeros to 56 bytes.

    The length is not checked: a text above 52 bytes makes a longer datagram, which RflySim3D does
    not know. It does not wait after a map change.
    """
    _send(struct.pack("<i", CHECKSUM) + text.encode().ljust(_TEXT_BYTES, b"\0"), host)


RflySendUECMD = RflySendUE4CMD
"""The same call, as RflySim's manual also spells it."""


def _send(datagram: bytes, host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.sendto(datagram, (host, WINDOW_PORT))


def RflyCameraPosAng(
    x: float = 0,
    y: float = 0,
    z: float = 0,
    roll: float = 0,
    pitch: float = 0,
    yaw: float = 0,
    host: str = BROADCAST,
) -> None:
    """Set the camera's pose: m NED from the map's origin, degrees.

    All six numbers are always sent. A text above 52 bytes, which MATLAB sends in a datagram that
    RflySim3D does not know, is sent as a long command (256 bytes), with a warning.
    """
    numbers = " ".join(num2str(number) for number in (x, y, z, roll, pitch, yaw))
    text = f"RflyCameraPosAng {numbers}"
    if len(text) <= _TEXT_BYTES:
        RflySendUE4CMD(text, host)
        return

    _logger.warning(
        "%r has %d bytes: sent as a long command, because RflySim3D does not understand the "
        "datagram that MATLAB makes of more than %d",
        text,
        len(text),
        _TEXT_BYTES,
    )
    _send(encode_command(text), host)


def num2str(x: float) -> str:
    """Return a number as MATLAB's num2str writes it: a whole one unchanged, else %.Ng.

    N = floor(log10(abs(x))) + 5, at least 5 and at most 16.
    """
    if math.isnan(x):
        return "NaN"
    if math.isinf(x):
        return "Inf" if x > 0 else "-Inf"
    if x == int(x):
        return str(int(x))
    digits = min(16, max(5, math.floor(math.log10(abs(x))) + 5))
    return f"{x:.{digits}g}"
