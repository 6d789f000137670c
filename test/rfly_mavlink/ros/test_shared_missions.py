# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ground station and ROS clients with one mission, one fence and one map, through both nodes."""

from __future__ import annotations

import json
import math
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.ros.endpoints import GoalResult
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]

common = late_module("pymavlink.dialects.v20.common")

ORIGIN = (47.0, 8.0, 500.0)
FASTER = 5
"""Simulated seconds in a second."""
NAN = math.nan
CLIENT = Path(__file__).parents[2] / "mavsdk_plan_client.py"
ABORTED = 6
PAUSE_CONTINUE = 193
HOLDING = 2
RETURNING = 3


@pytest.fixture
def world(peer):
    """Simulated time, and a slope of 1 in 10 to the north, 500 m above the sea at the origin."""
    from fleet_harness import TerrainSource
    from rclpy.clock import Clock as RclpyClock
    from rclpy.clock import ClockType
    from rosgraph_msgs.msg import Clock

    from rfly_common.ros.qos import STATE_OUT
    from rfly_common.ros.stamps import ns_to_stamp
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    north = np.arange(-200.0, 201.0, 10.0)
    slope = HeightMap(
        np.tile(0.1 * north, (41, 1)), origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0
    )
    TerrainSource(peer).publish_message(height_map_to_msg(slope, ORIGIN, 1, 10**9))

    clock = peer.node.create_publisher(Clock, "/clock", STATE_OUT)
    begun = time.monotonic_ns()

    def publish_time():
        now = 1_000_000_000_000 + FASTER * (time.monotonic_ns() - begun)
        clock.publish(Clock(clock=ns_to_stamp(now)))

    steady = RclpyClock(clock_type=ClockType.STEADY_TIME)
    timer = peer.node.create_timer(0.005, publish_time, clock=steady)
    yield
    peer.node.destroy_timer(timer)


@pytest.fixture
def start(domain_id):
    """Starts nodes for two vehicles, hawk (system 1) and kite; checks that they end well."""
    from node_harness import NodeProcess

    with ExitStack() as stack:
        nodes = []

        def begin(name, *arguments, **parameters):
            both = {"vehicles": "[hawk, kite]", "use_sim_time": "true", **parameters}
            nodes.append(stack.enter_context(NodeProcess(name, domain_id, both, *arguments)))

        yield begin
        assert {node.stop() for node in nodes} == {0}
        assert not any("Traceback" in node.output for node in nodes)


@pytest.fixture
def station(start, peer, world, tmp_path):
    """A station that hears hawk (system 1) and kite; both nodes run."""
    from mavlink_station import StationSocket

    with StationSocket(peer) as station:
        start("mission_node", file_folders=f"['{tmp_path}']")
        start("mavlink_node", port="0", targets=f"['127.0.0.1:{station.port}']")
        peer.spin_until(lambda: station.last("GLOBAL_POSITION_INT"))
        yield station


def mission_item(mode, x, y, z):
    """Return an item at a place, ENU."""
    from geometry_msgs.msg import Point
    from rfly_suite.msg import MissionItem

    params = {2: [NAN, 2.0, 0.0, 0.0], 3: [15.0, 1.0, 1e4, 0.0]}.get(mode, [0.0] * 4)
    position = Point(x=float(x), y=float(y), z=float(z))
    return MissionItem(mode=mode, position=position, params=params)


class Client:
    """A ROS client of hawk's missions."""

    def __init__(self, peer):
        from rclpy.action import ActionClient
        from rfly_suite.action import ExecuteMission
        from rfly_suite.msg import Mission, MissionParams

        from rfly_common.ros.qos import LATCHED

        self.peer = peer
        self.client = ActionClient(peer.node, ExecuteMission, "hawk/execute_mission")
        self.missions = peer.receive(Mission, "hawk/mission", LATCHED)
        self.params = peer.receive(MissionParams, "hawk/mission_params", LATCHED)
        peer.spin_until(lambda: self.client.server_is_ready() and self.missions and self.params)

    def start(self, *items):
        """Send a goal of modes and places, ENU; return the future of its end."""
        from rfly_suite.action import ExecuteMission

        items = [mission_item(*item) for item in items]
        return self.send(ExecuteMission.Goal(home_source=2, items=items))

    def send(self, goal):
        return GoalResult(self.peer.send_goal(self.client, goal))

    def command(self, number):
        from rfly_suite.srv import SetMissionCommand

        return self.peer.call(SetMissionCommand, "hawk/set_mission_command", command=number)

    def until_phase(self, phase):
        self.peer.spin_until(lambda: self.params[-1].phase == phase)


def state_of(station):
    """Return the state of hawk's mission, and the row that is flown."""
    station.last("MISSION_CURRENT")
    current = [
        m for m in station.heard if m.get_type() == "MISSION_CURRENT" and m.get_srcSystem() == 1
    ]
    return (current[-1].mission_state, current[-1].seq) if current else None


def downloaded(station, mission_type=0):
    """Return command, place and height of each row of hawk's plan.

    Return None if the plan has changed meanwhile: a row that is gone is refused.
    """
    request = common.MAVLink_mission_request_list_message(1, 1, mission_type)
    rows = []
    for seq in range(station.ask(request, "MISSION_COUNT").count):
        request = common.MAVLink_mission_request_int_message(1, 1, seq, mission_type)
        row = station.ask(request, "MISSION_ITEM_INT", "MISSION_ACK")
        if row.get_type() == "MISSION_ACK":
            return None
        assert row.seq == seq
        rows.append((row.command, row.x, row.y, row.z))
    return rows


def upload(station, rows, mission_type=0):
    """Upload rows of frame, command, first parameter, place and height; return the result."""
    answer = common.MAVLink_mission_count_message(1, 1, len(rows), mission_type)
    for seq, (frame, command, first, x, y, z) in enumerate(rows):
        assert station.ask(answer, "MISSION_REQUEST_INT").seq == seq
        fields = (1, 1, seq, frame, command, 0, 1, first, 2.0, 0.0, NAN, x, y, z, mission_type)
        answer = common.MAVLink_mission_item_int_message(*fields)
    return station.ask(answer, "MISSION_ACK").type


def place(north, east):
    """Return latitude and longitude, 1e-7 degrees, by the radii of WGS 84 at 47°."""
    return 470000000 + round(1e7 * north / 111_170.9), 80000000 + round(1e7 * east / 76_056.1)


def test_a_mission_of_a_ros_client_is_the_stations_too(station, peer):
    client = Client(peer)
    goal = client.start((1, 0.0, 0.0, 12.0), (2, 0.0, 90.0, 30.0), (2, 60.0, 90.0, 30.0))
    peer.spin_until(lambda: state_of(station) == (common.MISSION_STATE_ACTIVE, 1))

    # it comes down, above the home where it began
    rows = downloaded(station)
    assert [row[0] for row in rows] == [22, 16, 16]
    assert rows[2][1:3] == pytest.approx(place(90, 60), abs=2)
    assert [row[3] for row in rows] == pytest.approx([12.0, 30.0, 30.0], abs=0.05)
    reached = [m.seq for m in station.heard if m.get_type() == "MISSION_ITEM_REACHED"]
    assert reached == [0]

    # the station pauses, the ROS client resumes, and the other way round
    assert station.command(PAUSE_CONTINUE, 0.0) == 0
    client.until_phase(HOLDING)
    peer.spin_until(lambda: state_of(station)[0] == common.MISSION_STATE_PAUSED)
    assert client.command(0).success
    peer.spin_until(lambda: state_of(station)[0] == common.MISSION_STATE_ACTIVE)
    assert client.command(1).success
    peer.spin_until(lambda: state_of(station)[0] == common.MISSION_STATE_PAUSED)
    assert station.command(PAUSE_CONTINUE, 1.0) == 0
    peer.spin_until(lambda: state_of(station)[0] == common.MISSION_STATE_ACTIVE)
    assert not goal.done()

    # an upload replaces it, and the ROS client sees that
    before = bytes(client.missions[-1].goal_id)
    assert upload(station, [(6, 16, 0.0, *place(40, -80), 25.0)]) == 0
    peer.spin_until(goal.done)
    assert (goal.result().status, goal.result().result.message) == (
        ABORTED,
        "replaced by a new goal",
    )
    shown = peer.spin_until(
        lambda: (newest := client.missions[-1]) and bytes(newest.goal_id) != before and newest
    )
    (item,) = [item for item in shown.items if item.mode == 2]
    assert (item.position.x, item.position.y) == pytest.approx((-80.0, 40.0), abs=0.05)
    assert downloaded(station) == [(16, *place(40, -80), 25.0)]

    # a second goal of the ROS client, which another item is begun with
    client.start((2, 0.0, 50.0, 30.0), (2, 0.0, -50.0, 30.0))
    wanted = [place(50, 0), place(-50, 0)]
    peer.spin_until(lambda: [row[1:3] for row in downloaded(station)] == wanted)
    peer.spin_until(lambda: state_of(station) == (common.MISSION_STATE_ACTIVE, 0))
    assert station.command(224, 1.0) == 0
    peer.spin_until(lambda: state_of(station) == (common.MISSION_STATE_ACTIVE, 1))
    assert [row[1:3] for row in downloaded(station)] == wanted


def test_a_fence_of_the_station_ends_a_mission_of_a_ros_client(station, peer):
    client = Client(peer)
    fence = [(0, 5003, 60.0, *place(0, 0), 0.0)]
    # circles outside of the fence: the mission lasts until the fence is there, however late
    goal = client.start((1, 0.0, 0.0, 12.0), (3, 0.0, 150.0, 30.0))
    assert upload(station, fence, 1) == 0
    assert upload(station, [(6, 5100, 0.0, *place(30, 10), 20.0)], 2) == 0

    # the ROS client sees it
    shown = peer.spin_until(lambda: (f := client.missions[-1].fence).areas and f.rally and f)
    (area,) = shown.areas
    assert (area.inclusion, area.radius) == (True, 60.0)
    assert (shown.rally[0].x, shown.rally[0].y) == pytest.approx((10.0, 30.0), abs=0.02)
    assert downloaded(station, 1) == [(5003, *place(0, 0), 0.0)]

    # it leaves the fence, and returns to the rally point
    peer.spin_until(goal.done)
    assert "area 1 of the fence (inclusion circle) was breached" in goal.result().result.message
    assert peer.spin_until(lambda: (m := station.last("FENCE_STATUS")) and m.breach_count) == 1
    client.until_phase(RETURNING)
    back = place(30, 10)

    def distance():
        station.last("GLOBAL_POSITION_INT")
        here = next(
            m
            for m in reversed(station.heard)
            if m.get_type() == "GLOBAL_POSITION_INT" and m.get_srcSystem() == 1
        )
        return math.hypot((here.lat - back[0]) * 0.0111, (here.lon - back[1]) * 0.0076)

    peer.spin_until(lambda: distance() < 1.0)

    # another mission that leaves it is refused to the ROS client as well
    refused = client.start((2, 0.0, 150.0, 30.0))
    peer.spin_until(refused.done)
    assert "breaches area 1 of the fence" in refused.result().result.message


@pytest.mark.exhaustive
def test_a_mission_file_with_its_fence_after_a_restart_of_the_node(station, start, peer, tmp_path):
    """The mission, begun as by `rfly mission start`, has 300 items, too many to be read at once."""
    from mavlink_station import StationSocket
    from rfly_suite.action import ExecuteMission

    from rfly_missions.mission.files import Mission, write_mission
    from rfly_missions.mission.geofence import FenceCircle, Geofence
    from rfly_missions.mission.items import MissionItem

    lanes = [MissionItem.waypoint((50.0, -60.0 + 0.4 * k, -40.0), NAN, 2.0) for k in range(300)]
    fence = Geofence((FenceCircle((0.0, 0.0), 120.0), FenceCircle((-60.0, 0.0), 20.0, False)))
    items = (MissionItem.takeoff((0.0, 0.0, -20.0)), *lanes)
    rally = ((10.0, 20.0, -30.0),)
    mission = Mission(items, ORIGIN, fence=fence, rally=rally)
    write_mission(tmp_path / "survey.plan", mission)
    client = Client(peer)
    client.send(ExecuteMission.Goal(file=str(tmp_path / "survey.plan")))
    peer.spin_until(lambda: (now := state_of(station)) and now[0] == common.MISSION_STATE_ACTIVE)

    def check(each):
        count = each.ask(common.MAVLink_mission_request_list_message(1, 1, 0), "MISSION_COUNT")
        assert count.count == 301
        request = common.MAVLink_mission_request_int_message(1, 1, 300, 0)
        last = each.ask(request, "MISSION_ITEM_INT")
        assert (last.x, last.y) == pytest.approx(place(50.0, 59.6), abs=2)
        assert last.z == pytest.approx(40.0, abs=0.01)
        assert [row[0] for row in downloaded(each, 1)] == [5003, 5004]
        ((command, x, y, height),) = downloaded(each, 2)
        assert (command, height) == (5100, pytest.approx(30.0, abs=0.01))
        assert (x, y) == pytest.approx(place(10, 20), abs=2)

    check(station)

    # another mavlink_node learns all of it
    with StationSocket(peer) as later:
        targets = f"['127.0.0.1:{later.port}']"
        start("mavlink_node", "-r", "__node:=second", port="0", targets=targets)
        peer.spin_until(lambda: (s := state_of(later)) and s[0] == common.MISSION_STATE_ACTIVE)
        check(later)
        assert later.command(PAUSE_CONTINUE, 0.0) == 0
        client.until_phase(HOLDING)
        peer.spin_until(lambda: state_of(station)[0] == common.MISSION_STATE_PAUSED)


def test_a_late_report_undoes_no_upload(start, peer, world):
    """The test stands for mission_node; its late report holds a mission, by which it is noticed."""
    from mavlink_station import StationSocket
    from rfly_suite.msg import Fence, Mission, MissionParams

    from rfly_common.ros.qos import LATCHED

    missions = peer.node.create_publisher(Mission, "hawk/mission", LATCHED)
    params = peer.node.create_publisher(MissionParams, "hawk/mission_params", LATCHED)
    fences = peer.receive(Fence, "hawk/fence", LATCHED)
    with StationSocket(peer) as station:
        start("mavlink_node", port="0", targets=f"['127.0.0.1:{station.port}']")
        peer.spin_until(lambda: station.last("GPS_RAW_INT") and station.last("HEARTBEAT"))
        fence = [(0, 5003, 60.0, *place(0, 0), 0.0)]
        peer.spin_until(lambda: upload(station, fence, 1) == 0)  # as soon as the map is known
        peer.spin_until(lambda: fences)

        late = Mission(goal_id=np.arange(16, dtype=np.uint8), items=[mission_item(2, 0, 50, 30)])
        late.header.frame_id = "map"
        missions.publish(late)
        progress = MissionParams(goal_id=late.goal_id, phase=MissionParams.FLYING)
        peer.spin_until(lambda: params.publish(progress) or len(downloaded(station) or ()) == 1)

        assert downloaded(station, 1) == [(5003, *place(0, 0), 0.0)]
        assert upload(station, [(6, 5100, 0.0, *place(30, 10), 20.0)], 2) == 0
        peer.spin_until(lambda: fences[-1].rally)
        assert len(fences[-1].areas) == 1

        # one that has seen the last upload counts
        late.fence.header.stamp = fences[-1].header.stamp
        missions.publish(late)
        peer.spin_until(lambda: downloaded(station, 1) == [])


@pytest.mark.needs("mavsdk")
def test_mavsdk_reads_the_mission_of_a_ros_client_and_writes_fences(start, peer, world):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start("mission_node")
    start("mavlink_node", port="0", targets=f"['127.0.0.1:{port}']")
    pilot = Client(peer)
    pilot.start((1, 0.0, 0.0, 12.0), (2, 0.0, 40.0, 400.0), (2, 0.0, 41.0, 400.0))

    client = subprocess.Popen(
        [sys.executable, str(CLIENT), str(port), "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        peer.spin_until(lambda: client.poll() is not None)
    finally:
        client.kill()
        output = client.communicate()[0]
    assert client.returncode == 0, output
    seen = json.loads(next(line for line in output.splitlines() if line.startswith("{")))

    assert seen["total"] == 3
    assert [row[:2] for row in seen["mission"]] == [[6, 22], [6, 16], [6, 16]]
    assert seen["mission"][1][2:4] == pytest.approx(place(40, 0), abs=2)
    corners = [[46.999, 7.999], [47.001, 7.999], [47.001, 8.001]]
    assert seen["polygons"] == [["INCLUSION", [pytest.approx(c, abs=2e-7) for c in corners]]]
    assert seen["circles"] == [
        ["EXCLUSION", pytest.approx(46.9995, abs=2e-7), pytest.approx(8.0, abs=2e-7), 12.5]
    ]
    assert seen["cleared"] == [0, 0]
    assert seen["rally"] == [[5100, 470001000, 80001000, 20.0]]
    assert peer.spin_until(lambda: pilot.missions[-1].fence.rally)
    assert not pilot.missions[-1].fence.areas


def fence_message(*areas, breach_return=(), rally=()):
    """Return a message of areas, each an inclusion, a radius and points."""
    from geometry_msgs.msg import Point
    from rfly_suite.msg import Fence, FenceArea

    def points(places):
        return [Point(x=float(x), y=float(y), z=float(z)) for x, y, z in places]

    return Fence(
        areas=[
            FenceArea(inclusion=inclusion, radius=radius, points=points(places))
            for inclusion, radius, places in areas
        ],
        breach_return=points(breach_return),
        rally=points(rally),
    )


CORNERS = ((0, 0, 0), (10, 0, 0), (0, 20, 0))


def test_a_fence_as_a_message_there_and_back():
    from rfly_missions.ros.mission_msgs import area_to_msg, msg_to_area

    message = fence_message(
        (True, 0.0, CORNERS),
        (False, 5.0, [(1, 2, 0)]),
        breach_return=[(3, 4, 5)],
        rally=[(6, 7, 8)],
    )
    area = msg_to_area(message, "enu")
    triangle, circle = area.fence.areas
    assert triangle.vertices.tolist() == [[0.0, 0.0], [0.0, 10.0], [20.0, 0.0]]  # north, east
    assert (circle.center, circle.radius, circle.inclusion) == ((2.0, 1.0), 5.0, False)
    assert area.fence.breach_return == (4.0, 3.0, -5.0)
    assert area.rally == ((7.0, 6.0, -8.0),)

    back = area_to_msg(area, "enu", "", 0)
    assert back == message


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([(True, 0.0, CORNERS[:2])], "areas[0].points: 2, expected 3 or more corners"),
        ([(True, 5.0, CORNERS)], "areas[0].points: 3, expected the centre"),
        ([(True, -1.0, CORNERS[:1])], "areas[0].radius: -1"),
        ([(True, NAN, CORNERS[:1])], "areas[0].radius: nan"),
        ([(True, 0.0, (*CORNERS, (NAN, 0, 0)))], "areas[0].points[3]"),
        ([(True, 0.0, [(k, 0, 0) for k in range(10_001)])], "areas: more than 10000 corners"),
    ],
)
def test_a_message_that_is_no_fence_is_refused(content, text):
    from rfly_missions.ros.mission_msgs import msg_to_area

    with pytest.raises(ValueError, match=re.escape(text)):
        msg_to_area(fence_message(*content), "enu")

    with pytest.raises(ValueError, match="breach_return: 2 points"):
        msg_to_area(fence_message(breach_return=CORNERS[:2]), "enu")
    with pytest.raises(ValueError, match=r"rally\[0\]"):
        msg_to_area(fence_message(rally=[(0, math.inf, 0)]), "enu")


def test_phases_have_the_numbers_of_the_message():
    from rfly_suite.msg import MissionParams

    from rfly_missions.execution.path_manager import MissionPhase

    assert {phase: getattr(MissionParams, phase.name) for phase in MissionPhase} == {
        phase: phase.value for phase in MissionPhase
    }


def test_heights_for_a_station(station, peer):
    """The slope's heights by the rise of 1 in 10."""
    check = common.MAVLink_terrain_check_message(*place(120, 30))
    report = station.ask(check, "TERRAIN_REPORT")
    assert report.terrain_height == pytest.approx(512.0, abs=0.02)

    corner = place(-100, -100)
    request = common.MAVLink_terrain_request_message(*corner, 10, 1 << 0 | 1 << 8)
    station.ask(request, "TERRAIN_DATA")
    peer.spin_until(lambda: station.last("TERRAIN_DATA").gridbit == 8)
    grids = {m.gridbit: m.data for m in station.heard if m.get_type() == "TERRAIN_DATA"}
    rows = [value for value in (490, 491, 492, 493) for _ in range(4)]
    assert grids == {0: rows, 8: [value + 4 for value in rows]}
