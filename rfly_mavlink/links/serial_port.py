# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Serial line that never waits, raw: eight bits, no parity, one stop bit, no flow control."""

from __future__ import annotations

import fcntl
import os
import re
import termios
import tty

from rfly_common.errors import ConfigError, LinkError

BAUDS = tuple(sorted(int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d*", name)))
"""Rates that the system knows, bit/s."""


class SerialPort:
    """Open serial line, with the methods of a socket that links use.

    Reading and writing raise BlockingIOError if nothing has come or can go, OSError if the line is
    gone.
    """

    def __init__(self, device: str, baud: int) -> None:
        """Open a device, such as /dev/ttyUSB0.

        Raise ConfigError for an unknown rate, LinkError with the reason for a line that cannot be
        opened.
        """
        if baud not in BAUDS:
            raise ConfigError(f"baud: {baud}, expected one of {', '.join(map(str, BAUDS))}")
        self.device = device
        try:
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            denied = isinstance(error, PermissionError)
            hint = "; may this user open it? (group dialout)" if denied else ""
            raise LinkError(f"serial line {device}: {error.strerror}{hint}") from error

        try:
            fcntl.ioctl(self._fd, termios.TIOCEXCL)
            tty.setraw(self._fd)
            attributes = termios.tcgetattr(self._fd)
            attributes[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
            attributes[4] = attributes[5] = getattr(termios, f"B{baud}")
            termios.tcsetattr(self._fd, termios.TCSANOW, attributes)
        except (OSError, termios.error) as error:
            self.close()
            raise LinkError(f"{device} is no serial line: {error.args[-1]}") from error

    def fileno(self) -> int:
        """Return the file descriptor, -1 after closing."""
        return self._fd

    def recv(self, size: int) -> bytes:
        """Return the bytes that have come, at most `size`; b"": the other end is gone."""
        return os.read(self._fd, size)

    def send(self, data: bytes) -> int:
        """Send bytes; return how many went."""
        return os.write(self._fd, data)

    def close(self) -> None:
        """Close the line; a second call does nothing."""
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)
