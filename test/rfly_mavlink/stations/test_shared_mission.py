# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One mission of a ground station and of another client of mission_node."""

from __future__ import annotations

import math
import struct

import pytest
from mavlink_station import Station, of_type
from optional_parts import late_module

from rfly_missions.mission.items import FlownMission, MissionCommand, MissionItem

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

PAUSE_CONTINUE = 193
SET_CURRENT = 224
ARM = 400
ITEMS = (
    MissionItem.takeoff((0.0, 0.0, -10.0)),
    MissionItem.waypoint((60.0, 0.0, -10.0), math.nan, 2.0),
    MissionItem.waypoint((60.0, 60.0, -12.0), math.nan, 2.0),
    MissionItem.land((60.0, 60.0, 0.0)),
)
MISSION_MODE = 4
HOLD_MODE = 3
RETURN_MODE = 5


@pytest.fixture
def station():
    """A vehicle that another client's mission has taken to its second item."""
    station = Station()
    station.pilot.fly_for_other(FlownMission(ITEMS))
    station.run(8.0)
    return station


def shown(station):
    """Return sequence, state and custom mode as the station shows them."""
    station.run(1.1)
    current = station.last("MISSION_CURRENT")
    state = common.enums["MISSION_STATE"][current.mission_state].name
    mode = station.last("HEARTBEAT").custom_mode >> 24
    return current.seq, state.removeprefix("MISSION_STATE_"), mode


def downloaded(station):
    """Return command, latitude, longitude and height of each row."""
    (announced,) = station.send(common.MAVLink_mission_request_list_message(1, 1, 0))
    rows = []
    for seq in range(announced.count):
        (row,) = station.send(common.MAVLink_mission_request_int_message(1, 1, seq, 0))
        rows.append((row.command, row.x, row.y, row.z))
    return rows


def test_it_is_seen_and_comes_down(station):
    assert station.vehicle.flight.armed
    assert shown(station) == (1, "ACTIVE", MISSION_MODE)
    assert station.last("MISSION_CURRENT").total == 4

    commands, xs, ys, heights = zip(*downloaded(station), strict=True)
    assert commands == (22, 16, 16, 21)
    north_60 = 470000000 + 1e7 * 60.0 / 111_170.9
    east_60 = 80000000 + 1e7 * 60.0 / 76_056.1
    assert xs == pytest.approx((470000000, north_60, north_60, north_60), abs=2.0)
    assert ys == pytest.approx((80000000, 80000000, east_60, east_60), abs=2.0)
    assert heights == pytest.approx((10.0, 10.0, 12.0, 0.0))
    assert "Mission of another client: 4 items" in station.texts


def test_its_progress_is_reported_to_the_end(station):
    station.run(60.0)
    assert [m.seq for m in of_type("MISSION_ITEM_REACHED", station.heard)] == [0, 1, 2, 3]
    assert shown(station)[:2] == (3, "COMPLETE")
    assert not station.vehicle.flight.armed
    assert station.texts.count("Mission finished") == 1


def test_either_side_pauses_and_resumes_it(station):
    goals = [r for r in station.pilot.requests if not isinstance(r, MissionCommand)]

    # the station pauses, the other client resumes
    assert station.command(PAUSE_CONTINUE, 0.0) == "ACCEPTED"
    assert shown(station) == (1, "PAUSED", HOLD_MODE)
    station.pilot.runner.command = MissionCommand.DEFAULT
    assert shown(station) == (1, "ACTIVE", MISSION_MODE)

    # the other client pauses, the station resumes
    station.pilot.runner.command = MissionCommand.HOLD
    assert shown(station) == (1, "PAUSED", HOLD_MODE)
    assert station.command(PAUSE_CONTINUE, 1.0) == "ACCEPTED"
    assert shown(station) == (1, "ACTIVE", MISSION_MODE)

    # a return of the other client, which the station interrupts
    station.pilot.runner.command = MissionCommand.RTL
    assert shown(station) == (1, "PAUSED", RETURN_MODE)
    assert station.command(PAUSE_CONTINUE, 1.0) == "ACCEPTED"
    assert shown(station) == (1, "ACTIVE", MISSION_MODE)

    # it is the other client's goal all the time
    later = [r for r in station.pilot.requests if not isinstance(r, MissionCommand)]
    assert later == goals


def test_the_station_sets_another_item_current(station):
    assert station.command(SET_CURRENT, 2.0) == "ACCEPTED"
    station.run(3.0)
    assert station.pilot.follower.velocity[1] > 1.0  # to the east
    assert shown(station) == (2, "ACTIVE", MISSION_MODE)

    # the items are flown as they were, not as rows hold them
    flown = [item for item in station.pilot.requests[-1].items if item.command != 178]
    assert flown == list(ITEMS)
    assert len(downloaded(station)) == 4


def test_an_upload_replaces_it(station):
    count = common.MAVLink_mission_count_message(1, 1, 1, 0)
    assert [m.get_type() for m in station.send(count)] == ["MISSION_REQUEST_INT"]
    fields = (1, 1, 0, 6, 16, 1, 1, 0.0, 2.0, 0.0, math.nan, 470000000, 79990000, 15.0, 0)
    (ack,) = of_type("MISSION_ACK", station.send(common.MAVLink_mission_item_int_message(*fields)))
    assert ack.type == common.MAV_MISSION_ACCEPTED
    station.run(5.0)
    assert station.pilot.follower.velocity[1] < -1.0  # to the west
    assert downloaded(station) == [(16, 470000000, 79990000, 15.0)]


def test_ids_tell_that_it_is_another_one():
    station = Station()
    ids = []
    for items in ((), ITEMS, ITEMS[:3]):
        if items:
            station.pilot.fly_for_other(FlownMission(items))
        station.run(1.1)
        payload = bytes(station.last("MISSION_CURRENT").get_msgbuf())[10:-2]
        ids.append(struct.unpack("<I", payload[6:10].ljust(4, b"\0"))[0])
    assert ids[0] == 0
    assert len(set(ids)) == 3


def test_it_begins_where_the_other_client_begins_it():
    station = Station()
    station.pilot.fly_for_other(FlownMission(ITEMS), start_index=1)
    station.run(1.0)
    assert of_type("MISSION_ITEM_REACHED", station.heard) == []
    assert shown(station)[:2] == (1, "ACTIVE")


def test_a_mission_without_rows_is_told_and_still_paused():
    station = Station()
    beyond = MissionItem.mavlink(178, (0.0, 0.0, 0.0), (1.0, 1e39, 0.0, 0.0))
    station.pilot.fly_for_other(FlownMission((ITEMS[0], ITEMS[1], beyond)))
    station.run(6.0)
    assert downloaded(station) == []
    assert any("item 3: its numbers are too large" in text for text in station.texts)
    assert station.command(PAUSE_CONTINUE, 0.0) == "ACCEPTED"
    station.run(8.0)
    paused = station.pilot.follower.position
    station.run(1.0)
    assert station.pilot.follower.position == pytest.approx(paused, abs=0.2)
    assert station.command(PAUSE_CONTINUE, 1.0) == "ACCEPTED"
