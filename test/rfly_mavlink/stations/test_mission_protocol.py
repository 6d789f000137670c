# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Missions up and down, lost and doubled rows, refusals, and the flight of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mavlink_station import NAN, ORIGIN, OTHER_STATION, Station, of_type
from optional_parts import late_module

from rfly_mavlink.stations.mission_rows import MissionRow, plan_of
from rfly_missions.mission.items import MissionCommand
from rfly_missions.mission.mavlink_items import ImportSettings

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

ARM = 400
MISSION_START = 300
NORTH_30 = 470000000 + round(1e7 * 30.0 / 111_170.9)
"""30 m north of 47°, in 1e-7 degrees (WGS 84's radius there)."""
MISSION = [
    (6, 22, 1, (0.0, 0.0, 0.0, NAN), 470000000, 80000000, 10.0),
    (6, 16, 1, (2.0, 3.0, 0.0, NAN), NORTH_30, 80000000, 12.0),
    (6, 16, 1, (0.0, 3.0, 0.0, 90.0), NORTH_30, 80003000, 12.0),
    (2, 177, 1, (1.0, 1.0, 0.0, 0.0), 0, 0, 0.0),  # once more from row 1
    (6, 20, 1, (0.0, 0.0, 0.0, 0.0), 0, 0, 0.0),
]


@pytest.fixture
def station():
    return Station()


def item(station, seq, row, mission_type=0):
    """Send a row; return the answers."""
    frame, command, autocontinue, params, x, y, z = row
    fields = (
        1,
        1,
        seq,
        frame,
        command,
        int(seq == 0),
        autocontinue,
        *params,
        x,
        y,
        z,
        mission_type,
    )
    return station.send(common.MAVLink_mission_item_int_message(*fields))


def count(station, number, mission_type=0):
    """Announce a mission; return the answers."""
    return station.send(common.MAVLink_mission_count_message(1, 1, number, mission_type))


def upload(station, rows):
    """Upload rows, each requested in order; return the name of the result."""
    answers = count(station, len(rows))
    for seq, row in enumerate(rows):
        assert [(m.get_type(), m.seq) for m in answers] == [("MISSION_REQUEST_INT", seq)]
        answers = item(station, seq, row)
    return result(answers)


def result(answers):
    """Return the name of the result in the one acknowledgement."""
    (ack,) = of_type("MISSION_ACK", answers)
    assert (ack.target_system, ack.target_component) == (245, 190)
    return common.enums["MAV_MISSION_RESULT"][ack.type].name.removeprefix("MAV_MISSION_")


def downloaded(station):
    """Return the rows of the mission that a vehicle sends back."""
    (announced,) = station.send(common.MAVLink_mission_request_list_message(1, 1, 0))
    assert announced.get_type() == "MISSION_COUNT"

    rows = []
    for seq in range(announced.count):
        (message,) = station.send(common.MAVLink_mission_request_int_message(1, 1, seq, 0))
        assert (message.get_type(), message.seq) == ("MISSION_ITEM_INT", seq)
        params = (message.param1, message.param2, message.param3, message.param4)
        place = (message.x, message.y, message.z)
        rows.append((message.frame, message.command, message.autocontinue, params, *place))
    return rows


def test_comes_down_as_it_went_up(station):
    assert upload(station, MISSION) == "ACCEPTED"
    assert str(downloaded(station)) == str(MISSION)  # text: NaN is equal to NaN there

    station.run(1.1)
    assert station.last("MISSION_CURRENT").total == 5
    beyond = common.MAVLink_mission_request_int_message(1, 1, 5, 0)
    assert result(station.send(beyond)) == "INVALID_SEQUENCE"

    assert result(station.send(common.MAVLink_mission_clear_all_message(1, 1, 255))) == "ACCEPTED"
    assert downloaded(station) == []


def test_rows_that_are_lost_or_come_twice(station):
    count(station, 3)
    item(station, 0, MISSION[0])
    assert item(station, 0, MISSION[0]) == []  # once more
    assert item(station, 2, MISSION[2]) == []  # too early

    # the missing row is requested again
    station.heard.clear()
    station.run(0.6)
    assert [m.seq for m in of_type("MISSION_REQUEST_INT", station.heard)] == [1, 1]
    item(station, 1, MISSION[1])
    assert result(item(station, 2, MISSION[2])) == "ACCEPTED"

    # nothing comes
    count(station, 3)
    station.heard.clear()
    station.run(4.0)
    assert result(station.heard) == "OPERATION_CANCELLED"
    assert len(downloaded(station)) == 3  # that before it stays

    item(station, 0, MISSION[0])
    station.run(0.5)
    assert len(of_type("MISSION_ACK", station.heard)) == 1


LAST = {
    0: MISSION[4],
    1: (0, 5003, 1, (500.0, 0.0, 0.0, 0.0), 470000000, 80000000, 0.0),
    2: (3, 5100, 1, (0.0, 0.0, 0.0, 0.0), 470000000, 80000000, 20.0),
}
"""A row of each of the three lists that can be all of it."""


@pytest.mark.parametrize("mission_type", LAST)
def test_an_answer_that_was_lost_comes_again_with_the_last_row(station, mission_type):
    row = LAST[mission_type]
    count(station, 1, mission_type)
    for _ in range(3):
        (ack,) = item(station, 0, row, mission_type)
        assert (ack.get_type(), ack.type, ack.mission_type) == ("MISSION_ACK", 0, mission_type)

    # a refusal, too; other rows and other stations are not answered
    count(station, 1, mission_type)
    wrong = (row[0], 5001, *row[2:])
    refused = [result(item(station, 0, wrong, mission_type)) for _ in range(2)]
    assert refused[0] == refused[1] != "ACCEPTED"
    assert item(station, 1, row, mission_type) == []
    stranger = common.MAVLink_mission_item_int_message(
        1, 1, 0, row[0], 5001, 0, 1, *row[3], *row[4:], mission_type
    )
    assert station.send(stranger, OTHER_STATION) == []


def partly(station, kind, start, end, mission_type=0):
    """Send a request or an announcement of a part; return the answers."""
    message = getattr(common, f"MAVLink_mission_{kind}_partial_list_message")
    return station.send(message(1, 1, start, end, mission_type))


@pytest.mark.parametrize(
    ("start", "end", "seqs"),
    [(0, -1, [0, 1, 2, 3, 4]), (1, 3, [1, 2, 3]), (4, 4, [4]), (4, -1, [4])],
)
def test_a_part_is_sent(station, start, end, seqs):
    upload(station, MISSION)
    answers = partly(station, "request", start, end)
    assert [(m.get_type(), m.seq) for m in answers] == [("MISSION_ITEM_INT", n) for n in seqs]
    assert [m.command for m in answers] == [MISSION[n][1] for n in seqs]


def test_a_long_part_is_sent_bit_by_bit(station):
    upload(station, [MISSION[0]] + [MISSION[1]] * 49)
    assert len(partly(station, "request", 0, -1)) == 20
    station.run(0.2)
    sent = [m.seq for m in of_type("MISSION_ITEM_INT", station.heard)]
    assert sent == list(range(50))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (1, 2, [MISSION[0], MISSION[2], MISSION[2], *MISSION[3:]]),
        (4, -1, [*MISSION[:4], MISSION[2]]),
        (5, 6, [*MISSION, MISSION[2], MISSION[2]]),
        (3, 5, [*MISSION[:3], MISSION[2], MISSION[2], MISSION[2]]),
    ],
)
def test_a_part_is_replaced(station, start, end, expected):
    upload(station, MISSION)
    answers = partly(station, "write", start, end)
    for seq in range(start, (end if end >= 0 else 4) + 1):
        assert [(m.get_type(), m.seq) for m in answers] == [("MISSION_REQUEST_INT", seq)]
        answers = item(station, seq, MISSION[2])
    assert result(answers) == "ACCEPTED"
    assert str(downloaded(station)) == str(expected)


@pytest.mark.parametrize("kind", ["request", "write"])
@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (6, 6), (7, -1), (0, -2)])
def test_a_part_that_is_none_is_refused(station, kind, start, end):
    upload(station, MISSION)
    assert result(partly(station, kind, start, end)) == "INVALID_SEQUENCE"
    assert len(downloaded(station)) == 5


def test_floats_are_taken_too(station):
    count(station, 1)
    fields = (1, 1, 0, 3, 16, 1, 1, 0.0, 3.0, 0.0, NAN, 47.5, 8.25, 20.0, 0)
    assert result(station.send(common.MAVLink_mission_item_message(*fields))) == "ACCEPTED"
    ((_, _, _, _, x, y, z),) = downloaded(station)
    assert (x, y, z) == (475000000, 82500000, 20.0)


@pytest.mark.parametrize(
    ("row", "expected", "text"),
    [
        ((99, 16, 1, (0.0,) * 4, 0, 0, 0.0), "UNSUPPORTED_FRAME", "frame 99"),
        (
            (6, 94, 1, (0.0,) * 4, 470000000, 80000000, 10.0),
            "UNSUPPORTED",
            "command 94",
        ),  # payload place
        ((6, 16, 1, (0.0,) * 4, 1000000000, 80000000, 10.0), "INVALID", "latitude"),
        ((2, 177, 1, (7.0, 1.0, 0.0, 0.0), 0, 0, 0.0), "INVALID", "jump to"),
        ((6, 16, 1, (0.0,) * 4, 470000000, 80000000, math.inf), "INVALID", ""),
    ],
)
def test_what_cannot_be_flown_is_refused(station, row, expected, text):
    assert upload(station, MISSION) == "ACCEPTED"
    assert upload(station, [row]) == expected

    assert text in station.texts[-1]
    assert len(downloaded(station)) == 5


def test_more_rows_than_there_is_space_for(station):
    assert result(count(station, 10_000)) == "NO_SPACE"
    assert result(count(station, 3, 4)) == "UNSUPPORTED"  # no such type of plan


def test_another_station_waits_its_turn(station):
    count(station, 2)
    station.packer.srcSystem = 99
    (ack,) = of_type("MISSION_ACK", count(station, 1))
    assert (ack.type, ack.target_system) == (common.MAV_MISSION_DENIED, 99)


def test_two_stations_with_the_same_ids_do_not_mix_their_uploads(station):
    """The two stations are 245/190, each at an address of its own; the second one waits."""
    count(station, 2)
    refused = station.send(common.MAVLink_mission_count_message(1, 1, 3, 0), OTHER_STATION)
    assert result(refused) == "DENIED"
    assert "another one" in station.texts[-1]

    # rows of the other are not taken, nor does it end this upload
    fields = (1, 1, 0, 6, 16, 0, 1, 0.0, 0.0, 0.0, NAN, 471000000, 81000000, 33.0, 0)
    assert station.send(common.MAVLink_mission_item_int_message(*fields), OTHER_STATION) == []
    station.send(common.MAVLink_mission_ack_message(1, 1, 15, 0), OTHER_STATION)

    other_before = len(station.other_heard)
    item(station, 0, MISSION[0])
    assert result(item(station, 1, MISSION[1])) == "ACCEPTED"
    assert str(downloaded(station)) == str(MISSION[:2])
    assert not [m for m in station.other_heard[other_before:] if "MISSION" in m.get_type()]


def test_is_flown_to_its_end_and_reported_row_by_row(station):
    upload(station, MISSION)
    assert station.command(MISSION_START, 0.0, 0.0) == "TEMPORARILY_REJECTED"
    station.command(ARM, 1.0)
    assert station.command(MISSION_START, 0.0, 0.0) == "ACCEPTED"
    station.run(5.0)

    count_before = len(station.pilot.requests)
    # pause
    assert station.command(193, 0.0) == "ACCEPTED"
    station.run(8.0)
    station.run(1.1)
    assert station.last("MISSION_CURRENT").mission_state == common.MISSION_STATE_PAUSED
    paused = station.pilot.follower.position
    station.run(1.0)
    assert station.pilot.follower.position == pytest.approx(paused, abs=0.2)

    assert station.command(193, 1.0) == "ACCEPTED"
    assert len(station.pilot.requests) == count_before + 2  # hold and carry on: no new goal

    # the end
    station.run(100.0)
    reached = [m.seq for m in of_type("MISSION_ITEM_REACHED", station.heard)]
    assert reached == [0, 1, 2, 1, 2, 4] or reached == [0, 1, 2, 3, 1, 2, 3, 4]
    assert station.pilot.follower.position == pytest.approx((0.0, 0.0, 0.0), abs=0.7)
    assert not station.vehicle.flight.armed
    assert "Mission finished" in station.texts
    assert station.last("MISSION_CURRENT").mission_state == common.MISSION_STATE_COMPLETE


def test_another_client_interrupts_and_resumes_the_stations_mission(station):
    def state():
        station.run(1.1)
        number = station.last("MISSION_CURRENT").mission_state
        return common.enums["MISSION_STATE"][number].name.removeprefix("MISSION_STATE_")

    upload(station, MISSION)
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(6.0)
    goals = len(station.pilot.requests)

    runner = station.pilot.runner
    runner.command = MissionCommand.HOLD
    assert state() == "PAUSED"
    runner.command = MissionCommand.DEFAULT
    assert state() == "ACTIVE"
    runner.command = MissionCommand.RTL
    assert state() == "PAUSED"
    assert station.command(193, 1.0) == "ACCEPTED"
    assert state() == "ACTIVE"
    assert station.pilot.requests[goals:] == [MissionCommand.DEFAULT]

    station.run(100.0)
    assert "Mission finished" in station.texts


def test_a_mission_that_is_uploaded_in_flight_is_flown_from_its_first_row(station):
    upload(station, MISSION)
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(12.0)
    assert station.vehicle.flight.mission.seq > 0

    west = (6, 16, 1, (0.0, 3.0, 0.0, NAN), 470000000, 80000000 - 4000, 12.0)
    assert upload(station, [west, MISSION[1]]) == "ACCEPTED"
    assert station.vehicle.flight.mission.seq == 0
    station.run(4.0)
    assert station.pilot.follower.velocity[1] < -1.0

    # without rows it holds
    assert result(station.send(common.MAVLink_mission_clear_all_message(1, 1, 0))) == "ACCEPTED"
    station.run(6.0)
    assert station.last("MISSION_CURRENT").mission_state == common.MISSION_STATE_NO_MISSION
    paused = station.pilot.follower.position
    station.run(2.0)
    assert station.pilot.follower.position == pytest.approx(paused, abs=0.2)
    assert paused[2] < -5.0


def test_an_upload_while_a_mission_is_paused_is_flown_on_resuming(station):
    upload(station, MISSION)
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(12.0)
    station.command(193, 0.0)
    station.run(4.0)

    south = (6, 16, 1, (0.0, 3.0, 0.0, NAN), 470000000 - 3000, 80000000, 12.0)
    assert upload(station, [south]) == "ACCEPTED"
    paused = station.pilot.follower.position
    station.run(3.0)
    assert station.pilot.follower.position == pytest.approx(paused, abs=0.5)
    assert station.command(193, 1.0) == "ACCEPTED"
    station.run(3.0)
    assert station.pilot.follower.velocity[0] < -1.0


def test_a_speed_that_is_changed_while_it_is_paused_is_flown_at_afterwards(station):
    """A place 300 m to the north: 2 m/s after the pause, where 8 m/s are the vehicle's own."""
    north_300 = 470000000 + round(1e7 * 300.0 / 111_170.9)
    far = (6, 16, 1, (0.0, 3.0, 0.0, NAN), north_300, 80000000, 10.0)
    upload(station, [MISSION[0], far])
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(12.0)

    station.command(193, 0.0)
    station.run(5.0)
    assert station.command(178, 1.0, 2.0, -1.0) == "ACCEPTED"
    paused = station.pilot.follower.position
    station.run(2.0)
    assert station.pilot.follower.position == pytest.approx(paused, abs=0.5)  # it still holds

    assert station.command(193, 1.0) == "ACCEPTED"
    station.run(3.0)
    assert station.pilot.follower.velocity[0] == pytest.approx(2.0, abs=0.05)
    assert station.vehicle.flight.mission.seq == 1

    # no new plan without another speed
    station.command(193, 0.0)
    count_before = len(station.pilot.requests)
    station.command(193, 1.0)
    assert len(station.pilot.requests) == count_before + 1
    station.run(3.0)
    assert station.pilot.follower.velocity[0] == pytest.approx(2.0, abs=0.05)


def test_another_speed_in_the_middle_keeps_rows_and_jumps(station):
    upload(station, MISSION)
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(12.0)

    seq = station.vehicle.flight.mission.seq
    assert station.command(178, 1.0, 3.0, -1.0) == "ACCEPTED"
    station.run(2.0)
    assert station.vehicle.flight.mission.seq == seq
    station.run(3.0)

    fastest = max(
        np.hypot(*(np.array([m.vx, m.vy]) / 100))
        for m in of_type("LOCAL_POSITION_NED", station.heard)[-10:]
    )
    assert fastest * 100 <= 3.1

    station.run(120.0)
    assert "Mission finished" in station.texts
    assert station.command(178, 1.0, NAN, -1.0) == "DENIED"


def test_without_a_take_off_it_rises_first(station):
    upload(station, [MISSION[1], MISSION[4]])
    station.command(ARM, 1.0)
    station.command(MISSION_START, 0.0, 0.0)
    station.run(3.0)

    north, _, down = station.pilot.follower.position
    assert north < 1.0
    assert down < -2.0


def asked(item):
    """Return command and parameters of an item."""
    return item.command, item.params.tolist()


def test_items_by_hand():
    """A stay of 2 s becomes a delay (93); the jump to row 1 leads to its number, 2."""
    rows = [MissionRow(*row) for row in MISSION]
    plan = plan_of(rows, (*ORIGIN[:2], 510.0), ORIGIN, ImportSettings(), "multirotor")
    assert plan.seqs == (0, 1, 1, 2, 3, 4)
    above_home = 12.0  # over a home at 10 m
    assert plan.items[1].position == pytest.approx((30.0, 0.0, -10.0 - above_home), abs=0.02)
    assert asked(plan.items[2]) == (93, [2.0, 0.0, 0.0, 0.0])
    assert asked(plan.items[4]) == (177, [2.0, 1.0, 0.0, 0.0])

    more = plan.with_item(1, plan.items[0])
    assert more.seqs == (0, 1, 1, 1, 2, 3, 4)
    assert asked(more.items[5]) == (177, [3.0, 1.0, 0.0, 0.0])
    assert asked(plan.with_item(2, plan.items[0]).items[5]) == (177, [2.0, 1.0, 0.0, 0.0])
    assert (plan.first_of(2), more.first_of(2)) == (3, 4)
