# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fly and drive the vehicle `scale` from outside ROS by MAVLink, through mavlink_hil_node.

It needs pymavlink only.

    ros2 run rfly_suite mavlink_hil_node     (instead of the control nodes)
    python examples/external_controller_mavlink.py

Attitude, position and velocity come from HIL_STATE_QUATERNION, turn rates from the gyroscope in
HIL_SENSOR; a real autopilot estimates all of them from HIL_SENSOR and HIL_GPS. Each HIL_SENSOR is
answered with HIL_ACTUATOR_CONTROLS of the same time: controls 0 to 5 are the rotors, 8 steering, 9
drive, 10 brake. The first message, with the time 0, announces this controller: with lock-step the
simulation waits for it from the beginning.
"""

from __future__ import annotations

import argparse
import math
import socket
import sys
import time
from contextlib import suppress

from pymavlink.dialects.v20 import common
from small_pilot import MAX_ROTOR_SPEED, Outputs, SmallPilot, State, report

# limits of the vehicle `scale`
MAX_STEERING = 0.5  # rad
MAX_DRIVE = 12.0  # N m
MAX_BRAKE = 15.0  # N m
ECCENTRICITY_SQUARED = 6.69438e-3  # ellipsoid of WGS 84
EQUATOR_RADIUS = 6378137.0  # m
ARMED = common.MAV_MODE_FLAG_SAFETY_ARMED
LOCK_STEP = 1
HALF = math.sqrt(0.5)


class Autopilot:
    """The pilot behind a connection."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = self._connected(host, port)
        self._mav = common.MAVLink(self._socket.makefile("wb", buffering=0), 1, 1)
        self._mav.robust_parsing = True
        self._pose = None
        self._origin: tuple[int, int, int] | None = None
        self._beat_at = float("-inf")
        self.pilot = SmallPilot()
        self.frames = 0

    @staticmethod
    def _connected(host: str, port: int) -> socket.socket:
        while True:
            try:
                connection = socket.create_connection((host, port), 1.0)
            except OSError:
                time.sleep(0.1)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(1.0)
            return connection

    def run(self, pause: float) -> None:
        """Fly until the pilot is done or the simulator has gone."""
        self._control(0, Outputs())
        while not self.pilot.done:
            # a heartbeat a second
            if time.monotonic() - self._beat_at > 1.0:
                self._beat_at = time.monotonic()
                kind = (common.MAV_TYPE_HEXAROTOR, common.MAV_AUTOPILOT_GENERIC)
                self._mav.heartbeat_send(*kind, ARMED, 0, common.MAV_STATE_ACTIVE)

            # answer each sensor message
            try:
                data = self._socket.recv(4096)
            except TimeoutError:
                continue
            if not data:
                return
            for message in self._mav.parse_buffer(data) or []:
                if message.get_type() == "HIL_STATE_QUATERNION":
                    self._pose = message
                elif message.get_type() == "HIL_SENSOR" and self._pose is not None:
                    if pause:
                        time.sleep(pause)
                    self._take(message)

    def close(self) -> None:
        """Wait until the other side closes, so that it receives everything."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while self._socket.recv(4096):
                pass
        except OSError:
            pass

    def _take(self, sensor) -> None:
        self.frames += 1
        self._control(sensor.time_usec, self.pilot(self._state(sensor)))

    def _state(self, sensor) -> State:
        """Return the state with east-north-up world axes and forward-left-up body axes.

        MAVLink's are north-east-down and forward-right-down.
        """
        pose = self._pose
        if self._origin is None:
            self._origin = (pose.lat, pose.lon, pose.alt)

        # radii of curvature at the origin
        latitude = math.radians(self._origin[0] * 1e-7)
        bend = 1.0 - ECCENTRICITY_SQUARED * math.sin(latitude) ** 2
        meridian_radius = EQUATOR_RADIUS * (1.0 - ECCENTRICITY_SQUARED) / bend**1.5
        parallel_radius = EQUATOR_RADIUS / math.sqrt(bend) * math.cos(latitude)

        north = math.radians((pose.lat - self._origin[0]) * 1e-7) * meridian_radius
        east = math.radians((pose.lon - self._origin[1]) * 1e-7) * parallel_radius
        w, x, y, z = pose.attitude_quaternion
        return State(
            sensor.time_usec * 1e-6,
            (east, north, (pose.alt - self._origin[2]) * 1e-3),
            (pose.vy * 1e-2, pose.vx * 1e-2, -pose.vz * 1e-2),
            (HALF * (w + z), HALF * (x + y), HALF * (x - y), HALF * (w - z)),
            (sensor.xgyro, -sensor.ygyro, -sensor.zgyro),
        )

    def _control(self, time_usec: int, out: Outputs) -> None:
        controls = [speed / MAX_ROTOR_SPEED for speed in out.rotor_speeds] + [0.0] * 10
        controls[8] = out.steering / MAX_STEERING
        controls[9] = out.drive_torque / MAX_DRIVE
        controls[10] = out.brake_torque / MAX_BRAKE
        self._mav.hil_actuator_controls_send(time_usec, controls, ARMED, LOCK_STEP)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="where mavlink_hil_node runs")
    parser.add_argument("--port", type=int, default=4560, help="TCP port of mavlink_hil_node")
    parser.add_argument(
        "--pause", type=float, default=0.0, help="seconds of wall time before each answer"
    )
    options = parser.parse_args()

    autopilot = Autopilot(options.host, options.port)
    start = time.monotonic()
    autopilot.run(options.pause)
    autopilot.close()

    print(report(autopilot.pilot))
    print(f"{autopilot.frames} sensor messages in {time.monotonic() - start:.1f} s of wall time")
    return 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # Ctrl-C ends it
        sys.exit(main())
