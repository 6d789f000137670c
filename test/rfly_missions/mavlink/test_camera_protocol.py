# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The camera component against a ground station of pymavlink, with a stand-in for the camera."""

from __future__ import annotations

import math

import pytest
from mavlink_station import NAN, SimulatedPilot, Station, of_type
from optional_parts import late_module

from rfly_missions.mavlink.camera_protocol import Optics, Picture

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

CAMERA = 100
START = 2000
STOP = 2001
MODE = 530
AGAIN = 2002
REQUEST = 512


class Camera:
    """A camera whose pictures come when the test says so."""

    def __init__(self):
        self.size = Optics(320, 180)
        self.trouble = ""
        self.requests = []
        self.is_fast = False
        """True if a picture comes at once."""

    def optics(self):
        return self.size

    def problem(self):
        return self.trouble

    def take(self, number, done):
        self.requests.append((number, done))
        if self.is_fast:
            done(Picture(100.0, f"{number}.png"))

    def storage(self):
        return 3 * 2**20, 2**20


class CameraStation(Station):
    """A station with system 2, a vehicle with a camera."""

    def __init__(self):
        super().__init__()
        self.camera = Camera()
        pilot = self.pilots[2] = self.pilot = SimulatedPilot((0.0, 0.0, -20.0), 0.0)
        self.vehicle = pilot.vehicle = self.endpoint.add(2, "multirotor", pilot, None, self.camera)
        self.run(0.2)

    def ask(self, number, *params):
        """Send a command to the camera; return the result's name, "" without an answer."""
        filled = [*params, *[NAN] * (7 - len(params))]
        message = common.MAVLink_command_long_message(2, CAMERA, number, 0, *filled)
        acks = of_type("COMMAND_ACK", self.send(message))
        if not acks:
            return ""
        (ack,) = acks
        assert (ack.get_srcSystem(), ack.get_srcComponent()) == (2, CAMERA)
        return common.enums["MAV_RESULT"][ack.result].name.removeprefix("MAV_RESULT_")


@pytest.fixture
def station():
    return CameraStation()


def test_it_is_a_component_of_its_own_as_long_as_there_is_a_camera(station):
    station.heard.clear()
    station.run(3.0)
    beats = [m for m in of_type("HEARTBEAT", station.heard) if m.get_srcComponent() == CAMERA]
    assert len(beats) == pytest.approx(3, abs=1)
    assert {(m.type, m.autopilot) for m in beats} == {(common.MAV_TYPE_CAMERA, 8)}

    station.camera.size = None
    station.heard.clear()
    station.run(2.0)
    assert station.ask(REQUEST, 259.0) == ""
    assert CAMERA not in {m.get_srcComponent() for m in station.heard}


def test_what_it_reports(station):
    for number in (259.0, 260.0, 261.0, 262.0):
        assert station.ask(REQUEST, number) == "ACCEPTED"
    assert station.ask(REQUEST, 269.0) == "UNSUPPORTED"  # no stream

    information = station.last("CAMERA_INFORMATION", 2)
    assert (information.resolution_h, information.resolution_v) == (320, 180)
    assert bytes(information.vendor_name).rstrip(b"\0") == b"rfly_suite"
    assert information.flags == common.CAMERA_CAP_FLAGS_CAPTURE_IMAGE
    storage = station.last("STORAGE_INFORMATION", 2)
    sizes = storage.total_capacity, storage.used_capacity, storage.available_capacity
    assert sizes == (3.0, 2.0, 1.0)
    assert station.last("CAMERA_SETTINGS", 2).mode_id == 0
    assert station.last("CAMERA_CAPTURE_STATUS", 2).image_count == 0
    for old in (521, 522, 527):
        assert station.ask(old, 1.0) == "ACCEPTED"


def test_a_picture_has_the_place_and_the_attitude_of_its_own_time(station):
    """20 m above level ground, 10 m/s north, 30° down, the picture 0.31 s old."""
    station.pilot.gimbal = math.radians(-30.0)
    assert station.ask(START, 0.0, 0.0, 1.0, 1.0) == "ACCEPTED"
    station.run(0.1)
    (request,) = station.camera.requests
    assert request[0] == 1
    assert station.ask(REQUEST, 262.0) == "ACCEPTED"
    assert station.last("CAMERA_CAPTURE_STATUS", 2).image_status == 1

    begun = station.now
    for k in range(1, 11):
        now = begun + 0.05 * k
        station.vehicle.flight.pose.take(now, (0.5 * k, 0.0, -20.0), (0.0, 0.0, 0.0))
        station.endpoint.tick(now, now)
    taken = begun + 0.19
    request[1](Picture(taken, "kite_00001.png"))
    station.listen()

    message = station.last("CAMERA_IMAGE_CAPTURED", 2)
    assert (message.image_index, message.capture_result) == (0, 1)
    assert message.file_url == "kite_00001.png"
    assert message.time_boot_ms == pytest.approx(taken * 1e3, abs=1)
    assert message.lat == pytest.approx(470_000_000 + 1e7 * 1.9 / 111_170.9, abs=3)
    assert (message.lon, message.alt, message.relative_alt) == (80_000_000, 520_000, 20_000)
    half = math.radians(15.0)
    assert message.q == pytest.approx((math.cos(half), 0.0, -math.sin(half), 0.0), abs=1e-6)

    assert station.ask(AGAIN, 1.0) == "ACCEPTED"
    assert station.last("CAMERA_IMAGE_CAPTURED", 2).lat == message.lat
    assert station.ask(AGAIN, 7.0) == "DENIED"


def test_a_command_that_is_sent_again_takes_no_second_picture(station):
    for _ in range(2):
        assert station.ask(START, 0.0, 0.0, 1.0, 5.0) == "ACCEPTED"
        station.run(0.1)
    assert len(station.camera.requests) == 1
    assert station.ask(START, 0.0, 0.0, 1.0, 6.0) == "TEMPORARILY_REJECTED"  # busy

    station.camera.requests[0][1](None)
    station.listen()
    assert station.last("CAMERA_IMAGE_CAPTURED", 2).capture_result == 0
    assert station.ask(START, 0.0, 0.0, 1.0, 6.0) == "ACCEPTED"


@pytest.mark.parametrize(("count", "taken"), [(3.0, 3), (0.0, 5)])
def test_a_series_ends_by_its_number_or_when_it_is_stopped(station, count, taken):
    station.camera.is_fast = True
    assert station.ask(START, 0.0, 2.0, count, 0.0) == "ACCEPTED"
    station.run(9.0)
    names = [m.file_url for m in of_type("CAMERA_IMAGE_CAPTURED", station.heard)]
    assert names == [f"{k}.png" for k in range(1, taken + 1)]
    assert len(station.camera.requests) == taken
    assert station.ask(STOP) == "ACCEPTED"
    station.run(5.0)
    assert len(station.camera.requests) == taken


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ((START, 0.0, 0.0, 0.0, 0.0), "DENIED"),  # no interval
        ((START, 0.0, -1.0, 3.0, 0.0), "DENIED"),
        ((START, 0.0, 1.0, NAN, 0.0), "DENIED"),
        ((MODE, 0.0, 1.0), "DENIED"),  # video
        ((MODE, 0.0, 0.0), "ACCEPTED"),
        ((400, 1.0), "UNSUPPORTED"),
        ((REQUEST, NAN), "UNSUPPORTED"),
        ((AGAIN, NAN), "DENIED"),
    ],
)
def test_what_it_cannot_do_is_refused(station, command, result):
    assert station.ask(*command) == result
    station.run(0.2)
    assert station.camera.requests == []


def test_a_full_disk_ends_a_series(station):
    station.camera.is_fast = True
    station.ask(START, 0.0, 1.0, 0.0, 0.0)
    station.run(2.5)
    assert len(station.camera.requests) == 3
    station.camera.trouble = "No pictures: the disk is full"
    station.run(2.0)
    station.camera.trouble = ""
    station.run(2.0)
    assert len(station.camera.requests) == 3


def test_without_a_folder_there_is_no_picture(station):
    station.camera.trouble = "No pictures: parameter picture_folder"
    assert station.ask(START, 0.0, 0.0, 1.0, 1.0) == "TEMPORARILY_REJECTED"
    assert station.texts[-1] == "No pictures: parameter picture_folder"
    assert station.ask(REQUEST, 261.0) == "ACCEPTED"
    assert station.last("STORAGE_INFORMATION", 2).storage_count == 0


def test_the_autopilot_takes_no_pictures(station):
    message = common.MAVLink_command_long_message(2, 1, START, 0, 0.0, 0.0, 1.0, 1.0, *[NAN] * 3)
    (ack,) = of_type("COMMAND_ACK", station.send(message))
    assert ack.result == common.MAV_RESULT_UNSUPPORTED


def test_a_storm_of_captures_waits_for_one_picture(station):
    """300 series without end and without a pause: one runs, one picture is awaited at a time."""
    results = {station.ask(START, 0.0, 1e-9, 0.0, float(k)) for k in range(1, 301)}
    assert results == {"ACCEPTED", "TEMPORARILY_REJECTED"}
    station.run(0.5)
    assert len(station.camera.requests) == 1

    station.camera.is_fast = True
    station.camera.requests[0][1](None)
    station.heard.clear()
    station.run(0.5)
    taken = len(station.camera.requests) - 1
    assert 0 < taken <= len(of_type("CAMERA_IMAGE_CAPTURED", station.heard)) + 1

    assert station.ask(STOP) == "ACCEPTED"
    requests = len(station.camera.requests)
    station.run(0.5)
    assert len(station.camera.requests) == requests
