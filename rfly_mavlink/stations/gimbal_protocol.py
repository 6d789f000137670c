# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's gimbal protocol, the vehicle's side: one gimbal, which only pitches.

https://mavlink.io/en/services/gimbal_v2.html It is fixed to the body: its pitch follows the
vehicle, even if a lock to the horizon is requested. It looks at a region of interest as far as the
vehicle's nose does. Pitch is up positive here, rad.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rfly_common.frames import euler_to_quat, quat_conjugate, quat_multiply, quat_rotate
from rfly_mavlink.dialect.wire import Sender, load_dialect, sender_of
from rfly_mavlink.stations.flight import FlightLogic
from rfly_mavlink.stations.remote_pilot import SILENCE_S, Denied, RemotePilot
from rfly_missions.mission.items import Ned

PITCHYAW = 1000
"""MAV_CMD_DO_GIMBAL_MANAGER_PITCHYAW, whose params 5 and 6 are no place."""
CONFIGURE = 1001
"""MAV_CMD_DO_GIMBAL_MANAGER_CONFIGURE, whose params 5 and 6 are no place."""
DEVICE_ID = 1
"""Id of a gimbal that speaks no MAVLink itself."""
NOBODY = (0, 0)
"""Station in control if there is none."""
LONGEST_STEP_S = 0.5
"""Longest time, s, that one tick turns the gimbal for."""
LEAST_ANGLE = 1e-3
"""Roll or yaw, rad, rad/s, below which it counts as none."""


class GimbalManager:
    """One vehicle's gimbal, and the stations that control it.

    Raises Denied for requests that cannot be carried out, which change nothing.
    """

    HANDLED = frozenset({"GIMBAL_MANAGER_SET_ATTITUDE", "GIMBAL_MANAGER_SET_PITCHYAW"})

    def __init__(self, flight: FlightLogic, pilot: RemotePilot) -> None:
        d = self._d = load_dialect()
        self._flight = flight
        self._pilot = pilot
        self.limits = math.radians(-90.0), math.radians(30.0)
        """Lowest and highest pitch, rad."""
        self._target = self._goal = self._time = math.nan
        self._speed = 0.0
        self._primary = self._secondary = NOBODY
        self._roi: Ned | None = None
        self._tracks_roi = False
        """True if it follows the region of interest, which no request has ended."""

        self._refused = d.GIMBAL_MANAGER_FLAGS_RETRACT | d.GIMBAL_MANAGER_FLAGS_NEUTRAL
        self._refused |= d.GIMBAL_MANAGER_FLAGS_YAW_LOCK | d.GIMBAL_MANAGER_FLAGS_YAW_IN_EARTH_FRAME
        self._can = (
            d.GIMBAL_MANAGER_CAP_FLAGS_HAS_PITCH_AXIS | d.GIMBAL_MANAGER_CAP_FLAGS_HAS_PITCH_FOLLOW
        )
        self._manager_can = self._can | d.GIMBAL_MANAGER_CAP_FLAGS_CAN_POINT_LOCATION_GLOBAL

        self.messages: dict[str, Callable[[int], Any]] = {
            "GIMBAL_MANAGER_STATUS": self._manager_status,
            "GIMBAL_DEVICE_ATTITUDE_STATUS": self._device_attitude_status,
            "GIMBAL_MANAGER_INFORMATION": self._manager_information,
            "GIMBAL_DEVICE_INFORMATION": self._device_information,
        }
        """Makers of telemetry, from the milliseconds since the start."""

    @property
    def exists(self) -> bool:
        """True if the vehicle has a gimbal."""
        return self._pilot.gimbal_pitch() is not None

    # --- commands

    def pitch_yaw(self, params: Sequence[float], sender: Sender) -> None:
        """Carry out DO_GIMBAL_MANAGER_PITCHYAW."""
        pitch, yaw, pitch_rate, yaw_rate = map(math.radians, params[:4])
        self._point(pitch, pitch_rate, (yaw, yaw_rate), params[4], params[6], sender)

    def mount(self, params: Sequence[float], sender: Sender) -> None:
        """Carry out DO_MOUNT_CONTROL, of the protocol before this one."""
        if self.exists and params[6] != self._d.MAV_MOUNT_MODE_MAVLINK_TARGETING:
            text = "The gimbal knows the mount mode MAVLINK_TARGETING alone"
            raise Denied(text, "MAV_RESULT_DENIED")
        self._point(math.radians(params[0]), math.nan, params[1:3], 0.0, DEVICE_ID, sender)

    def configure(self, params: Sequence[float], sender: Sender) -> None:
        """Carry out DO_GIMBAL_MANAGER_CONFIGURE."""
        self._check_device(params[6])
        primary = _in_control(params[0:2], self._primary, sender)
        secondary = _in_control(params[2:4], self._secondary, sender)
        self._primary = primary
        self._secondary = secondary

    def handle(self, message: Any) -> None:
        """Take a set-point of a stream; one that cannot be carried out gets no answer."""
        if message.get_type() == "GIMBAL_MANAGER_SET_PITCHYAW":
            angle = message.pitch
            rate = message.pitch_rate
            others = [message.yaw, message.yaw_rate]
        else:
            w, x, y, z = message.q
            is_given = abs(math.hypot(w, x, y, z) - 1.0) < 0.01
            angle = math.remainder(2.0 * math.atan2(y, w), 2.0 * math.pi) if is_given else math.nan
            rate = message.angular_velocity_y
            others = [x, z, message.angular_velocity_x, message.angular_velocity_z]

        device = message.gimbal_device_id
        with contextlib.suppress(Denied):
            self._point(angle, rate, others, message.flags, device, sender_of(message))

    def _check_device(self, device: float) -> None:
        if not self.exists:
            raise Denied("", "MAV_RESULT_UNSUPPORTED")
        if device not in (0.0, DEVICE_ID) and not math.isnan(device):
            raise Denied(f"No such gimbal: {device:g}, expected {DEVICE_ID}", "MAV_RESULT_DENIED")

    def _point(
        self,
        angle: float,
        rate: float,
        others: Sequence[float],
        flags: float,
        device: float,
        sender: Sender,
    ) -> None:
        """Turn to `angle`, at `rate` if one is given.

        `others`: angles and rates of roll and yaw, rad, rad/s. NaN: not given.
        """
        self._check_device(device)
        if self._primary != NOBODY and sender not in (self._primary, self._secondary):
            raise Denied("Gimbal denied: another station controls it", "MAV_RESULT_DENIED")
        requested_flags = int(flags) if math.isfinite(flags) else 0
        if requested_flags & self._refused or any(abs(other) > LEAST_ANGLE for other in others):
            text = "The gimbal turns in pitch alone, and with the vehicle"
            raise Denied(text, "MAV_RESULT_DENIED")
        if math.isinf(angle) or math.isinf(rate):
            raise Denied(f"No such pitch: {angle:g} rad at {rate:g} rad/s", "MAV_RESULT_DENIED")

        self._tracks_roi = False
        # at rest, another client may have turned it
        if not abs(self._goal - self._target) > 0.0:
            joint = self._pilot.gimbal_pitch()
            self._target = self._clip(self._target if joint is None else joint)
            self._goal = self._target

        if not math.isnan(angle):
            self._goal = self._clip(angle)
            self._speed = abs(rate) if abs(rate) > 0.0 else math.inf
        elif not math.isnan(rate):
            self._goal = self._clip(math.copysign(math.pi, rate)) if rate else self._target
            self._speed = abs(rate)
        if self._speed == math.inf:
            self._look(self._goal)

    def tick(self, time: float) -> None:
        """Go on with a turn at a rate or with a region of interest; `time`: simulated, s."""
        dt = time - self._time
        self._time = time
        self._follow_roi()
        if dt > 0.0 and abs(self._goal - self._target) > 0.0 and self.exists:
            step = self._speed * min(dt, LONGEST_STEP_S)
            self._look(self._target + min(max(self._goal - self._target, -step), step))

    def _follow_roi(self) -> None:
        """Point at the vehicle's region of interest; level once when there is none any more."""
        target = self._flight.roi
        if target != self._roi:
            ends = target is None and self._tracks_roi
            self._roi = target
            self._tracks_roi = target is not None
            if ends and self.exists:
                self._goal = 0.0
                self._look(0.0)
        if target is None or not self._tracks_roi or not self.exists:
            return

        pose = self._flight.pose
        to_target = np.subtract(target, pose.position)
        forward, _, down = quat_rotate(
            quat_conjugate(euler_to_quat(pose.euler)), to_target
        ).tolist()
        pitch = self._clip(math.atan2(-down, forward))
        if not abs(pitch - self._target) < LEAST_ANGLE:
            self._goal = pitch
            self._look(pitch)

    def _look(self, pitch: float) -> None:
        self._target = self._clip(pitch)
        self._pilot.point_gimbal(self._target)

    def _clip(self, pitch: float) -> float:
        return 0.0 if math.isnan(pitch) else min(max(pitch, self.limits[0]), self.limits[1])

    # --- telemetry

    def _manager_status(self, ms: int) -> Any:
        flags = self._d.GIMBAL_MANAGER_FLAGS_YAW_IN_VEHICLE_FRAME
        return self._d.MAVLink_gimbal_manager_status_message(
            ms, flags, DEVICE_ID, *self._primary, *self._secondary
        )

    def _device_attitude_status(self, ms: int) -> Any:
        """Make the attitude in the frame that turns with the vehicle's heading but stays level."""
        flight = self._flight
        pitch = self._pilot.gimbal_pitch()
        unknown = math.nan
        if pitch is None or not flight.pose.known or flight.situation.silence > SILENCE_S:
            return None

        roll, tilt, yaw = flight.pose.euler.tolist()
        x, y, z, w = quat_multiply(
            euler_to_quat((roll, tilt, 0.0)), euler_to_quat((0.0, pitch, 0.0))
        ).tolist()

        flags = self._d.GIMBAL_DEVICE_FLAGS_YAW_IN_VEHICLE_FRAME
        return self._d.MAVLink_gimbal_device_attitude_status_message(
            0, 0, ms, flags, (w, x, y, z), unknown, unknown, unknown, 0, yaw, unknown, DEVICE_ID
        )

    def _manager_information(self, ms: int) -> Any:
        return self._d.MAVLink_gimbal_manager_information_message(
            ms, self._manager_can, DEVICE_ID, 0, 0, *self.limits, 0, 0
        )

    def _device_information(self, ms: int) -> Any:
        names = (b"rfly_suite", b"camera gimbal", b"")
        limits = (0, 0, *self.limits, 0, 0)
        return self._d.MAVLink_gimbal_device_information_message(
            ms, *names, 0, 0, 0, self._can, 0, *limits, DEVICE_ID, self._can
        )


def _in_control(station: Sequence[float], now: Sender, sender: Sender) -> Sender:
    """Return the station in control after CONFIGURE, by its system and component."""
    system, component = (-1.0 if math.isnan(number) else number for number in station)

    if system in (-1.0, -2.0, -3.0):
        return {-1.0: now, -2.0: sender, -3.0: NOBODY if now == sender else now}[system]
    if not {system, component} <= set(range(256)):
        raise Denied(f"No such station: {system:g}/{component:g}", "MAV_RESULT_DENIED")
    return (int(system), int(component)) if system else NOBODY
