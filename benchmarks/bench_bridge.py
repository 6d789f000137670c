# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles a second to RflySim3D, and the delay of a pose.

The peers are a loop of struct.pack and sendto, and an echo node. Everything stays on loopback, with
a socket that receives it.
"""

from __future__ import annotations

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

import numpy as np

from benchmarks.harness import Row, same
from rfly_common.frames import pose_enu_to_ned_euler
from rfly_common.vehicle_states import VehicleStates
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states
from rfly_ue_bridge.sockets.udp_sender import UdpSender

VEHICLES = 500
"""Vehicles of a state message.

As single packets they fit the receiving socket's buffer under Linux' default limit.
"""
ROUNDS = 31
SESSIONS = 4
POSES = 200
WARM_UP_POSES = 30
PAUSE_S = 0.002
"""Pause between two poses, s: both nodes wait for the next message again, as up to 500 Hz."""
MAX_DELAY_RATIO = 1.1
RAD_S_TO_RPM = 60.0 / (2.0 * np.pi)


def rows() -> Iterator[Row]:
    """Yield the rates of single and of fleet packets, and the delay of a pose."""
    for in_fleet in (False, True):
        yield _throughput(in_fleet)

    if importlib.util.find_spec("rclpy") is None:
        print("the delay of a pose needs ROS 2 (rclpy): not measured", file=sys.stderr)
        return

    yield from _delay()


def _throughput(in_fleet: bool) -> Row:
    """Compare our sender and a plain loop with the same vehicles."""
    random = np.random.default_rng(5)
    with ExitStack() as opened:
        receiver = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        address = receiver.getsockname()
        sender = UdpSender(*address)
        opened.callback(sender.close)
        plain = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

        def ours(states: VehicleStates) -> None:
            sender.send_runs(encode_states(states_to_ned(states, "enu")[0], in_fleet=in_fleet))

        def peer(states: VehicleStates) -> None:
            loop = _loop_of_fleet_packets if in_fleet else _loop_of_single_packets
            loop(states, lambda datagram: plain.sendto(datagram, address))

        # both send the same bytes
        states = _some_states(random)
        ours(states)
        ours_sent = _received(receiver)
        peer(states)
        agree = same(
            ours_sent == _received(receiver),
            f"{len(ours_sent)} datagrams, byte by byte",
        )

        # in turns, with new numbers in each round
        durations: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            states = _some_states(random)
            for times, send in zip(durations, (ours, peer), strict=True):
                start = time.perf_counter()
                send(states)
                times.append(time.perf_counter() - start)
                _received(receiver)

    ours_s, peer_s = (statistics.median(times) for times in durations)
    return Row(
        f"bridge: {VEHICLES} vehicles to one window, "
        f"{'Multi3DData100New' if in_fleet else 'one packet each'}",
        ours_s,
        peer_s,
        "loop of struct.pack + sendto",
        target_ratio=1.0,
        agree=agree,
        note=f"{VEHICLES / ours_s:,.0f} vehicles/s, the loop {VEHICLES / peer_s:,.0f}",
    )


def _some_states(random: np.random.Generator) -> VehicleStates:
    """Return vehicles somewhere, in any attitude."""
    q = random.normal(size=(VEHICLES, 4))
    return VehicleStates(
        id=np.arange(1, VEHICLES + 1),
        vehicle_type=np.full(VEHICLES, 3),
        position=random.normal(scale=100.0, size=(VEHICLES, 3)),
        orientation=q / np.linalg.norm(q, axis=1, keepdims=True),
        velocity=random.normal(size=(VEHICLES, 3)),
        motor_speed=random.uniform(0.0, 800.0, (VEHICLES, 4)),
    )


def _loop_of_single_packets(states: VehicleStates, send: Callable[[bytes], object]) -> None:
    """Send as a plain script would: one vehicle at a time, floats, `struct.pack`, `sendto`."""
    arrays = (
        states.id,
        states.vehicle_type,
        states.position,
        states.orientation,
        states.velocity,
        states.motor_speed,
    )
    for number, kind, position, quat, velocity, motors in zip(
        *(array.tolist() for array in arrays), strict=True
    ):
        place, euler = pose_enu_to_ned_euler(*position, *quat)
        rpm = [speed * RAD_S_TO_RPM for speed in motors]
        send(
            struct.pack(
                "<6i14f4d", 1234567891, number, kind, 0, 0, 0, *rpm, 0.0, 0.0, 0.0, 0.0,
                velocity[1], velocity[0], -velocity[2], *euler, *place, -1.0,
            )
        )  # fmt: skip


def _loop_of_fleet_packets(states: VehicleStates, send: Callable[[bytes], object]) -> None:
    """Send as a plain script would: a hundred vehicles in each packet."""
    arrays = (
        states.id,
        states.vehicle_type,
        states.position,
        states.orientation,
        states.scale,
        states.motor_speed,
    )
    vehicles = list(zip(*(array.tolist() for array in arrays), strict=True))

    for start in range(0, len(vehicles), 100):
        ids = [0] * 100
        types = [0] * 100
        places = [0.0] * 300
        angles = [0.0] * 300
        scales = [0] * 300
        means = [0.0] * 100
        for slot, (number, kind, position, quat, scale, motors) in enumerate(
            vehicles[start : start + 100]
        ):
            ids[slot] = number
            types[slot] = kind
            here = slice(3 * slot, 3 * slot + 3)
            places[here], angles[here] = pose_enu_to_ned_euler(*position, *quat)
            scales[here] = [round(100.0 * factor) for factor in scale]
            means[slot] = sum(speed * RAD_S_TO_RPM for speed in motors) / len(motors)

        send(
            struct.pack(
                "<i200H600f300H100f",
                1234567890,
                *ids,
                *types,
                *places,
                *angles,
                *scales,
                *means,
            )
        )


def _received(receiver: socket.socket) -> list[bytes]:
    """Return all datagrams that have arrived."""
    datagrams = []
    while True:
        try:
            datagrams.append(receiver.recv(65536))
        except BlockingIOError:
            return datagrams


def _delay() -> Iterator[Row]:
    """Yield the delay from a published pose to its datagram, of the bridge and of the echo node.

    Poses go to both in turn; both subscribe with the same QoS. Several sessions are run, since the
    choice of cores makes more difference than the nodes do.
    """
    delays: tuple[list[float], list[float]] = ([], [])
    right = [_session(session, delays) for session in range(SESSIONS)]
    agree = same(all(right), f"{SESSIONS * POSES} positions, to the bit")

    for name, value in (
        ("median", statistics.median),
        ("99th percentile", lambda d: float(np.percentile(d, 99))),
    ):
        yield Row(
            f"bridge: pose published → datagram, {name}",
            value(delays[0]),
            value(delays[1]),
            "minimal rclpy echo node",
            target_ratio=MAX_DELAY_RATIO,
            agree=agree,
            note=f"{SESSIONS} x {POSES} poses in turns",
            kind="at most",
        )


def _session(session: int, delays: tuple[list[float], list[float]]) -> bool:
    """Start both nodes and add to the delays (bridge, echo), s.

    Return whether every datagram held the published position.
    """
    import rclpy
    from geometry_msgs.msg import PoseStamped
    from rclpy.qos import QoSProfile

    domain = 1 + (os.getpid() + session) % 100
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    with ExitStack() as opened:
        # a socket for each node
        sockets = [
            opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        ]
        for receiver in sockets:
            receiver.bind(("127.0.0.1", 0))
            receiver.settimeout(0.5)
        ports = [receiver.getsockname()[1] for receiver in sockets]

        # the command lines of both nodes
        bridge = [
            sys.executable,
            "-c",
            "from rfly_bringup.nodes.entry_points import ue_bridge_node; ue_bridge_node()",
        ]
        parameters = [
            f"port:={ports[0]}",
            "vehicles:=[car]",
            "car.id:=7",
            "car.topic:=bridge/pose",
        ]
        parts = (part for parameter in parameters for part in ("-p", parameter))
        bridge += ["--ros-args", "--log-level", "error", *parts]
        echo = [
            sys.executable,
            str(Path(__file__).with_name("echo_node.py")),
            "echo/pose",
            str(ports[1]),
        ]

        # start them, in another order each time
        for command in (bridge, echo) if session % 2 else (echo, bridge):
            process = subprocess.Popen(command, env=environment, cwd=Path(__file__).parent.parent)
            opened.callback(process.wait)
            opened.callback(process.send_signal, signal.SIGINT)

        # publishers of poses
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        opened.callback(rclpy.try_shutdown, context=context)
        node = rclpy.create_node("bench", context=context)
        opened.callback(node.destroy_node)
        topics = ("bridge/pose", "echo/pose")
        publishers = [
            node.create_publisher(PoseStamped, topic, QoSProfile(depth=10)) for topic in topics
        ]
        message = PoseStamped()
        message.header.frame_id = "map"
        message.pose.orientation.w = 1.0

        def one_way(side: int, x: float) -> tuple[float, bool]:
            message.pose.position.y = x
            message.header.stamp = node.get_clock().now().to_msg()
            start = time.perf_counter()
            publishers[side].publish(message)
            datagram = sockets[side].recv(4096)
            elapsed = time.perf_counter() - start
            north = struct.unpack_from("<d", datagram, 80 if side == 0 else 8)[0]
            return elapsed, north == x

        # wait until both answer
        for side in range(2):
            _connect(lambda side=side: one_way(side, 0.0))
            while _pending(sockets[side]):
                pass

        # poses to both in turn
        all_right = True
        for number in range(-WARM_UP_POSES, POSES):
            for side in (0, 1) if number % 2 else (1, 0):
                elapsed, good = one_way(side, float(number))
                all_right &= good
                if number >= 0:
                    delays[side].append(elapsed)
                time.sleep(PAUSE_S)
    return all_right


def _connect(try_once: Callable[[], object], timeout_s: float = 20.0) -> None:
    """Retry until both ends know each other: a best-effort subscription gets nothing before."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            try_once()
            return
        except TimeoutError:
            if time.monotonic() > deadline:
                raise


def _pending(opened: socket.socket) -> bool:
    """Return whether a datagram arrives within the socket's time limit."""
    try:
        opened.recv(4096)
    except TimeoutError:
        return False
    return True
