# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Goals for mission_node, their feedback and results."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.ros.endpoints import GoalResult
from rfly_terrain.height_map.height_map import HeightMap

ORIGIN = (47.0, 8.0, 500.0)
NAN = math.nan


def ground(lift=0.0):
    """Return 400 m x 400 m of hills around the origin."""
    axis = np.arange(-200.0, 201.0, 10.0)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    heights = lift + 6 * np.sin(x / 37) * np.cos(y / 29) + 0.03 * x
    return HeightMap(
        heights, origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0, name="hills"
    )


def publish_ground(peer, terrain=None, origin=ORIGIN):
    """Publish a terrain map; return its publisher."""
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    publisher = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    publisher.publish(height_map_to_msg(terrain or ground(), origin, 1, 10**9))
    return publisher


def item(mode, position=(0.0, 0.0, 0.0), params=(0.0, 0.0, 0.0, 0.0)):
    from geometry_msgs.msg import Point
    from rfly_suite.msg import MissionItem

    x, y, z = map(float, position)
    return MissionItem(mode=mode, position=Point(x=x, y=y, z=z), params=[float(p) for p in params])


def takeoff(x, y, z):
    return item(1, (x, y, z))


def waypoint(x, y, z, radius=2.0, yaw=NAN):
    return item(2, (x, y, z), (yaw, radius, 0, 0))


class MissionClient:
    """An action client of one vehicle, and the messages that it receives."""

    def __init__(self, peer, name="hawk"):
        from rclpy.action import ActionClient
        from rfly_suite.action import ExecuteMission
        from rfly_suite.msg import MissionParams

        from rfly_common.ros.qos import LATCHED

        self.peer = peer
        self.name = name
        self.client = ActionClient(peer.node, ExecuteMission, f"{name}/execute_mission")
        self.params = peer.receive(MissionParams, f"{name}/mission_params", LATCHED)
        self.feedback = []
        peer.spin_until(self.client.server_is_ready)

    def send(self, items=(), **fields):
        """Send a goal; return the future of (status, result)."""
        from rfly_suite.action import ExecuteMission

        fields.setdefault("home_source", 2)
        goal = ExecuteMission.Goal(items=list(items), **fields)

        self.handle = self.peer.send_goal(
            self.client, goal, feedback_callback=lambda m: self.feedback.append(m.feedback)
        )
        assert self.handle.accepted
        return GoalResult(self.handle)

    def result(self, future):
        self.peer.spin_until(future.done)
        answer = future.result()
        return answer.status, answer.result

    def until_mode(self, *modes):
        return self.peer.spin_until(
            lambda: self.params and self.params[-1].current.mode in modes and self.params[-1]
        )

    def command(self, number):
        from rfly_suite.srv import SetMissionCommand

        return self.peer.call(SetMissionCommand, f"{self.name}/set_mission_command", command=number)


SUCCEEDED = 4
ABORTED = 6
