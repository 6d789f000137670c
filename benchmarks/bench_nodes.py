# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Start and memory of each node alone, against a node of rclpy that does nothing.

A node's start is the time from its process's beginning to its first line on /rosout or status on
/diagnostics. Its memory is the resident memory 5 s later. Each runs alone, with its default
parameters.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import Row, is_short, lasting, same
from rfly_bringup.nodes.entry_points import MODULES
from rfly_lab import shipped_policy

MOST_MEMORY = 120e6
"""Goal of the median node, bytes."""
MOST_MEMORY_OF_THREE = 300e6
"""Goal of terrain, bridge and trajectory node in one process, bytes."""
MOST_OF_BARE = 4.0
"""Goal, in multiples of a bare node's start and memory."""
SETTLED_S = lasting("RFLY_SETTLED_SECONDS", 5.0, short_s=0.2)
GIVE_UP_S = 60.0
STARTS = 1 if is_short() else 5
"""Starts of each node; the quickest counts.

If DDS loses the first announcements, which happens to one start in three, the next ones come 1 to
3 s later.
"""
BARE = "bare_node"
BARE_CODE = f"""
import rclpy
rclpy.init()
node = rclpy.create_node("{BARE}")
node.get_logger().info("ready")
rclpy.spin(node)
"""
PARAMETERS = {
    "policy_node": ["-p", f"policy:={shipped_policy('hover')}"],
    "ue_sensors_node": ["-p", "sensors:=[camera]"],
}
"""What a node cannot start without."""
THREE = ("terrain_node", "ue_bridge_node", "trajectory_node")


def rows() -> Iterator[Row]:
    """Yield memory and start of every node, in multiples of a bare one."""
    if importlib.util.find_spec("rclpy") is None:
        print("nodes need ROS 2 (rclpy): not measured", file=sys.stderr)
        return

    names = [BARE, *MODULES]
    measured, silent = _measured(
        {name: [name] for name in names} | {"three nodes in one process": list(THREE)}
    )
    for name, error in silent.items():
        yield Row.failed(f"nodes: {name}", error)
    if BARE in silent or "three nodes in one process" in silent:
        return

    # the bare node, and three in one process
    bare_start, bare_memory = measured.pop(BARE)
    _, memory_of_three = measured.pop("three nodes in one process")
    agree = same(
        all(memory > bare_memory for _, memory in measured.values()),
        "every node was heard",
    )

    memories = [memory for _, memory in measured.values()]
    note = f"a bare node of rclpy: {bare_memory / 1e6:.0f} MB"
    median = statistics.median(memories)

    yield Row(
        "memory of a node, median",
        median,
        MOST_MEMORY,
        "the goal",
        1.0,
        None,
        agree,
        note,
        "at most",
        "B",
    )
    yield Row(
        f"memory: {', '.join(THREE)} in one process",
        *(
            memory_of_three,
            MOST_MEMORY_OF_THREE,
            "the goal",
            1.0,
            None,
            agree,
            note,
            "at most",
            "B",
        ),
    )

    for name, (start, memory) in measured.items():
        goal = "a bare node", MOST_OF_BARE, None, agree, "", "at most"
        yield Row(f"memory: {name}", memory, bare_memory, *goal, "B")
        yield Row(f"first message: {name}", start, bare_start, *goal)


def _measured(
    processes: dict[str, list[str]],
) -> tuple[dict[str, tuple[float, float]], dict[str, Exception]]:
    """Return start and memory by process, and an error for each that was not heard of.

    A start is the seconds to the first message of its last node; memory is resident bytes.
    """
    import rclpy
    from diagnostic_msgs.msg import DiagnosticArray
    from rcl_interfaces.msg import Log
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import DurabilityPolicy, QoSProfile

    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    domain = 1 + os.getpid() % 100
    heard: set[str] = set()
    measured: dict[str, tuple[float, float]] = {}
    silent: dict[str, Exception] = {}

    # a node that hears of the others
    with ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain)
        opened.callback(rclpy.try_shutdown, context=context)
        ear = rclpy.create_node("bench", context=context)
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        ear.create_subscription(
            Log,
            "/rosout",
            lambda message: heard.add(message.name.rpartition(".")[2]),
            latched,
        )
        ear.create_subscription(
            DiagnosticArray,
            "/diagnostics",
            lambda message: heard.update(
                status.name.partition(":")[0].rpartition("/")[2] for status in message.status
            ),
            10,
        )

        executor = SingleThreadedExecutor(context=context)
        executor.add_node(ear)
        root = str(Path(__file__).parent.parent)
        environment = {**os.environ, "ROS_DOMAIN_ID": str(domain), "PYTHONPATH": root}

        def spin(seconds: float) -> None:
            """Listen for so long."""
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                executor.spin_once(timeout_sec=0.05)

        for name, nodes in processes.items():
            starts = []
            for remaining in reversed(range(STARTS)):
                heard.clear()
                own = tempfile.mkdtemp(dir=folder)

                # start the nodes, and wait until all are heard of
                begin = time.perf_counter()
                process = subprocess.Popen(
                    [sys.executable, "-c", _code(nodes)],
                    env=environment,
                    cwd=own,
                    stderr=subprocess.DEVNULL,
                )
                given_up = begin + GIVE_UP_S
                while (
                    not heard.issuperset(nodes)
                    and time.perf_counter() < given_up
                    and process.poll() is None
                ):
                    executor.spin_once(timeout_sec=0.05)
                if not heard.issuperset(nodes):
                    process.kill()
                    process.wait()
                    missing = ", ".join(sorted(set(nodes) - heard))
                    silent[name] = RuntimeError(f"not heard of {missing}")
                    break

                # their memory once they have settled
                starts.append(time.perf_counter() - begin)
                spin(0.0 if remaining else SETTLED_S)
                resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])

                process.terminate()
                try:
                    process.wait(GIVE_UP_S)
                except subprocess.TimeoutExpired:  # a bare node of rclpy may miss its signal
                    process.kill()
                    process.wait()
                spin(0.5)  # what it has still said
            if name not in silent:
                measured[name] = min(starts), float(resident * os.sysconf("SC_PAGE_SIZE"))

        executor.shutdown(timeout_sec=0.5)
    return measured, silent


def _code(nodes: list[str]) -> str:
    """Return the program of a process with these nodes."""
    if nodes == [BARE]:
        return BARE_CODE
    if len(nodes) == 1:
        words = ["--ros-args", *PARAMETERS.get(nodes[0], ())]
        return (
            f"import sys; sys.argv += {words}; "
            f"from rfly_bringup.nodes.entry_points import {nodes[0]}; {nodes[0]}()"
        )
    return (
        f"import sys; sys.argv += {nodes}; "
        "from rfly_bringup.nodes.entry_points import rfly_nodes; rfly_nodes()"
    )
