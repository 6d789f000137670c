# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D: a strictly typed client of RflySim3D's window, for new code.

    from rfly_ue_bridge import RflySim3D, commands

    with RflySim3D() as window:
        window.command(commands.change_map_by_name("Grasslands"), wait=True)
        window.vehicle(1001, 151, (43.9, 1.6, -11.5), (0.0, 0.0, 1.57))

Values that RflySim3D would misread raise ValueError, which names argument and limit, and nothing is
sent. A call waits only if `wait` is set. Positions are m NED, angles rad (roll, pitch, yaw of FRD
in NED), motor speeds rpm.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rfly_common.files import Closing
from rfly_common.vehicle_states import FARTHEST
from rfly_ue_bridge.codec import commands
from rfly_ue_bridge.codec.addresses import DEFAULT_HOST, LAN_GROUP, WINDOW_PORT
from rfly_ue_bridge.codec.command_words import check_flag, number_within, whole_number
from rfly_ue_bridge.codec.commands import (
    MAP_CHANGE_SECONDS,
    changes_map,
    encode_command,
    encode_command_lan,
)
from rfly_ue_bridge.codec.to_rflysim3d import (
    ATTACH_ATTITUDE,
    ATTACH_NONE,
    ATTACHMENTS,
    COPTER_MSG,
    MOTORS,
    SOUT2_SIMULATOR,
    SOUT2_SIMULATOR_SIMPLE,
    SOUT2_SIMULATOR_SIMPLE1,
    SOUT2_SIMULATOR_SIMPLE_TIME,
    UE4_EXT_MSG,
    VEHICLE_ATTATCH_25,
)
from rfly_ue_bridge.objects.weather_actor import WEATHER_ACTOR, encode_weather
from rfly_ue_bridge.sockets.udp_sender import resolve

MAX_LABEL_BYTES = 120
"""Longest text of a label, bytes."""
MAX_LABEL_LINE = 5
"""Number of the last line of a vehicle's label."""
ACTION_NUMBERS = 16
"""Numbers that a blueprint action holds."""
_ZEROS = (0.0, 0.0, 0.0)


class RflySim3D(Closing):
    """Sender to RflySim3D at `host`, whose window k listens on `port` + k.

    `window` of the calls is k >= 0, or -1 for the first `windows` windows. Broadcast addresses need
    `broadcast`. An address that cannot be reached raises OSError; a port on which no program
    listens does not, as UDP does not report it. Raises ConfigError for a host without an IPv4
    address.
    """

    def __init__(
        self,
        host: str = DEFAULT_HOST,
        port: int = WINDOW_PORT,
        windows: int = 1,
        *,
        broadcast: bool = False,
    ) -> None:
        self._address = resolve(host)
        self._port = whole_number("port", port, 1, 65535)
        self._windows = whole_number("windows", windows, 1, 65536 - port)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if broadcast:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self._start = self._ready_at = time.monotonic()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def ready_in(self) -> float:
        """Time until RflySim3D takes poses again after this object's map change, s.

        It is 0.0 if RflySim3D takes poses.
        """
        return max(0.0, self._ready_at - time.monotonic())

    # ---- commands

    def command(self, text: str, *, window: int = -1, wait: bool = False) -> float:
        """Send a console command, from `commands` or your own text; return `ready_in`.

        After a map change poses are lost for about a second. `wait` sleeps that long: not in a ROS
        callback. CommandError, a ValueError, for a text that is empty, above 249 bytes or holds a
        zero.
        """
        self._send(encode_command(text), window)
        return self._after(text, wait)

    def command_lan(self, text: str, *, wait: bool = False) -> float:
        """Send a console command to every RflySim3D of the network.

        It has up to 91 bytes; otherwise as `command`.
        """
        self._socket.sendto(encode_command_lan(text), LAN_GROUP)
        return self._after(text, wait)

    def request_object(self, kind: int, name: int | str, *, window: int = 0) -> None:
        """Ask for place and size of a camera, vehicle or object, as `commands.request_object`."""
        self.command(commands.request_object(kind, name), window=window)

    # ---- vehicles

    def vehicle(
        self,
        copter_id: int,
        vehicle_type: int,
        position_ned: Sequence[float],
        euler: Sequence[float] = _ZEROS,
        *,
        velocity_ned: Sequence[float] = _ZEROS,
        motor_speed_rpm: Sequence[float] = (),
        scale: Sequence[float] = (1.0, 1.0, 1.0),
        fit_ground: bool = False,
        time_s: float = -1.0,
        window: int = -1,
    ) -> None:
        """Create or move a vehicle.

        It leaves as current SOut2SimulatorSimpleTime. With `fit_ground`, where RflySim3D finds z
        itself, or another scale than 1 it leaves as SOut2SimulatorSimple or -Simple1, which have no
        velocity and one mean motor speed. motor_speed_rpm: up to 8 motors. time_s: a time stamp, -1
        for none.
        """
        head = (whole_number("copter_id", copter_id), whole_number("vehicle_type", vehicle_type, 0))
        position = _position(position_ned)
        angles = _vector("euler", euler, 3)
        motors = _motors(motor_speed_rpm)
        size = _vector("scale", scale, 3)
        velocity = _vector("velocity_ned", velocity_ned, 3)
        stamp = number_within("time_s", time_s)
        if min(size) < 0:
            raise ValueError(f"scale: {min(size)}, expected 0 or more")

        scaled = size != [1.0, 1.0, 1.0]
        if not scaled and not check_flag("fit_ground", fit_ground):
            speeds = motors + [0.0] * (MOTORS - len(motors))
            time_and_all = (0, 0, 0, *speeds, *velocity, *angles, *position, stamp)
            datagram = SOUT2_SIMULATOR_SIMPLE_TIME.pack_flat(*head, *time_and_all)
        else:
            mean = math.fsum(motors) / len(motors) if motors else 0.0
            values = (*head, mean, *position, *angles)
            if scaled:
                datagram = SOUT2_SIMULATOR_SIMPLE1.pack_flat(*values, *size, ground=fit_ground)
            else:
                datagram = SOUT2_SIMULATOR_SIMPLE.pack_flat(*values, ground=fit_ground)

        self._send(datagram, window)

    def vehicle_full(
        self,
        copter_id: int,
        vehicle_type: int,
        position_ned: Sequence[float],
        euler: Sequence[float] = _ZEROS,
        *,
        velocity_ned: Sequence[float] = _ZEROS,
        quaternion_wxyz: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        motor_speed_rpm: Sequence[float] = (),
        acceleration_frd: Sequence[float] = _ZEROS,
        angular_velocity_frd: Sequence[float] = _ZEROS,
        time_s: float = -1.0,
        longitude_deg: float = 0.0,
        latitude_deg: float = 0.0,
        altitude: float = 0.0,
        window: int = -1,
    ) -> None:
        """Create or move a vehicle by SOut2Simulator, which holds its whole state.

        Accelerations (m/s^2) and angular velocities (rad/s) are in body axes, FRD. Four
        zeros as the quaternion, which RflySim's SDK sends, mean that there is none.
        """
        self._send(
            SOUT2_SIMULATOR.pack_flat(
                whole_number("copter_id", copter_id),
                whole_number("vehicle_type", vehicle_type, 0),
                0,
                *_vector("velocity_ned", velocity_ned, 3),
                *_vector("euler", euler, 3),
                *_vector("quaternion_wxyz", quaternion_wxyz, 4),
                *(_motors(motor_speed_rpm) + [0.0] * MOTORS)[:MOTORS],
                *_vector("acceleration_frd", acceleration_frd, 3),
                *_vector("angular_velocity_frd", angular_velocity_frd, 3),
                number_within("time_s", time_s),
                *_position(position_ned),
                number_within("longitude_deg", longitude_deg, -180.0, 180.0),
                number_within("latitude_deg", latitude_deg, -90.0, 90.0),
                number_within("altitude", altitude),
            ),
            window,
        )

    def datagrams(self, runs: Iterable[Iterable[bytes | memoryview]], *, window: int = -1) -> None:
        """Send encoded datagrams, such as those of `encode_states`."""
        for run in runs:
            for datagram in run:
                self._send(datagram, window)

    # ---- actions, attachments, labels

    def blueprint_action(
        self, copter_id: int, numbers: Sequence[float], *, window: int = -1
    ) -> None:
        """Send up to 16 numbers to a vehicle's blueprint, the others 0.

        The time since this object was made goes with them.
        """
        values = _vector("numbers", numbers, None)
        if len(values) > ACTION_NUMBERS:
            raise ValueError(f"numbers: {len(values)}, expected at most {ACTION_NUMBERS}")
        values += [0.0] * (ACTION_NUMBERS - len(values))

        elapsed = time.monotonic() - self._start
        self._send(
            UE4_EXT_MSG.pack_flat(whole_number("copter_id", copter_id), elapsed, *values), window
        )

    def weather(self, kind: str, *, actor_id: int = WEATHER_ACTOR, window: int = -1) -> None:
        """Show clear, strong_wind, rain, snow or fog by an actor of that id.

        Their numbers are known from public scripts only, see `data/weather.yaml`.
        """
        elapsed = time.monotonic() - self._start
        for datagram in encode_weather(kind, whole_number("actor_id", actor_id, 1), elapsed):
            self._send(datagram, window)

    def attach(self, attachments: Iterable[tuple[int, int, int]], *, window: int = -1) -> None:
        """Attach vehicles to others: up to 25 times (child, parent, kind).

        The kind is one of ATTACH_NONE … ATTACH_ATTITUDE.
        """
        rows = [
            (
                whole_number("child", child, 1),
                whole_number("parent", parent),
                whole_number("kind", kind, ATTACH_NONE, ATTACH_ATTITUDE),
            )
            for child, parent, kind in attachments
        ]
        if not 1 <= len(rows) <= ATTACHMENTS:
            raise ValueError(f"attachments: {len(rows)}, expected 1 to {ATTACHMENTS}")

        rows += [(0, 0, 0)] * (ATTACHMENTS - len(rows))
        flat = [number for column in zip(*rows, strict=True) for number in column]
        self._send(VEHICLE_ATTATCH_25.pack_flat(*flat), window)

    def label(
        self,
        copter_id: int,
        text: str,
        *,
        line: int | None = None,
        seconds: float = 0.0,
        font_size: float = 30.0,
        rgb: Sequence[int] = (255, 0, 0),
        window: int = -1,
    ) -> None:
        """Show a text above a vehicle, or above all (id 0), for `seconds` (0: for ever).

        line: None appends one (RflySim3D shows 5), 0 is the id line, 1 to 5 replaces that one.
        """
        raw = text.encode()
        if len(raw) > MAX_LABEL_BYTES or "\0" in text:
            raise ValueError(
                f"text: {len(raw)} bytes, expected at most {MAX_LABEL_BYTES} and no zero character"
            )

        colour = [whole_number("rgb", part, 0, 255) for part in rgb]
        if len(colour) != 3:
            raise ValueError(f"rgb: {len(colour)} numbers, expected 3")

        flag = -1 if line is None else whole_number("line", line, 0, MAX_LABEL_LINE)
        size = number_within("font_size", font_size, 0.0)
        self._label(
            copter_id, flag, colour, number_within("seconds", seconds, 0.0), size, raw, window
        )

    def remove_label(self, copter_id: int, line: int | None = None, *, window: int = -1) -> None:
        """Remove line 1 to 5 of a vehicle's labels; None: all."""
        flag = -1 if line is None else whole_number("line", line, 1, MAX_LABEL_LINE)
        self._label(copter_id, flag, [0, 0, 0], -1.0, 0.0, b"", window)

    # ---- helpers

    def _label(
        self,
        copter_id: int,
        flag: int,
        rgb: list[int],
        seconds: float,
        size: float,
        text: bytes,
        window: int,
    ) -> None:
        who = whole_number("copter_id", copter_id, 0)
        self._send(COPTER_MSG.pack_flat(who, flag, *rgb, seconds, size, text), window)

    def _after(self, text: str, wait: bool) -> float:
        if changes_map(text):
            self._ready_at = time.monotonic() + MAP_CHANGE_SECONDS
        if wait:
            time.sleep(self.ready_in)
        return self.ready_in

    def _send(self, datagram: bytes | memoryview, window: int) -> None:
        index = whole_number("window", window, -1, 65535 - self._port)
        if index < 0:
            ports = range(self._port, self._port + self._windows)
        else:
            ports = range(self._port + index, self._port + index + 1)
        for port in ports:
            self._socket.sendto(datagram, (self._address, port))


def _vector(argument: str, values: Any, length: int | None) -> list[float]:
    try:
        numbers = list(values)
    except TypeError:
        raise ValueError(f"{argument}: {values!r}, expected {length or 'some'} numbers") from None
    if length is not None and len(numbers) != length:
        raise ValueError(f"{argument}: {len(numbers)} numbers, expected {length}")
    return [number_within(argument, number) for number in numbers]


def _position(values: Any) -> list[float]:
    numbers = _vector("position_ned", values, 3)
    if max(map(abs, numbers)) > FARTHEST:
        raise ValueError(f"position_ned: {numbers}, expected within {FARTHEST:g} m of the origin")
    return numbers


def _motors(values: Any) -> list[float]:
    numbers = _vector("motor_speed_rpm", values, None)
    if len(numbers) > MOTORS:
        raise ValueError(f"motor_speed_rpm: {len(numbers)} motors, expected at most {MOTORS}")
    return numbers
