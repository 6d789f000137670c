# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The node ue_bridge_node with other parameters, windows and clocks.

A process for each test, real DDS, real UDP sockets.
"""

from __future__ import annotations

import struct
import time

import pytest
from bridge_harness import Bridge, Window, call, fleet, pose, stamp
from marks import exhaustively
from node_harness import PATIENCE

pytestmark = pytest.mark.ros


@pytest.fixture
def start(domain_id):
    made = []

    def make(**parameters):
        made.append(Bridge(domain_id, **parameters))
        return made[-1]

    yield make
    for bridge in made:
        bridge.close()


def test_silence_is_a_stale_diagnostic(start):
    """STALE before the first input, OK while states come, STALE again when they stop."""
    bridge = start(vehicles="[car]", **{"car.id": 1})
    bridge.peer.spin_until(lambda: bridge.status()[0] == 3)
    assert "no states yet" in bridge.status()[1]
    bridge.publish_until("car/pose", pose(), lambda: bridge.status()[0] == 0)
    bridge.peer.spin_until(lambda: bridge.status()[0] == 3)
    assert "no states for" in bridge.status()[1]
    assert int(bridge.status()[2]["sent_datagrams"]) >= 1


def test_unreachable_window_does_not_stop_the_others(start):
    bridge = start(windows=2, vehicles="[car]", **{"car.id": 1})
    bridge.windows[1].socket.close()
    bridge.shown("car/pose", pose())
    bridge.publish_until("car/pose", pose(), lambda: "window_1_ECONNREFUSED" in bridge.status()[2])
    level, text, values = bridge.status()
    assert (level, "window 1 at 127.0.0.1" in text) == (1, True)
    assert "window_0_ECONNREFUSED" not in values
    assert len(bridge.shown("car/pose", pose())) == 1


def test_lasting_problems_are_logged_once_and_once_when_they_are_over(start):
    """A closed port and a second source of a vehicle are reported while states arrive."""
    bridge = start()
    first = fleet([1], source="/first")
    second = fleet([1], source="/second")
    publisher = bridge.publisher(type(first), "vehicle_states")
    port = bridge.window.port
    intruding = True
    bridge.window.socket.close()

    def logged(*texts):
        publisher.publish(first)
        if intruding:
            publisher.publish(second)
        return all(text in bridge.node.output for text in texts)

    window = f"window 0 at 127.0.0.1:{port}: nothing listens there"
    conflict = "vehicle 1 comes from /first; its states from /second are dropped"
    bridge.peer.spin_until(lambda: logged(window, conflict))
    intruding = False
    bridge.windows[:] = [Window(port)]
    bridge.peer.spin_until(lambda: logged(f"over: {window}", f"over: {conflict}"))
    lines = bridge.node.output.splitlines()
    assert [sum(text in line for line in lines) for text in (window, conflict)] == [2, 2]
    assert [
        line for line in lines if "[WARN]" in line and (window in line or conflict in line)
    ] == [line for line in lines if "over: " not in line and (window in line or conflict in line)]


def test_destination_that_the_system_refuses_does_not_stop_the_node(start):
    """A broadcast address needs the parameter broadcast.

    The service's answer and the diagnostic say so.
    """
    bridge = start(host="255.255.255.255", vehicles="[car]", **{"car.id": 1})
    response = call(bridge, "t.MaxFPS 30")
    assert not response.success
    assert "parameter broadcast" in response.message
    bridge.publish_until("car/pose", pose(), lambda: "parameter broadcast" in bridge.status()[1])
    assert bridge.node.process.poll() is None


def test_several_windows_and_fleet_packets_by_parameter(start):
    bridge = start(windows=3, packets="batch")
    bridge.shown("vehicle_states", fleet([1, 2, 3]))
    bridge.peer.spin_until(lambda: all(window.poll() for window in bridge.windows))
    assert [len(window.datagrams[0]) for window in bridge.windows] == [3804] * 3


def test_rate_limit_sends_the_newest_in_the_end(start):
    bridge = start(rate_limit=2, packets="single", vehicles="[car]", **{"car.id": 1})
    for topic, make, at in (
        ("car/pose", lambda x: pose((0.0, x, 0.0)), 80),
        ("vehicle_states", lambda x: fleet([5], position=[0.0, x, 0.0]), 80),
    ):
        bridge.shown(topic, make(0.0))
        bridge.peer.spin_for(0.6)
        bridge.window.clear()

        start_at = time.monotonic()
        publisher = bridge.publisher(type(make(0.0)), topic)
        for step in range(1, 21):
            publisher.publish(make(float(step)))
            bridge.peer.spin_for(0.05)

        bridge.peer.spin_until(
            lambda at=at: struct.unpack_from("<d", bridge.window.poll()[-1], at) == (20.0,)
        )

        assert len(bridge.window.datagrams) <= 2 + 2 * (time.monotonic() - start_at)
        assert len(bridge.window.datagrams) >= 2


def test_simulated_time_age_and_jump_back(start):
    """Stamps are judged by /clock: they are too old, then the clock starts again."""
    from rosgraph_msgs.msg import Clock

    bridge = start(use_sim_time="true", max_age=5.0, vehicles="[car]", **{"car.id": 1})

    def clock(seconds):
        bridge.publisher(Clock, "/clock").publish(Clock(clock=stamp(seconds)))
        bridge.peer.spin_for(0.2)

    clock(100.0)
    bridge.publish_until(
        "car/pose", pose(seconds=100.0), lambda: clock(100.0) or bridge.window.poll()
    )
    bridge.dropped("car/pose", pose(seconds=94.0), "too_old")
    clock(106.0)
    bridge.dropped("car/pose", pose(seconds=100.5), "too_old")
    clock(2.0)
    assert bridge.shown("car/pose", pose(seconds=1.0))


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        pytest.param({"vehicles": "[car]"}, "car.id", id="no-id"),
        exhaustively({"vehicles": "[car,bus]", "car.id": 3, "bus.id": 3}, "bus.id", id="same-id"),
        exhaustively(
            {"vehicles": "[car]", "car.id": 3, "car.message": "twist"}, "car.message", id="message"
        ),
        pytest.param({"host": "no.such.host.invalid"}, "no.such.host.invalid", id="host"),
        exhaustively({"windows": 0}, "windows", id="no-window"),
        exhaustively({"port": 65535, "windows": 2}, "65536", id="ports"),
        exhaustively({"packets": "some"}, "packets", id="packets"),
        exhaustively({"rate_limit": -1.0}, "rate_limit", id="negative-rate"),
        pytest.param({"multicast_interface": "eth0"}, "multicast_interface", id="interface"),
        exhaustively(
            {"objects_resend_period": 0.01}, "expected 0 or 0.1 and more", id="resend-period"
        ),
    ],
)
def test_parameters_that_cannot_work_end_the_start_with_one_line(domain_id, parameters, named):
    from node_harness import NodeProcess

    with NodeProcess(
        "ue_bridge_node", domain_id, {key: str(value) for key, value in parameters.items()}
    ) as node:
        assert node.process.wait(PATIENCE) == 2
        node._reader.join(PATIENCE)
        assert named in node.output
        assert "Traceback" not in node.output


def test_publisher_that_cannot_be_heard_is_named(start):
    """A publisher that does not match is named in log and diagnostic.

    One is best-effort, the other on a topic of another type.
    """
    from nav_msgs.msg import Odometry
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from rfly_suite.msg import VehicleStateArray

    bridge = start(vehicles="[car]", **{"car.id": 1})
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    bridge.peer.node.create_publisher(VehicleStateArray, "vehicle_states", best_effort)
    bridge.peer.node.create_publisher(Odometry, "car/pose", 10)
    bridge.peer.spin_until(
        lambda: bridge.status()[2].get("unmatched_peers", "").count("/peer") == 2
    )
    text = bridge.status()[2]["unmatched_peers"]
    assert "/vehicle_states: nothing gets from /peer: the publisher is best effort" in text
    assert "/car/pose: nothing gets from /peer: its type is nav_msgs/msg/Odometry" in text
    bridge.peer.spin_until(lambda: text.split("; ")[0] in bridge.node.output)


def test_clock_that_never_comes_is_told(start):
    """Simulated time without /clock is reported after five seconds, as everything would wait."""
    bridge = start(use_sim_time="true")
    bridge.peer.spin_until(lambda: "/clock has not moved for" in bridge.status()[1])
