# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets through the real nodes at 50 Hz: trajectory_node, ue_bridge_node and terrain_node as
processes, and a receiver in RflySim3D's place that counts every vehicle and compares its place with
a plain formula at its packet's time.

60 s each; the environment variable RFLY_SCALE_SECONDS (`make bench SCALE=10`) shortens that, and
what was run is in the rows. Processor time is what the system counted for the two processes (user
and system, /proc/<pid>/stat).
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench_fleet_wire import processor_seconds
from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, lasting, same
from benchmarks.ring_fleet import RingFleet

VEHICLES = 1_000
STRETCH_VEHICLES = 10_000
RATE_HZ = 50
DEFAULT_SECONDS = 60.0
MAP = "JacksboroFault"
MOST_ERROR_M = 1e-3
ONE_CORE = 1.0
TWO_CORES = 2.0
MOST_INTERVAL_RATIO = 1.005
"""Largest ratio to the mean interval between two series: at most one in 200 is missing."""
MOST_P99_RATIO = 1.5
"""Largest ratio to the 99th percentile of the intervals."""
ROUNDED_S = 0.006
"""Largest lead of the packet's clock over a fleet time in a diagnostic, s.

Fleet times in diagnostics have hundredths only.
"""
NODES = ("trajectory_node", "ue_bridge_node")


def rows() -> Iterator[Row]:
    """Yield fleets of both sizes through the nodes."""
    seconds = lasting("RFLY_SCALE_SECONDS", DEFAULT_SECONDS)
    if importlib.util.find_spec("rclpy") is None:
        print("fleets through the nodes need ROS 2 (rclpy): not measured", file=sys.stderr)
        return
    print(
        f"scale: {VEHICLES:,} and {STRETCH_VEHICLES:,} vehicles for {seconds:g} s each",
        file=sys.stderr,
    )

    yield from _rows_of(VEHICLES, seconds, ONE_CORE, "one core")
    yield from _rows_of(STRETCH_VEHICLES, seconds, TWO_CORES, "two cores")


def _rows_of(vehicles: int, seconds: float, cores: float, cores_name: str) -> Iterator[Row]:
    """Yield the processor time and the regularity of a fleet of this size."""
    result = run(vehicles, seconds)

    # every series has arrived, and every place is right
    missing = round(RATE_HZ * result["seconds"]) + 1 - result["series"]
    is_complete = (
        result["wrong_packets"] == result["incomplete_series"] == result["dropped_by_system"] == 0
    )
    agree = same(
        is_complete and result["reports"] > 0 and result["worst_m"] <= MOST_ERROR_M,
        f"{result['series']:,} series of {vehicles:,} vehicles, {result['incomplete_series']} "
        "incomplete; "
        f"{result['compared']:,} places within {1e3 * result['worst_m']:.2g} mm of the formula",
    )

    name = f"scale: {vehicles:,} vehicles at {RATE_HZ} Hz for {seconds:g} s"
    used = [result["cpu"][node] for node in NODES]
    states_per_s = result["states"] / (result["arrival_seconds"] + 1 / RATE_HZ)

    yield Row(
        f"{name}: processor time of trajectory node and bridge",
        sum(used) / result["cpu_seconds"],
        scaled(cores),
        f"{cores_name}, {SCALED}",
        target_ratio=1.0,
        agree=agree,
        note=f"{used[0]:.2f} + {used[1]:.2f} s in {result['cpu_seconds']:.1f} s",
        kind="at most",
        unit="cores",
    )
    yield Row(
        f"{name}: mean interval between two series",
        result["arrival_seconds"] / (result["series"] - 1),
        1.0 / RATE_HZ,
        f"{RATE_HZ} Hz",
        target_ratio=MOST_INTERVAL_RATIO,
        agree=agree,
        note=f"{states_per_s:,.0f} vehicle states/s "
        "at the socket; "
        f"instants without a series: {missing}, of which published and lost: "
        f"{result['lost_series']}",
        kind="at most",
    )

    yield Row(
        f"{name}: interval between two series, 99th percentile",
        result["interval_p99"],
        1.0 / RATE_HZ,
        f"{RATE_HZ} Hz",
        target_ratio=MOST_P99_RATIO,
        agree=agree,
        note=f"the longest {1e3 * result['interval_max']:.1f} ms; delay to the socket varies by "
        f"{1e3 * result['delay_spread_p99']:.1f} ms (99 %)",
        kind="at most",
    )


def run(vehicles: int, seconds: float) -> dict[str, Any]:
    """Return the receiver's result (`fleet_receiver.examine`) with three more values.

    `cpu`: s by node, in `cpu_seconds`. `reports`: number of reports of published series by the
    trajectory node. `lost_series`: the most series that had not arrived at such a report.
    """
    root = Path(__file__).parent.parent
    domain = 1 + (os.getpid() + vehicles // 1000) % 100
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}

    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))

        # the receiver
        (folder / "rings.yaml").write_text(RingFleet(vehicles).yaml(), encoding="utf-8")
        receiver = subprocess.Popen(
            [
                sys.executable,
                str(root / "benchmarks" / "fleet_receiver.py"),
                str(vehicles),
                str(seconds),
                MAP,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        opened.callback(receiver.wait)
        opened.callback(receiver.kill)
        port = _next_line(receiver)["port"]

        # the nodes
        parameters = {
            "terrain_node": [f"map:={MAP}"],
            "ue_bridge_node": [f"port:={port}", "feedback_port:=0"],
            "trajectory_node": [
                f"fleet:={folder / 'rings.yaml'}",
                f"rate:={RATE_HZ}.0",
            ],
        }
        nodes = {}
        for node, values in parameters.items():
            command = [
                sys.executable,
                "-c",
                f"from rfly_bringup.nodes.entry_points import {node}; {node}()",
            ]
            command += [
                "--ros-args",
                "--log-level",
                "error",
                *(part for p in values for part in ("-p", p)),
            ]
            nodes[node] = subprocess.Popen(command, env=environment, cwd=root)
            opened.callback(nodes[node].wait)
            opened.callback(nodes[node].send_signal, signal.SIGINT)

        # processor time between the receiver's begin and end
        reports = opened.enter_context(_diagnostics(domain))
        begin = _next_line(receiver)["begin"]
        before = {node: processor_seconds(nodes[node].pid) for node in NODES}
        end = _next_line(receiver)["end"]
        cpu = {node: processor_seconds(nodes[node].pid) - before[node] for node in NODES}

        # series that were published and have not arrived
        result = _next_line(receiver)
        pairs = [(until, published) for until, published in reports if begin < until < end]
        arrived = [bisect_right(result["times"], until + ROUNDED_S) for until, _ in pairs]
        lost = [published - count for (_, published), count in zip(pairs, arrived, strict=True)]
        return result | {
            "cpu": cpu,
            "cpu_seconds": end - begin,
            "reports": len(pairs),
            "lost_series": max([0, *lost]),
        }


@contextmanager
def _diagnostics(domain: int) -> Iterator[list[tuple[float, int]]]:
    """Yield a list that the trajectory node's diagnostics fill.

    An entry is a fleet time, and the number of series published by then.
    """
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rclpy.executors import SingleThreadedExecutor

    reports: list[tuple[float, int]] = []

    def hear(message: DiagnosticArray) -> None:
        """Add the newest report."""
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            if status.name.endswith(": fleet") and values.get("fleet_time_s"):
                reports.append(
                    (
                        float(values["fleet_time_s"]),
                        int(values.get("published_states", 0)),
                    )
                )

    # a node that listens
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    node = rclpy.create_node("bench", context=context)
    node.create_subscription(DiagnosticArray, "/diagnostics", hear, 10)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)

    # in a thread of its own
    done = threading.Event()

    def spin() -> None:
        """Listen until done."""
        while not done.is_set():
            executor.spin_once(timeout_sec=0.2)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield reports
    finally:
        done.set()
        thread.join()
        executor.remove_node(node)
        executor.shutdown(timeout_sec=0.5)
        node.destroy_node()
        rclpy.try_shutdown(context=context)


def _next_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the receiver's next line, which is JSON."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(
            f"the receiver ended with exit code {process.wait()} (no vehicle arrived?)"
        )
    values: dict[str, Any] = json.loads(line)
    return values
