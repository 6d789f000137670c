# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Whole fleets on their way to RflySim3D.

The peers are a script with RflySim's SDK and the bare system call; a third part goes through the
real node over DDS. Everything stays on loopback, with sockets that receive it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, lasting, same
from rfly_common.frames import (
    euler_to_quat,
    pose_enu_to_ned_euler,
    quat_ned_frd_to_enu_flu,
)
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import RPM_PER_RAD_S, NedStates, states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states
from rfly_ue_bridge.sockets.udp_sender import UdpSender

VEHICLES = 1000
SDK_WINDOWS = 3
ROUNDS = 31
RATE_HZ = 50
NODE_SECONDS = lasting("RFLY_BRIDGE_SECONDS", 10.0)
HALF_A_CORE = 0.5
REST_S = 0.001
"""Rest before each timing, s, so that the system does not preempt the process during it."""
FLEETS_IN_A_ROW = 16, 4
"""Fleets sent in one timing, since throughput is compared.

The second number holds where the system grants a small receive buffer.
"""
MOST_PENDING = 400
"""Single datagrams that a receiving socket surely holds under Linux' default limits."""


def rows() -> Iterator[Row]:
    """Yield the comparisons with the SDK and the system call, and the bridge's processor time."""
    yield _compared_with_the_sdk(SDK_WINDOWS)
    yield _compared_with_the_sdk(1, convert_in_loop=True)
    yield _compared_with_the_sdk(1, from_ned=True)
    yield _compared_with_the_system_call(in_fleet=True)
    yield _compared_with_the_system_call(in_fleet=False)
    if importlib.util.find_spec("rclpy") is None:
        print(
            "the bridge's processor time needs ROS 2 (rclpy): not measured",
            file=sys.stderr,
        )
        return
    yield _through_the_node()


class _Sinks:
    """A receiver on consecutive ports, in RflySim3D's place."""

    def __init__(self, windows: int) -> None:
        while True:
            self.sockets = [
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(windows)
            ]
            try:
                self.sockets[0].bind(("127.0.0.1", 0))
                self.port = int(self.sockets[0].getsockname()[1])

                for number, opened in enumerate(self.sockets[1:], 1):
                    opened.bind(("127.0.0.1", self.port + number))
                break
            except OSError:
                self.close()

        for opened in self.sockets:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            opened.setblocking(False)

    @property
    def hold_a_fleet(self) -> bool:
        """True if the system granted a buffer that holds single packets of all vehicles at once."""
        return self.sockets[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 2048 * VEHICLES

    def take(self) -> list[list[bytes]]:
        """Return what has arrived at each port."""
        return [_received(opened) for opened in self.sockets]

    def close(self) -> None:
        for opened in self.sockets:
            opened.close()


def _received(opened: socket.socket) -> list[bytes]:
    """Return all datagrams that have arrived."""
    datagrams = []
    while True:
        try:
            datagrams.append(opened.recv(65536))
        except BlockingIOError:
            return datagrams


def _fleet(random: np.random.Generator, vehicles: int = VEHICLES) -> dict[str, Any]:
    """Return the arrays of a VehicleStateArray: vehicles somewhere, nearly level, on their way."""
    euler_ned = np.column_stack(
        (
            random.normal(scale=0.1, size=(vehicles, 2)),
            random.uniform(-3.1, 3.1, vehicles),
        )
    )
    return {
        "id": np.arange(1, vehicles + 1, dtype=np.int32),
        "vehicle_type": np.full(vehicles, 3, np.int32),
        "position": random.normal(scale=100.0, size=(vehicles, 3)),
        "orientation": np.ascontiguousarray(quat_ned_frd_to_enu_flu(euler_to_quat(euler_ned))),
        "velocity": random.normal(size=(vehicles, 3)).astype(np.float32),
        "motor_speed": random.uniform(0.0, 800.0, (vehicles, 4)).astype(np.float32),
    }


def _compared_with_the_sdk(
    windows: int, *, convert_in_loop: bool = False, from_ned: bool = False
) -> Row:
    """Compare a fleet from the arrays of a message to the windows with a script that uses the SDK.

    The arrays are checked and converted from ENU to NED. RflySim's SDK leaves a loop to a script:
    sendUE4PosNew for each vehicle, which is one pack and one sendto for each window.

    The loop begins with numbers in NED, as lists; with `convert_in_loop` it begins with those of
    the message, as we do. With `from_ned` we begin with NED arrays, as the loop does.
    """
    random = np.random.default_rng(11)
    sinks = _Sinks(windows)
    sender = UdpSender("127.0.0.1", sinks.port, windows)
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ports = [sinks.port + number for number in range(windows)]

    def to_ned(arrays: dict[str, Any]) -> NedStates:
        """Return the checked states in NED."""
        return states_to_ned(VehicleStates(**arrays), "enu")[0]

    def ours(fleet: Any) -> None:
        """Send a fleet as we do."""
        sender.send_runs(encode_states(fleet if from_ned else to_ned(fleet), in_fleet=True))

    def script(vehicles: list[tuple[Any, ...]]) -> None:
        """Send the vehicles as a script does."""
        for number, kind, place, attitude, velocity, rpm in vehicles:
            if convert_in_loop:
                place, attitude = pose_enu_to_ned_euler(*place, *attitude)  # noqa: PLW2901
                velocity = (velocity[1], velocity[0], -velocity[2])  # noqa: PLW2901
                rpm = [RPM_PER_RAD_S * speed for speed in rpm] + [0.0] * (8 - len(rpm))  # noqa: PLW2901

            datagram = struct.pack(
                "6i14f4d",
                1234567891,
                number,
                kind,
                0,
                0,
                0,
                *rpm,
                *velocity,
                *attitude,
                *place,
                -1.0,
            )
            for port in ports:
                plain.sendto(datagram, ("127.0.0.1", port))

    def as_lists(arrays: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Return the vehicles as the script's numbers."""
        if convert_in_loop:
            columns = tuple(arrays.values())
        else:
            ned = to_ned(arrays)
            columns = (
                ned.id,
                ned.vehicle_type,
                ned.position_ned,
                ned.euler,
                ned.velocity_ned,
                ned.motor_speed_rpm,
            )
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def script_in_parts(
        arrays: dict[str, Any],
    ) -> tuple[float, list[np.ndarray[Any, Any]]]:
        """Return the seconds, and what arrived at each port.

        The sinks are emptied now and then, off the clock.
        """
        vehicles = as_lists(arrays)
        seconds = 0.0
        arrived: list[list[bytes]] = [[] for _ in ports]
        for first in range(0, VEHICLES, MOST_PENDING):
            part = vehicles[first : first + MOST_PENDING]
            time.sleep(REST_S)
            begin = time.perf_counter()
            script(part)
            seconds += time.perf_counter() - begin
            for known, new in zip(arrived, sinks.take(), strict=True):
                known.extend(new)

        return seconds, [_places_in_single_packets(datagrams) for datagrams in arrived]

    durations: tuple[list[float], list[float]] = ([], [])
    equal = True
    in_a_row = FLEETS_IN_A_ROW[0 if sinks.hold_a_fleet else 1]
    try:
        for turn in range(-2, ROUNDS):
            fleets = [_fleet(random) for _ in range(in_a_row)]
            prepared = [to_ned(arrays) if from_ned else arrays for arrays in fleets]

            # our fleets, several in a row
            time.sleep(REST_S)
            begin = time.perf_counter()
            for fleet in prepared:
                ours(fleet)
            ours_s = (time.perf_counter() - begin) / in_a_row
            arrived = sinks.take()
            last = [datagrams[-len(datagrams) // in_a_row :] for datagrams in arrived]
            by_fleet = [_places_in_fleet_packets(datagrams) for datagrams in last]

            # the last of them by the script
            peer_s, by_script = script_in_parts(fleets[-1])
            equal &= all(np.array_equal(a, b) for a, b in zip(by_fleet, by_script, strict=True))
            equal &= all(len(datagrams) * 100 == in_a_row * VEHICLES for datagrams in arrived)

            if turn >= 0:
                durations[0].append(ours_s)
                durations[1].append(peer_s)
    finally:
        sender.close()
        plain.close()
        sinks.close()

    ours_s, peer_s = (statistics.median(times) for times in durations)
    start = "NED arrays" if from_ned else "message's arrays"
    return Row(
        f"fleet: {VEHICLES} vehicles, {start} to {windows} window{'s' if windows > 1 else ''}",
        ours_s,
        peer_s,
        f"SDK-style loop: {'convert, ' if convert_in_loop else ''}pack, sendto each",
        target_ratio=20.0,
        agree=same(equal, f"ids and positions of {VEHICLES} vehicles at {windows} ports"),
        note=f"{VEHICLES / ours_s:,.0f} vehicles/s, the loop {VEHICLES / peer_s:,.0f}",
    )


def _places_in_fleet_packets(datagrams: list[bytes]) -> np.ndarray[Any, Any]:
    """Return (n, 4): id, x, y, z as float32."""
    parts = []
    for datagram in datagrams:
        ids = np.frombuffer(datagram, "<u2", 100, 4)
        places = np.frombuffer(datagram, "<f4", 300, 404).reshape(100, 3)
        parts.append(np.column_stack((ids, places))[ids > 0])
    return np.concatenate(parts) if parts else np.empty((0, 4))


def _places_in_single_packets(datagrams: list[bytes]) -> np.ndarray[Any, Any]:
    """Return (n, 4): id, x, y, z as float32."""
    if not datagrams:
        return np.empty((0, 4))
    rows = [
        (struct.unpack_from("<i", d, 4)[0], *struct.unpack_from("<3d", d, 80)) for d in datagrams
    ]
    return np.array(rows).astype(np.float32)


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Msghdr(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("iov", ctypes.POINTER(_Iovec)),
        ("iov_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Mmsghdr(ctypes.Structure):
    _fields_ = [("header", _Msghdr), ("length", ctypes.c_uint)]


class BareSend:
    """sendmmsg(2) of prepared datagrams on a connected socket: one call and no other Python."""

    def __init__(self, opened: socket.socket, datagrams: list[memoryview]) -> None:
        self._call = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True).sendmmsg
        self._fd = opened.fileno()
        self._buffers = [
            (ctypes.c_char * len(datagram)).from_buffer_copy(datagram) for datagram in datagrams
        ]
        self._iovecs = (_Iovec * len(datagrams))(
            *((ctypes.addressof(b), len(b)) for b in self._buffers)
        )

        self._headers = (_Mmsghdr * len(datagrams))()
        for number, header in enumerate(self._headers):
            header.header.iov = ctypes.pointer(self._iovecs[number])
            header.header.iov_length = 1
        self._count = len(datagrams)

    def __call__(self) -> None:
        sent = 0
        while sent < self._count:
            step = self._call(
                self._fd,
                ctypes.byref(self._headers, sent * ctypes.sizeof(_Mmsghdr)),
                self._count - sent,
                0,
            )
            if step < 0:
                raise OSError(ctypes.get_errno(), "sendmmsg")
            sent += step


def _compared_with_the_system_call(*, in_fleet: bool) -> Row:
    """Compare our sender and a bare sendmmsg with the same bytes, both to a connected socket."""
    random = np.random.default_rng(12)
    sinks = _Sinks(1)
    vehicles = VEHICLES if in_fleet or sinks.hold_a_fleet else MOST_PENDING
    sender = UdpSender("127.0.0.1", sinks.port)

    # a bare socket, connected like ours
    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    plain.connect(("127.0.0.1", sinks.port))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    durations: dict[str, list[float]] = {"whole": [], "ours": [], "peer": []}
    equal = True
    try:
        for turn in range(-2, ROUNDS):
            arrays = _fleet(random, vehicles)
            ned = states_to_ned(VehicleStates(**arrays), "enu")[0]
            runs = encode_states(ned, in_fleet=in_fleet)
            bare = BareSend(plain, [datagram for run in runs for datagram in run])

            # the same datagrams three times
            received = []
            times = (
                ("whole", lambda arrays=arrays: _whole_way(arrays, sender, in_fleet)),
                ("ours", lambda runs=runs: sender.send_runs(runs)),
                ("peer", bare),
            )  # fmt: skip
            for name, send in times:
                time.sleep(REST_S)
                begin = time.perf_counter()
                send()
                elapsed = time.perf_counter() - begin
                received.append(sinks.take()[0])
                if turn >= 0:
                    durations[name].append(elapsed)
            equal &= received[0] == received[1] == received[2] != []
    finally:
        sender.close()
        plain.close()
        sinks.close()

    whole_s, ours_s, peer_s = (
        statistics.median(durations[name]) for name in ("whole", "ours", "peer")
    )
    count = sum(len(run) for run in runs)
    kind = "fleet packets" if in_fleet else "single packets"

    # single packets are judged from the arrays to the wire; fleet packets are so few that the
    # conversion takes most of that time
    judged_s = ours_s if in_fleet else whole_s
    what = "sent" if in_fleet else "converted, packed and sent"
    return Row(
        f"fleet: {vehicles} vehicles in {count} {kind}, {what}",
        judged_s,
        peer_s,
        "bare sendmmsg of the same bytes",
        target_ratio=0.7,
        agree=same(equal, f"{count} datagrams, byte by byte"),
        note=f"sending alone {ours_s * 1e6:.0f} µs, from the arrays on {whole_s * 1e6:.0f} µs, "
        f"bare {peer_s * 1e6:.0f} µs",
    )


def _whole_way(arrays: dict[str, Any], sender: UdpSender, in_fleet: bool) -> None:
    """Check, convert, encode and send the arrays of a message."""
    sender.send_runs(
        encode_states(states_to_ned(VehicleStates(**arrays), "enu")[0], in_fleet=in_fleet)
    )


def _through_the_node() -> Row:
    """Measure the bridge in a process of its own, with 1,000 vehicles at 50 Hz over DDS.

    Every datagram is counted.
    """
    import rclpy
    from rclpy.qos import QoSProfile
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.vehicle_msgs import states_to_msg

    domain = 1 + os.getpid() % 100
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    random = np.random.default_rng(13)
    with ExitStack() as opened:
        sinks = _Sinks(1)
        opened.callback(sinks.close)

        # the bridge
        command = [
            sys.executable,
            "-c",
            "from rfly_bringup.nodes.entry_points import ue_bridge_node; ue_bridge_node()",
        ]
        command += [
            "--ros-args",
            "--log-level",
            "error",
            "-p",
            f"port:={sinks.port}",
            "-p",
            "feedback_port:=0",
        ]
        bridge = subprocess.Popen(command, env=environment, cwd=Path(__file__).parent.parent)
        opened.callback(bridge.wait)
        opened.callback(bridge.send_signal, signal.SIGINT)

        # a publisher of the fleet
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        opened.callback(rclpy.try_shutdown, context=context)
        node = rclpy.create_node("bench", context=context)
        opened.callback(node.destroy_node)
        publisher = node.create_publisher(VehicleStateArray, "vehicle_states", QoSProfile(depth=10))
        _wait_for(lambda: publisher.get_subscription_count() > 0, "the bridge subscribes")

        messages = [
            states_to_msg(VehicleStates(**_fleet(random), frame_id="map", source="/bench"))
            for _ in range(8)
        ]

        def publish(number: int) -> None:
            message = messages[number % len(messages)]
            message.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(message)

        # wait until the first fleet is shown
        publish(0)
        _wait_for(lambda: bool(sinks.take()[0]), "the first datagram")

        # fleets at a steady rate
        datagrams = 0
        rounds = round(NODE_SECONDS * RATE_HZ)
        busy = processor_seconds(bridge.pid)
        begin = time.monotonic()
        for number in range(rounds):
            publish(number)
            time.sleep(max(0.0, begin + (number + 1) / RATE_HZ - time.monotonic()))
            datagrams += len(sinks.take()[0])
        elapsed = time.monotonic() - begin
        busy = processor_seconds(bridge.pid) - busy

        # all datagrams arrive
        expected = rounds * VEHICLES // 100
        deadline = time.monotonic() + 2.0
        while datagrams < expected and time.monotonic() < deadline:
            datagrams += len(sinks.take()[0])
            time.sleep(0.01)

    return Row(
        f"fleet: bridge's processor time, {VEHICLES:,} vehicles at {RATE_HZ} Hz over DDS",
        busy / elapsed,
        scaled(HALF_A_CORE),
        f"half a core, {SCALED}",
        target_ratio=1.0,
        agree=same(
            datagrams == expected,
            f"{datagrams} of {expected} datagrams in {elapsed:.1f} s",
        ),
        note=f"{rounds / elapsed:.1f} messages/s",
        kind="at most",
        unit="cores",
    )


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used, user and system, s.

    Source: /proc/<pid>/stat (proc(5), fields 14 and 15).
    """
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait_for(ready: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Wait until this is true; raise TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s} s in vain: {what}")
        time.sleep(0.02)
