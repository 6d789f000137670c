# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's command protocol, the vehicle's side: COMMAND_LONG and COMMAND_INT, and the answers.

https://mavlink.io/en/services/command.html
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rfly_common.geodesy import geodetic_to_ned
from rfly_mavlink.dialect.wire import Address, Send, Sender, load_dialect, sender_of
from rfly_mavlink.stations.flight import FlightLogic
from rfly_mavlink.stations.flight_modes import (
    SET_STANDARD_MODE,
    FlightMode,
    find_mode,
    find_standard_mode,
)
from rfly_mavlink.stations.gimbal_protocol import CONFIGURE, PITCHYAW
from rfly_mavlink.stations.mission_rows import Refused
from rfly_mavlink.stations.remote_pilot import Denied
from rfly_mavlink.stations.telemetry import Telemetry
from rfly_missions.mission.items import Ned
from rfly_missions.mission.mavlink_items import (
    ABSOLUTE_FRAMES,
    GLOBAL_FRAMES,
    LOCAL_NED,
    TERRAIN_FRAMES,
)

_UNSET = 2**31 - 1
"""Value of x or y in COMMAND_INT that is not given (INT32_MAX)."""
_TO_ALL = 2.0
"""Param 7 of REQUEST_MESSAGE: the message goes to all stations."""
_IN_COMMAND_LONG = 0
"""Frame of a place in COMMAND_LONG: global, altitude above sea."""


@dataclass(frozen=True)
class CommandRequest:
    """A COMMAND_LONG or COMMAND_INT: params 1 to 7, NaN if not given; latitudes in degrees."""

    number: int
    params: tuple[float, ...]
    frame: int
    sender: Sender
    address: Address

    @classmethod
    def of_message(cls, message: Any, address: Address) -> CommandRequest:
        """Return the request in either message, which came from an address."""
        sender = sender_of(message)
        first = message.param1, message.param2, message.param3, message.param4
        if message.get_type() == "COMMAND_LONG":
            params = (*first, message.param5, message.param6, message.param7)
            return cls(message.command, params, _IN_COMMAND_LONG, sender, address)

        # COMMAND_INT
        scale = 1e-7 if message.frame in GLOBAL_FRAMES else 1e-4
        if message.command in (PITCHYAW, CONFIGURE):
            scale = 1.0
        x, y = (math.nan if v == _UNSET else v * scale for v in (message.x, message.y))
        params = (*first, x, y, message.z)
        return cls(message.command, params, message.frame, sender, address)


class CommandProtocol:
    """Answers to COMMAND_LONG and COMMAND_INT: each sender gets its COMMAND_ACK."""

    HANDLED = frozenset({"COMMAND_LONG", "COMMAND_INT"})

    def __init__(
        self,
        flight: FlightLogic,
        telemetry: Telemetry,
        send: Send,
        report: Callable[[str], None],
    ) -> None:
        """Start; `report` receives the reasons of refusals."""
        d = load_dialect()
        gimbal = telemetry.gimbal
        self._d = d
        self._flight = flight
        self._telemetry = telemetry
        self._send = send
        self._report = report

        self._actions: dict[int, Callable[[CommandRequest], None]] = {
            d.MAV_CMD_COMPONENT_ARM_DISARM: self._arm_disarm,
            d.MAV_CMD_NAV_TAKEOFF: lambda c: flight.take_off(self._place(c)[2]),
            d.MAV_CMD_NAV_LAND: lambda c: flight.land(*self._place(c)[:2]),
            d.MAV_CMD_NAV_RETURN_TO_LAUNCH: lambda _: flight.select(FlightMode.RETURN),
            d.MAV_CMD_NAV_LOITER_UNLIM: lambda _: flight.select(FlightMode.HOLD),
            d.MAV_CMD_DO_REPOSITION: self._reposition,
            d.MAV_CMD_DO_ORBIT: self._orbit,
            d.MAV_CMD_DO_CHANGE_SPEED: self._change_speed,
            d.MAV_CMD_DO_SET_HOME: self._set_home,
            d.MAV_CMD_DO_SET_ROI_LOCATION: lambda c: flight.look_at(self._place(c)),
            d.MAV_CMD_DO_SET_ROI_NONE: lambda _: flight.look_at(None),
            d.MAV_CMD_DO_SET_ROI: self._look_at,
            d.MAV_CMD_DO_SET_MODE: self._set_mode,
            SET_STANDARD_MODE: lambda c: self._select(find_standard_mode(c.params[0])),
            d.MAV_CMD_DO_PAUSE_CONTINUE: self._pause_continue,
            d.MAV_CMD_MISSION_START: self._start_mission,
            d.MAV_CMD_DO_SET_MISSION_CURRENT: lambda c: flight.set_current(_whole(c.params[0])),
            d.MAV_CMD_REQUEST_MESSAGE: self._request_message,
            d.MAV_CMD_REQUEST_AUTOPILOT_CAPABILITIES: lambda c: self._send_once(
                "AUTOPILOT_VERSION", c
            ),
            d.MAV_CMD_REQUEST_PROTOCOL_VERSION: lambda c: self._send_once("PROTOCOL_VERSION", c),
            d.MAV_CMD_GET_HOME_POSITION: lambda c: self._send_once("HOME_POSITION", c),
            d.MAV_CMD_SET_MESSAGE_INTERVAL: self._set_interval,
            d.MAV_CMD_GET_MESSAGE_INTERVAL: self._get_interval,
            PITCHYAW: lambda c: gimbal.pitch_yaw(c.params, c.sender),
            CONFIGURE: lambda c: gimbal.configure(c.params, c.sender),
            d.MAV_CMD_DO_MOUNT_CONTROL: lambda c: gimbal.mount(c.params, c.sender),
        }

    def handle(self, message: Any, address: Address) -> None:
        """Carry out a command for this vehicle; its result goes to `address`, the sender's."""
        command = CommandRequest.of_message(message, address)
        result = "MAV_RESULT_ACCEPTED"
        action = self._actions.get(command.number)
        try:
            if action is None:
                raise Denied("", "MAV_RESULT_UNSUPPORTED")
            action(command)
        except Denied as denial:
            result = denial.result
            self._report(str(denial))
        except Refused as refusal:
            result = "MAV_RESULT_DENIED"
            self._report(str(refusal))

        self._send(
            self._d.MAVLink_command_ack_message(
                command.number, getattr(self._d, result), 0, 0, *command.sender
            ),
            address,
        )

    # --- flight

    def _arm_disarm(self, command: CommandRequest) -> None:
        if command.params[0] == 1.0:
            self._flight.arm()
        elif command.params[0] == 0.0:
            self._flight.disarm()
        else:
            raise Denied(
                f"Arm or disarm? {command.params[0]:g}, expected 1 or 0", "MAV_RESULT_DENIED"
            )

    def _reposition(self, command: CommandRequest) -> None:
        place = self._place_or_here(command)
        speed = command.params[0]
        if math.isfinite(speed) and speed > 0.0:
            self._flight.set_speed(speed)
        self._flight.go_to(place, _angle(command.params[3]))

    def _orbit(self, command: CommandRequest) -> None:
        angle = command.params[3]
        turns = abs(angle) / (2.0 * math.pi) if math.isfinite(angle) and angle != 0.0 else math.inf
        self._flight.orbit(self._place_or_here(command), command.params[0], turns)

    def _place_or_here(self, command: CommandRequest) -> Ned:
        place = self._place(command)
        here = self._flight.place
        north, east, down = (a if math.isfinite(a) else b for a, b in zip(place, here, strict=True))
        return north, east, down

    def _change_speed(self, command: CommandRequest) -> None:
        if command.params[0] not in (0.0, 1.0):
            raise Denied("Only air and ground speed can be changed", "MAV_RESULT_UNSUPPORTED")
        self._flight.set_speed(command.params[1])

    def _set_home(self, command: CommandRequest) -> None:
        if command.params[0] not in (0.0, 1.0):
            raise Denied("Home denied: here, or there? Expected 1 or 0", "MAV_RESULT_DENIED")
        self._flight.set_home(None if command.params[0] else self._place(command))

    def _look_at(self, command: CommandRequest) -> None:
        """Carry out DO_SET_ROI, older than the commands of its own for each mode."""
        mode = command.params[0]
        if mode not in (self._d.MAV_ROI_NONE, self._d.MAV_ROI_LOCATION):
            raise Denied("Only a place can be a region of interest", "MAV_RESULT_UNSUPPORTED")
        self._flight.look_at(self._place(command) if mode else None)

    def _set_mode(self, command: CommandRequest) -> None:
        mode = find_mode(command.params[1], command.params[2])
        is_custom = _whole(command.params[0]) & self._d.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED
        self._select(mode if is_custom else None)

    def _select(self, mode: FlightMode | None) -> None:
        if mode is None:
            raise Denied("No such mode here", "MAV_RESULT_UNSUPPORTED")
        self._flight.select(mode)

    def _pause_continue(self, command: CommandRequest) -> None:
        if command.params[0] not in (0.0, 1.0):
            raise Denied("Pause or continue? Expected 0 or 1", "MAV_RESULT_DENIED")
        self._flight.select(FlightMode.MISSION if command.params[0] else FlightMode.HOLD)

    def _start_mission(self, command: CommandRequest) -> None:
        if not self._flight.armed:
            raise Denied("Mission denied: disarmed")
        if command.params[0] > 0.0 or not self._flight.holding:
            self._flight.set_current(_whole(command.params[0]))
        self._flight.select(FlightMode.MISSION)

    def _place(self, command: CommandRequest) -> Ned:
        """Return a place, NED about the map's origin; NaN for coordinates that are not given.

        0, 0 is no place on land: not given.
        """
        x, y, z = command.params[4:]
        origin = self._flight.situation.origin
        home = self._flight.home_geodetic()
        if command.frame == LOCAL_NED:
            return x, y, z
        if command.frame not in GLOBAL_FRAMES - TERRAIN_FRAMES:
            raise Denied(f"Frame {command.frame} is not supported", "MAV_RESULT_UNSUPPORTED")
        if origin is None or home is None:
            raise Denied("No position")

        # latitude and longitude
        north = east = math.nan
        if math.isfinite(x) and math.isfinite(y) and (x, y) != (0.0, 0.0):
            if abs(x) > 90.0 or abs(y) > 180.0:
                raise Denied(f"No such place: {x:g}, {y:g}", "MAV_RESULT_DENIED")
            north, east, _ = geodetic_to_ned((x, y, 0.0), origin).tolist()

        # altitude
        down = math.nan
        if math.isfinite(z):
            altitude = z if command.frame in ABSOLUTE_FRAMES else home[2] + z
            down = origin[2] - altitude
        return north, east, down

    # --- messages

    def _request_message(self, command: CommandRequest) -> None:
        name = self._telemetry.find(command.params[0])
        if name is None:
            raise Denied("", "MAV_RESULT_UNSUPPORTED")
        self._send_once(name, command)

    def _send_once(self, name: str, command: CommandRequest) -> None:
        """Send a message to the station that requests it, or to all if it says so."""
        messages = self._telemetry.messages(name, command.params[1])
        if not messages:
            raise Denied("", "MAV_RESULT_TEMPORARILY_REJECTED")
        for message in messages:
            self._send(message, None if command.params[6] == _TO_ALL else command.address)

    def _set_interval(self, command: CommandRequest) -> None:
        name = self._telemetry.find(command.params[0])
        if name is None:
            raise Denied("", "MAV_RESULT_UNSUPPORTED")
        if not math.isfinite(command.params[1]) or name == "HEARTBEAT":
            raise Denied("", "MAV_RESULT_DENIED")
        self._telemetry.set_interval(name, command.params[1])

    def _get_interval(self, command: CommandRequest) -> None:
        name = self._telemetry.find(command.params[0])
        if name is None:
            raise Denied("", "MAV_RESULT_UNSUPPORTED")
        self._send(
            self._d.MAVLink_message_interval_message(
                int(command.params[0]), self._telemetry.interval_us(name)
            )
        )


def _whole(value: float) -> int:
    return int(value) if math.isfinite(value) and abs(value) < 2**31 else -1


def _angle(radians: float) -> float:
    return math.remainder(radians, 2.0 * math.pi) if math.isfinite(radians) else math.nan
