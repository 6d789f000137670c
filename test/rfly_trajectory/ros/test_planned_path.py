# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Planned paths: a goal of RViz becomes one, and trajectory_node drives it, over real DDS."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytestmark = pytest.mark.ros

SIZE = 101
STEP = 2.0
GOAL = (60.0, -20.0)
FLEET = """
version: 1
vehicles:
  - name: cart
    id: 7
    type: 3
    kind: ground
    at_end: stop
    speed: {cruise: 8}
    limits: {turn_radius: 0.8}
    shape: {type: line, from: [-64, -20], to: [-60, -20]}
"""


def terrain():
    """200 m x 200 m about the origin: the way has to wind through a gap in each of two walls."""
    from rfly_terrain import HeightMap

    at = (np.arange(SIZE) - SIZE // 2) * STEP
    x = at[:, None]
    y = at[None, :]
    heights = 3 * np.sin(x / 25) * np.cos(y / 31)
    heights = heights + np.where((np.abs(x + 20) < 5) & (y < 30), 15.0, 0.0)
    heights = heights + np.where((np.abs(x - 20) < 5) & (y > -50), 15.0, 0.0)
    return HeightMap(
        heights, origin_x=at[0], origin_y=at[0], step_x=STEP, step_y=STEP, name="walls"
    )


@pytest.mark.exhaustive
def test_a_planned_path_is_driven_without_leaving_ground_that_can_be_driven_on(domain_id, tmp_path):
    from geometry_msgs.msg import PoseStamped
    from node_harness import NodeProcess, Peer
    from rfly_suite.msg import TerrainMap, VehicleStateArray

    from rfly_common.ros.qos import COMMANDS, FLEET_IN, LATCHED
    from rfly_terrain.planning.planner import Planner
    from rfly_terrain.planning.vehicle_classes import load_vehicle_classes
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    (tmp_path / "fleet.yaml").write_text(FLEET, encoding="utf-8")
    fleet = {
        "fleet": f"'{tmp_path / 'fleet.yaml'}'",
        "time_scale": "4.0",
        "rate": "100.0",
    }
    planner = {"goal_vehicle": "cart", "goal_class": "rover"}
    with (
        NodeProcess("trajectory_node", domain_id, fleet),
        NodeProcess("planner_node", domain_id, planner) as planning,
    ):
        peer = Peer(domain_id)
        try:
            made = peer.publisher(TerrainMap, "terrain_map", LATCHED)
            peer.spin_until(lambda: made.get_subscription_count() == 2)
            made.publish(height_map_to_msg(terrain(), (0.0, 0.0, 0.0), 0, 10**6))
            states = peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)
            peer.spin_until(lambda: states and math.hypot(states[-1].position[0] + 60, 0) < 1e-3)
            goals = peer.publisher(PoseStamped, "goal_pose", COMMANDS)
            goal = PoseStamped()
            goal.header.frame_id = "map"
            goal.pose.position.x, goal.pose.position.y = GOAL
            goals.publish(goal)  # the kernels may have to be compiled first
            peer.spin_until(lambda: math.dist(states[-1].position[:2], GOAL) < 0.01, 180.0)
            assert "planned" in planning.output
        finally:
            peer.close()
    track = np.array([message.position[:2] for message in states])
    assert np.hypot(*np.diff(track, axis=0).T).sum() > 190  # around both walls' ends
    grid = Planner(terrain()).grid(load_vehicle_classes()["rover"])
    share = np.linspace(0, 1, 10, endpoint=False)[:, None]
    # between two states that a busy machine lets lie far apart the vehicle did not drive straight
    # on
    near = [(a, b) for a, b in itertools.pairwise(track) if math.dist(a, b) < 1.0]
    fine = np.concatenate([track, *(a + share * (b - a) for a, b in near)])
    column, row = np.floor((fine - grid.origin) / grid.resolution).astype(int).T
    cost = grid.cost[row, column]
    assert cost.min() >= 0
    assert cost.max() < 100
