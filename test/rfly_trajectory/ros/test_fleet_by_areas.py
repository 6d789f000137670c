# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ring of cars driven by the nodes of two areas: real processes, real DDS.

Which car is whose is computed from the circle's own formula at the stamp of each message.
"""

from __future__ import annotations

import math
import signal
from contextlib import ExitStack

import numpy as np
import pytest
from area_harness import AreaNodes
from fleet_harness import seconds, stamp

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.area_shards import Report, ShardArea
from rfly_trajectory.fleet.run_clock import RunClock

pytestmark = pytest.mark.ros

RADIUS = 120.0
COUNT = 24
FIRST = 11
SCALE = 5.0
RATE = SCALE * 10.0 / RADIUS
"""Angular rate about the centre, rad/s of the node's time."""
FLEET = f"""
version: 1
vehicles:
  - {{name: car, id: {FIRST}, type: 3, count: {COUNT}, spacing: even, speed: 10,
     shape: {{type: circle, center: [0, 0], radius: {RADIUS}}}}}
"""
AREAS = {"west": "[-.inf, -.inf, 0.0, .inf]", "east": "[0.0, -1000.0, .inf, .inf]"}
NEAR = 1e-3
"""Distance from the border, m, within which a car may be on either side by the formula."""


def expected(message, side, start):
    """Return the ids of the cars that are in the half `side`, and of those near the border."""
    elapsed = max(0.0, stamp(message.header) - start)
    ids = FIRST + np.arange(COUNT)
    x = RADIUS * np.cos(RATE * elapsed - 2.0 * math.pi / COUNT * np.arange(COUNT))
    inside = x < 0.0 if side == "west" else x >= 0.0
    near = np.abs(x) < NEAR
    return set(ids[inside & ~near].tolist()), set(ids[near].tolist())


def are_cars_of_a_side(message, side, start):
    surely, perhaps = expected(message, side, start)
    ids = list(message.id)
    return len(ids) == len(set(ids)) and surely <= set(ids) <= surely | perhaps


def assert_cars_of_a_side(message, side, start):
    assert are_cars_of_a_side(message, side, start)


@pytest.mark.parametrize(
    "clock",
    [
        None,
        RunClock(7 * 10**9 + 3),
        RunClock(7 * 10**9, 2.5).paused(9 * 10**9).advanced(10 * 10**9, 0.125),
    ],
)
def test_a_report_is_the_same_after_its_message(clock):
    from rfly_trajectory.ros.area_topics import msg_to_report, report_to_msg

    area = ShardArea(-math.inf, 0.1, 3.0, math.inf)
    report = Report("/west/trajectory_node", 5 * 10**9 + 1, area, "ring", 2**32 - 1, clock, 6, True)
    message = report_to_msg(report, 12)
    assert msg_to_report(message) == report
    assert (message.vehicles, message.started) == (12, clock is not None)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("area", [0.0, 0.0, math.nan, 1.0], "area: "),
        ("area", [0.0, 0.0, -1.0, 1.0], "area: "),
        ("source", "x" * 256, "more than 255 characters"),
        ("fleet", "x" * 256, "more than 255 characters"),
        ("changes", 2**32 - 1, "at most 1,000,000,000"),
        ("pace_since_s", math.nan, "pace_since_s"),
        ("pace_since_s", 1e300, "pace_since_s"),
        ("time_scale", -1.0, "time_scale"),
    ],
)
def test_a_report_that_is_impossible_is_refused(field, value, text):
    from rfly_trajectory.ros.area_topics import msg_to_report, report_to_msg

    report = Report("/west", 1, ShardArea(0.0, 0.0, 1.0, 1.0), "ring", 7, RunClock(1), 0)
    message = report_to_msg(report, 0)
    setattr(message, field, value)
    with pytest.raises(ConfigError) as caught:
        msg_to_report(message)
    assert text in caught.value.whole_text()


class Hosts(AreaNodes):
    """Nodes of the ring's areas."""

    def __init__(self, stack, domain_id, folder):
        file = folder / "ring.yaml"
        file.write_text(FLEET, encoding="utf-8")
        super().__init__(stack, domain_id, file)

    def begin(self, side, **others):
        area = AREAS.get(side, "[-10.0, -10.0, 10.0, 500.0]")
        self.start_node(side, area, time_scale=f"{SCALE}", **others)

    @property
    def start(self):
        return seconds(min(self.starts, key=seconds))

    def assert_shared(self, laps=0.3):
        """Check for a part of a lap that each car comes from the node of the side where it is.

        A node that has just begun goes by a start of its own until it has heard of the common one.
        """
        for side, states in self.states.items():
            self.peer.spin_until(
                lambda states=states, side=side: (
                    states and are_cars_of_a_side(states[-1], side, self.start)
                )
            )
            states.clear()
        self.peer.spin_until(lambda: all(self.states.values()))
        until = stamp(self.states["west"][-1].header) + laps * 2.0 * math.pi / RATE
        self.peer.spin_until(
            lambda: all(stamp(states[-1].header) > until for states in self.states.values())
        )
        for side, states in self.states.items():
            for message in states:
                assert_cars_of_a_side(message, side, self.start)
        return {side: {i for m in states for i in m.id} for side, states in self.states.items()}


@pytest.fixture
def hosts(domain_id, tmp_path):
    with ExitStack() as stack:
        yield Hosts(stack, domain_id, tmp_path)


@pytest.mark.exhaustive
def test_cars_are_handed_over_at_the_border_and_those_of_a_killed_node_are_told(
    hosts, record_property
):
    """The node of the east is killed and comes back; the cars that cross are taken up."""
    peer = hosts.peer
    hosts.begin("west")
    peer.spin_until(lambda: hosts.states["west"] and hosts.starts)
    _, text, values = hosts.wait_until_told("west", lambda _, __, v: v["in_no_area"] != "0")
    assert "are in no area of a node that is known" in text
    assert values["lost"] == "0"

    hosts.begin("east")
    peer.spin_until(lambda: hosts.states["east"])
    seen = hosts.assert_shared()
    assert len(seen["west"] & seen["east"]) >= 12  # in a third of a lap 8 at each crossing
    well = hosts.wait_until_told("west", lambda level, _, __: level == 0)[2]
    assert well["other_areas"].startswith("/east/trajectory_node [0, -1000, inf, inf]")
    hosts.assert_none_lost()

    threads = hosts.nodes["west"].threads()
    killed = hosts.kill("east")
    peer.spin_until(lambda: hosts.lost)
    record_property("told_after_s", stamp(hosts.lost[0].header) - killed)
    for message in hosts.lost:
        assert_cars_of_a_side(message, "east", hosts.start)
    speeds = np.linalg.norm(np.reshape(hosts.lost[0].velocity, (-1, 3))[:, :2], axis=1)
    np.testing.assert_allclose(speeds, SCALE * 10.0, rtol=1e-3)
    level, text, values = hosts.wait_until_told("west", lambda _, __, v: v["lost"] != "0")
    assert level == 2
    assert "lost: nothing from /east/trajectory_node" in text
    assert values["silent_areas"].startswith("/east/trajectory_node")
    assert hosts.nodes["west"].threads() >= threads
    hosts.states["west"].clear()
    peer.spin_until(lambda: len(hosts.states["west"]) > 50)
    for message in hosts.states["west"]:
        assert_cars_of_a_side(message, "west", hosts.start)

    hosts.begin("east")
    peer.spin_until(lambda: len(hosts.lost[-1].id) == 0)
    peer.spin_until(lambda: hosts.states["east"])
    hosts.assert_shared()
    hosts.wait_until_told("west", lambda level, _, __: level == 0)

    # one that is shut down on purpose is not lost
    hosts.nodes["east"].process.send_signal(signal.SIGINT)
    hosts.nodes["east"].process.wait()
    level, _, values = hosts.wait_until_told("west", lambda level, _, __: level != 0)
    assert level == 1
    assert values["in_no_area"] != "0"
    assert (values["lost"], values["silent_areas"]) == ("0", "")
    assert len(hosts.lost[-1].id) == 0


def test_a_spawned_vehicle_outside_the_area_is_removed_with_its_fleet(hosts):
    """The next fleet has more vehicles than the first one with the spawned vehicle."""
    from geometry_msgs.msg import PoseStamped
    from rfly_suite.msg import VehicleStateArray
    from rfly_suite.srv import LoadFleet
    from simulation_interfaces.srv import SpawnEntity

    from rfly_common.ros.qos import FLEET_IN

    peer = hosts.peer
    removed = peer.receive(VehicleStateArray, "/west/removed_vehicles", FLEET_IN)
    larger = hosts.file.with_name("larger.yaml")
    larger.write_text(FLEET.replace(f"count: {COUNT}", f"count: {COUNT + 9}"), encoding="utf-8")
    hosts.begin("west", file_folders=f"['{larger.parent}']")
    peer.spin_until(lambda: hosts.states["west"])

    pose = PoseStamped()
    pose.pose.position.x = 50.0
    pose.pose.orientation.w = 1.0
    answer = peer.call(
        SpawnEntity,
        "/west/trajectory_node/spawn_entity",
        name="guest",
        uri="rfly://car",
        initial_pose=pose,
    )
    assert answer.result.result == 1, answer.result.error_message
    assert peer.call(LoadFleet, "/west/trajectory_node/load_fleet", fleet=str(larger)).success
    peer.spin_until(lambda: any(5001 in message.id for message in removed))


def trigger(peer, name):
    from std_srvs.srv import Trigger

    assert peer.call(Trigger, name).success


@pytest.mark.exhaustive
def test_nodes_of_areas_pause_together_and_tell_what_does_not_fit(hosts):
    """A pause and a reset of one count for both; a third node overlaps both."""
    from simulation_interfaces.srv import DeleteEntity

    peer = hosts.peer
    for side in AREAS:
        hosts.begin(side)
    peer.spin_until(lambda: all(hosts.states.values()))

    trigger(peer, "/west/trajectory_node/pause")
    paused = [hosts.wait_until_told(side, lambda _, __, v: v["run"] == "paused") for side in AREAS]
    (fleet_time,) = {values["fleet_time_s"] for _, _, values in paused}

    # one that is killed and started again stands where it stood
    hosts.kill("east")
    hosts.begin("east")
    again = hosts.wait_until_told("east", lambda _, __, v: v["run"] == "paused")[2]
    assert again["fleet_time_s"] == fleet_time
    trigger(peer, "/east/trajectory_node/start")
    for side in AREAS:
        hosts.wait_until_told(side, lambda _, __, v: v["run"] == "running")

    before = hosts.start
    trigger(peer, "/east/trajectory_node/reset")
    peer.spin_until(lambda: max(map(seconds, hosts.starts)) > before)
    hosts.starts[:] = [max(hosts.starts, key=seconds)]
    peer.spin_until(lambda: stamp(hosts.states["west"][-1].header) > hosts.start)
    hosts.assert_shared()

    answer = peer.call(DeleteEntity, "/west/trajectory_node/delete_entity", entity="car_1")
    assert "nodes of several areas drive it" in answer.result.error_message

    hosts.begin("spare", start_time="1")
    for side in AREAS:
        _, text, _ = hosts.wait_until_told(side, lambda level, _, __: level == 2)
        assert "/spare/trajectory_node with the area [-10, -10, 10, 500] has" in text
        assert "overlaps" in text
