"""Serial line that never waits, raw: eight bits, no parity, one stop bit, no flow control."""

from __future__ import annotations

import fcntl
import os
import re
import termios
import tty

from rfly_common.errors import ConfigError, LinkError

BAUDS = tuple(sorted(int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d*", name)))
"""rates that the system knows, bit/s"""


class SerialPort:
    """An open line, with the methods of a socket that links use. Reading and writing raise
    BlockingIOError where nothing is there, or nothing can go; OSError where the line is gone.
    """

    def __init__(self, device: str, baud: int) -> None:
        """`device`: such as /dev/ttyUSB0. Raises ConfigError for a rate that there is not,
        LinkError for a line that cannot be had, with the reason.
        """
        if baud not in BAUDS:
            raise ConfigError(f"baud: {baud}, expected one of {', '.join(map(str, BAUDS))}")
        self.device = device
        try:
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            hint = (
                "; may this user open it? (group dialout)"
                if isinstance(error, PermissionError)
                else ""
            )
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
        """-1 where it is closed."""
        return self._fd

    def recv(self, size: int) -> bytes:
        """What has come, at most `size` bytes; b"": the other end is gone."""
        return os.read(self._fd, size)

    def send(self, data: bytes) -> int:
        """Bytes that went."""
        return os.write(self._fd, data)

    def close(self) -> None:
        """Twice is allowed."""
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)
