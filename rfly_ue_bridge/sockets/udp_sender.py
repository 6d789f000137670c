# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UDP sender to RflySim3D's windows: one connected socket each, errors counted and never raised.

A connected socket is quicker, and only a connected one learns that no program listens: the other
machine's answer to one datagram is reported by the next `send`, which has then sent nothing and is
repeated.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
import sys
import time
from collections.abc import Iterable

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError
from rfly_common.sockets.udp_sockets import ipv4
from rfly_ue_bridge.codec.addresses import DEFAULT_HOST, MAX_UDP_PAYLOAD, WINDOW_PORT
from rfly_ue_bridge.codec.state_datagrams import DatagramRun

_REOPEN_AFTER_NS = 1_000_000_000
_SEND_BUFFER_BYTES = 1 << 20
_SEND_TIMEOUT_S = 0.05

IP_RECVERR = 11
"""Socket option of Linux, ip(7), that reports unreachable machines and networks too.

Without it only closed ports are reported.
"""

# Linux cuts one buffer into datagrams by itself (udp(7), UDP_SEGMENT): one system call for up to 64
# of them
_UDP_SEGMENT = 103
_MAX_SEGMENTS = 64


class Window:
    """One destination, its socket, and its counts of datagrams."""

    def __init__(self, index: int, address: tuple[str, int]) -> None:
        self.index = index
        self.address = address
        self.socket: socket.socket | None = None
        self.sent = 0
        self.errors: dict[str, int] = {}
        """Counts by the error's name, such as ECONNREFUSED."""
        self.last_error = ""
        self.last_reason = Reason.OTHER
        """Code of the last error."""
        self.last_error_ns = 0
        """Steady clock."""

        self.sent_at_error = 0
        self.reopen_at_ns = 0
        self.cuts_runs = False

    def problem(self, now_ns: int, quiet_ns: int) -> str:
        """Return the last error; "" once datagrams have left for `quiet_ns` without another."""
        healed = now_ns - self.last_error_ns > quiet_ns and self.sent > self.sent_at_error + 1
        return "" if healed else self.last_error

    def notice(self) -> Notice:
        """Return the last error for the diagnostics."""
        address, port = self.address
        return Notice(f"{self}: {self.last_error}", self.last_reason, f"{address}:{port}")

    def __str__(self) -> str:
        return f"window {self.index} at {self.address[0]}:{self.address[1]}"


class UdpSender:
    """Sender to `windows` consecutive ports of one host.

    Broadcast addresses need `broadcast`. For a multicast group, `multicast_ttl` is the number of
    networks that a datagram may cross, and `multicast_interface` the IPv4 address of the interface
    to use (empty: the system's choice). Raises ConfigError for a host that has no IPv4 address, or
    ports beyond 65535.
    """

    def __init__(
        self,
        host: str = DEFAULT_HOST,
        port: int = WINDOW_PORT,
        windows: int = 1,
        *,
        broadcast: bool = False,
        multicast_ttl: int = 1,
        multicast_interface: str = "",
    ) -> None:
        self._ip = resolve(host)
        self._port = port
        self._broadcast = broadcast
        self._multicast_ttl = multicast_ttl
        self._multicast_interface = multicast_interface
        if multicast_interface:
            ipv4(multicast_interface, "multicast_interface")

        last = port + windows - 1
        if windows < 1 or not (port >= 1 and last <= 65535):
            raise ConfigError(
                f"ports {port} to {last} for {windows} windows: "
                "expected 1 window or more, 1 to 65535"
            )

        self.windows = [Window(k, (self._ip, port + k)) for k in range(windows)]
        for window in self.windows:
            self._open(window, time.monotonic_ns())

    @property
    def sent(self) -> int:
        """Number of datagrams handed to the system, for all windows."""
        return sum(window.sent for window in self.windows)

    def send(self, datagram: bytes | memoryview) -> None:
        """Send one datagram to every window, at once."""
        for window in self.windows:
            self._send(window, datagram)

    def send_runs(self, runs: Iterable[DatagramRun]) -> None:
        """Send every datagram of the runs to every window."""
        for run in runs:
            for window in self.windows:
                if window.cuts_runs and len(run) > 1:
                    self._send_cut(window, run)
                else:
                    for datagram in run:
                        self._send(window, datagram)

    def send_to(self, index: int, datagram: bytes) -> str:
        """Send one datagram to the window of that index, -1 to all; return "" or the error.

        An index beyond the configured windows is allowed, as long as its port exists.
        """
        if index < -1 or self._port + index > 65535:
            return f"window {index}: expected -1 for all windows, or 0 to {65535 - self._port}"
        chosen = self.windows if index == -1 else self.windows[index : index + 1]
        if not chosen:
            chosen = [Window(index, (self._ip, self._port + index))]  # `_send` opens it

        errors = [
            f"{window}: {window.last_error}"
            for window in chosen
            if not self._send(window, datagram)
        ]
        if index >= len(self.windows) and chosen[0].socket is not None:
            chosen[0].socket.close()
        return "; ".join(errors)

    def closed_ports(self) -> list[int]:
        """Return the ports that are known to have refused a datagram.

        They are known at once on this machine, and later or never on others.
        """
        refused = (errno.ECONNREFUSED, errno.ECONNRESET)
        return [
            window.address[1]
            for window in self.windows
            if window.socket is not None
            and window.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in refused
        ]

    def close(self) -> None:
        """Close all sockets."""
        for window in self.windows:
            if window.socket is not None:
                window.socket.close()
                window.socket = None

    def _send(self, window: Window, datagram: bytes | memoryview) -> bool:
        try:
            if window.socket is None:
                return self._send_again(window, datagram)
            window.socket.send(datagram)
        except OSError as error:
            return self._send_again(window, datagram, error)
        window.sent += 1
        return True

    def _send_again(
        self, window: Window, datagram: bytes | memoryview, error: OSError | None = None
    ) -> bool:
        """Send a datagram again after an error, if that can help.

        A datagram that was not sent because an earlier one's error was reported is repeated; an
        unusable socket is replaced.
        """
        now_ns = time.monotonic_ns()
        if error is not None:
            self._note(window, error, now_ns)
            if error.errno in (errno.EAGAIN, errno.ENOBUFS, errno.EMSGSIZE):
                return False
            if error.errno not in _REPORTS and window.socket is not None:
                window.socket.close()
                window.socket = None

        if window.socket is None:
            if now_ns < window.reopen_at_ns:
                if error is None:
                    window.errors["not sent"] = window.errors.get("not sent", 0) + 1
                return False
            self._open(window, now_ns)
        if window.socket is None:
            return False

        try:
            window.socket.send(datagram)
        except OSError as second:
            self._note(window, second, now_ns)
            return False
        window.sent += 1
        return True

    def _send_cut(self, window: Window, run: DatagramRun) -> None:
        """Send a run in few calls.

        If the system refuses, send each datagram in a separate call, now and later.
        """
        step = run.size * min(_MAX_SEGMENTS, MAX_UDP_PAYLOAD // run.size)
        ancillary = [(socket.IPPROTO_UDP, _UDP_SEGMENT, struct.pack("=H", run.size))]
        for start in range(0, len(run.buffer), step):
            part = run.buffer[start : start + step]
            try:
                if window.socket is None:
                    raise OSError(errno.ENOTCONN, "not open")
                window.socket.sendmsg([part], ancillary)
                window.sent += len(part) // run.size
            except OSError as error:
                window.cuts_runs = error.errno in _REPORTS
                for datagram in DatagramRun(part, run.size):
                    self._send(window, datagram)

    def _open(self, window: Window, now_ns: int) -> None:
        window.reopen_at_ns = now_ns + _REOPEN_AFTER_NS
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
            if sys.platform != "win32":
                # longest delay of a callback by a full buffer
                timeout = struct.pack("@ll", 0, round(_SEND_TIMEOUT_S * 1e6))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)

            if self._broadcast:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            address = ipaddress.IPv4Address(self._ip)
            if address.is_multicast:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, self._multicast_ttl)
                if self._multicast_interface:
                    interface = socket.inet_aton(self._multicast_interface)
                    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
            if sys.platform == "linux":
                sock.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
                # holds the error reports, each of which `send` raises once
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)

            sock.connect(window.address)
        except OSError as error:
            sock.close()
            self._note(window, error, now_ns)
            return

        window.socket = sock
        # elsewhere a network card might cut the runs, by a driver that we do not know
        window.cuts_runs = sys.platform == "linux" and address.is_loopback

    def _note(self, window: Window, error: OSError, now_ns: int) -> None:
        name = errno.errorcode.get(error.errno or 0, type(error).__name__)
        window.errors[name] = window.errors.get(name, 0) + 1
        window.last_error = _EXPLAINED.get(error.errno or 0, error.strerror or str(error))
        window.last_reason = _REASONS.get(error.errno or 0, Reason.OTHER)
        window.last_error_ns = now_ns
        window.sent_at_error = window.sent


_REPORTS = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNRESET})
"""Errors that may belong to an earlier datagram; the present one has not been sent."""

_EXPLAINED = {
    errno.ECONNREFUSED: "nothing listens there (is RflySim3D running?)",
    errno.EHOSTUNREACH: (
        "unreachable: no machine answers there (is it on, and is the address right?)"
    ),
    errno.ENETUNREACH: "unreachable: no way leads to that network",
    errno.EACCES: "not allowed: a broadcast address needs the parameter broadcast",
}


def resolve(host: str) -> str:
    """Return the IPv4 address of a host name or address. Raises ConfigError that names it."""
    try:
        return str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"host {host!r}: no IPv4 address for that name ({reason})") from error


def local_address_towards(host: str) -> str:
    """Return the IPv4 address from which this machine reaches a host. It sends nothing.

    The result is "" for this machine itself, or without a route to the host.
    """
    try:
        destination = resolve(host) if host else ""
        if not destination or ipaddress.IPv4Address(destination).is_loopback:
            return ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.connect((destination, WINDOW_PORT))
            return str(sock.getsockname()[0])
    except (OSError, ConfigError):
        return ""


def answer_address(host: str, bind: str) -> str:
    """Return this machine's IPv4 address for the answers of a host to a socket bound to `bind`.

    A socket on one address of several gets nothing that is sent to the others. The result is "" for
    the sender's own address. Raises ConfigError for a `bind` that is no IPv4 address.
    """
    bound = ipaddress.IPv4Address(ipv4(bind, "bind"))
    if bound.is_unspecified or str(bound) == "127.0.0.1":
        return local_address_towards(host)
    return str(bound)


_REASONS = {
    errno.ECONNREFUSED: Reason.WINDOW_REFUSED,
    errno.EHOSTUNREACH: Reason.WINDOW_UNREACHABLE,
    errno.ENETUNREACH: Reason.WINDOW_UNREACHABLE,
}
