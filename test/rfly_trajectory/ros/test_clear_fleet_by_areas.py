# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that keep clear, driven by the nodes of two areas: real processes, real DDS.

Pairs of cars go to and fro and meet at the border. Whose car it is is computed
from its plan at the stamp of each message.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from itertools import pairwise

import numpy as np
import pytest
from area_harness import AreaNodes
from fleet_harness import seconds, stamp
from marks import exhaustively

from rfly_common.errors import ConfigError
from rfly_trajectory.avoidance.area_avoidance import OffPlan
from rfly_trajectory.avoidance.fleet_avoidance import fleet_abilities
from rfly_trajectory.fleet.area_shards import ShardArea
from rfly_trajectory.fleet.fleet_file import load_fleet

pytestmark = pytest.mark.ros

HALF = 18.0
SPEED = 8.0
PAIRS = 4
AREAS = {"west": "[-.inf, -.inf, 0.0, .inf]", "east": "[0.0, -.inf, .inf, .inf]"}
NEAR = 0.01
"""Distance from the border, m, within which a car may be on either side by its plan."""


def fleet_text():
    """Return a fleet of pairs that go to and fro and meet at the border, half from the east."""
    lines = ["version: 1", "vehicles:"]
    for i in range(PAIRS):
        y = 60.0 * i
        begin = HALF if i % 2 else -HALF
        for name, start, end in (
            ("up", (begin, y - HALF), (-begin, y + HALF)),
            ("down", (begin, y + HALF), (-begin, y - HALF)),
        ):
            lines.append(
                f"  - {{name: {name}{i}, id: {10 * i + (name == 'down') + 1}, type: 3, "
                f"speed: {{cruise: {SPEED}, acceleration: 2}}, at_end: ping_pong, "
                f"shape: {{type: line, from: {list(start)}, to: {list(end)}}}}}"
            )
    return "\n".join(lines) + "\n"


class Hosts(AreaNodes):
    """Nodes of the pairs' areas."""

    def __init__(self, stack, domain_id, folder):
        file = folder / "pairs.yaml"
        file.write_text(fleet_text(), encoding="utf-8")
        self.fleet = load_fleet(file)
        super().__init__(stack, domain_id, file)

    def begin(self, side, avoidance="true"):
        self.start_node(side, AREAS[side], avoidance=avoidance)

    @property
    def start(self):
        return max(map(seconds, self.starts))

    def plan(self, message):
        """Return the planned positions (n, 2) at the stamp of a message."""
        time = max(0.0, stamp(message.header) - self.start)
        return self.fleet.sample_times([time]).position[0, :, :2]

    def assert_owned(self, side, message):
        """Check that a message has the cars of a side by their plans, each once."""
        x = self.plan(message)[:, 0]
        ids = np.array([vehicle.id for vehicle in self.fleet.vehicles])
        inside = x < 0.0 if side == "west" else x >= 0.0
        near = np.abs(x) < NEAR
        got = list(message.id)
        assert len(got) == len(set(got))
        assert set(ids[inside & ~near]) <= set(got) <= set(ids[inside | near])

    def tracks(self):
        """Return the stamps, positions and sides of each car by id, in order of time."""
        rows = sorted(
            (stamp(message.header), int(i), tuple(place), side)
            for side, messages in self.states.items()
            for message in messages
            for i, place in zip(message.id, np.reshape(message.position, (-1, 3)), strict=True)
        )
        tracks = {}
        for time, i, place, side in rows:
            tracks.setdefault(i, []).append((time, np.array(place), side))
        return tracks

    def clear(self):
        for messages in self.states.values():
            messages.clear()

    def spin_for(self, seconds_of_fleet):
        """Receive states until those of each living node are that much newer."""
        self.clear()
        self.peer.spin_until(lambda: all(self.states[side] for side in self.nodes))
        first = {side: stamp(self.states[side][0].header) for side in self.nodes}
        self.peer.spin_until(
            lambda: all(
                stamp(self.states[side][-1].header) > first[side] + seconds_of_fleet
                for side in self.nodes
            )
        )


@pytest.fixture
def hosts(domain_id, tmp_path):
    with ExitStack() as stack:
        yield Hosts(stack, domain_id, tmp_path)


def both(hosts):
    """Start both nodes and wait until they know of each other."""
    for side in AREAS:
        hosts.begin(side)
    for side in AREAS:
        hosts.wait_until_told(side, lambda level, _, v: level < 2 and v["other_areas"])
    hosts.wait_until_told("west", lambda _, __, v: float(v.get("late_s") or 0.0) > 0.0)


@pytest.mark.parametrize("dies", [False, exhaustively(True)])
def test_cars_that_keep_clear_are_handed_over_late_and_those_of_a_killed_node_are_told(
    hosts, dies, record_property
):
    """No car is missing, comes twice or jumps, and cars of two nodes do not touch.

    Without avoidance test_fleet_by_areas kills a node, too.
    """
    both(hosts)
    hosts.spin_for(10.0)
    for side, messages in hosts.states.items():
        for message in messages:
            hosts.assert_owned(side, message)

    # over borders each car goes on from where it is, which is not where its plan has it
    handed_over = 0
    for i, track in hosts.tracks().items():
        plan = next(r for r, vehicle in enumerate(hosts.fleet.vehicles) if vehicle.id == i)
        for (before, here, side), (after, there, other) in pairwise(track):
            assert np.linalg.norm(there - here) <= 1.2 * SPEED * (after - before) + 0.15
            if side != other:
                now = hosts.fleet.sample_times([after - hosts.start]).position[0, plan]
                handed_over += bool(np.linalg.norm(there - now) > 0.5)
    assert handed_over >= 2
    hosts.assert_none_lost()

    # no contact, by the states of both nodes at nearly one time
    able = fleet_abilities(hosts.fleet)
    reach = able.radius[0] + able.radius[1]
    tracks = hosts.tracks()
    first_time = max(track[0][0] for track in tracks.values())
    last_time = min(track[-1][0] for track in tracks.values())
    times = np.linspace(first_time, last_time, 400)
    for i in range(PAIRS):
        first, second = (
            np.column_stack(
                [
                    np.interp(times, [t for t, _, _ in track], [p[axis] for _, p, _ in track])
                    for axis in (0, 1)
                ]
            )
            for track in (tracks[10 * i + 1], tracks[10 * i + 2])
        )
        assert np.hypot(*(first - second).T).min() > reach

    if not dies:
        return

    # a node dies
    killed = hosts.kill("east")
    hosts.peer.spin_until(lambda: hosts.lost)
    lost = hosts.lost[0]
    record_property("told_after_s", stamp(lost.header) - killed)
    hosts.assert_owned("east", lost)
    level, text, _ = hosts.wait_until_told("west", lambda _, __, v: v["lost"] != "0")
    assert (level, "lost: nothing from /east/trajectory_node" in text) == (2, True)
    for message in hosts.states["west"]:
        hosts.assert_owned("west", message)

    # and comes back
    hosts.begin("east")
    hosts.peer.spin_until(lambda: len(hosts.lost[-1].id) == 0)
    hosts.wait_until_told("east", lambda level, _, v: level < 2 and v["other_areas"])
    hosts.spin_for(1.0)
    for side, messages in hosts.states.items():
        for message in messages:
            hosts.assert_owned(side, message)


@pytest.mark.exhaustive
def test_nodes_of_areas_agree_on_avoidance_and_spawn_nothing_with_it(hosts):
    from geometry_msgs.msg import PoseStamped
    from simulation_interfaces.srv import SpawnEntity

    hosts.begin("west")
    hosts.begin("east", avoidance="false")
    for side in AREAS:
        _, text, _ = hosts.wait_until_told(side, lambda level, _, __: level == 2)
        assert "has another parameter avoidance" in text

    pose = PoseStamped()
    pose.pose.orientation.w = 1.0
    answer = hosts.peer.call(
        SpawnEntity,
        "/west/trajectory_node/spawn_entity",
        name="guest",
        uri="rfly://car",
        initial_pose=pose,
    )
    assert "vehicles of other areas could not keep clear of it" in answer.result.error_message


def test_a_pace_at_which_reports_come_too_late_is_an_error(hosts):
    """They are taken within 2 s of fleet time, which pass in less than 0.1 s."""
    from rfly_trajectory.avoidance.area_avoidance import MOST_APART
    from rfly_trajectory.ros.area_topics import MAX_PACE

    assert pytest.approx(0.1) == MOST_APART * 0.05 / MAX_PACE
    hosts.start_node("west", AREAS["west"], avoidance="true", time_scale="20.5")
    _, text, _ = hosts.wait_until_told("west", lambda level, _, __: level == 2)
    assert "time_scale 20.5, expected at most 20: reports come too late" in text


# --- messages


def told(k=2):
    random = np.random.default_rng(k)
    return OffPlan(
        77,
        ShardArea(-math.inf, 0.1, 3.0, math.inf),
        np.arange(5, 5 + k),
        np.arange(k) % 2 == 0,
        random.random(k),
        random.random((k, 7)),
        random.random((k, 6)),
    )


@pytest.mark.parametrize("k", [0, 1, 3])
def test_vehicles_off_their_plans_are_the_same_after_their_message(k):
    from rfly_trajectory.ros.off_plan_topics import msg_to_off_plan, off_plan_to_msg

    for one, other in zip(told(k), msg_to_off_plan(off_plan_to_msg(told(k))), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("now", [0, 30, 2**32 - 1, 2**32, 35_900_000_000])
@pytest.mark.parametrize("apart", [-40, -1, 0, 1, 40])
def test_steps_after_years_of_fleet_time_are_told(now, apart):
    """A `start_time` of 1 s began in 1970: the field has no room for its steps."""
    from rfly_trajectory.ros.off_plan_topics import nearest_step, off_plan_to_msg

    step = max(now + apart, 0)
    message = off_plan_to_msg(told()._replace(step=step))
    assert nearest_step(message.step, now) == step


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("area", [0.0, 0.0, 0.0, 1.0], "area: "),
        ("id", [1] * 10_001, "id: 10001 vehicles, at most 10000"),
        ("id", [1], "on_track: 2 values, expected 1"),
        ("on_track", [True], "on_track: 1 values, expected 2"),
        ("late", [0.0], "late: 1 numbers, expected 2"),
        ("late", [0.0, -1.0], "late: expected numbers from 0"),
        ("late", [0.0, math.nan], "late: expected numbers from 0"),
        ("state", [0.0] * 13, "state: 13 numbers, expected 14"),
        ("state", [2e6] * 14, "state: expected numbers from -1e+06 to 1e+06"),
        ("memory", [math.inf] * 12, "memory: expected numbers"),
    ],
)
def test_a_message_of_impossible_vehicles_is_refused(field, value, text):
    from rfly_trajectory.ros.off_plan_topics import msg_to_off_plan, off_plan_to_msg

    message = off_plan_to_msg(told())
    setattr(message, field, value)
    with pytest.raises(ConfigError) as caught:
        msg_to_off_plan(message)
    assert text in caught.value.whole_text()
