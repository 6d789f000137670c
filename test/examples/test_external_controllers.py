# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The example controllers fly and drive the vehicle through the real nodes, in lock-step."""

from __future__ import annotations

import contextlib
import math
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from amphibious_cases import slower_imu
from node_harness import PATIENCE

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
PHASES = ["drive", "takeoff", "hover", "land", "rest", "done"]
MANY = 0.8
"""Share of two recordings that has to be in both: a recorder on a busy machine misses some."""


def start(script, *options):
    """Start an example; it fails if it imports anything of this package, of ROS or NumPy."""
    path = str(EXAMPLES / script)
    code = f"""
import sys, runpy
sys.path.insert(0, {str(EXAMPLES)!r})
sys.argv = {[script, *map(str, options)]!r}
before = set(sys.modules)
try:
    runpy.run_path({path!r}, run_name="__main__")
except SystemExit as end:
    assert not end.code
unwanted = ("rfly_", "rclpy", "numpy")
new = [name for name in set(sys.modules) - before if name.startswith(unwanted)]
assert not new, new
"""

    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_s(process):
    """Time that a process has worked."""
    with contextlib.suppress(OSError):
        fields = (
            Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        )
        return (int(fields[11]) + int(fields[12])) / 100
    return 0.0


def phases(output):
    """Return {phase: (time, x, y, z)} from the output of an example."""
    found = re.findall(r"([\d.]+) s +(\w+) +at +(\S+) +(\S+) +(\S+) m", output)
    return {phase: tuple(map(float, (time_s, *place))) for time_s, phase, *place in found}


class Flight:
    """Simulation, link and one example, until the example ends or simulated time is `until`."""

    def __init__(
        self,
        domain_id,
        sensors,
        node,
        parameters,
        script,
        *options,
        stop_at=None,
        until=None,
    ):
        from nav_msgs.msg import Odometry
        from node_harness import NodeProcess, Peer
        from rclpy.event_handler import SubscriptionEventCallbacks
        from rclpy.qos import QoSProfile, ReliabilityPolicy
        from rclpy.serialization import deserialize_message

        self._of_message = lambda data: deserialize_message(data, Odometry)
        port = free_port()
        common = {"lock_step": "true"}
        simulation = {
            **common,
            "real_time_factor": "0.0",
            "ground": "level",
            "seed": "5",
            "sensors": sensors,
        }
        link = {**common, "odometry": "truth", "port": str(port), **parameters}
        self.truth = []
        self.stood = None

        with (
            NodeProcess("amphibious_sim_node", domain_id, simulation) as simulator,
            NodeProcess(node, domain_id, link) as linked,
        ):
            # every pose, as bytes
            peer = Peer(domain_id)
            qos = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
            matched = []
            events = SubscriptionEventCallbacks(matched=matched.append)
            peer.node.create_subscription(
                Odometry,
                "ground_truth/odom",
                self.truth.append,
                qos,
                raw=True,
                event_callbacks=events,
            )

            example = None
            try:
                peer.spin_until(lambda: "stands on" in simulator.output)
                peer.spin_until(lambda: "listening for" in linked.output)
                peer.spin_until(lambda: matched)

                # the example runs, and is stopped for a while
                worked = sum(map(cpu_s, (simulator.process, linked.process)))
                began = time.monotonic()
                example = start(script, *options, "--port", port)
                while example.poll() is None and (until is None or self.time < until):
                    peer.spin_until(lambda: len(self.truth) or example.poll() is not None)
                    peer.spin_for(0.1)
                    assert time.monotonic() - began < 250.0, (
                        self.time,
                        linked.output,
                        simulator.output,
                    )
                    if stop_at is not None and self.time > stop_at:
                        self._stop(peer, example)
                        stop_at = None

                self.wall_s = time.monotonic() - began
                self.worked_s = sum(map(cpu_s, (simulator.process, linked.process))) - worked

                # it ended well, and nothing more happens without a controller
                if until is not None:
                    example.kill()
                self.output, errors = example.communicate()
                assert until is not None or example.returncode == 0, errors
                self._wait_for_silence(peer)
            finally:
                if example is not None:
                    example.kill()
                    example.communicate()
                peer.close()
            assert (simulator.stop(), linked.stop()) == (0, 0), simulator.output + linked.output

    @property
    def time(self):
        return max(self.by_time(), default=0.0)

    def by_time(self):
        """{simulated time: bytes of the message}: CDR's header of 4 bytes, then the stamp."""
        stamps = [struct.unpack_from("<iI", data, 4) for data in self.truth]
        return {
            seconds + 1e-9 * nanoseconds: data
            for (seconds, nanoseconds), data in zip(stamps, self.truth, strict=True)
        }

    def assert_same(self, other, until=math.inf):
        """Assert that the states are the same bit for bit, wherever both were received."""
        mine, theirs = (
            {time: data for time, data in flight.by_time().items() if time <= until}
            for flight in (self, other)
        )
        common = mine.keys() & theirs.keys()
        assert len(common) >= MANY * max(len(mine), len(theirs))
        assert [time for time in sorted(common) if mine[time] != theirs[time]] == []

    def _wait_for_silence(self, peer):
        count = -1
        deadline = time.monotonic() + PATIENCE
        while count != len(self.truth):
            assert time.monotonic() < deadline, "simulated time goes on without a controller"
            count = len(self.truth)
            peer.spin_for(0.4)

    def _stop(self, peer, example):
        """Stop the example for a while; `stood` becomes the number of messages that came then."""
        example.send_signal(signal.SIGSTOP)
        try:
            self._wait_for_silence(peer)
            count = len(self.truth)
            peer.spin_for(0.8)
            self.stood = len(self.truth) - count
        finally:
            example.send_signal(signal.SIGCONT)

    def check(self):
        """Assert that it drove three metres, hovered 1 m up and came down, as did the truth."""
        reached = phases(self.output)
        assert list(reached) == PHASES, self.output
        assert 2.8 < reached["takeoff"][1] - reached["drive"][1] < 3.5
        assert 0.8 < reached["land"][3] - reached["takeoff"][3] < 1.2
        assert abs(reached["done"][3] - reached["takeoff"][3]) < 0.02
        assert np.hypot(*np.subtract(reached["done"][1:3], reached["takeoff"][1:3])) < 0.3

        heights = [self._of_message(data).pose.pose.position.z for data in self.truth]
        assert 0.8 < max(heights) - heights[0] < 1.3

        last = self._of_message(self.truth[-1])
        assert abs(last.pose.pose.position.z - heights[0]) < 0.02
        assert 2.8 < last.pose.pose.position.x < 3.5
        assert abs(last.twist.twist.linear.x) < 0.02


UDP_TCP = "external_controller_udp_tcp.py"
MAVLINK = "external_controller_mavlink.py"


@pytest.fixture(scope="module")
def sensors(tmp_path_factory):
    return slower_imu(tmp_path_factory.mktemp("sensors"))


@pytest.fixture(scope="module")
def by_udp(shared_domain_id, sensors):
    """A flight by UDP without any pause."""
    link = {"transport": "udp", "controller_port": "0"}
    return Flight(shared_domain_id, sensors, "link_node", link, UDP_TCP, "--udp", "--own-port", 0)


@pytest.mark.exhaustive  # eight seconds of a core
def test_flies_and_lands_by_udp(by_udp):
    by_udp.check()
    print(
        f"{by_udp.time:.2f} s simulated in {by_udp.wall_s:.2f} s, both nodes worked "
        f"{by_udp.worked_s:.2f} s"
    )


@pytest.mark.exhaustive
def test_by_tcp_slowly_and_stopped_meanwhile_bit_for_bit_the_same(
    by_udp, shared_domain_id, sensors
):
    link = {"transport": "tcp"}
    options = ("--tcp", "--pause", 0.0005)
    slow = Flight(
        shared_domain_id,
        sensors,
        "link_node",
        link,
        UDP_TCP,
        *options,
        stop_at=3.0,
        until=6.0,
    )

    assert slow.stood == 0
    slow.assert_same(by_udp, until=6.0)


@pytest.mark.exhaustive
@pytest.mark.needs("pymavlink")
def test_by_mavlink_too(shared_domain_id, sensors):
    waits = {"unanswered": "wait"}  # by default a late answer of a busy machine is not waited for
    flight = Flight(shared_domain_id, sensors, "mavlink_hil_node", waits, MAVLINK)
    flight.check()
    pause = ("--pause", 0.001)
    again = Flight(
        shared_domain_id,
        sensors,
        "mavlink_hil_node",
        waits,
        MAVLINK,
        *pause,
        stop_at=1.0,
        until=3.0,
    )

    assert again.stood == 0
    again.assert_same(flight, until=3.0)
