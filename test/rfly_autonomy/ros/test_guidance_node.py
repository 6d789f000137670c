# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""guidance_node against a vehicle of the test, which obeys each command at once."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

pytestmark = pytest.mark.ros

UP = 0.22
"""m, of base_link of the vehicle `scale` above the ground"""
SCENARIO = """version: 1
vehicle: scale
mission:
  drive_speed_mps: 4
  items:
    - {mode: waypoint, position_m: [3, 0]}
    - {mode: takeoff, height_m: 3}
    - {mode: waypoint, position_m: [6, 2]}
    - {mode: land}
    - {mode: waypoint, position_m: [6, 5]}
end: {time_s: 90}
"""


class Puppet:
    """A vehicle without mass: drives, climbs, flies and lands by messages, on time of its own."""

    STEP = 0.04

    def __init__(self, peer, ground=0.0):
        from ackermann_msgs.msg import AckermannDriveStamped
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import PoseStamped
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import VehicleMode
        from std_msgs.msg import String

        from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT

        self.peer = peer
        self.ground = ground
        self.wall = math.inf
        """x of a wall that stops it, m."""
        self.time = 100.0
        self.position = np.array([0.0, 0.0, ground + UP])
        self.yaw = 0.0
        self.velocity = np.zeros(3)
        self.mode = "DISARMED"
        self.told = ""
        self.modes = ["DISARMED"]
        self.way = []
        self.drives = peer.receive(AckermannDriveStamped, "cmd/ackermann", COMMANDS)
        self.targets = peer.receive(PoseStamped, "cmd/pose", COMMANDS)
        self.requests = peer.receive(String, "cmd/mode", COMMANDS)
        self.poses = peer.receive(PoseStamped, "pose", STATE_OUT)
        self.said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        self._odometry = peer.node.create_publisher(Odometry, "odometry/global", STATE_OUT)
        self._mode = peer.node.create_publisher(VehicleMode, "mode", LATCHED)
        self._seen = 0

    def tell(self):
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import VehicleMode

        from rfly_common.ros.stamps import ns_to_stamp

        self.told_at = time.monotonic()
        if self.told != self.mode:
            self.told = self.mode
            self._mode.publish(VehicleMode(mode=self.mode))
        message = Odometry()
        message.header.frame_id = "map"
        message.child_frame_id = "amphibious/base_link"
        message.header.stamp = ns_to_stamp(round(self.time * 1e9))
        pose = message.pose.pose
        twist = message.twist.twist
        pose.position.x, pose.position.y, pose.position.z = self.position.tolist()
        pose.orientation.w = math.cos(self.yaw / 2)
        pose.orientation.z = math.sin(self.yaw / 2)
        c = math.cos(self.yaw)
        s = math.sin(self.yaw)
        vx, vy, twist.linear.z = self.velocity.tolist()
        twist.linear.x = c * vx + s * vy
        twist.linear.y = c * vy - s * vx
        self._odometry.publish(message)

    def obey(self):
        before = self.position.copy()
        for request in self.requests[self._seen :]:
            self.mode = {
                ("DISARMED", "arm"): "DRIVE",
                ("DRIVE", "takeoff"): "TAKEOFF",
                ("FLIGHT", "land"): "LAND",
            }.get((self.mode, request.data), self.mode)
        self._seen = len(self.requests)
        height = self.position[2] - UP - self.ground
        if self.mode == "DRIVE" and self.drives:
            drive = self.drives[-1].drive
            self.yaw += self.STEP * drive.speed * math.tan(drive.steering_angle) / 0.66
            self.position += (
                self.STEP * drive.speed * np.array((math.cos(self.yaw), math.sin(self.yaw), 0.0))
            )
            self.position[0] = min(self.position[0], self.wall)
        elif self.mode == "TAKEOFF":
            self.position[2] += self.STEP * 1.0
            self.mode = "FLIGHT" if height > 0.5 else "TAKEOFF"
        elif self.mode == "FLIGHT" and self.targets:
            p = self.targets[-1].pose.position
            q = self.targets[-1].pose.orientation
            self.position[:] = p.x, p.y, p.z
            self.yaw = 2.0 * math.atan2(q.z, q.w)
        elif self.mode == "LAND":
            self.position[2] = max(self.position[2] - self.STEP * 1.0, UP + self.ground)
            self.mode = "LAND" if height > 1e-6 else "DRIVE"
        self.velocity = (self.position - before) / self.STEP
        if self.modes[-1] != self.mode:
            self.modes.append(self.mode)
        self.way.append((self.mode, *self.position))
        self.time += self.STEP

    def go_on(self, ready, seconds=90.0):
        """Step until the condition holds; the node answers each step."""
        end = self.time + seconds
        while not ready():
            assert self.time < end, (self.mode, self.position, self.doing())
            self.poses.clear()
            self.tell()
            self.peer.spin_until(self.is_answered)
            self.peer.spin_for(0.0)
            self.obey()

    def is_answered(self):
        """Return whether a command has come; repeat each second what may have been lost."""
        if not self.poses and time.monotonic() > self.told_at + 1.0:
            self.tell()
        return bool(self.poses)

    def doing(self):
        from node_harness import diagnostic

        return diagnostic(self.said, "guidance")


@pytest.fixture
def puppet(domain_id):
    from node_harness import Peer

    peer = Peer(domain_id)
    yield Puppet(peer)
    peer.close()


@pytest.fixture
def start(domain_id, tmp_path):
    from node_harness import NodeProcess

    (tmp_path / "short.yaml").write_text(SCENARIO)
    nodes = []

    def run(**parameters):
        node = NodeProcess("guidance_node", domain_id, parameters)
        nodes.append(node)
        return node

    yield run
    for node in nodes:
        with node:
            assert "Traceback" not in node.output


def test_a_mission_is_driven_flown_and_driven_on(start, puppet, tmp_path):
    from nav_msgs.msg import Path
    from std_srvs.srv import Trigger

    from rfly_common.ros.qos import LATCHED

    peer = puppet.peer
    node = start(scenario=str(tmp_path / "short.yaml"))
    planned = peer.receive(Path, "path", LATCHED)
    answer = peer.call(Trigger, "guidance_node/start")
    assert (answer.success, answer.message) == (
        False,
        "nothing is known of the vehicle yet: no odometry/global and no mode",
    )
    peer.spin_until(
        lambda: puppet._odometry.get_subscription_count() and puppet._mode.get_subscription_count()
    )
    told_at = -math.inf

    def idle():
        """The estimate of a silent vehicle is not idle any more: the node keeps publishing."""
        nonlocal told_at
        if time.monotonic() - told_at > 0.3:
            told_at = time.monotonic()
            puppet.tell()
        return puppet.poses and (puppet.doing() or ("", ""))[1] == "idle"

    peer.spin_until(idle)
    p = puppet.poses[-1].pose.position
    assert (p.x, p.y, p.z, puppet.poses[-1].header.frame_id) == (0.0, 0.0, UP, "map")
    assert not puppet.requests, "it waits to be told"
    answer = peer.call(Trigger, "guidance_node/start")
    assert (answer.success, answer.message) == (True, "3 legs")
    (way,) = peer.spin_until(lambda: planned)
    points = [
        (
            p.pose.position.x,
            p.pose.position.y,
            p.pose.position.z,
        )
        for p in way.poses
    ]
    assert (way.header.frame_id, points[0], points[-1]) == ("map", (0, 0, 0), (6, 5, 0))
    corners = {
        (3, 0, 0),
        (3, 0, 3),
        (6, 2, 3),
        (6, 2, 0),
    }
    assert corners <= set(points), "driven, straight up, flown, straight down"
    puppet.time += 1.0
    puppet.go_on(lambda: puppet.doing()[1].endswith("is done"))
    assert puppet.modes == ["DISARMED", "DRIVE", "TAKEOFF", "FLIGHT", "LAND", "DRIVE"]
    words = [m.data for m in puppet.requests]
    assert list(dict.fromkeys(words)) == ["arm", "takeoff", "land"]
    way = np.array([place for mode, *place in puppet.way if mode == "DRIVE"])
    assert np.linalg.norm(way[:, :2] - (3, 0), axis=1).min() < 0.3
    assert np.linalg.norm(way[-1, :2] - (6, 5)) < 0.4
    flown = np.array([place for mode, *place in puppet.way if mode == "FLIGHT"])
    assert flown[:, 2].max() == pytest.approx(3.0 + UP, abs=1e-3)
    assert np.linalg.norm(flown[-1, :2] - (6, 2)) < 0.1
    assert puppet.drives[-1].drive.speed == 0.0
    assert puppet.drives[-1].header.frame_id == "amphibious/base_link"
    assert node.stop() == 0


def test_a_mixed_plan_is_followed_and_stopped(start, puppet):
    """A plan in RflySim's axes (north, east, down) over ground of 20 m is followed and stopped.

    It leads north, then up and east.
    """
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rfly_suite.msg import TerrainMap
    from std_srvs.srv import Trigger

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    peer = puppet.peer
    puppet.ground = 20.0
    puppet.mode = "DRIVE"
    puppet.yaw = math.pi / 2
    puppet.position[2] += 20.0
    start(fly_speed="8", autostart="true")
    ways = peer.publisher(Path, "follow_path", LATCHED)
    maps = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    path = Path()
    path.header.frame_id = "map_ned"
    for north, east, down in [
        (0, 0, -20),
        (4, 0, -20),
        (4, 0, -32),
        (4, 30, -32),
        (4, 30, -20),
    ]:
        pose = PoseStamped()
        pose.pose.position.x = float(north)
        pose.pose.position.y = float(east)
        pose.pose.position.z = float(down)
        path.poses.append(pose)
    peer.spin_until(
        lambda: puppet._odometry.get_subscription_count() and puppet._mode.get_subscription_count()
    )
    ways.publish(path)
    peer.spin_until(lambda: "waits for terrain_map" in (puppet.doing() or ("", ""))[1])
    terrain = HeightMap(
        np.full((3, 3), 20.0),
        origin_x=-100,
        origin_y=-100,
        step_x=100,
        step_y=100,
        name="high",
    )
    maps.publish(height_map_to_msg(terrain, (47.0, 8.0, 500.0), 1, 10**6))
    puppet.go_on(lambda: puppet.mode == "FLIGHT" and puppet.position[0] > 10.0)
    driven = np.array([place for mode, *place in puppet.way if mode == "DRIVE"])
    assert np.linalg.norm(driven[-1, :2] - (0, 4)) < 0.4
    assert puppet.position[2] == pytest.approx(32.0 + UP, abs=1e-3)
    assert peer.call(Trigger, "guidance_node/stop").message == "hovering"
    held = puppet.position.copy()
    until = puppet.time + 2.0
    puppet.go_on(lambda: puppet.time > until)
    assert puppet.position == pytest.approx(held, abs=0.3)
    assert puppet.mode == "FLIGHT"
    path.poses = path.poses[2:]
    ways.publish(path)
    puppet.go_on(lambda: puppet.mode == "LAND")
    assert np.linalg.norm(puppet.position[:2] - (30, 4)) < 0.1


def test_a_planned_path_rolls_where_that_saves_energy(start, puppet):
    """It lifts off from 15.7 m before the place of the take-off, which is 30 m ahead."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    peer = puppet.peer
    puppet.mode = "DRIVE"
    node = start()
    ways = peer.publisher(Path, "follow_path", LATCHED)
    maps = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    level = HeightMap(np.zeros((3, 3)), origin_x=-100, origin_y=-100, step_x=100, step_y=100)
    maps.publish(height_map_to_msg(level, (47.0, 8.0, 500.0), 1, 10**6))
    path = Path()
    path.header.frame_id = "map"
    for x, z in [(0, 0), (30, 0), (30, 2), (42, 2), (42, 0), (80, 0)]:
        pose = PoseStamped()
        pose.pose.position.x = float(x)
        pose.pose.position.z = float(z)
        path.poses.append(pose)
    ways.publish(path)
    peer.spin_until(
        lambda: puppet._odometry.get_subscription_count() and puppet._mode.get_subscription_count()
    )

    puppet.go_on(lambda: "rolling_takeoff" in [message.data for message in puppet.requests])
    assert 30.0 - 15.8 < puppet.position[0] < 30.0 - 10.0
    peer.spin_until(lambda: "rolling take-off: it saves 1.6 s of hovering" in node.output)
    peer.spin_until(lambda: "rolling landing: it saves 4.2 s of hovering" in node.output)


def test_a_path_that_is_planned_again_arms_no_vehicle_that_was_disarmed(start, puppet):
    """A planner plans again by itself, when it has seen an obstacle."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    peer = puppet.peer
    start()
    ways = peer.publisher(Path, "follow_path", LATCHED)
    maps = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    level = HeightMap(np.zeros((3, 3)), origin_x=-100, origin_y=-100, step_x=100, step_y=100)
    maps.publish(height_map_to_msg(level, (47.0, 8.0, 500.0), 1, 10**6))
    path = Path()
    path.header.frame_id = "map"
    for x in (0, 30):
        pose = PoseStamped()
        pose.pose.position.x = float(x)
        path.poses.append(pose)
    peer.spin_until(
        lambda: puppet._odometry.get_subscription_count() and puppet._mode.get_subscription_count()
    )
    ways.publish(path)
    puppet.go_on(lambda: puppet.position[0] > 2.0)
    assert [message.data for message in puppet.requests] == ["arm"]

    text = "it was disarmed: it goes on once it is armed"
    puppet.mode = "DISARMED"
    puppet.go_on(lambda: text in str(puppet.doing()))
    for poses in (path.poses, [], path.poses):
        path.poses = poses
        ways.publish(path)
        until = puppet.time + 1.0
        puppet.go_on(lambda until=until: puppet.time > until)
    puppet.go_on(lambda: text in str(puppet.doing()))
    assert [message.data for message in puppet.requests] == ["arm"]
    puppet.mode = "DRIVE"
    puppet.go_on(lambda: puppet.position[0] > 10.0)


def test_a_flight_ends_at_the_reserve_of_the_battery(start, puppet, tmp_path):
    """The reserve of the vehicle `scale` is 15 %."""
    from sensor_msgs.msg import BatteryState

    from rfly_common.ros.qos import STATE_OUT

    start(scenario=str(tmp_path / "short.yaml"), autostart=True)
    battery = puppet.peer.publisher(BatteryState, "battery", STATE_OUT)

    def answers():
        """Return whether a pose has come back; until then a message may be lost on its way."""
        puppet.time += puppet.STEP
        puppet.tell()
        return puppet.poses and puppet._mode.get_subscription_count()

    puppet.peer.spin_until(answers)
    puppet.peer.spin_until(battery.get_subscription_count)
    battery.publish(BatteryState(percentage=0.16))
    puppet.go_on(lambda: puppet.mode == "FLIGHT")
    assert "LAND" not in puppet.modes

    def lands():
        battery.publish(BatteryState(percentage=0.14))
        return puppet.modes[-2:] == ["LAND", "DRIVE"]

    puppet.go_on(lands)
    assert np.hypot(puppet.position[0] - 6.0, puppet.position[1] - 2.0) > 1.0
    puppet.go_on(lambda: "the battery is at 14 %" in str(puppet.doing()))


def test_it_gives_up_before_a_wall_and_starts_again(start, puppet, tmp_path):
    from std_srvs.srv import Trigger

    start(scenario=str(tmp_path / "short.yaml"), autostart=True, stuck_time=2.0, stuck_detours=0)
    puppet.peer.spin_until(
        lambda: puppet._odometry.get_subscription_count() and puppet._mode.get_subscription_count()
    )
    puppet.wall = 1.5
    puppet.go_on(lambda: "stayed within 1 m for 2 s" in str(puppet.doing()))
    until = puppet.time + 1.0
    puppet.go_on(lambda: puppet.time > until)
    assert puppet.drives[-1].drive.speed == 0.0
    assert puppet.position[0] == 1.5

    # without the wall, a new start goes on from there
    puppet.wall = math.inf
    assert puppet.peer.call(Trigger, "guidance_node/start").success
    puppet.go_on(lambda: puppet.mode == "TAKEOFF")
