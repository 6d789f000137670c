# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The strict interface: datagrams read back by the decoder, and none for a wrong argument."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_common import VehicleStates
from rfly_common.errors import ConfigError
from rfly_ue_bridge import rflysim3d
from rfly_ue_bridge.codec import commands
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.codec.state_datagrams import encode_states
from rfly_ue_bridge.codec.to_rflysim3d import ATTACH_ATTITUDE, ATTACH_POSITION, decode
from rfly_ue_bridge.rflysim3d import RflySim3D


class Sinks:
    """Three windows on consecutive free ports."""

    def __init__(self):
        while True:
            self.sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
            try:
                self.sockets[0].bind(("127.0.0.1", 0))
                self.port = self.sockets[0].getsockname()[1]
                for k in (1, 2):
                    self.sockets[k].bind(("127.0.0.1", self.port + k))
                break
            except (OSError, OverflowError):
                self.close()
        for sink in self.sockets:
            sink.settimeout(PATIENCE)

    def take(self, window=0):
        return decode(self.sockets[window].recv(65536))

    def empty(self):
        for sink in self.sockets:
            sink.setblocking(False)
            with pytest.raises(BlockingIOError):
                sink.recv(1)
            sink.settimeout(PATIENCE)
        return True

    def close(self):
        for sink in self.sockets:
            sink.close()


@pytest.fixture
def sinks():
    opened = Sinks()
    yield opened
    opened.close()


@pytest.fixture
def window(sinks):
    with RflySim3D(port=sinks.port, windows=3) as opened:
        yield opened


def test_a_vehicle_leaves_as_current_simple_time(window, sinks):
    window.vehicle(
        7, 200150, [1.5, -2.5, 1e7 + 0.25], (0.5, 0.25, -0.125),
        velocity_ned=np.array([1, 2, 3]), motor_speed_rpm=[10, 20], time_s=12.5,
    )  # fmt: skip

    for k in range(3):
        packet = sinks.take(k)
        assert packet.name == "SOut2SimulatorSimpleTime"
        assert (packet["copterID"], packet["vehicleType"], packet["PosGpsInt"]) == (
            7,
            200150,
            (0, 0, 0),
        )

        assert packet["PosE"] == (1.5, -2.5, 1e7 + 0.25)
        assert packet["AngEuler"] == (0.5, 0.25, -0.125)
        assert packet["VelE"] == (1, 2, 3)
        assert packet["MotorRPMS"] == (10, 20, 0, 0, 0, 0, 0, 0)
        assert packet["runnedTime"] == 12.5


@pytest.mark.parametrize(
    ("arguments", "name", "ground"),
    [
        ({"fit_ground": True}, "SOut2SimulatorSimple", True),
        ({"scale": (2, 1, 1)}, "SOut2SimulatorSimple1", False),
        ({"scale": (2, 1, 1), "fit_ground": True}, "SOut2SimulatorSimple1", True),
    ],
)
def test_ground_and_scale_choose_the_packet(window, sinks, arguments, name, ground):
    window.vehicle(
        7, 3, (1, 2, 3), (0.5, 0, 0), motor_speed_rpm=[10, 20, 60], window=1, **arguments
    )
    packet = sinks.take(1)
    assert (packet.name, packet.keep_on_ground) == (name, ground)
    assert packet["MotorRPMSMean"] == 30
    assert packet["PosE"] == (1, 2, 3)
    assert packet.values.get("Scale", (2, 1, 1)) == (2, 1, 1)
    assert sinks.empty()


def test_the_whole_state(window, sinks):
    window.vehicle_full(
        7,
        3,
        (1, 2, 3),
        (4, 5, 6),
        velocity_ned=(7, 8, 9),
        quaternion_wxyz=(1, 0, 0.5, 0),
        motor_speed_rpm=[1] * 8,
        acceleration_frd=(10, 11, 12),
        angular_velocity_frd=(13, 14, 15),
        time_s=16,
        longitude_deg=17,
        latitude_deg=18,
        altitude=19,
        window=2,
    )
    packet = sinks.take(2)

    assert dict(packet.values) == {
        "checksum": 123456789,
        "copterID": 7,
        "vehicleType": 3,
        "reserved": 0,
        "VelE": (7, 8, 9),
        "AngEuler": (4, 5, 6),
        "AngQuatern": (1, 0, 0.5, 0),
        "MotorRPMS": (1,) * 8,
        "AccB": (10, 11, 12),
        "RateB": (13, 14, 15),
        "runnedTime": 16,
        "PosE": (1, 2, 3),
        "PosGPS": (17, 18, 19),
    }


def test_labels(window, sinks):
    window.label(7, "größer", window=0)
    window.label(0, "all", line=3, seconds=2.5, font_size=12, rgb=(1, 2, 3), window=0)
    window.label(7, "a" * 120, line=0, window=0)
    window.remove_label(7, 2, window=0)
    window.remove_label(7, window=0)
    fields = ("copterID", "dispFlag", "RGB", "dispTime", "fontSize", "text")
    packets = [sinks.take() for _ in range(5)]
    expected = [
        (7, -1, (255, 0, 0), 0, 30, "größer"),
        (0, 3, (1, 2, 3), 2.5, 12, "all"),
        (7, 0, (255, 0, 0), 0, 30, "a" * 120),
        (7, 2, (0, 0, 0), -1, 0, ""),
        (7, -1, (0, 0, 0), -1, 0, ""),
    ]

    assert [tuple(packet[field] for field in fields) for packet in packets] == expected


def test_attachments_and_actions(window, sinks):
    window.attach([(1, 2, ATTACH_POSITION), (3, 4, ATTACH_ATTITUDE)], window=0)
    packet = sinks.take()
    assert packet["CopterIDs"] == (1, 3, *[0] * 23)
    assert packet["AttatchIDs"] == (2, 4, *[0] * 23)
    assert packet["AttatchTypes"] == (1, 3, *[0] * 23)
    window.blueprint_action(5, [1.5, 2], window=0)
    packet = sinks.take()
    assert packet["copterID"] == 5
    assert packet["ExtToUE4"] == (1.5, 2, *[0] * 14)
    assert 0 <= packet["runnedTime"] < 60


def test_weather_is_an_actor_and_its_action(window, sinks):
    window.weather("snow", actor_id=100)
    actor = sinks.take()
    act = sinks.take()
    assert (actor["copterID"], actor["vehicleType"]) == (100, 804)
    assert (act["copterID"], list(act["ExtToUE4"])) == (100, [8.0] + [0.0] * 15)


def test_fleets_and_requests(window, sinks):
    quats = np.tile([0.0, 0.0, 0.0, 1.0], (150, 1))
    fleet = VehicleStates(np.arange(1, 151), np.full(150, 3), np.zeros((150, 3)), quats)
    ned, _ = states_to_ned(fleet, "ned")
    window.datagrams(encode_states(ned, in_fleet=True), window=1)
    assert [sinks.take(1)["copterID"][0] for _ in range(2)] == [1, 101]
    window.request_object(2, "Tree_1")
    assert sinks.take(0)["text"] == "RflyReqObjData 2 Tree_1 0"
    assert sinks.empty()


WRONG = {
    "id": lambda w: w.vehicle(1.0, 3, (0, 0, 0)),
    "id-bool": lambda w: w.vehicle(True, 3, (0, 0, 0)),
    "id-large": lambda w: w.vehicle(2**31, 3, (0, 0, 0)),
    "type": lambda w: w.vehicle(1, -1, (0, 0, 0)),
    "position-short": lambda w: w.vehicle(1, 3, (0, 0)),
    "position-far": lambda w: w.vehicle(1, 3, (0, 1.01e8, 0), fit_ground=True),
    "position-far-full": lambda w: w.vehicle_full(1, 3, (-1.01e8, 0, 0)),
    "position-number": lambda w: w.vehicle(1, 3, 2.0),
    "position-nan": lambda w: w.vehicle(1, 3, (0, 0, float("nan"))),
    "position-large": lambda w: w.vehicle(1, 3, (0, 1e39, 0)),
    "position-text": lambda w: w.vehicle(1, 3, "012"),
    "position-nested": lambda w: w.vehicle(1, 3, np.zeros((3, 3))),
    "euler-inf": lambda w: w.vehicle(1, 3, (0, 0, 0), (0, 0, float("inf"))),
    "motors": lambda w: w.vehicle(1, 3, (0, 0, 0), motor_speed_rpm=[0] * 9),
    "scale": lambda w: w.vehicle(1, 3, (0, 0, 0), scale=(1, -1, 1)),
    "ground": lambda w: w.vehicle(1, 3, (0, 0, 0), fit_ground="yes"),
    "velocity": lambda w: w.vehicle(1, 3, (0, 0, 0), velocity_ned=(1,)),
    "window": lambda w: w.vehicle(1, 3, (0, 0, 0), window=-2),
    "window-large": lambda w: w.vehicle(1, 3, (0, 0, 0), window=65000),
    "latitude": lambda w: w.vehicle_full(1, 3, (0, 0, 0), latitude_deg=91),
    "quaternion": lambda w: w.vehicle_full(1, 3, (0, 0, 0), quaternion_wxyz=(1, 0, 0)),
    "label-long": lambda w: w.label(1, "ö" * 61),
    "label-zero": lambda w: w.label(1, "a\0b"),
    "label-colour": lambda w: w.label(1, "a", rgb=(1, 2, 256)),
    "label-colours": lambda w: w.label(1, "a", rgb=(1, 2)),
    "label-line": lambda w: w.label(1, "a", line=6),
    "label-seconds": lambda w: w.label(1, "a", seconds=-1),
    "label-id": lambda w: w.label(-1, "a"),
    "remove-id-line": lambda w: w.remove_label(1, 0),
    "attach-many": lambda w: w.attach([(k, 1, 1) for k in range(1, 27)]),
    "attach-none": lambda w: w.attach([]),
    "attach-how": lambda w: w.attach([(1, 2, 4)]),
    "attach-who": lambda w: w.attach([(0, 2, 1)]),
    "action-many": lambda w: w.blueprint_action(1, [0] * 17),
    "command-long": lambda w: w.command("x" * 250),
    "command-lan-long": lambda w: w.command_lan("x" * 92),
    "command-empty": lambda w: w.command(""),
    "request": lambda w: w.request_object(1, "Tree"),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_a_value_error_and_sends_nothing(window, sinks, call):
    with pytest.raises(ValueError, match=r"expected|at most|empty"):
        call(window)
    assert sinks.empty()


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (
            WRONG["position-nan"],
            r"position_ned: nan, expected a number from -3.40282e\+38 to 3.40282e\+38",
        ),
        (WRONG["position-short"], "position_ned: 2 numbers, expected 3"),
        (WRONG["position-far"], r"position_ned: .*, expected within 1e\+08 m of the origin"),
        (
            WRONG["id-large"],
            "copter_id: 2147483648, expected a whole number from -2147483648 to 2147483647",
        ),
        (WRONG["motors"], "motor_speed_rpm: 9 motors, expected at most 8"),
        (WRONG["label-long"], "text: 122 bytes, expected at most 120"),
        (WRONG["attach-many"], "attachments: 26, expected 1 to 25"),
    ],
)
def test_argument_and_limit_are_named(window, call, named):
    with pytest.raises(ValueError, match=named):
        call(window)


def test_a_map_change_does_not_wait_unless_asked(window, sinks, monkeypatch):
    waited = []
    monkeypatch.setattr(rflysim3d.time, "sleep", waited.append)
    monkeypatch.setattr(rflysim3d.time, "monotonic", lambda: 100.0)
    assert window.command(commands.change_map_by_name("Grasslands")) == 1.0
    assert waited == []
    monkeypatch.setattr(rflysim3d.time, "monotonic", lambda: 100.25)
    assert window.ready_in == 0.75
    window.command("RflyChangeMapbyID 2", wait=True)
    assert len(waited) == 1
    assert 0.9 < waited[0] <= 1.0


def test_other_commands_are_ready_at_once(window, sinks):
    assert window.command("t.MaxFPS 30", window=0) == 0.0
    assert sinks.take()["text"] == "t.MaxFPS 30"
    assert window.command(commands.clear_capture(), wait=True) == 0.0


def test_hosts_and_windows_that_cannot_be():
    with pytest.raises(ConfigError, match="no IPv4"):
        RflySim3D("no.such.host.invalid")
    for arguments in (
        {"windows": 0},
        {"port": 65535, "windows": 2},
        {"port": 0},
    ):
        with pytest.raises(ValueError, match="expected a whole number"):
            RflySim3D(**arguments)
