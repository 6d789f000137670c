# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ExecuteMission and PlanPath reach the simulated vehicle: all nodes of the loop, in lock-step, on
sensors only.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from amphibious_cases import slower_imu

from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER, SEVERAL
from rfly_common.ros.endpoints import GoalResult

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.timeout(700),
]

PATIENCE = 300.0
"""s for half a minute of simulated time, in lock-step on a machine that may be busy."""

VEHICLE_CLASSES = """version: 1
classes:
  - name: hopper
    kind: land_air
    mass: 30
    radius: 0.6
    drive: {speed: 3, turning_radius: 1.6, half_wheelbase: 0.33, max_slope_deg: 15,
            rolling_resistance: 0.02, efficiency: 0.8}
    fly: {min_height: 2, speed: 5, climb_rate: 2, sink_rate: 1.5, power: 3200,
          hover_power: 3200, efficiency: 0.6}
"""


def ridge():
    """Level but for a wall of 3 m along y, 2 m wide, at x = 7."""
    from rfly_terrain.height_map.height_map import HeightMap

    x = np.arange(-20.0, 41.0, 1.0)
    heights = np.repeat(np.where(np.abs(x - 7.0) <= 1.0, 3.0, 0.0)[:, None], len(x), axis=1)
    return HeightMap(heights, origin_x=-20.0, origin_y=-30.0, step_x=1.0, step_y=1.0, name="ridge")


class Loop:
    """The nodes of one vehicle, and what they say of it."""

    def __init__(self, stack, peer, domain_id, sensors):
        from nav_msgs.msg import Odometry
        from node_harness import NodeProcess
        from rfly_suite.msg import TerrainMap, VehicleMode

        from rfly_common.ros.qos import LATCHED, STATE_OUT
        from rfly_terrain.ros.terrain_msgs import height_map_to_msg

        self.peer = peer
        seeing = {"lock_step": "true", "sensors": sensors}
        controller = {**seeing, "guided": "true", "drive_speed": "4.0", "fly_speed": "4.0"}
        # the wall leaves no room for the metres by which GPS is off
        simulation = {
            **seeing,
            "real_time_factor": "0.0",
            "publish_clock": "true",
            "noise": "false",
        }
        renamed = ("__ns:=/duck", "terrain_map:=/terrain_map", "vehicle_states:=/vehicle_states")
        remappings = [word for each in renamed for word in ("-r", each)]
        self.nodes = [
            stack.enter_context(NodeProcess(name, domain_id, parameters, *remappings, nodes=inside))
            for name, parameters, inside in (
                (SEVERAL, controller, MOTION_CONTROLLER),
                ("amphibious_sim_node", simulation, ()),
            )
        ]
        self.truth = peer.receive(Odometry, "/duck/ground_truth/odom", STATE_OUT)
        self.modes = peer.receive(VehicleMode, "/duck/mode", LATCHED)
        self._map = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
        self._map.publish(height_map_to_msg(ridge(), (47.0, 8.0, 500.0), 1, 10**6))
        try:
            peer.spin_until(lambda: self.truth and self.mode)
        except AssertionError:
            raise AssertionError(self.output()) from None

    @property
    def mode(self):
        return self.modes[-1].mode if self.modes else ""

    @property
    def words(self):
        """The modes, without repetitions."""
        words = [m.mode for m in self.modes]
        return [word for k, word in enumerate(words) if k == 0 or words[k - 1] != word]

    @property
    def place(self):
        p = self.truth[-1].pose.pose.position
        return np.array((p.x, p.y, p.z))

    def output(self):
        return "\n".join(node.output for node in self.nodes)


@pytest.fixture
def loop(domain_id, tmp_path):
    from contextlib import ExitStack

    from node_harness import Peer

    peer = Peer(domain_id)
    with ExitStack() as stack:
        made = Loop(stack, peer, domain_id, slower_imu(tmp_path))
        made.stack = stack
        made.domain_id = domain_id
        yield made
        assert "Traceback" not in made.output()
    peer.close()


FLIGHT = ["DISARMED", "DRIVE", "TAKEOFF", "FLIGHT", "LAND", "SPOOL_DOWN", "DRIVE"]


@pytest.mark.exhaustive
def test_a_mission_by_action_is_driven_and_flown(loop):
    from geometry_msgs.msg import Point
    from node_harness import NodeProcess
    from rclpy.action import ActionClient
    from rfly_suite.action import ExecuteMission
    from rfly_suite.msg import MissionItem

    peer = loop.peer
    parameters = {
        "vehicles": "['duck']",
        "duck.uav_type": "land-air",
        "simulate": "false",
        "use_sim_time": "true",
    }
    loop.nodes.append(
        loop.stack.enter_context(NodeProcess("mission_node", loop.domain_id, parameters))
    )
    client = ActionClient(peer.node, ExecuteMission, "duck/execute_mission")
    peer.spin_until(client.server_is_ready)

    def item(mode, x, y, z, radius=1.0):
        return MissionItem(
            mode=mode,
            position=Point(x=x, y=y, z=z),
            params=[math.nan, radius, 0.0, 0.0],
        )

    items = [
        item(2, 1.5, 0.0, 0.0),
        item(1, 1.5, 0.0, 1.2),
        item(2, 2.5, 1.5, 1.2),
        item(4, 2.5, 1.5, 0.0),
    ]
    goal = ExecuteMission.Goal(items=items, home_source=2)
    ended = GoalResult(peer.send_goal(client, goal))
    peer.spin_until(ended.done, PATIENCE)
    result = ended.result().result
    assert result.success, result.message + loop.output()
    peer.spin_until(lambda: loop.mode == "DRIVE")
    assert loop.words == FLIGHT
    assert np.linalg.norm(loop.place[:2] - (2.5, 1.5)) < 1.0


@pytest.mark.exhaustive
def test_a_mixed_plan_is_driven_and_flown(loop, tmp_path):
    from geometry_msgs.msg import PoseStamped
    from node_harness import NodeProcess
    from rfly_suite.srv import PlanPath

    peer = loop.peer
    (tmp_path / "classes.yaml").write_text(VEHICLE_CLASSES)
    parameters = {"vehicle_classes": str(tmp_path / "classes.yaml")}
    loop.nodes.append(
        loop.stack.enter_context(NodeProcess("planner_node", loop.domain_id, parameters))
    )
    goal = PoseStamped()
    start = PoseStamped()
    goal.header.frame_id = start.header.frame_id = "map"
    goal.pose.position.x = 22.0
    answer = None
    for _ in range(60):
        answer = peer.call(PlanPath, "plan_path", name="duck", start=start, goal=goal, mode=2)
        if answer.success or "terrain_map" not in answer.message:
            break
        peer.spin_for(0.1)
    assert answer.success, answer.message
    assert set(answer.segment_mode) == {0, 1}, "the wall is flown over, the rest is driven"
    peer.spin_until(lambda: loop.words.count("LAND") == 1, PATIENCE)
    highest = max(m.pose.pose.position.z for m in loop.truth)
    peer.spin_until(lambda: loop.mode == "DRIVE" and "a planned path is done" in loop.output())
    assert loop.words == FLIGHT
    assert 4.0 < highest < 8.0
    assert np.linalg.norm(loop.place[:2] - (22.0, 0.0)) < 0.8


@pytest.mark.exhaustive
@pytest.mark.needs("pymavlink")
def test_a_ground_station_arms_flies_and_lands_it(loop):
    """mavlink_node before mission_node before the vehicle's own controllers: by MAVLink alone."""
    from mavlink_station import StationSocket
    from node_harness import NodeProcess

    peer = loop.peer
    vehicles = {
        "vehicles": "['duck']",
        "duck.uav_type": "land-air",
        "use_sim_time": "true",
    }
    with StationSocket(peer) as station:
        mavlink = {**vehicles, "port": "0", "targets": f"['127.0.0.1:{station.port}']"}
        for name, parameters in (
            ("mission_node", {**vehicles, "simulate": "false"}),
            ("mavlink_node", mavlink),
        ):
            loop.nodes.append(
                loop.stack.enter_context(NodeProcess(name, loop.domain_id, parameters))
            )
        peer.spin_until(lambda: station.last("GLOBAL_POSITION_INT"))
        peer.spin_until(lambda: station.command(400, 1.0) == 0)  # as soon as mission_node answers
        peer.spin_until(lambda: loop.mode == "DRIVE", PATIENCE)
        start = loop.place
        assert (
            station.command(22, 0.0, 0.0, 0.0, math.nan, math.nan, math.nan, 500.0 + start[2] + 2.5)
            == 0
        )
        peer.spin_until(lambda: loop.place[2] - start[2] > 2.0, PATIENCE)
        peer.spin_until(lambda: station.last("GLOBAL_POSITION_INT").relative_alt > 1900)
        here = station.last("GLOBAL_POSITION_INT")
        there = here.lat * 1e-7 + 3.0 / 111_170.9  # 3 m to the north
        assert (
            station.command(192, -1.0, 1.0, 0.0, math.nan, there, here.lon * 1e-7, here.alt * 1e-3)
            == 0
        )
        peer.spin_until(lambda: abs(loop.place[1] - start[1] - 3.0) < 0.7)
        assert station.command(21, *[math.nan] * 7) == 0
        peer.spin_until(lambda: loop.mode == "DRIVE" and loop.words[-2] == "SPOOL_DOWN")
        assert station.command(400, 0.0) == 0
        peer.spin_until(lambda: loop.mode == "DISARMED")
