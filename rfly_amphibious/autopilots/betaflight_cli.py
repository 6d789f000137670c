# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Betaflight's serial port over TCP: command line for set-up, and MSP telemetry.

MSP version 1: `$M<` length code payload checksum, answered by `$M>`; the checksum is the XOR of
length, code, payload.
"""

from __future__ import annotations

import functools
import math
import operator
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rfly_amphibious.autopilots.betaflight_packets import SERIAL_PORT
from rfly_common.errors import AutopilotError
from rfly_common.files import Closing
from rfly_common.frames import yaw_ned_to_enu

MSP_ATTITUDE = 108
"""Code of the request for roll, pitch and heading."""

MSP_STATUS_EX = 150
"""Code of the request for the status."""

PROMPT = b"\r\n# "
"""Prompt of the command line."""

MOST = 1 << 16
"""Largest answer that is kept, bytes."""

ARMING_DISABLE = (
    "no gyro",
    "fail-safe",
    "no radio",
    "not disarmed",
    "box fail-safe",
    "runaway take-off",
    "crash",
    "throttle",
    "tilt",
    "boot grace",
    "no pre-arm",
    "load",
    "calibrating",
    "command line",
    "menu",
    "blackbox",
    "MSP",
    "paralyse",
    "GPS",
    "resource",
    "DShot telemetry",
    "reboot required",
    "DShot bit-bang",
    "accelerometer",
    "motor protocol",
    "crash flip",
    "altitude hold",
    "position hold",
    "arm switch",
)
"""Reasons not to arm, by bit of the status; names after the firmware's `armingDisableFlags_e`."""


class Attitude(NamedTuple):
    """Attitude of the body (FLU) in the world (ENU), rad.

    Positive roll raises the left side, positive pitch lowers the nose.
    """

    roll: float
    pitch: float
    yaw: float


class BetaflightStatus(NamedTuple):
    """Status that the firmware reports."""

    armed: bool
    arming_disable_flags: tuple[str, ...]
    """Reasons why it does not arm."""

    loop_time: float
    """Period of its control loop, s; 0 before it has begun."""


class BetaflightSerial(Closing):
    """One connection to the serial port.

    Blocking calls take at most `timeout` seconds; `ask` and `answers` never block.

    `why_not` is called while the port is still closed; a text ends the waiting.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = SERIAL_PORT,
        timeout: float = 3.0,
        why_not: Callable[[], str] = lambda: "",
    ) -> None:
        self._timeout = timeout
        self._where = f"{host}:{port}"

        end = time.monotonic() + timeout
        while True:
            try:
                self._socket = socket.create_connection((host, port), timeout)
                break
            except OSError as error:
                if why_not():
                    raise AutopilotError(why_not()) from None
                if time.monotonic() > end:
                    raise AutopilotError(
                        f"Betaflight does not answer on TCP {self._where}: {error}"
                    ) from None
                time.sleep(0.02)

        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def close(self) -> None:
        """End the connection; a second call does nothing."""
        self._socket.close()

    # command line

    def configure(self, lines: Iterable[str]) -> list[str]:
        """Type lines into the command line and save; return the answers, line by line.

        The firmware ends after saving. Comments and empty lines are left out. Raise AutopilotError
        that names a line that it refuses.
        """
        self._send(b"#")
        self._until_prompt("#")
        answers = []
        for line in lines:
            text = line.split("#", 1)[0].strip()
            if not text:
                continue
            self._send(text.encode("ascii") + b"\n")

            answer = self._until_prompt(text).strip()
            if "ERROR" in answer or "INVALID" in answer.upper():
                raise AutopilotError(
                    f"Betaflight does not take {text!r}: {' '.join(answer.split())}"
                )
            answers.append(answer)
        self._send(b"save\n")
        return answers

    def _until_prompt(self, what: str) -> str:
        """Return the command line's output up to its next prompt."""
        end = time.monotonic() + self._timeout
        while not self._buffer.endswith(PROMPT):
            self._receive(end, f"after {what!r} on its command line")
        text = self._buffer.decode("ascii", "replace")
        self._buffer.clear()
        return text

    # MSP

    def ask(self, code: int) -> None:
        """Send a request; its answer comes by `answers`."""
        self._send(_frame(code))

    def answers(self) -> list[tuple[int, bytes]]:
        """Return code and payload of the answers that have come.

        Raise AutopilotError if the connection has ended.
        """
        self._socket.setblocking(False)
        try:
            for _ in range(MOST // 4096):  # a flood does not stop the loop
                data = self._socket.recv(4096)
                if not data:
                    raise AutopilotError(
                        f"Betaflight has closed its connection on TCP {self._where}"
                    )
                self._buffer += data
                if len(self._buffer) > MOST:
                    del self._buffer[:-MOST]
        except BlockingIOError:
            pass
        except ConnectionError as error:
            raise AutopilotError(
                f"Betaflight's connection on TCP {self._where} broke: {error}"
            ) from None
        return list(_frames(self._buffer))

    def request(self, code: int) -> bytes:
        """Return the payload of the answer to one request. Raise AutopilotError if none comes."""
        self._send(_frame(code))
        end = time.monotonic() + self._timeout
        while True:
            for answer, payload in _frames(self._buffer):
                if answer == code:
                    return payload
            self._receive(end, f"the MSP request {code}")

    def _send(self, data: bytes) -> None:
        """Send bytes. Raise AutopilotError if the connection is broken."""
        self._socket.settimeout(self._timeout)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise AutopilotError(
                f"Betaflight's connection on TCP {self._where} broke: {error}"
            ) from None

    def _receive(self, end: float, what: str) -> None:
        """Wait for bytes until `end`. Raise AutopilotError that names the missing answer."""
        self._socket.settimeout(max(end - time.monotonic(), 0.001))
        try:
            data = self._socket.recv(4096)
        except OSError as error:
            raise AutopilotError(
                f"Betaflight does not answer {what} within {self._timeout:g} s: {error}"
            ) from None
        if not data:
            raise AutopilotError(f"Betaflight has closed its connection on TCP {self._where}")
        self._buffer += data
        if len(self._buffer) > MOST:
            raise AutopilotError(f"Betaflight answers {what} with more than {MOST} bytes")


def attitude_of(payload: bytes) -> Attitude:
    """Return the attitude in an answer to MSP_ATTITUDE.

    It holds roll and pitch in tenths of a degree, and the heading in degrees, clockwise from north.
    The heading is cut to whole degrees: the middle of the degree is returned.
    """
    if len(payload) < 6:
        raise AutopilotError(f"Betaflight's attitude has {len(payload)} bytes, expected 6")
    roll, pitch, heading = struct.unpack_from("<3h", payload)
    yaw = float(yaw_ned_to_enu(math.radians(heading + 0.5)))
    return Attitude(math.radians(0.1 * roll), math.radians(0.1 * pitch), yaw)


def status_of(payload: bytes) -> BetaflightStatus:
    """Return the status in an answer to MSP_STATUS_EX; its length depends on the modes in use."""
    try:
        more = payload[15] & 0xF
        (flags,) = struct.unpack_from("<I", payload, 17 + more)
        (microseconds,) = struct.unpack_from("<H", payload)
        armed = bool(payload[6] & 1)
    except (IndexError, struct.error):
        raise AutopilotError(
            f"Betaflight's status has {len(payload)} bytes, expected at least 22"
        ) from None

    names = (*ARMING_DISABLE, *(f"bit {bit}" for bit in range(len(ARMING_DISABLE), 32)))
    reasons = tuple(name for bit, name in enumerate(names) if flags >> bit & 1)
    return BetaflightStatus(armed, reasons, 1e-6 * microseconds)


def _frame(code: int, payload: bytes = b"") -> bytes:
    """Return the request with a code and a payload."""
    body = bytes((len(payload), code)) + payload
    return b"$M<" + body + bytes((_xor(body),))


def _xor(data: bytes) -> int:
    """Return the checksum of some bytes."""
    return functools.reduce(operator.xor, data, 0)


def _frames(buffer: bytearray) -> Iterable[tuple[int, bytes]]:
    """Take complete answers off the begin of the buffer; drop everything else."""
    while True:
        begin = buffer.find(b"$M>")
        if begin < 0:
            del buffer[:-2]
            return

        del buffer[:begin]
        if len(buffer) < 6 or len(buffer) < 6 + buffer[3]:
            return

        size = buffer[3]
        body = bytes(buffer[3 : 5 + size])
        check = buffer[5 + size]
        if _xor(body) == check:
            del buffer[: 6 + size]
            yield body[1], body[2:]
        else:
            del buffer[:3]
