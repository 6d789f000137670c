# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The bridge under a flood on its feedback port: memory, and the delay of poses.

50,000 datagrams/s for 10 minutes; the environment variable RFLY_FLOOD_SECONDS (`make bench
FLOOD=20`) shortens that, and what was run is in the rows. The same number of poses goes through the
same running bridge without the flood, half of them before it and half after.
"""

from __future__ import annotations

import json
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

from benchmarks.harness import Row, lasting, same

RATE = 50_000
DEFAULT_SECONDS = 600.0
POSE_EVERY_S = 0.02
"""50 Hz: the rate at which animations are usually sent"""
QUIET_SECONDS = lasting("RFLY_QUIET_SECONDS", 15.0)
"""Least length of each quiet phase, before and after the flood, s."""
MOST_GROWTH_BYTES = 5_000_000
MOST_DELAY_RATIO = 2.0
LEAST_RATE = 0.95


def rows() -> Iterator[Row]:
    """Yield the growth of memory and the delays under a flood of answers."""
    seconds = lasting("RFLY_FLOOD_SECONDS", DEFAULT_SECONDS)
    try:
        import rclpy  # noqa: F401
    except ImportError:
        print("the flood needs ROS 2 (rclpy): not measured", file=sys.stderr)
        return

    print(
        f"flood: {RATE} datagrams/s for {seconds:g} s (RFLY_FLOOD_SECONDS)",
        file=sys.stderr,
    )
    quiet, flooded, growth, counts = _flood(seconds)

    # all datagrams are sent and accounted for
    rate = counts["sent"] / counts["seconds"]
    reached = rate >= LEAST_RATE * RATE
    accounted = counts["received"] + counts["system_dropped"] == counts["sent"]
    agree = same(
        reached and accounted and counts["poses_lost"] == 0,
        f"{counts['sent']:,} datagrams sent at {rate:,.0f}/s, received {counts['received']:,} + "
        "dropped by the system "
        f"{counts['system_dropped']:,}; poses lost: {counts['poses_lost']}",
    )
    name = f"flood of {RATE:,} datagrams/s for {seconds:g} s"

    yield Row(
        f"{name}: growth of resident memory",
        growth,
        MOST_GROWTH_BYTES,
        "5 MB",
        target_ratio=1.0,
        agree=agree,
        note=f"{counts['resident_before'] / 1e6:.1f} MB before",
        kind="at most",
        unit="B",
    )
    for what, value in (
        ("median", statistics.median),
        ("99th percentile", lambda d: float(np.percentile(d, 99))),
    ):
        yield Row(
            f"{name}: pose published → datagram, {what}",
            value(flooded),
            value(quiet),
            "the same without the flood",
            target_ratio=MOST_DELAY_RATIO,
            agree=agree,
            note=f"{len(flooded)} poses, {len(quiet)} without; bridge used {counts['cores']:.2f} "
            "cores",
            kind="at most",
        )


def _flood(seconds: float) -> tuple[list[float], list[float], int, dict[str, Any]]:
    """Return the delays without and with the flood, the growth of memory, and what was counted.

    The delays are in seconds, the growth of the resident memory in bytes.
    """
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import PoseStamped
    from rclpy.qos import QoSProfile

    from benchmarks.bench_fleet_wire import processor_seconds

    domain = 1 + (os.getpid() + 50) % 100
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    root = Path(__file__).parent.parent
    with ExitStack() as opened:
        # a socket in RflySim3D's place, and a free port
        sink = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sink.bind(("127.0.0.1", 0))
        sink.settimeout(1.0)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            feedback_port = probe.getsockname()[1]

        # the bridge
        parameters = [
            f"port:={sink.getsockname()[1]}",
            f"feedback_port:={feedback_port}",
            "vehicles:=[car]",
        ]
        parameters += ["car.id:=7", "car.topic:=car/pose"]
        command = [
            sys.executable,
            "-c",
            "from rfly_bringup.nodes.entry_points import ue_bridge_node; ue_bridge_node()",
        ]
        parts = (part for parameter in parameters for part in ("-p", parameter))
        command += ["--ros-args", "--log-level", "error", *parts]
        bridge = subprocess.Popen(command, env=environment, cwd=root)
        opened.callback(bridge.wait)
        opened.callback(bridge.send_signal, signal.SIGINT)

        # a publisher of poses
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        opened.callback(rclpy.try_shutdown, context=context)
        node = rclpy.create_node("bench", context=context)
        opened.callback(node.destroy_node)
        publisher = node.create_publisher(PoseStamped, "car/pose", QoSProfile(depth=10))

        message = PoseStamped()
        message.header.frame_id = "map"
        message.pose.orientation.w = 1.0

        number = 0
        lost = 0

        def one_pose() -> float | None:
            """Return the delay of one pose, s; None if it did not arrive within a second."""
            nonlocal number
            number += 1
            message.pose.position.y = float(number)
            message.header.stamp = node.get_clock().now().to_msg()
            start = time.perf_counter()
            publisher.publish(message)
            try:
                while struct.unpack_from("<d", sink.recv(4096), 80)[0] != number:
                    pass  # one that was given up already
            except TimeoutError:
                return None
            return time.perf_counter() - start

        def poses(go_on: Callable[[float], bool]) -> list[float]:
            """Return the delays of poses at 50 Hz, s, for as long as it goes on."""
            nonlocal lost
            delays = []
            start = time.monotonic()
            while go_on(time.monotonic() - start):
                delay = one_pose()
                if delay is None:
                    lost += 1
                else:
                    delays.append(delay)
                time.sleep(POSE_EVERY_S)
            return delays

        # a best-effort subscription gets nothing until both ends know each other
        deadline = time.monotonic() + 30.0
        while one_pose() is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the bridge shows no pose")

        # a quiet phase
        poses(lambda elapsed: elapsed < 2.0)
        lost = 0
        quiet_s = max(QUIET_SECONDS, seconds / 20)
        quiet = poses(lambda elapsed: elapsed < quiet_s)

        # the flood
        before = resident_bytes(bridge.pid)
        busy = processor_seconds(bridge.pid)
        begin = time.monotonic()
        flooder = subprocess.Popen(
            [
                sys.executable,
                str(root / "benchmarks" / "flooder.py"),
                str(feedback_port),
                str(RATE),
                str(seconds),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        flooded = poses(lambda _elapsed: flooder.poll() is None)
        growth = resident_bytes(bridge.pid) - before
        cores = (processor_seconds(bridge.pid) - busy) / (time.monotonic() - begin)
        counts = json.loads(flooder.communicate()[0])

        # another quiet phase
        quiet += poses(lambda elapsed: elapsed < quiet_s)

        # the bridge's own counters
        counters: dict[str, int] = {}

        def hear(array: DiagnosticArray) -> None:
            """Keep the newest counters of the feedback."""
            for status in array.status:
                if status.name.endswith(": feedback"):
                    counters.update(
                        {v.key: int(v.value) for v in status.values if v.value.isdecimal()}
                    )

        node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
        deadline = time.monotonic() + 10.0
        while counters.get("received", 0) + counters.get("system_dropped", 0) != counts["sent"]:
            executor_turn(node, context)
            if time.monotonic() > deadline:
                break

    counts |= {name: counters.get(name, -1) for name in ("received", "system_dropped")}
    return (
        quiet,
        flooded,
        growth,
        counts | {"poses_lost": lost, "resident_before": before, "cores": cores},
    )


def executor_turn(node: Any, context: Any) -> None:
    """Take what comes for the node within a tenth of a second."""
    from rclpy.executors import SingleThreadedExecutor

    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    executor.spin_once(timeout_sec=0.1)
    executor.remove_node(node)
    executor.shutdown(timeout_sec=0.5)


def resident_bytes(pid: int) -> int:
    """Return the process's memory in RAM, from /proc/<pid>/statm."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
