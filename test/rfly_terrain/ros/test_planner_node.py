# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""planner_node as other nodes meet it: a running process, real DDS, a map of the test's own."""

from __future__ import annotations

import itertools
import json
import math
import re
import time

import numpy as np
import pytest
from node_harness import PATIENCE

pytestmark = pytest.mark.ros

SIZE = 81
STEP = 5.0


def terrain():
    """400 m x 400 m about the origin; a steep ridge along y at x = 0 that ends at y = 100."""
    from rfly_terrain import HeightMap

    at = (np.arange(SIZE) - SIZE // 2) * STEP
    heights = 10.0 + np.where((np.abs(at)[:, None] < 12) & (at[None, :] < 100), 25.0, 0.0)
    return HeightMap(
        heights, origin_x=at[0], origin_y=at[0], step_x=STEP, step_y=STEP, name="ridge"
    )


@pytest.fixture(scope="module")
def running(shared_domain_id, tmp_path_factory):
    from node_harness import NodeProcess, Peer

    parameters = {
        "vehicles": "['cart']",
        "cart.id": "7",
        "cart.vehicle_class": "rover",
        "goal_vehicle": "cart",
    }
    with NodeProcess("planner_node", shared_domain_id, parameters) as node:
        peer = Peer(shared_domain_id)
        peer.node_process = node
        yield peer
        peer.close()


@pytest.fixture(scope="module")
def served(running):
    """Provide a node with the map, and the position of vehicle 7."""
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    running.map = running.publisher(TerrainMap, "terrain_map", LATCHED)
    running.map.publish(height_map_to_msg(terrain(), (0.0, 0.0, 0.0), 0, 10**6))
    running.spin_until(lambda: ask(running, (-100, 0), (-50, 0)).success)
    return running


def stamped(frame_id, x, y, z=0.0, quat=(0.0, 0.0, 0.0, 0.0)):
    from geometry_msgs.msg import PoseStamped

    pose = PoseStamped()
    pose.header.frame_id = frame_id
    pose.pose.position.x = float(x)
    pose.pose.position.y = float(y)
    pose.pose.position.z = float(z)
    q = pose.pose.orientation
    q.x, q.y, q.z, q.w = quat
    return pose


def ask(peer, start, goal, frame="map", **fields):
    from rfly_suite.srv import PlanPath

    values = {
        "vehicle_class": "rover",
        "start": stamped("map", *start) if start else stamped("", 0, 0),
        **fields,
    }
    # the first call may meet kernels that have not been compiled before
    return peer.call(PlanPath, "plan_path", goal=stamped(frame, *goal), **values)


def points(path):
    return np.array([(p.pose.position.x, p.pose.position.y, p.pose.position.z) for p in path.poses])


def test_a_path_around_the_ridge(served):
    answer = ask(served, (-100, 0, 0, (0.0, 0.0, 0.0, 1.0)), (100, 0))
    assert answer.success, answer.message
    way = points(answer.path)
    assert way[0] == pytest.approx([-100, 0, 10])
    assert way[-1] == pytest.approx([100, 0, 10])
    near = np.abs(way[:, 0]) < 12
    assert way[near, 1].min() > 100
    assert answer.length == pytest.approx(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
    assert 2 * math.hypot(90, 100) < answer.length < 2 * math.hypot(90, 125) + 30
    # level ground: m g μ s / η of the shipped rover
    assert answer.energy == pytest.approx(60 * 9.80665 * 0.08 * answer.length / 0.6, rel=1e-2)
    assert list(answer.segment_mode) == [0] * (len(way) - 1)
    assert {p.header.frame_id for p in answer.path.poses} == {"map"}


def test_the_same_path_in_map_ned(served):
    """x and y are exchanged in map_ned, and z is down.

    The heading is that of FLU in NED: half a turn about x, then the yaw.
    """
    enu = ask(served, (-100, 0), (100, 20, 0, (0.0, 0.0, 0.0, 1.0)))
    east_in_ned = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    ned = ask(served, (-100, 0), (20, 100, 0, east_in_ned), frame="map_ned")
    assert ned.success, ned.message
    assert ned.path.header.frame_id == "map_ned"
    assert points(ned.path)[:, [1, 0, 2]] * (1, 1, -1) == pytest.approx(points(enu.path), abs=1e-6)
    q = ned.path.poses[-1].pose.orientation
    assert abs(np.dot([q.x, q.y, q.z, q.w], east_in_ned)) == pytest.approx(1.0)


def test_a_flight_over_the_ridge(served):
    answer = ask(served, (-100, 0, 10), (100, 0), vehicle_class="multirotor", mode=1)
    assert answer.success, answer.message
    way = points(answer.path)
    assert set(answer.segment_mode) == {1}
    assert way[0] == pytest.approx([-100, 0, 10])  # from the ground straight up
    fine = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(way)])
    above = fine[fine[:, 0] > -99.9]
    assert (above[:, 2] - terrain().altitude(above[:, 0], above[:, 1])).min() > 15 - 1e-6


def test_what_cannot_be_planned_is_answered_and_the_node_lives(served):
    def why(*args, **fields):
        answer = ask(served, *args, **fields)
        assert not answer.success
        assert not answer.path.poses
        return answer.message

    steep = why((-100, 0), (12, 0))
    assert "slopes of 30° and more" in steep
    x, y = (
        float(number)
        for number in re.search(r"nearest free place is \((\S+), (\S+)\) in map", steep).groups()
    )
    assert 12 < abs(x) < 40
    assert abs(y) < 30
    assert ask(served, (-100, 0), (x, y)).success
    assert "lies off the map" in why((-100, 0), (5000, 0))
    assert "not finite" in why((-100, 0), (math.nan, 0))
    assert "frame 'nowhere'" in why((-100, 0), (1, 1), frame="nowhere")
    assert "there are car, truck" in why((-100, 0), (50, 0), vehicle_class="bicycle")
    assert "cannot fly" in why((-100, 0), (50, 0), mode=1)
    assert "mode 9" in why((-100, 0), (50, 0), mode=9)
    assert "has the length 3" in why((-100, 0, 0, (0.0, 0.0, 0.0, 3.0)), (50, 0))
    assert "give one" in why(None, (50, 0))
    assert "its position is unknown" in why(None, (50, 0), name="ghost")
    assert "name '../x'" in why((-100, 0), (50, 0), name="../x")
    assert ask(served, (-100, 0), (-50, 0)).success


def test_a_goal_of_rviz_sends_the_vehicle_there(served):
    """The start is the position that vehicle_states reports for id 7, in map_ned: x north."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import COMMANDS, FLEET_OUT, LATCHED
    from rfly_common.ros.vehicle_msgs import states_to_msg
    from rfly_common.vehicle_states import VehicleStates

    followed = served.receive(Path, "cart/follow_path", LATCHED)
    shown = served.receive(Path, "planned_path", LATCHED)
    states = served.publisher(VehicleStateArray, "vehicle_states", FLEET_OUT)
    goals = served.publisher(PoseStamped, "goal_pose", COMMANDS)
    fleet = VehicleStates(
        id=np.array([3, 7]),
        vehicle_type=np.array([3, 3]),
        position=np.array([[0.0, 0.0, 0.0], [-40.0, -120.0, -10.0]]),
        orientation=np.tile([1.0, 0.0, 0.0, 0.0], (2, 1)),  # level and north in map_ned
        frame_id="map_ned",
        source="/test",
    )

    def planned():
        """Return whether the plan of this goal has come, not only the previous one."""
        states.publish(states_to_msg(fleet))
        return followed and shown and len(shown[-1].poses) == len(followed[-1].poses)

    def answered():
        """Publish a goal and return whether its plan comes."""
        goals.publish(stamped("map", 120, -40))
        deadline = time.monotonic() + 5.0
        while not planned() and time.monotonic() < deadline:
            served.spin_for(0.1)
        return planned()

    states.publish(states_to_msg(fleet))
    served.spin_for(0.1)
    served.spin_until(answered)
    way = points(followed[-1])
    assert way[0] == pytest.approx([-120, -40, 10])
    assert way[-1] == pytest.approx([120, -40, 10])
    q = followed[-1].poses[0].pose.orientation
    assert abs(q.z * math.sqrt(0.5) + q.w * math.sqrt(0.5)) == pytest.approx(
        1.0, abs=1e-6
    )  # begins heading north
    assert points(shown[-1]) == pytest.approx(way)
    # asked by name, the service begins there too
    answer = ask(served, None, (-120, 60), name="cart", vehicle_class="")
    assert answer.success, answer.message
    assert points(answer.path)[0] == pytest.approx([-120, -40, 10])


def test_objects_are_driven_around(served):
    from rfly_suite.msg import PlacedObjectArray

    from rfly_common.ros.qos import LATCHED

    free = ask(served, (-150, -50), (-50, -50))
    message = PlacedObjectArray(
        id=[1],
        box_origin=[-100.0, -50.0, 12.0],
        box_half_extent=[5.0, 30.0, 2.0],
        orientation=[0.0, 0.0, 0.0, 1.0],
    )
    message.header.frame_id = "map"
    objects = served.publisher(PlacedObjectArray, "placed_objects", LATCHED)
    objects.publish(message)
    served.spin_until(lambda: ask(served, (-150, -50), (-50, -50)).length > free.length + 5)
    way = points(ask(served, (-150, -50), (-50, -50)).path)
    fine = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(way)])
    inside = (np.abs(fine[:, 0] + 100) < 5.5) & (np.abs(fine[:, 1] + 50) < 30.5)
    assert not inside.any()
    objects.publish(PlacedObjectArray())
    served.spin_until(lambda: ask(served, (-150, -50), (-50, -50)).length < free.length + 1)


def test_diagnostics_count_what_was_planned_and_refused(served):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic

    from rfly_common.ros.qos import STATE_OUT

    heard = served.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
    served.spin_until(lambda: diagnostic(heard, "planning"))
    level, text, values = diagnostic(heard, "planning")
    assert (level, text) == (0, "ready")
    assert int(values["plans"]) >= 1
    assert json.loads(values["last_plan_s"]) >= 0


def test_a_plan_asked_for_before_there_is_a_map_waits_for_it(domain_id):
    """Five seconds and no longer; a map that comes meanwhile serves."""
    from node_harness import NodeProcess, Peer
    from rfly_suite.msg import TerrainMap
    from rfly_suite.srv import PlanPath

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    with NodeProcess("planner_node", domain_id):
        peer = Peer(domain_id)
        client = peer.node.create_client(PlanPath, "plan_path")
        peer.spin_until(client.service_is_ready)
        goal = {
            "vehicle_class": "rover",
            "start": stamped("map", -100, 0),
            "goal": stamped("map", -50, 0),
        }
        begun = time.monotonic()
        refused = client.call_async(PlanPath.Request(**goal))
        peer.spin_until(refused.done)
        assert not refused.result().success
        assert "no terrain_map has come yet" in refused.result().message
        assert time.monotonic() - begun > 4.9
        maps = peer.publisher(TerrainMap, "terrain_map", LATCHED)
        answer = client.call_async(PlanPath.Request(**goal))
        peer.spin_for(0.3)
        assert not answer.done()
        maps.publish(height_map_to_msg(terrain(), (0.0, 0.0, 0.0), 0, 10**6))
        peer.spin_until(answer.done)
        assert answer.result().success, answer.result().message
        peer.close()


def test_a_bad_parameter_ends_the_node_with_one_line(domain_id):
    from node_harness import NodeProcess

    with NodeProcess(
        "planner_node", domain_id, {"goal_vehicle": "a", "goal_class": "tank"}
    ) as node:
        assert node.process.wait(PATIENCE) == 2
        node.stop()
        assert "vehicle class 'tank': there are car" in node.output
        assert "Traceback" not in node.output
