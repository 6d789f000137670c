# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Time synchronization and ping, as mavlink.io's pages on both describe them."""

from __future__ import annotations

import struct

import pytest
from mavlink_station import OTHER_STATION, Station, of_type
from optional_parts import late_module

from rfly_mavlink.dialect.wire import newer_message
from rfly_mavlink.stations.endpoint import MavlinkEndpoint

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

NOW_NS = 1_234_567_890_123_456_789


@pytest.fixture
def station():
    station = Station(systems=(1, 7))
    for vehicle in station.endpoint.vehicles.values():
        vehicle._times._clock_ns = lambda: NOW_NS
    return station


def answers(messages):
    """Return system, tc1, ts1 and target of each TIMESYNC, whose target is an extension."""
    found = []
    for message in of_type("TIMESYNC", messages):
        data = bytes(message.get_msgbuf())
        payload = data[10 : 10 + data[1]].ljust(18, b"\0")
        found.append((message.get_srcSystem(), *struct.unpack("<qqBB", payload)))
    return found


@pytest.mark.parametrize(
    ("target", "systems"),
    [((0, 0), [1, 7]), ((7, 0), [7]), ((7, 1), [7]), ((7, 100), []), ((3, 1), [])],
)
def test_each_addressed_vehicle_answers_with_its_time_and_the_others(station, target, systems):
    for sent_ns in (1, -5, 2**63 - 1):
        heard = station.send(newer_message("TIMESYNC", 0, sent_ns, *target))
        assert answers(heard) == [(system, NOW_NS, sent_ns, 245, 190) for system in systems]


def test_a_request_without_the_extension_is_for_all(station):
    """A request as pymavlink and older stations send it, also in MAVLink 1."""
    message = common.MAVLink_timesync_message(0, 5)
    assert [answer[0] for answer in answers(station.send(message))] == [1, 7]

    data = bytes(message.pack(station.packer, force_mavlink1=True))
    station.heard.clear()
    station.endpoint.receive(data, ("127.0.0.1", 14550), station.now)
    station.listen()
    assert [answer[0] for answer in answers(station.heard)] == [1, 7]


def test_an_answer_to_others_is_not_answered(station):
    assert answers(station.send(common.MAVLink_timesync_message(77, 5))) == []
    assert of_type("PING", station.send(common.MAVLink_ping_message(5, 6, 1, 1))) == []
    assert of_type("PING", station.send(common.MAVLink_ping_message(5, 6, 245, 190))) == []


def test_a_clock_that_has_not_begun_makes_no_request_of_an_answer():
    """The clock of simulated time is 0 before its first message; tc1 = 0 would be a request."""
    station = Station()
    station.vehicle._times._clock_ns = lambda: 0
    ((_, tc1, ts1, _, _),) = answers(station.send(common.MAVLink_timesync_message(0, 9)))
    assert (tc1, ts1) == (1, 9)


def test_the_clock_is_that_of_the_node():
    endpoint = MavlinkEndpoint([], clock_ns=lambda: NOW_NS)
    station = Station()
    vehicle = endpoint.add(1, "multirotor", station.pilot)
    endpoint.receive(bytes(common.MAVLink_timesync_message(0, 3).pack(station.packer)), ("h", 1), 0)
    ((address, data),) = endpoint.datagrams()
    assert address == ("h", 1)
    assert struct.unpack_from("<qq", data, 10) == (NOW_NS, 3)
    assert vehicle.system_id == 1


def test_a_ping_comes_back_to_its_sender_alone(station):
    before = len(station.heard)
    pings = of_type("PING", station.send(common.MAVLink_ping_message(5, 6, 0, 0), OTHER_STATION))
    sent_back = [
        (m.get_srcSystem(), m.time_usec, m.seq, m.target_system, m.target_component) for m in pings
    ]
    assert sent_back == [(1, 5, 6, 245, 190), (7, 5, 6, 245, 190)]
    assert of_type("PING", station.heard[before:]) == []
