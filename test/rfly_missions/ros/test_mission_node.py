# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mission_node as other nodes see it: a running process, real DDS, goals, commands."""

from __future__ import annotations

import json
import math
import threading
import time

import numpy as np
import pytest
from marks import exhaustively
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
from node_harness import PATIENCE

from rfly_common.geodesy import ned_to_geodetic
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.ros
NAN = math.nan


@pytest.fixture
def hears_much():
    return True


def test_a_standing_vehicle_shows_its_pose_before_kernels_are_loaded(domain_id, peer, monkeypatch):
    """They are not loaded before the test's end."""
    import rclpy
    from geometry_msgs.msg import PoseStamped
    from rclpy.executors import SingleThreadedExecutor
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED, STATE_IN
    from rfly_missions.ros import mission_node
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    may_load = threading.Event()
    monkeypatch.setattr(mission_node, "_warm_up", lambda: not may_load.wait())
    publisher = peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)
    publisher.publish(height_map_to_msg(ground(), ORIGIN, 1, 10**9))
    poses = peer.receive(PoseStamped, "/hawk/pose", STATE_IN)

    rclpy.init(args=["--ros-args", "-p", "vehicles:=[hawk]"], domain_id=domain_id)
    executor = SingleThreadedExecutor()
    node = mission_node.MissionNode()
    executor.add_node(node)
    try:
        peer.spin_until(lambda: executor.spin_once(timeout_sec=0.01) or poses)
    finally:
        may_load.set()
        executor.remove_node(node)
        node.destroy_node()
        executor.shutdown()
        rclpy.shutdown()


@pytest.fixture
def start_fast(start, peer):
    """Starts mission_node on simulated time, five times as fast as the wall clock."""
    from rclpy.clock import Clock as RclpyClock
    from rclpy.clock import ClockType
    from rosgraph_msgs.msg import Clock

    from rfly_common.ros.qos import STATE_OUT
    from rfly_common.ros.stamps import ns_to_stamp

    clock = peer.node.create_publisher(Clock, "/clock", STATE_OUT)
    begun = time.monotonic_ns()

    def publish_time():
        now = 1_000_000_000_000 + 5 * (time.monotonic_ns() - begun)
        clock.publish(Clock(clock=ns_to_stamp(now)))

    steady = RclpyClock(clock_type=ClockType.STEADY_TIME)
    timer = peer.node.create_timer(0.005, publish_time, clock=steady)
    yield lambda **parameters: start(use_sim_time="true", **parameters)
    peer.node.destroy_timer(timer)


@pytest.mark.parametrize("x", [3e38, -2e8, NAN, math.inf, 1e308])
def test_a_pose_beyond_all_places_is_refused(x):
    from geometry_msgs.msg import Point, Pose, Quaternion

    from rfly_common.transform_buffer import FrameToWorld
    from rfly_missions.ros.mission_msgs import pose_to_ned

    level = Quaternion(w=1.0)
    assert pose_to_ned(Pose(position=Point(x=x), orientation=level), FrameToWorld("ned")) is None

    near = pose_to_ned(Pose(position=Point(x=1e7), orientation=level), FrameToWorld("ned"))
    assert near is not None
    assert near[:3] == (1e7, 0.0, 0.0)


CANCELED = 5


def test_a_goal_to_its_end_with_states_poses_and_feedback(start_fast, peer):
    """Take-off, way-point, land in `map`: every item in order, shown, never below the ground."""
    from geometry_msgs.msg import PoseStamped
    from rfly_suite.msg import VehicleStateArray
    from visualization_msgs.msg import MarkerArray

    from rfly_common.ros.qos import FLEET_IN, LATCHED, STATE_OUT

    terrain = ground()
    states = peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)
    poses = peer.receive(PoseStamped, "hawk/pose", STATE_OUT)

    start_fast(vehicles="[hawk]", hawk__id=77, hawk__start="[3.0, 4.0, 0.0]")
    pilot = MissionClient(peer)
    publish_ground(peer, terrain)
    peer.spin_until(lambda: states and poses)

    first = states[0]
    assert (list(first.id), list(first.vehicle_type), first.source) == ([77], [3], "/mission_node")
    np.testing.assert_allclose(first.position, [3, 4, terrain.altitude(3.0, 4.0)], atol=1e-6)
    assert pilot.until_mode(7).previous.mode == 0
    idle_until = len(pilot.params)

    shown = peer.receive(MarkerArray, "fleet_markers", LATCHED)
    markers = {m.ns: m for m in peer.spin_until(lambda: shown and shown[-1].markers)}
    assert set(markers) == {"vehicles", "pins", "names"}
    assert {(m.id, m.header.frame_id) for m in markers.values()} == {(77, "hawk/base_link")}
    assert markers["names"].text == "hawk"

    goal = [takeoff(3, 4, 15), waypoint(25, 10, 15, yaw=0.5), item(4, (25, 10, 99))]
    status, result = pilot.result(pilot.send(goal))
    assert (status, result.success, result.items_done) == (SUCCEEDED, True, 3), result.message

    # items
    modes = [message.current.mode for message in pilot.params]
    assert sorted(set(modes), key=modes.index) == [7, 1, 2, 4]
    armed = next(m for m in pilot.params[idle_until:] if m.current.mode == 1).previous
    assert (armed.mode, armed.params.tolist()) == (0, [-1, -1, -1, -1])
    assert (armed.position.x, armed.position.y) == pytest.approx((3, 4))
    on_way = next(m for m in pilot.params if m.current.mode == 2)
    assert on_way.header.frame_id == "map"
    assert on_way.current.params.tolist() == pytest.approx([0.5, 2, 0, 0])
    assert on_way.previous.params[0] == pytest.approx(math.atan2(6, 22))

    # the track, in states and poses
    track = np.array([m.position for m in states])
    assert np.all(track[:, 2] >= terrain.altitude(track[:, 0], track[:, 1]) - 1e-6)
    np.testing.assert_allclose(track[-1], [25, 10, terrain.altitude(25.0, 10.0)], atol=1.1)
    p = poses[-1].pose.position
    stamp = poses[-1].header.stamp
    state = next(m for m in states if m.header.stamp == stamp)
    assert [p.x, p.y, p.z] == list(state.position)

    # feedback, of which the last may come after the result
    peer.spin_until(lambda: pilot.feedback[-1].progress == 1.0)
    assert [f.index for f in pilot.feedback] == sorted(f.index for f in pilot.feedback)
    assert {f.count for f in pilot.feedback} == {3}
    near = [f.distance for f in pilot.feedback if f.index == 1]
    assert near[0] > 15 > near[-1]


BAD = {
    "hold is the manager's": (
        [(1, (0, 0, 9)), (7, (0, 0, 0))],
        {},
        "mission item 1: mode 7",
    ),
    "armed": ([(0, (0, 0, 0))], {}, "mission item 0: mode 0"),
    "no such mode": ([(9, (0, 0, 0))], {}, "mission item 0: mode: 9"),
    "not a number": ([(1, (0, 0, 9)), (2, (NAN, 0, 9))], {}, "mission item 1: WAYPOINT position"),
    "frame": ([(1, (0, 0, 9))], {"frame": "mars"}, "header.frame_id: 'mars'"),
    "start": ([(1, (0, 0, 9))], {"start_index": 1}, "start_index: 1, the mission has 1 items"),
    "no home": ([(1, (0, 0, 9))], {"home_source": 1}, "parameter hawk.home is not set"),
    "home of nowhere": ([(1, (0, 0, 9))], {"home_source": 3}, "home_source: 3"),
    "no file": (
        [],
        {"file": "/no/such.plan"},
        "not below the folders of the parameter file_folders",
    ),
    "file and items": ([(1, (0, 0, 9))], {"file": "/no/such.plan"}, "items: expected none"),
}


def test_bad_goals_are_aborted_with_the_reason_and_disturb_nobody(start_fast, peer):
    """A good mission goes on while they are refused. A car can't take off, but drives."""
    from geometry_msgs.msg import PoseStamped
    from std_msgs.msg import Header

    from rfly_common.ros.qos import STATE_OUT

    start_fast(vehicles="[hawk, cart]", cart__uav_type="ground")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)
    good = pilot.send([takeoff(0, 0, 12), waypoint(150, 0, 20)])
    pilot.until_mode(1)
    for what, (items, changes, text) in BAD.items():
        fields = dict(changes)
        if "frame" in fields:
            fields["header"] = Header(frame_id=fields.pop("frame"))
        status, result = pilot.result(
            pilot.send([item(*fields_of_item) for fields_of_item in items], **fields)
        )
        assert (status, result.success) == (ABORTED, False), what
        assert text in result.message, what
    assert not good.done()
    assert pilot.params[-1].current.mode in (1, 2)

    poses = peer.receive(PoseStamped, "cart/pose", STATE_OUT)
    cart = MissionClient(peer, "cart")
    status, result = cart.result(cart.send([waypoint(30, 0, 99), takeoff(0, 0, 9)]))
    assert (status, result.message) == (
        ABORTED,
        "mission item 1: TAKEOFF, which a ground vehicle can't do",
    )

    status, result = cart.result(cart.send([waypoint(30, 0, 99)]))
    assert (status, result.items_done) == (SUCCEEDED, 1)
    peer.spin_until(lambda: poses and poses[-1].pose.position.x > 27.5)
    place = poses[-1].pose.position
    terrain = ground()
    assert place.z == pytest.approx(terrain.altitude(place.x, place.y), abs=0.1)


def test_items_too_low_for_a_fixed_wing_are_flown_higher_or_refused(start_fast, peer):
    """100 m from a cliff of 60 m a fixed wing can't fly at 20 m, see test_runner_over_ground."""
    axis = np.arange(-300.0, 301.0, 10.0)
    heights = np.repeat(np.where(axis >= 100.0, 60.0, 0.0)[:, None], len(axis), axis=1)
    cliff = HeightMap(heights, origin_x=-300, origin_y=-300, step_x=10, step_y=10, name="cliff")
    kinds = {"jet__uav_type": "fixed-wing", "kite__uav_type": "fixed-wing"}
    start_fast(vehicles="[jet, kite]", kite__too_low="refuse", **kinds)
    publish_ground(peer, cliff)

    low = [takeoff(0, 0, 20)]
    kite = MissionClient(peer, "kite")
    kite.until_mode(7)
    status, result = kite.result(kite.send(low))
    assert status == ABORTED
    assert result.message.startswith(
        "mission item 0: TAKEOFF at 20.0 m, expected at least 48.3 m to keep 2 m above"
    )

    jet = MissionClient(peer, "jet")
    jet.send(low)
    params = jet.until_mode(1)
    assert params.current.position.z == 20.0
    flown = params.flown_position
    assert [flown.x, flown.y, flown.z] == pytest.approx([0, 0, 60 - 100 * 0.16 / 1.0824 + 3])


def test_a_custom_item_is_the_users_and_a_command_is_mavlinks(start_fast, peer):
    from std_msgs.msg import Bool

    from rfly_common.ros.qos import COMMANDS

    start_fast(vehicles="[hawk]")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)

    speed = item(6, (0, 0, 15), (1, 3, 0, 0))
    speed.command = 178
    own = item(6, (0, 0, 15), (206, 25, 0, 1))
    goal = pilot.send([takeoff(0, 0, 15), speed, own, waypoint(20, 0, 15)])
    peer.spin_until(lambda: pilot.params[-1].current == own)
    # a command is done at once: a busy peer may miss its own message
    before = pilot.params[-1].previous
    assert (before.mode, before.command) == (6, 178)
    count = len(pilot.params)
    peer.spin_until(lambda: len(pilot.params) > count + 30)
    assert all(m.current == own for m in pilot.params[count:])

    report = peer.node.create_publisher(Bool, "hawk/is_mode_done", COMMANDS)
    peer.spin_until(report.get_subscription_count)
    report.publish(Bool(data=True))
    assert pilot.until_mode(2).current.position.x == 20.0
    peer.node.destroy_publisher(report)
    assert pilot.result(goal)[0] == SUCCEEDED


def test_a_silent_publisher_of_is_mode_done_is_named(start_fast, peer):
    """It exists and says nothing, so that an item never ends: /diagnostics names it after 5 s."""
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
    from std_msgs.msg import Bool

    from rfly_common.ros.qos import COMMANDS, STATE_OUT

    start_fast(vehicles="[hawk]")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)
    report = peer.node.create_publisher(Bool, "hawk/is_mode_done", COMMANDS)
    peer.spin_until(report.get_subscription_count)
    reports = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
    begun = time.monotonic()
    goal = pilot.send([takeoff(0, 0, 12), waypoint(10, 0, 20)])

    def warning():
        states = [status for message in reports for status in message.status]
        return [
            s for s in states if s.level == DiagnosticStatus.WARN and "is_mode_done" in s.message
        ]

    (first, *_) = peer.spin_until(warning)
    name = peer.node.get_fully_qualified_name()
    assert time.monotonic() - begun > 5.0
    assert first.message.startswith(
        f"item 0 of hawk waits for /hawk/is_mode_done, which {name} has not published for "
    )

    report.publish(Bool(data=True))
    pilot.until_mode(2)
    reports.clear()
    peer.spin_until(lambda: len(reports) > 2)
    assert not warning()
    peer.node.destroy_publisher(report)
    assert pilot.result(goal)[0] == SUCCEEDED


def test_cancel_holds_and_a_new_goal_replaces(start_fast, peer):
    start_fast(vehicles="[hawk]")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)
    first = pilot.send([takeoff(0, 0, 12), waypoint(150, 0, 20)])

    pilot.until_mode(2)
    second = pilot.send([waypoint(0, 150, 20)])
    status, result = pilot.result(first)
    assert (status, result.message, result.items_done) == (ABORTED, "replaced by a new goal", 1)

    message = peer.spin_until(
        lambda: pilot.params[-1].current.position.y == 150.0 and pilot.params[-1]
    )
    assert (message.previous.mode, message.previous.position.x) == (2, 150.0)

    cancelled = pilot.handle.cancel_goal_async()
    status, result = pilot.result(second)
    assert cancelled.done() or peer.spin_until(cancelled.done)
    assert (status, result.success) == (CANCELED, False)
    held = pilot.until_mode(7).current.position
    assert math.hypot(held.x, held.y - 150.0) > 20.0  # held where it was, not where it was to go

    count = len(pilot.params)
    peer.spin_until(lambda: len(pilot.params) > count + 30)
    assert {(m.current.mode, m.current.position.x) for m in pilot.params[count:]} == {(7, held.x)}


def test_hold_resume_return_and_repeat(start_fast, peer):
    """Commands come by service and by topic; wrong numbers are refused by name."""
    from geometry_msgs.msg import Point
    from std_msgs.msg import UInt8

    from rfly_common.ros.qos import COMMANDS

    start_fast(vehicles="[hawk]")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)
    items = [takeoff(0, 0, 12), waypoint(14, 0, 14), waypoint(14, 10, 14)]
    goal = pilot.send(items, repeat=True, home_source=0, home=Point(x=-150.0))
    pilot.until_mode(2)

    assert pilot.command(1).success
    assert pilot.until_mode(7).previous.position.x == 14.0
    topic = peer.publisher(UInt8, "hawk/mission_command", COMMANDS)
    topic.publish(UInt8(data=3))
    home = pilot.until_mode(5).current.position
    assert (home.x, home.y) == (-150, 0)

    wrong = pilot.command(4)
    assert not wrong.success
    assert "command: 4, expected one of 0 DEFAULT" in wrong.message

    assert pilot.command(0).success
    resumed = pilot.until_mode(2)
    assert (resumed.previous.mode, resumed.current.position.x) == (5, 14.0)
    peer.spin_until(lambda: pilot.params[-1].current.position.y == 10.0)
    again = pilot.until_mode(1)
    assert again.previous.position.y == 10.0
    assert not goal.done()


def test_a_commanded_return_ends_the_goal_and_progress_moves_within_an_item(start_fast, peer):
    start_fast(vehicles="[hawk]")
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)
    goal = pilot.send([takeoff(0, 0, 12), waypoint(60, 0, 14), waypoint(60, 90, 14)])

    peer.spin_until(lambda: pilot.feedback and pilot.feedback[-1].progress > 0.5)
    shares = [feedback.progress for feedback in pilot.feedback]
    assert len({share for share in shares if 1 / 3 < share < 2 / 3}) > 3
    assert shares == sorted(shares)

    assert pilot.command(3).success
    status, result = pilot.result(goal)
    assert (status, result.success, result.message, result.items_done) == (
        ABORTED,
        False,
        "returned by command",
        1,
    )

    assert pilot.feedback[-1].current.mode == 5
    assert pilot.feedback[-1].progress < 2 / 3
    assert pilot.result(pilot.send([takeoff(0, 0, 12)]))[0] == SUCCEEDED


def test_several_vehicles_at_once(start_fast, peer):
    """A multirotor and a fixed wing fly their own missions; one holds while the other goes on."""
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_IN

    states = peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)
    start_fast(
        vehicles="[hawk, jet]",
        jet__uav_type="fixed-wing",
        jet__start="[-60.0, -60.0, 0.785]",
        jet__loiter_radius="30.0",
    )
    publish_ground(peer)

    hawk = MissionClient(peer)
    jet = MissionClient(peer, "jet")
    jet.until_mode(7)
    of_jet = jet.send([takeoff(20, 20, 25), item(3, (20, 20, 30), (40, 1, 0.25, 0))])
    of_hawk = hawk.send([takeoff(0, 0, 12), waypoint(20, 0, 14)])

    assert hawk.command(1).success
    status, result = jet.result(of_jet)
    assert (status, result.items_done) == (SUCCEEDED, 2), result.message
    hold = jet.until_mode(7)
    assert hold.current.params.tolist() == [30, 0, -1, -1]
    assert hawk.params[-1].current.mode == 7
    assert not of_hawk.done()

    assert hawk.command(0).success
    assert hawk.result(of_hawk)[0] == SUCCEEDED

    last = states[-1]
    assert list(last.id) == [501, 502]
    assert list(last.vehicle_type) == [3, 100]
    assert math.hypot(*last.velocity[3:5]) > 9.0


def test_a_mission_file_lies_where_its_latitudes_say(start_fast, peer, tmp_path):
    """The file's home is 30 m north of the map's origin and 10 m higher.

    A way-point is 20 m east of it.
    """
    home = ned_to_geodetic((30.0, 0.0, -10.0), ORIGIN).tolist()
    over = ned_to_geodetic((30.0, 20.0, 0.0), ORIGIN).tolist()

    def simple(command, params):
        return {"type": "SimpleItem", "command": command, "frame": 3, "params": params}

    plan = {
        "fileType": "Plan",
        "version": 1,
        "geoFence": {
            "circles": [{"circle": {"center": home[:2], "radius": 90}, "inclusion": True}],
            "version": 2,
        },
        "mission": {
            "version": 2,
            "plannedHomePosition": home,
            "items": [
                simple(22, [0, 0, 0, None, 0, 0, 12]),
                simple(16, [0, 0, 0, None, *over[:2], 20]),
            ],
        },
    }
    path = tmp_path / "survey.plan"
    path.write_text(json.dumps(plan), encoding="utf-8")

    node = start_fast(
        vehicles="[hawk]", hawk__start="[0.0, 25.0, 0.0]", file_folders=f"['{tmp_path}']"
    )
    publish_ground(peer)
    pilot = MissionClient(peer)
    pilot.until_mode(7)

    status, result = pilot.result(pilot.send(file=str(path)))
    assert (status, result.items_done) == (SUCCEEDED, 2), result.message
    target = next(m.current.position for m in reversed(pilot.params) if m.current.mode == 2)
    assert (target.x, target.y, target.z) == pytest.approx((20, 30, 30), abs=1e-3)

    assert pilot.command(3).success
    back = pilot.until_mode(5).current.position
    assert (back.x, back.y) == pytest.approx((0, 30), abs=1e-3)

    plan["mission"]["plannedHomePosition"] = [-35.0, 149.0, 580.0]
    path.write_text(json.dumps(plan), encoding="utf-8")
    status, result = pilot.result(pilot.send(file=str(path)))
    assert status == ABORTED
    assert "km from the map's origin (47.0, 8.0, 500.0); set geo_origin" in result.message

    plan["mission"]["plannedHomePosition"] = home
    plan["mission"]["items"].append(
        simple(16, [0, 0, 0, None, *ned_to_geodetic((30, 120, 0), ORIGIN)[:2].tolist(), 20])
    )
    path.write_text(json.dumps(plan), encoding="utf-8")
    status, result = pilot.result(pilot.send(file=str(path)))
    assert status == ABORTED
    way = "mission item 2 (WAYPOINT), or the way to it,"
    assert f"{way} breaches area 1 of the fence (inclusion circle)" in result.message

    assert "geo_origin 0, 0, 0" not in node.output
    publish_ground(peer, origin=(0.0, 0.0, 0.0))
    peer.spin_until(
        lambda: "geo_origin 0, 0, 0" in pilot.result(pilot.send(file=str(path)))[1].message
    )
    peer.spin_until(lambda: f"hawk: {path}: terrain_map has the geo_origin 0, 0, 0" in node.output)


def test_it_stops_in_order_with_goals_on_the_way(start, peer):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic

    from rfly_common.ros.qos import STATE_OUT

    heard = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
    node = start(vehicles="[hawk, crow]")

    level, text, _ = peer.spin_until(lambda: diagnostic(heard, "missions"))
    assert (level, text) == (3, "no terrain_map has come yet: is terrain_node running?")
    publish_ground(peer)
    pilots = [MissionClient(peer, name) for name in ("hawk", "crow")]
    for pilot in pilots:
        pilot.until_mode(7)

    def row(item):
        return peer.spin_until(
            lambda: (d := diagnostic(heard, "missions")) and item in d[2].get("hawk", "") and d
        )

    assert row("HOLD")[2]["hawk"] == "HOLD"  # no mission, no item
    for pilot in pilots:
        pilot.send([takeoff(0, 0, 12), waypoint(150, 0, 20)])
    assert row("item 0 of 0 … 1")[:2] == (0, "running")

    assert node.stop() == 0
    assert "Traceback" not in node.output


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"vehicles": "[a b]"}, "parameter vehicles: 'a b'"),
        exhaustively({"vehicles": "[hawk, hawk]"}, "is named twice"),
        exhaustively(
            {"vehicles": "[hawk]", "hawk__uav_type": "plane"},
            "hawk.uav_type: 'plane', expected one of multirotor",
        ),
        ({"vehicles": "[hawk]", "hawk__start": "[1.0]"}, "hawk.start: [1.0], expected x, y, yaw"),
    ],
)
def test_wrong_parameters_end_it_in_one_line(start, domain_id, parameters, text):
    node = start(**parameters)
    assert node.process.wait(PATIENCE) == 2
    node._reader.join(PATIENCE)
    assert text in node.output
    assert "Traceback" not in node.output
