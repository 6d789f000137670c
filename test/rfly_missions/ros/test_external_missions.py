# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mission_node and vehicles that another program drives, with their reports."""

from __future__ import annotations

import math

import pytest
from mission_clients import (
    ABORTED,
    ORIGIN,
    SUCCEEDED,
    MissionClient,
    ground,
    item,
    publish_ground,
    takeoff,
    waypoint,
)

pytestmark = pytest.mark.ros
NAN = math.nan


def test_an_external_vehicle(start, peer, tmp_path):
    """The pose comes from a topic, in either frame; is_mode_done decides while published."""
    from geometry_msgs.msg import PoseStamped
    from std_msgs.msg import Bool

    from rfly_common.ros.qos import COMMANDS, STATE_OUT

    node = start(vehicles="[hawk]", simulate="false", file_folders=f"['{tmp_path}']")
    pilot = MissionClient(peer)
    goal = pilot.send([takeoff(0, 0, 12), waypoint(50, 0, 12), waypoint(50, 50, 12)])
    assert not pilot.command(1).success
    waiting = peer.spin_until(lambda: pilot.feedback and pilot.feedback[-1])
    assert (waiting.count, math.isnan(waiting.distance)) == (3, True)
    assert pilot.params == []
    poses = peer.publisher(PoseStamped, "hawk/pose", STATE_OUT)

    def fly(x, y, z, ready):
        pose = PoseStamped()
        pose.header.frame_id = "map_ned"
        pose.pose.position.x = float(y)
        pose.pose.position.y = float(x)
        pose.pose.position.z = float(-z)
        pose.pose.orientation.x = 1.0
        pose.pose.orientation.w = 0.0

        def publish_and_check():
            poses.publish(pose)
            return ready()

        return peer.spin_until(publish_and_check)

    fly(0, 0, 0, lambda: pilot.params and pilot.params[-1].current.mode == 1)
    fly(0, 0, 12, lambda: pilot.params[-1].current.mode == 2)

    # reports decide
    done_reports = peer.publisher(Bool, "hawk/is_mode_done", COMMANDS)
    count = len(pilot.params)
    # the node may discover the publisher later than the publisher the node
    fly(
        25, 0, 12, lambda: done_reports.publish(Bool(data=False)) or len(pilot.params) > count + 100
    )
    count = len(pilot.params)
    fly(50, 0, 12, lambda: len(pilot.params) > count + 50)
    assert pilot.params[-1].current.position.y == 0.0
    done_reports.publish(Bool(data=True))
    fly(50, 0, 12, lambda: pilot.params[-1].current.position.y == 50.0)
    count = len(pilot.params)
    fly(50, 0, 12, lambda: len(pilot.params) > count + 20)
    assert pilot.params[-1].current.position.y == 50.0  # the report belonged to the item before
    done_reports.publish(Bool(data=True))

    status, result = pilot.result(goal)
    assert (status, result.items_done) == (SUCCEEDED, 3)
    held = pilot.until_mode(7).current.position
    assert (held.x, held.y, held.z) == pytest.approx((50, 0, 12))
    assert not peer.node.get_publishers_info_by_topic("/vehicle_states")

    # no map origin: its home is placed at the vehicle
    path = tmp_path / "anywhere.waypoints"
    path.write_text(
        "QGC WPL 110\n0 1 0 16 0 0 0 0 -35 149 580 1\n1 0 3 22 0 0 0 0 -35 149 9 1\n",
        encoding="utf-8",
    )

    pilot.send(file=str(path))
    target = fly(
        50, 0, 12, lambda: pilot.params[-1].current.mode == 1 and pilot.params[-1]
    ).current.position
    assert (target.x, target.y, target.z) == pytest.approx((50, 0, 21))
    peer.spin_until(lambda: "item 0 of 0 … 0: TAKEOFF" in node.output)
    assert "no map origin is known: home of" in node.output


@pytest.mark.exhaustive
def test_an_external_land_air_vehicle(start, peer):
    """It gets mode requests and set-points, and its reports of its mode count, wherever it is."""
    from geometry_msgs.msg import PoseStamped
    from rfly_suite.msg import VehicleMode
    from std_msgs.msg import String

    from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT

    start(vehicles="[hawk]", hawk__uav_type="land-air", simulate="false")
    publish_ground(peer)
    terrain = ground()
    requests = peer.receive(String, "hawk/cmd/mode", COMMANDS)
    targets = peer.receive(PoseStamped, "hawk/cmd/pose", COMMANDS)
    poses, modes = (
        peer.publisher(t, f"hawk/{n}", q)
        for t, n, q in ((PoseStamped, "pose", STATE_OUT), (VehicleMode, "mode", LATCHED))
    )
    pilot = MissionClient(peer)
    mode = "DISARMED"

    def be(x, y, z, ready):
        pose = PoseStamped()
        pose.header.frame_id = "map"
        pose.pose.position.x = float(x)
        pose.pose.position.y = float(y)
        pose.pose.position.z = float(z)

        def publish_and_check():
            poses.publish(pose)
            return ready()

        return peer.spin_until(publish_and_check)

    modes.publish(VehicleMode(mode=mode))
    floor = terrain.altitude(0.0, 0.0)
    be(0, 0, floor, lambda: pilot.params)
    assert not targets
    goal = pilot.send(
        [waypoint(20, 0, 99), takeoff(20, 0, 30), item(4, (20, 0, 0)), waypoint(20, 30, 99)]
    )

    # on the road
    be(0, 0, floor, lambda: requests and requests[-1].data == "arm")
    modes.publish(VehicleMode(mode="DRIVE"))
    ahead = be(0, 0, floor, lambda: targets and targets[-1].pose.position.x > 3.0 and targets[-1])
    assert ahead.header.frame_id == "map"
    assert ahead.pose.position.z == pytest.approx(
        terrain.altitude(ahead.pose.position.x, ahead.pose.position.y), abs=0.1
    )
    assert pilot.params[-1].current.mode == 2

    # up
    be(20, 0, terrain.altitude(20.0, 0.0), lambda: pilot.params[-1].current.mode == 1)
    be(20, 0, terrain.altitude(20.0, 0.0), lambda: requests[-1].data == "takeoff")
    modes.publish(VehicleMode(mode="TAKEOFF"))
    count = len(pilot.params)
    be(20, 0, 30.0, lambda: len(pilot.params) > count + 20)
    assert pilot.params[-1].current.mode == 1

    # down
    modes.publish(VehicleMode(mode="FLIGHT"))
    be(20, 0, 9.0, lambda: pilot.params[-1].current.mode == 4)
    be(20, 0, 9.0, lambda: requests[-1].data == "land")
    modes.publish(VehicleMode(mode="DRIVE"))

    # on the road again
    be(20, 0, 9.0, lambda: pilot.params[-1].current.position.y == 30.0)
    be(20, 30, 0, goal.done)
    status, result = pilot.result(goal)
    assert (status, result.items_done) == (SUCCEEDED, 4)


def test_who_disarms_an_external_vehicle_on_its_mission_is_not_overruled(start, peer, tmp_path):
    """It waits, and says so; armed again it goes on. Another mission arms it, a refused one not."""
    from diagnostic_msgs.msg import DiagnosticArray
    from geometry_msgs.msg import PoseStamped
    from node_harness import diagnostic
    from rfly_suite.msg import VehicleMode
    from std_msgs.msg import String

    from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT
    from rfly_missions.mission.files import Mission, write_mission
    from rfly_missions.mission.geofence import FenceCircle, Geofence
    from rfly_missions.mission.items import MissionItem

    elsewhere = Geofence((FenceCircle((60.0, 0.0), 20.0, True),))
    far = Mission((MissionItem.takeoff((60.0, 0.0, -20.0)),), ORIGIN, fence=elsewhere)
    write_mission(tmp_path / "far.plan", far, uav_type="land-air")
    start(
        vehicles="[hawk]",
        hawk__uav_type="land-air",
        simulate="false",
        file_folders=f"['{tmp_path}']",
    )
    publish_ground(peer)
    requests = peer.receive(String, "hawk/cmd/mode", COMMANDS)
    heard = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
    poses = peer.publisher(PoseStamped, "hawk/pose", STATE_OUT)
    modes = peer.publisher(VehicleMode, "hawk/mode", LATCHED)
    pilot = MissionClient(peer)
    pose = PoseStamped()
    pose.header.frame_id = "map"
    pose.pose.position.z = float(ground().altitude(0.0, 0.0))

    def until(ready):
        def publish_and_check():
            poses.publish(pose)
            return ready()

        return peer.spin_until(publish_and_check)

    def asked(word):
        return any(message.data == word for message in requests)

    modes.publish(VehicleMode(mode="DISARMED"))
    until(lambda: pilot.params)
    pilot.send([takeoff(0, 0, 30)])
    until(lambda: asked("arm"))
    modes.publish(VehicleMode(mode="DRIVE"))
    until(lambda: asked("takeoff"))

    modes.publish(VehicleMode(mode="DISARMED"))
    text = "hawk was disarmed: it goes on once it is armed"
    until(lambda: (d := diagnostic(heard, "missions")) and text in d[1])
    requests.clear()
    count = len(pilot.params)
    until(lambda: len(pilot.params) > count + 40)
    assert not requests

    # the mission goes on while another one is refused
    status, result = pilot.result(pilot.send(file=str(tmp_path / "far.plan")))
    assert (status, "the vehicle breaches" in result.message) == (ABORTED, True)
    count = len(pilot.params)
    until(lambda: len(pilot.params) > count + 40)
    assert not requests

    modes.publish(VehicleMode(mode="DRIVE"))
    until(lambda: asked("takeoff"))
    modes.publish(VehicleMode(mode="DISARMED"))
    until(lambda: (d := diagnostic(heard, "missions")) and text in d[1])
    pilot.send([takeoff(0, 0, 20)])
    until(lambda: asked("arm"))
