# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The picture of a recording in a window; the bytes are read by `struct`."""

from __future__ import annotations

import math
import struct

import pytest
from optional_parts import late_module

from rfly_common.errors import CaptureError
from rfly_lab.runs.message_definitions import message_definition
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter
from rfly_ue_bridge.datagram_recording.recorded_states import open_for_window

pytestmark = pytest.mark.needs("mcap", "mcap_ros2")
mcap_writer = late_module("mcap_ros2.writer")

STATES = "rfly_suite/VehicleStateArray"
QUARTER = math.sqrt(0.5)


def state(frame="map", **fields):
    """Return a message of vehicle 601, 12 m east, 34 m north, 56 m up, that looks north."""
    return {
        "header": {"stamp": {"sec": 1, "nanosec": 0}, "frame_id": frame},
        "source": "",
        "id": [601],
        "vehicle_type": [600_003],
        "position": [12.0, 34.0, 56.0],
        "orientation": [0.0, 0.0, QUARTER, QUARTER],
        "velocity": [1.0, 2.0, 3.0],
        "angular_velocity": [],
        "motors": 2,
        "motor_speed": [math.tau, 2 * math.tau],
        "scale": [],
        "fit_ground": [],
    } | fields


def write_log(path, messages, kind=STATES, metadata=None):
    """Write (time ns, message) on /vehicle_states."""
    with path.open("wb") as file, mcap_writer.Writer(file) as writer:
        schema = writer.register_msgdef(kind.replace("/", "/msg/"), message_definition(kind))
        for time_ns, message in messages:
            writer.write_message("/vehicle_states", schema, message, time_ns)
        if metadata is not None:
            writer.add_metadata("scenario", metadata)


def shown(path, port=20010):
    with open_for_window(path, port) as recording:
        return recording.map, list(recording.datagrams())


def test_states_of_a_log_are_datagrams_at_their_times(tmp_path):
    """SOut2SimulatorSimpleTime: ids at 4, motors rpm at 24, velocity 56, angles 68, place 80."""
    messages = [(1_500_000_000, state()), (1_520_000_000, state(position=[13.0, 34.0, 56.0]))]
    write_log(tmp_path / "run.mcap", messages, metadata={"map": "Hills"})
    name, datagrams = shown(tmp_path / "run.mcap")
    assert name == "Hills"
    assert [datagram.time for datagram in datagrams] == pytest.approx([1.5, 1.52])
    first, second = (datagram.payload for datagram in datagrams)
    assert struct.unpack_from("<2i", first, 4) == (601, 600_003)
    assert struct.unpack_from("<8f", first, 24) == pytest.approx((60, 120, *[0] * 6))
    # north, east, down
    assert struct.unpack_from("<3f", first, 56) == (2.0, 1.0, -3.0)
    assert struct.unpack_from("<3f", first, 68) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    assert struct.unpack_from("<3d", first, 80) == (34.0, 12.0, -56.0)
    assert struct.unpack_from("<3d", second, 80) == (34.0, 13.0, -56.0)


@pytest.mark.parametrize(
    ("message", "place", "said"),
    [
        (state(frame="map_ned", position=[1.0, 2.0, 3.0]), [(1.0, 2.0, 3.0)], ""),
        (
            state(frame="odom"),
            [],
            "left out: messages on /vehicle_states (2; the first: in the frame 'odom', expected "
            "map or map_ned)",
        ),
        (
            state(position=[1.0, 2.0]),
            [],
            "left out: messages on /vehicle_states (2; the first: position: 2 numbers for "
            "1 vehicles, expected 3)",
        ),
        (
            state(position=[1.0, 2.0, math.nan]),
            [],
            "left out: vehicles on /vehicle_states (2; the first: not finite)",
        ),
    ],
)
def test_other_frames_and_impossible_messages_are_left_out(tmp_path, message, place, said):
    write_log(tmp_path / "run.mcap", [(0, message), (1, message)])
    with open_for_window(tmp_path / "run.mcap", 20010) as recording:
        assert recording.map is None
        for _ in range(2):  # each pass counts anew
            shown = list(recording.datagrams())
            assert [struct.unpack_from("<3d", each.payload, 80) for each in shown] == 2 * place
            assert recording.left_out.text() == said


def test_vehicles_on_the_ground_stay_there(tmp_path):
    """The checksum 1234567891 keeps a vehicle on RflySim3D's ground."""
    write_log(tmp_path / "run.mcap", [(0, state(fit_ground=b"\x01"))])
    [(_, payload)] = shown(tmp_path / "run.mcap")[1]
    assert struct.unpack_from("<i", payload)[0] == 1_234_567_891


def test_a_log_without_states_says_what_would_be_shown(tmp_path):
    write_log(tmp_path / "run.mcap", [(0, {"data": [1.0]})], "std_msgs/Float64MultiArray")
    with pytest.raises(CaptureError, match="nothing that a window shows; expected messages rfly_"):
        shown(tmp_path / "run.mcap")


def test_of_a_capture_the_datagrams_to_the_window_are_shown(tmp_path):
    with (tmp_path / "two.pcap").open("wb") as file:
        writer = PcapWriter(file)
        for port, text in ((20010, b"zero"), (20011, b"one"), (20010, b"two")):
            sender = ("127.0.0.1", 50_000)
            writer.write(RecordedDatagram(2_000_000_000, sender, ("127.0.0.1", port), text))
        file.write(struct.pack("<4I", 2, 0, 3, 3) + b"\x45\0\0")  # an IPv4 header of 3 bytes
    name, datagrams = shown(tmp_path / "two.pcap")
    assert (name, datagrams) == (None, [(2.0, b"zero"), (2.0, b"two")])
    assert shown(tmp_path / "two.pcap", 20011)[1] == [(2.0, b"one")]

    with open_for_window(tmp_path / "two.pcap", 20010) as recording:
        list(recording.datagrams())
        assert recording.left_out.text() == (
            "left out: packets that are not readable (2; the first: no packet has 4 bytes), "
            "datagrams to other ports (1; the first: to 20011), cut short (1)"
        )
