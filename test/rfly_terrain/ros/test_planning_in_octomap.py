# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""planner_node in the map that mapping_node makes, over real DDS.

Clouds and poses go in, and a way around the obstacles that they show comes out.
"""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.ros

START = 1_000_000_000_000
"""ns"""
NAME = "buggy"


def ground():
    from rfly_terrain import HeightMap

    return HeightMap(
        np.zeros((61, 61)), origin_x=-30.0, origin_y=-30.0, step_x=1.0, step_y=1.0, name="level"
    )


def wall(low, high):
    """(n, 3) points of a wall across x = 5.1, 2 m high."""
    y, z = np.meshgrid(np.arange(low + 0.05, high, 0.1), np.arange(0.05, 2.0, 0.1))
    return np.column_stack([np.full(y.size, 5.1), y.reshape(-1), z.reshape(-1)])


def cloud(points, stamp_ns):
    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_terrain.ros.terrain_msgs import cloud_to_msg

    message = cloud_to_msg(
        np.ascontiguousarray(points[None], np.float32), f"{NAME}/base_link", stamp_ns
    )
    message.header.stamp = ns_to_stamp(stamp_ns)
    return message


class Rig:
    """Provide both nodes, and a vehicle at (-10, 0.1) that heads east.

    It sees walls in its own frame.
    """

    PLACE = np.array([-10.0, 0.1, 0.0])

    def __init__(self, peer):
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Odometry, Path
        from octomap_msgs.msg import Octomap
        from rfly_suite.msg import TerrainMap
        from sensor_msgs.msg import PointCloud2
        from tf2_msgs.msg import TFMessage

        from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS, STATE_OUT
        from rfly_terrain.ros.terrain_msgs import height_map_to_msg

        self.peer = peer
        self.stamp = START
        self.paths = peer.receive(Path, f"{NAME}/follow_path", LATCHED)
        self.maps = peer.receive(Octomap, "octomap", LATCHED)
        self.terrain = peer.publisher(TerrainMap, "terrain_map", LATCHED)
        self.terrain.publish(height_map_to_msg(ground(), (0.0, 0.0, 0.0), 0, 10**6))
        self.tf = peer.publisher(TFMessage, "/tf", STATE_OUT)
        self.odometry = peer.publisher(Odometry, "odometry/global", STATE_OUT)
        self.clouds = peer.publisher(PointCloud2, "lidar/points", SENSORS)
        self.goals = peer.publisher(PoseStamped, "goal_pose", COMMANDS)

    def look(self, points):
        """A cloud of what is there, until a map of it has come: the map's stamp is the cloud's."""
        from rfly_common.ros.stamps import ns_to_stamp

        self.stamp += 10**8

        def mapped():
            self.tell_pose()
            self.clouds.publish(cloud(points - self.PLACE, self.stamp))
            return self.maps and self.maps[-1].header.stamp == ns_to_stamp(self.stamp)

        self.peer.spin_until(mapped)

    def tell_pose(self):
        from geometry_msgs.msg import TransformStamped
        from nav_msgs.msg import Odometry
        from tf2_msgs.msg import TFMessage

        from rfly_common.ros.stamps import ns_to_stamp

        for later in (-(10**7), 0, 10**7):
            message = Odometry(child_frame_id=f"{NAME}/base_link")
            message.header.frame_id = "map"
            message.header.stamp = ns_to_stamp(self.stamp + later)
            place = message.pose.pose.position
            place.x, place.y, place.z = self.PLACE.tolist()
            message.pose.pose.orientation.w = 1.0
            self.odometry.publish(message)
        transform = TransformStamped(child_frame_id=f"{NAME}/base_link")
        transform.header.frame_id = "map"
        transform.header.stamp = ns_to_stamp(self.stamp)
        shift = transform.transform.translation
        shift.x, shift.y, shift.z = self.PLACE.tolist()
        transform.transform.rotation.w = 1.0
        self.tf.publish(TFMessage(transforms=[transform]))

    def go(self):
        from geometry_msgs.msg import PoseStamped

        goal = PoseStamped()
        goal.header.frame_id = "map"
        goal.pose.position.x = 20.0
        goal.pose.position.y = 0.1

        def planned():
            self.tell_pose()
            self.goals.publish(goal)
            self.peer.spin_for(0.3)
            return self.paths

        self.peer.spin_until(planned)

    def way(self):
        return np.array(
            [(pose.pose.position.x, pose.pose.position.y) for pose in self.paths[-1].poses]
        )


def crossing(way):
    """y where a way crosses the wall."""
    return float(np.interp(5.1, way[:, 0], way[:, 1]))


@pytest.fixture
def running(domain_id):
    from node_harness import NodeProcess, Peer

    planner = {
        "space": "octomap",
        "goal_vehicle": NAME,
        "goal_class": "rover",
        "resolution": "0.25",
    }
    mapping = {"forget_after": "0.5", "publish_rate": "20.0", "resolution": "0.25"}
    with (
        NodeProcess("planner_node", domain_id, planner) as node,
        NodeProcess("mapping_node", domain_id, mapping) as mapper,
    ):
        peer = Peer(domain_id)
        try:
            yield Rig(peer)
        finally:
            peer.close()
        for process in (node, mapper):
            assert process.stop() == 0, process.output
            assert "Traceback" not in process.output, process.output


def test_it_plans_anew_as_the_map_grows_stops_where_no_way_is_left_and_goes_on_when_there_is(
    running,
):
    """A rover of 0.5 m keeps 0.5 m from the map's obstacles; the planner gets no objects."""
    running.look(wall(3.0, 8.0))
    running.go()
    assert crossing(running.way()) == pytest.approx(0.1, abs=0.3), "straight on beside the wall"

    # a longer wall
    count = len(running.paths)
    running.look(np.concatenate([wall(-3.0, 3.0), wall(3.0, 8.0)]))
    running.peer.spin_until(lambda: len(running.paths) > count and crossing(running.way()) < -3.0)
    assert crossing(running.way()) < -3.0 - 0.9
    assert running.way()[-1] == pytest.approx([20.0, 0.1])

    # no way
    running.look(wall(-29.5, 29.5))
    running.peer.spin_until(lambda: not running.paths[-1].poses)

    for _ in range(7):  # 0.7 s: what stood south of 3 m has gone
        running.look(wall(3.0, 8.0))
    running.peer.spin_until(lambda: running.paths[-1].poses)
    assert crossing(running.way()) < 3.0 - 0.9, (
        "a gap of the wall, which is forgotten piece by piece"
    )


def test_the_service_plans_in_the_map_too_and_waits_for_none(running):
    from geometry_msgs.msg import PoseStamped
    from rfly_suite.srv import PlanPath

    start = PoseStamped()
    goal = PoseStamped()
    start.header.frame_id = goal.header.frame_id = "map"
    start.pose.position.x = -10.0
    goal.pose.position.x = 20.0
    asked = {"vehicle_class": "rover", "start": start, "goal": goal}
    answer = running.peer.call(PlanPath, "plan_path", **asked)
    assert (answer.success, answer.message) == (
        False,
        "no octomap has come yet, and the parameter space is octomap",
    )
    running.look(wall(-3.0, 8.0))

    def around():
        answer = running.peer.call(PlanPath, "plan_path", **asked)
        return answer.success and answer.length > 31.0 and answer

    answer = running.peer.spin_until(around)
    way = np.array([(pose.pose.position.x, pose.pose.position.y) for pose in answer.path.poses])
    assert crossing(way) < -3.9
