# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The questions of a ground station on connect: versions, metadata, modes, fixed parameters."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mavlink_station import STATION, Station, of_type
from optional_parts import late_module

from rfly_mavlink.dialect.wire import NEWER_MESSAGES, Reader
from rfly_mavlink.stations.endpoint import MavlinkEndpoint
from rfly_mavlink.stations.file_transfer import file_crc

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")
newer = late_module("pymavlink.dialects.v20.all")

REQUEST_MESSAGE = 512
OUT_OF_RANGE = 2
"""MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE."""
UNSUPPORTED = 6
"""MAV_PARAM_ERROR_TYPE_UNSUPPORTED."""
DEFINITIONS = {
    "TIMESYNC": [("int64_t", "tc1", 0), ("int64_t", "ts1", 0)],
    "PROTOCOL_VERSION": [
        ("uint16_t", "version", 0),
        ("uint16_t", "min_version", 0),
        ("uint16_t", "max_version", 0),
        ("uint8_t", "spec_version_hash", 8),
        ("uint8_t", "library_version_hash", 8),
    ],
    "COMPONENT_METADATA": [
        ("uint32_t", "time_boot_ms", 0),
        ("uint32_t", "file_crc", 0),
        ("char", "uri", 100),
    ],
    "AVAILABLE_MODES": [
        ("uint32_t", "custom_mode", 0),
        ("uint32_t", "properties", 0),
        ("uint8_t", "number_modes", 0),
        ("uint8_t", "mode_index", 0),
        ("uint8_t", "standard_mode", 0),
        ("char", "mode_name", 35),
    ],
    "CURRENT_MODE": [
        ("uint32_t", "custom_mode", 0),
        ("uint32_t", "intended_custom_mode", 0),
        ("uint8_t", "standard_mode", 0),
    ],
    "AVAILABLE_MODES_MONITOR": [("uint8_t", "seq", 0)],
}
"""Type, name and length of fields of common.xml without extensions, in the order of the wire."""


@pytest.fixture
def station():
    return Station()


def requested(station, number, *params, dialect=common, system=1):
    """Return the messages of a dialect that answer a request."""
    station.endpoint.datagrams()
    filled = [number, *params, *[math.nan] * (6 - len(params))]
    request = common.MAVLink_command_long_message(system, 1, REQUEST_MESSAGE, 0, *filled)
    station.endpoint.receive(bytes(request.pack(station.packer)), ("127.0.0.1", 9), station.now)
    parser = dialect.MAVLink(None)
    parser.robust_parsing = True
    heard = []
    for address, data in station.endpoint.datagrams():
        assert address == ("127.0.0.1", 9)  # the one that asked
        heard += parser.parse_buffer(data)
    ack = heard.pop()
    assert (ack.get_type(), ack.result) == ("COMMAND_ACK", common.MAV_RESULT_ACCEPTED)
    return heard


def payload(message, size):
    data = bytes(message.get_msgbuf())
    return data[10 : 10 + data[1]].ljust(size, b"\0")


@pytest.mark.parametrize("name", NEWER_MESSAGES)
def test_check_bytes_by_the_definitions(name):
    """CRC_EXTRA by mavlink.io/en/guide/serialization.html: name, then type and name of fields."""
    from pymavlink.generator.mavcrc import x25crc

    text = f"{name} ".encode()
    crc = x25crc(text)
    for kind, field, length in DEFINITIONS[name]:
        crc.accumulate(f"{kind} {field} ".encode())
        if length:
            crc.accumulate(bytes([length]))
    assert NEWER_MESSAGES[name].crc_extra == crc.crc & 0xFF ^ crc.crc >> 8

    known = newer.mavlink_map.get(NEWER_MESSAGES[name].number)
    if known is not None:
        assert (known.msgname, known.crc_extra) == (name, NEWER_MESSAGES[name].crc_extra)


def test_versions(station):
    """QGroundControl warns of a PX4 before 1.4.1; the package's own version is beside it."""
    (version,) = requested(station, 148)
    package = ElementTree.parse(Path(__file__).parents[3] / "package.xml").getroot()
    major, minor, patch = map(int, str(package.findtext("version")).split("."))

    assert version.middleware_sw_version == major << 24 | minor << 16 | patch << 8
    assert list(version.flight_custom_version)[:3] == [patch, minor, major]
    assert tuple(version.flight_sw_version.to_bytes(4, "big"))[:3] >= (1, 4, 1)
    assert version.flight_sw_version & 0xFF == 0  # FIRMWARE_VERSION_TYPE_DEV
    for name in ("FTP", "MAVLINK2", "MISSION_INT", "COMMAND_INT", "PARAM_ENCODE_BYTEWISE"):
        assert version.capabilities & getattr(common, f"MAV_PROTOCOL_CAPABILITY_{name}")

    # 519: the command before REQUEST_MESSAGE
    (protocol,) = requested(station, 300)
    assert struct.unpack("<HHH", payload(protocol, 22)[:6]) == (200, 100, 200)
    assert station.command(519, 1.0) == "ACCEPTED"


def test_metadata_names_and_explains_each_parameter(station):
    station.vehicle.gains.ranges["RFLY_POS_GAIN"] = (0.001, 100.0)
    station.vehicle.gains.values["RFLY_POS_GAIN"] = 1.5
    station.vehicle.gains.texts["RFLY_POS_GAIN"] = "position loop"

    (message,) = requested(station, 397)
    _, crc, uri = struct.unpack("<II100s", payload(message, 108))
    assert uri.rstrip(b"\0") == b"mftp:///metadata/general.json"

    files = station.vehicle._files._files()
    assert file_crc(files["general.json"]) == crc
    general = json.loads(files["general.json"])
    assert (general["version"], general["vendorName"]) == (1, "rfly_suite")
    assert general["metadataTypes"] == [
        {
            "type": 1,
            "uri": "mftp:///metadata/parameters.json",
            "fileCrc": file_crc(files["parameters.json"]),
        }
    ]

    parameters = json.loads(files["parameters.json"])["parameters"]
    by_name = {parameter["name"]: parameter for parameter in parameters}
    listed = of_type("PARAM_VALUE", station.send(common.MAVLink_param_request_list_message(1, 1)))
    types = {m.param_id: {9: "Float", 6: "Int32"}[m.param_type] for m in listed}
    assert {name: parameter["type"] for name, parameter in by_name.items()} == types
    assert all(parameter["shortDesc"] for parameter in parameters)

    altitude = by_name["MIS_TAKEOFF_ALT"]
    assert [altitude[key] for key in ("units", "min", "max", "default")] == ["m", 0.5, 1000.0, 10.0]
    assert by_name["RFLY_POS_GAIN"]["shortDesc"] == "position loop"


def test_metadata_follows_the_controllers_gains(station):
    before = requested(station, 397)[0]
    station.vehicle.gains.ranges["RFLY_POS_GAIN"] = (0.001, 100.0)
    after = requested(station, 397)[0]
    assert payload(before, 108)[4:8] != payload(after, 108)[4:8]  # a station reads them again


AUTO_MODE = 4
"""MAV_MODE_PROPERTY_AUTO_MODE."""
PX4_MODES = {
    "Takeoff": (4, 2, 8),
    "Hold": (4, 3, 0),
    "Mission": (4, 4, 6),
    "Return": (4, 5, 5),
    "Land": (4, 6, 7),
    "Offboard": (6, 0, 0),
}
"""Main and sub mode in PX4's px4_custom_mode.h, and MAV_STANDARD_MODE."""


@pytest.mark.parametrize("uav_type", ["multirotor", "fixed-wing", "ground", "land-air"])
def test_the_modes_are_those_that_can_be_selected(uav_type):
    station = Station()
    station.endpoint = MavlinkEndpoint([])
    station.endpoint.add(1, uav_type, station.pilot)
    heard = requested(station, 435, 0.0, dialect=newer)
    assert [m.mode_index for m in heard] == list(range(1, len(heard) + 1))
    assert {m.number_modes for m in heard} == {len(heard)}

    listed = {(m.custom_mode, m.standard_mode, m.mode_name) for m in heard}
    for name, (main, sub, standard) in PX4_MODES.items():
        mode = (main << 16 | sub << 24, standard, "" if standard else name)
        assert (mode in listed) == (uav_type != "ground" or name not in ("Takeoff", "Land"))
    assert all(m.properties & AUTO_MODE for m in heard)

    (second,) = requested(station, 435, 2.0, dialect=newer)
    assert second.to_dict() == heard[1].to_dict()


def test_the_present_mode_is_told_at_its_change(station):
    parser = newer.MAVLink(None)
    (at_rest,) = requested(station, 436, dialect=newer)
    assert (at_rest.custom_mode, at_rest.standard_mode) == (4 << 16 | 3 << 24, 0)

    station.command(400, 1.0)
    station.endpoint.datagrams()
    assert station.command(22) == "ACCEPTED"
    station.endpoint.tick(station.now + 0.01, station.now + 0.01)
    sent = [data for address, data in station.endpoint.datagrams() if address == STATION]
    heard = [message for data in sent for message in parser.parse_buffer(data) or ()]
    (changed,) = of_type("CURRENT_MODE", heard)
    takeoff = 4 << 16 | 2 << 24
    assert (changed.custom_mode, changed.intended_custom_mode) == (takeoff, takeoff)
    assert changed.standard_mode == newer.MAV_STANDARD_MODE_TAKEOFF

    (monitor,) = requested(station, 437, dialect=newer)
    assert monitor.seq == 0


def test_a_standard_mode_can_be_selected(station):
    station.command(400, 1.0)
    assert station.command(262, 8.0) == "ACCEPTED"  # MAV_STANDARD_MODE_TAKEOFF
    station.run(1.5)
    assert station.last("HEARTBEAT").custom_mode == 4 << 16 | 2 << 24
    for number in (0.0, 1.0, 2.0, 99.0, math.nan):  # non-standard, position hold, orbit, none
        assert station.command(262, number) == "UNSUPPORTED"


def test_fixed_parameters_are_integers_that_stay(station):
    """Bytes of an int32 in the float of PARAM_VALUE, as PX4 sends it (PARAM_ENCODE_BYTEWISE)."""

    def read(name):
        request = common.MAVLink_param_request_read_message(1, 1, name, -1)
        (message,) = station.send(request)
        assert message.param_type == common.MAV_PARAM_TYPE_INT32
        return struct.unpack("<i", struct.pack("<f", message.param_value))[0]

    assert read(b"SYS_AUTOSTART") == 4001  # PX4's generic quadcopter
    assert read(b"COM_RC_IN_MODE") == 1
    assert read(b"MAV_SYS_ID") == 1
    assert all(read(f"CAL_{sensor}0_ID".encode()) != 0 for sensor in ("GYRO", "ACC", "MAG"))

    def written(value):
        (bits,) = struct.unpack("<f", struct.pack("<i", value))
        message = common.MAVLink_param_set_message(1, 1, b"SYS_AUTOSTART", bits, 6)
        return [answer.get_type() for answer in station.send(message)]

    assert written(4001) == ["PARAM_VALUE"]
    assert written(4002) == ["PARAM_ERROR", "PARAM_VALUE"]
    assert read(b"SYS_AUTOSTART") == 4001


@pytest.mark.parametrize(
    ("kind", "layout", "number"),
    [(1, "<B", 20), (3, "<H", 300), (4, "<h", 20), (5, "<I", 20), (6, "<i", 20), (9, "<f", 20.5)],
)
def test_a_number_is_taken_by_its_type(station, kind, layout, number):
    raw = struct.pack(layout, number).ljust(4, b"\0")
    (value,) = struct.unpack("<f", raw)
    message = common.MAVLink_param_set_message(1, 1, b"MIS_TAKEOFF_ALT", value, kind)
    assert of_type("PARAM_VALUE", station.send(message))[-1].param_value == number
    assert station.vehicle.values.takeoff_altitude == number


@pytest.mark.parametrize(
    ("kind", "raw", "error"),
    [
        (6, struct.pack("<i", -1), OUT_OF_RANGE),  # NaN as a float
        (2, struct.pack("<bxxx", -3), OUT_OF_RANGE),
        (10, struct.pack("<f", 20.0), UNSUPPORTED),  # REAL64 has more bytes than the message
        (8, struct.pack("<f", 20.0), UNSUPPORTED),
        (0, struct.pack("<f", 20.0), UNSUPPORTED),
    ],
)
def test_a_number_out_of_range_or_of_a_large_type_is_refused(station, kind, raw, error):
    (value,) = struct.unpack("<f", raw)
    message = common.MAVLink_param_set_message(1, 1, b"MIS_TAKEOFF_ALT", value, kind)
    *_, refusal = of_type("PARAM_ERROR", station.send(message))
    assert refusal.error == error
    assert station.vehicle.values.takeoff_altitude == 10.0


def test_altitude_attitude_and_odometry_by_hand():
    """3.5 m above ground at 0 and home, 500 m above the sea at the origin; nose to the east."""
    station = Station(at=(100.0, 200.0, -3.5), yaw=math.pi / 2)
    station.run(0.5)
    flight = station.vehicle.flight
    flight.pose.velocity[:] = (2.0, 1.0, -0.5)

    message = station.vehicle._telemetry.message
    altitude = message("ALTITUDE")
    assert altitude.altitude_amsl == pytest.approx(503.5)
    assert altitude.altitude_local == pytest.approx(3.5)
    assert altitude.altitude_relative == pytest.approx(3.5)
    assert (altitude.altitude_terrain, altitude.bottom_clearance) == pytest.approx((3.5, 3.5))

    half = math.sqrt(0.5)
    attitude = message("ATTITUDE_QUATERNION")
    assert (attitude.q1, attitude.q2, attitude.q3, attitude.q4) == pytest.approx((half, 0, 0, half))

    # north is to its left, east ahead
    odometry = message("ODOMETRY")
    assert (odometry.frame_id, odometry.child_frame_id) == (1, 12)
    assert (odometry.x, odometry.y, odometry.z) == pytest.approx((100.0, 200.0, -3.5))
    assert (odometry.vx, odometry.vy, odometry.vz) == pytest.approx((1.0, -2.0, -0.5))
    assert odometry.q == pytest.approx((half, 0.0, 0.0, half))
    assert math.isnan(odometry.pose_covariance[0])  # unknown

    flight.situation.ground = math.nan
    unknown = message("ALTITUDE")
    assert unknown.altitude_terrain < -1000.0
    assert unknown.bottom_clearance < 0.0
    assert Reader().read(message("ODOMETRY").pack(station.packer))


def test_the_systems_time_is_sent(station, monkeypatch):
    monkeypatch.setattr(
        "rfly_mavlink.stations.telemetry.time.time_ns", lambda: 1_700_000_000 * 10**9
    )
    message = station.vehicle._telemetry.message("SYSTEM_TIME")
    assert message.time_unix_usec == 1_700_000_000 * 10**6
    assert message.time_boot_ms == round(station.now * 1e3)
