# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorder of UDP ports in RflySim3D's place, with forwarding on request.

Under Linux the time of a datagram is the kernel's, taken when it arrived and not when this process
read it. Datagrams that the kernel had to drop because they were not read in time are counted.
"""

from __future__ import annotations

import errno
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence

from rfly_common.errors import ConfigError
from rfly_common.files import Closing
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter
from rfly_ue_bridge.sockets.udp_sender import UdpSender, resolve

RECEIVE_BUFFER_BYTES = 1 << 22
FLUSH_NS = 200_000_000
"""Longest time that a datagram waits in memory before it is in the file, ns."""
_MAX_DATAGRAM = 65536
_BATCH = 256
"""Datagrams read from one port before the next port has its turn."""

# socket(7), ip(7); the socket module has no names for them
_SO_TIMESTAMPNS = 35
_SO_RXQ_OVFL = 40
_IP_PKTINFO = 8
_KERNEL_TIMES = (
    (socket.SOL_SOCKET, _SO_TIMESTAMPNS),
    (socket.SOL_SOCKET, _SO_RXQ_OVFL),
    (socket.IPPROTO_IP, _IP_PKTINFO),
)
_TIMESPEC = struct.Struct("@qq")
_DROPS = struct.Struct("@I")
_PKTINFO = struct.Struct("@I4s4s")
_HAS_KERNEL_TIMES = sys.platform == "linux" and struct.calcsize("P") == 8
_ANCILLARY_BYTES = 3 * 64


class Recorder(Closing):
    """Recorder that binds `ports` of one address; `poll` writes the datagrams that have arrived.

    With `forward_to` (host, port) everything is sent on to that host too: the datagrams of the
    first of `ports` to that port, the others to ports at the same distances. Raises ConfigError for
    an address or port that cannot be bound, and for a destination that is one of the own ports.
    """

    def __init__(
        self, bind: str, ports: Sequence[int], *, forward_to: tuple[str, int] | None = None
    ) -> None:
        self._sockets: list[_Port] = []
        self._selector = selectors.DefaultSelector()
        self._flushed_ns = time.monotonic_ns()
        self.forward: UdpSender | None = None
        self.datagrams = 0
        self.payload_bytes = 0

        try:
            for number in ports:
                port = _Port(bind, number)
                self._sockets.append(port)
                self._selector.register(port.socket, selectors.EVENT_READ, port)
            if forward_to is not None:
                host, first = forward_to
                forward_ports = [first + port - ports[0] for port in ports]
                _refuse_own_ports(resolve(host), forward_ports, bind, ports)
                self.forward = UdpSender(host, first, forward_ports[-1] - first + 1)
        except BaseException:
            self.close()
            raise

    @property
    def ports(self) -> list[int]:
        """The bound ports."""
        return [port.number for port in self._sockets]

    @property
    def dropped(self) -> int:
        """Datagrams that the system dropped because they came too quickly; 0 if not under Linux.

        The system reports them with the next datagram of the same port.
        """
        return sum(port.dropped for port in self._sockets)

    def poll(self, writer: PcapWriter, timeout_s: float, limit: int | None = None) -> int:
        """Wait for datagrams, write them (at most `limit`), and return their number."""
        written = 0
        for key, _ in self._selector.select(timeout_s):
            port: _Port = key.data
            room = _BATCH if limit is None else min(_BATCH, limit - written)
            written += self._record(port, writer, room)

        now_ns = time.monotonic_ns()
        if now_ns - self._flushed_ns > FLUSH_NS:
            self._flushed_ns = now_ns
            writer.flush()
        return written

    def close(self) -> None:
        """Close the sockets."""
        self._selector.close()
        for port in self._sockets:
            port.socket.close()
        if self.forward is not None:
            self.forward.close()

    def _record(self, port: _Port, writer: PcapWriter, limit: int) -> int:
        for written in range(limit):
            datagram = port.receive()
            if datagram is None:
                return written
            writer.write(datagram)
            self.datagrams += 1
            self.payload_bytes += len(datagram.payload)
            if self.forward is not None:
                self.forward.send_to(port.number - self._sockets[0].number, datagram.payload)
        return limit


def listening_socket(
    bind: str, port: int, if_taken: str, options: Sequence[tuple[int, int]] = ()
) -> socket.socket:
    """Return a UDP socket in the place of a window, which never waits.

    `options`: levels and names of the socket options to switch on. Raises ConfigError for an
    address or port that cannot be bound; the message for a port in use ends with `if_taken`.
    """
    if port > 65535:
        raise ConfigError(f"port {port}: the last port is 65535")

    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        for level, name in options:
            opened.setsockopt(level, name, 1)
        opened.bind((bind, port))
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"port {port} at {bind} is taken{if_taken}") from error
        raise ConfigError(f"cannot listen on {bind}:{port}: {error.strerror or error}") from error

    opened.setblocking(False)
    return opened


class _Port:
    """One bound socket."""

    def __init__(self, bind: str, number: int) -> None:
        self.dropped = 0
        self.socket = listening_socket(
            bind,
            number,
            ", by RflySim3D, a viewer or a listener; a recording stands in the window's place: "
            "give that one other ports and pass the datagrams on to it",
            _KERNEL_TIMES if _HAS_KERNEL_TIMES else (),
        )
        self._address: tuple[str, int] = self.socket.getsockname()
        self.number = self._address[1]
        self.receive = self._receive_with_kernel_time if _HAS_KERNEL_TIMES else self._receive

    def _receive(self) -> RecordedDatagram | None:
        """Return the next datagram, or None if there is none."""
        # an error: no datagram, the report of an ICMP answer, or a datagram with a bad checksum
        try:
            payload, source = self.socket.recvfrom(_MAX_DATAGRAM)
        except OSError:
            return None
        return RecordedDatagram(time.time_ns(), source, self._address, payload)

    def _receive_with_kernel_time(self) -> RecordedDatagram | None:
        try:
            payload, ancillary, _, source = self.socket.recvmsg(_MAX_DATAGRAM, _ANCILLARY_BYTES)
        except OSError:
            return None

        time_ns = 0
        destination = self._address
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS:
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                time_ns = seconds * 1_000_000_000 + nanoseconds
            elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL:
                (self.dropped,) = _DROPS.unpack(data)
            elif level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                destination = (socket.inet_ntoa(_PKTINFO.unpack(data)[2]), self.number)

        return RecordedDatagram(time_ns or time.time_ns(), source, destination, payload)


def _refuse_own_ports(
    host: str, forward_ports: Sequence[int], bind: str, ports: Sequence[int]
) -> None:
    """Raise ConfigError if datagrams would be passed on to a bound port.

    They would be recorded and passed on again, for ever.
    """
    same = sorted(set(forward_ports) & set(ports))
    if not same:
        return
    bound = resolve(bind)
    if host == bound or (bound == "0.0.0.0" and _is_own_address(host)):
        raise ConfigError(
            f"port {same[0]} at {host} is where the recording listens; "
            "pass on to another host or port, as in "
            f"{host}:{max(ports) + 1}"
        )


def _is_own_address(host: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
