# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fly and drive the vehicle `scale` from outside ROS by UDP or TCP, through link_node.

It needs the standard library only.

    ros2 run rfly_suite link_node --ros-args -p transport:=tcp     (instead of the control nodes)
    python examples/external_controller_udp_tcp.py --tcp

It reads position, velocity and attitude from the state frames (type 1), answers each with rotor
speeds (type 3) and a chassis command (type 4) of the same time, and beats once a second (type 5).
With lock-step the simulation waits for the answers. A frame with the same time again means that an
answer was lost; the same answer is then sent again.
"""

from __future__ import annotations

import argparse
import socket
import struct
import sys
import time
import zlib
from contextlib import suppress

from small_pilot import SmallPilot, State, report

HEADER = struct.Struct("<4sBBHQd")  # magic, type, flags, payload length, sequence, time
CHECK = struct.Struct("<I")
STATE = 1
ROTORS = 3
CHASSIS = 4
HEARTBEAT = 5
SUPPLIES_ROTORS_AND_CHASSIS = 3


class UdpLink:
    """A link that carries one frame in each datagram."""

    def __init__(self, host: str, port: int, own_port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("0.0.0.0" if host != "127.0.0.1" else "127.0.0.1", own_port))
        self._socket.settimeout(0.2)
        self._address = host, port

    def send(self, data: bytes) -> None:
        self._socket.sendto(data, self._address)

    def receive(self) -> bytes | None:
        """Return the next frame, or None if none arrives within 0.2 s."""
        try:
            return self._socket.recv(2048)
        except (TimeoutError, ConnectionResetError):  # Windows resets while nothing listens yet
            return None

    def close(self) -> None:
        self._socket.close()


class TcpLink:
    """A link that carries one frame after another and reconnects when the connection ends."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket = None
        self._rest = b""

    def send(self, data: bytes) -> None:
        self._connect()
        try:
            self._socket.sendall(data)
        except OSError:
            self._socket = None

    def receive(self) -> bytes | None:
        self._connect()

        while len(self._rest) < HEADER.size or len(self._rest) < self._size():
            try:
                data = self._socket.recv(4096)
            except TimeoutError:
                return None
            except OSError:
                data = b""
            if not data:
                self._socket = None
                return None
            self._rest += data

        size = self._size()
        frame = self._rest[:size]
        self._rest = self._rest[size:]
        return frame

    def close(self) -> None:
        """Wait until the other side closes, so that it receives everything."""
        if self._socket is None:
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(4096):
                pass
        except OSError:
            pass

    def _size(self) -> int:
        return HEADER.size + HEADER.unpack_from(self._rest)[3] + CHECK.size

    def _connect(self) -> None:
        while self._socket is None:
            try:
                self._socket = socket.create_connection(self._address, 1.0)
                self._rest = b""
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket.settimeout(0.2)
            except OSError:
                time.sleep(0.1)


class Controller:
    """The pilot behind a link."""

    def __init__(self, link: UdpLink | TcpLink, pause: float) -> None:
        self._link = link
        self._pause = pause
        self._sequence = 0
        self._beat_at = float("-inf")
        self._answers: list[tuple[int, float, bytes]] = []
        self.pilot = SmallPilot()
        self.frames = 0

    def run(self) -> None:
        """Answer state frames until the pilot is done."""
        while not self.pilot.done:
            if time.monotonic() - self._beat_at > 1.0:
                self._beat_at = time.monotonic()
                self._send(HEARTBEAT, 0.0, struct.pack("<I", SUPPLIES_ROTORS_AND_CHASSIS))

            data = self._link.receive()
            if data is not None and _is_whole(data) and data[4] == STATE:
                self._take(data)

    def _take(self, data: bytes) -> None:
        length, _, now = HEADER.unpack_from(data)[3:]
        if self.pilot.last is None or now != self.pilot.last.time:
            self.frames += 1
            if self._pause:
                time.sleep(self._pause)

            # 0 specific force, 3 rates, 6 quaternion, 10 position, 13 velocity, 16 wheels,
            # 20 steering, 22 loads …
            numbers = struct.unpack_from(f"<{length // 8}d", data, HEADER.size)
            out = self.pilot(
                State(now, numbers[10:13], numbers[13:16], numbers[6:10], numbers[3:6])
            )

            torques = [out.drive_torque] * 4 + [out.brake_torque] * 4
            self._answers = [
                (ROTORS, now, struct.pack("<BB6x6d", 0, 6, *out.rotor_speeds)),
                (CHASSIS, now, struct.pack("<9d", out.steering, *torques)),
            ]

        for answer in self._answers:
            self._send(*answer)

    def _send(self, kind: int, now: float, payload: bytes) -> None:
        body = HEADER.pack(b"LAV1", kind, 0, len(payload), self._sequence, now) + payload
        self._link.send(body + CHECK.pack(zlib.crc32(body)))
        self._sequence += 1


def _is_whole(data: bytes) -> bool:
    return data[:4] == b"LAV1" and CHECK.unpack(data[-4:])[0] == zlib.crc32(data[:-4])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ways = parser.add_mutually_exclusive_group(required=True)
    ways.add_argument("--udp", action="store_true", help="one frame a datagram")
    ways.add_argument("--tcp", action="store_true", help="connect to link_node's server")
    parser.add_argument("--host", default="127.0.0.1", help="where link_node runs")
    parser.add_argument("--port", type=int, default=14660, help="port of link_node")
    parser.add_argument("--own-port", type=int, default=14661, help="UDP port of this controller")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds of wall time before each answer"
    )
    options = parser.parse_args()

    if options.udp:
        link: UdpLink | TcpLink = UdpLink(options.host, options.port, options.own_port)
    else:
        link = TcpLink(options.host, options.port)

    controller = Controller(link, options.pause)
    start = time.monotonic()
    controller.run()
    link.close()

    print(report(controller.pilot))
    print(f"{controller.frames} state frames in {time.monotonic() - start:.1f} s of wall time")
    return 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        sys.exit(main())
