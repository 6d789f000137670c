# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Betaflight as the attitude loop of a flight controller: sticks of a radio in, motors out.

Position loop and modes are the flight controller's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection

import numpy as np

from rfly_amphibious.autopilots import betaflight_packets as packets
from rfly_amphibious.autopilots.betaflight_cli import BetaflightStatus
from rfly_amphibious.autopilots.betaflight_session import BetaflightSession
from rfly_amphibious.control.attitude_controller import AttitudeSetpoint
from rfly_amphibious.estimation.estimate import EstimatedMotion
from rfly_amphibious.sensors.samples import ImuSamples, SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import AutopilotError, ConfigError
from rfly_common.physics import SEA_LEVEL_PRESSURE

MAX_ANGLE = math.radians(30.0)
"""Angle of a stick at its stop, rad, as in the shipped settings (`angle_limit`)."""

MAX_YAW_RATE = math.radians(60.0)
"""Yaw rate of a stick at its stop, rad/s (`yaw_rc_rate` and `yaw_srate`)."""

MIN_CHECK = 1050.0
"""Least pulse of the throttle, µs: the firmware's `min_check`."""

IDLE = 0.02
"""Share of a motor's range when armed: `motor_idle`."""

POSITION_GAIN = 0.7
"""Largest gain of the position across the ground, 1/s.

Angle loop, filters and radio of the firmware are slower than this package's own loop.
"""

VELOCITY_GAIN = 1.3
"""Largest gain of the velocity across the ground, 1/s."""

YAW_GAIN = 1.5
"""Gain of the heading, 1/s."""

AZIMUTHS = (-45.0, 45.0, 135.0, 225.0)
"""Azimuths of the rotors for the firmware's X mixer, degrees."""

SPINS = (1, -1, 1, -1)
"""Spins of the rotors for the firmware's X mixer."""

RADIO_PERIOD = 0.01
"""Period of the radio, s of wall time."""

ANSWER_TIME = 0.001
"""Time to wait for the answer to a state, s; a later answer counts in the next step."""

SILENT_TIME = 0.25
"""Time without motors after which the firmware hangs, s."""

SILENT_STATES = 50
"""Unanswered states after which the firmware hangs, if SILENT_TIME has passed too."""


class BetaflightSticks:
    """Channels of a radio for attitude setpoints.

    Raise ConfigError for a vehicle that the firmware cannot fly.
    """

    def __init__(self, params: VehicleParameters) -> None:
        azimuths = zip(params.rotor_azimuth, AZIMUTHS, strict=False)
        places = [math.remainder(math.degrees(a) - b, 360.0) for a, b in azimuths]
        if params.rotors != 4 or max(map(abs, places)) > 1.0 or tuple(params.rotor_spin) != SPINS:
            raise ConfigError(
                f"vehicle {params.name!r}: Betaflight flies four rotors, front right, front left, "
                "rear left, rear right, that turn left, right, left, right seen from above, "
                "such as scale_quad"
            )
        self.params = params

    def channels(
        self,
        setpoint: AttitudeSetpoint | None,
        motion: EstimatedMotion | None,
        status: BetaflightStatus | None,
    ) -> list[float]:
        """Return the channels for `radio_packet`, (6,), µs.

        They are disarmed without a setpoint, and before the firmware's first status.
        """
        if setpoint is None or motion is None or status is None:
            return _radio(0.0, 0.0, 0.0, 0.0, False)

        # the arm switch is thrown once the firmware would arm, at low throttle
        if not status.armed:
            return _radio(0.0, 0.0, 0.0, 0.0, not status.arming_disable_flags)

        # direction of the thrust, and yaw rate
        rotation = motion.rotation
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        if setpoint.acceleration is not None:
            up = setpoint.acceleration / np.linalg.norm(setpoint.acceleration)
            error = math.remainder(setpoint.yaw - heading, math.tau)
            yaw_rate = YAW_GAIN * error + setpoint.yaw_rate
        else:
            assert setpoint.attitude is not None
            up = setpoint.attitude[:, 2]
            wanted = math.atan2(setpoint.attitude[1, 0], setpoint.attitude[0, 0])
            error = math.remainder(wanted - heading, math.tau)
            yaw_rate = setpoint.moment_share * YAW_GAIN * error
        roll, pitch = tilt_to(up, heading)

        # do not level a landing vehicle any more: the load on its wheels turns it
        own_roll, own_pitch = tilt_to(rotation[:, 2], heading)
        share = setpoint.moment_share
        roll = own_roll + share * (roll - own_roll)
        pitch = own_pitch + share * (pitch - own_pitch)

        throttle = self.throttle(setpoint.thrust)
        return _radio(roll / MAX_ANGLE, pitch / MAX_ANGLE, throttle, -yaw_rate / MAX_YAW_RATE, True)

    def throttle(self, thrust: float) -> float:
        """Return the throttle, 0 … 1, at which the rotors give a thrust (N) in still air."""
        p = self.params
        share = math.sqrt(max(thrust, 0.0) / (p.rotors * p.thrust_coefficient)) / p.max_rotor_speed
        return min(max((share - IDLE) / (1.0 - IDLE), 0.0), 1.0)


class BetaflightAttitudeLoop:
    """The `AttitudeLoop` of a running Betaflight.

    Each IMU sample is sent immediately, so that the firmware answers while other parts still
    estimate. Each step sends the sticks, and returns the motors that have come back. The firmware
    sees only IMU and barometer, and the attitude that the IMU's own filter derives.
    """

    def __init__(
        self, session: BetaflightSession, params: VehicleParameters, sensors: SensorParameters
    ) -> None:
        if sensors.imu is None or any(sensors.imu.rotation):
            raise ConfigError(
                f"sensors {sensors.name!r}: Betaflight needs an imu along the axes of the body"
            )
        self.session = session
        self.params = params
        self._sticks = BetaflightSticks(params)
        self.set_gains(params)
        self.reset()

    def reset(self) -> None:
        """Return to the initial state; the firmware goes on, disarmed by its switch."""
        self.motor_speeds = np.zeros(self.params.rotors)
        """Rotor speeds that the firmware commanded last, (4,), rad/s."""

        self._status: BetaflightStatus | None = None
        self._is_to_arm = False
        self._sample: ImuSamples | None = None
        self._is_sent = False
        self._pressure = SEA_LEVEL_PRESSURE  # before the first sample of the barometer
        self._radio_due = 0.0
        self._unanswered = 0

    @property
    def arming_disable_flags(self) -> tuple[str, ...]:
        """Reasons why the firmware does not arm, while it should."""
        if not self._is_to_arm or self._status is None or self._status.armed:
            return ()
        return self._status.arming_disable_flags

    def set_gains(self, params: VehicleParameters, _frequency: float = 0.0) -> None:
        """Limit the gains of the position loop to what the firmware can follow.

        The firmware's own gains are part of its settings.
        """
        self.level_gains = (
            min(params.position_gain, POSITION_GAIN),
            min(params.velocity_gain, VELOCITY_GAIN),
        )

    def sense(self, samples: SensorSamples) -> None:
        """Take the samples since the last step."""
        if samples.barometer is not None:
            self._pressure = float(samples.barometer.pressure[-1])
        if samples.imu is not None:
            self._sample = samples.imu
            self._send_state()

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """Do nothing: the firmware has only one mixer."""

    def rotor_speeds(
        self, setpoint: AttitudeSetpoint | None, motion: EstimatedMotion | None
    ) -> Floats:
        """Return the rotor speeds, (4,), rad/s.

        Raise AutopilotError if the firmware has ended or does not answer.
        """
        session = self.session
        if session.why_ended:
            raise AutopilotError(session.why_ended)

        if not self._is_sent:  # a step without a new sample
            self._send_state()
        self._is_sent = False

        # motors
        outputs = session.motors(ANSWER_TIME)
        if outputs is not None:
            self._unanswered = 0
            self.motor_speeds = self.params.max_rotor_speed * outputs

        # radio
        self._is_to_arm = setpoint is not None
        now = time.monotonic()
        if now >= self._radio_due:
            self._radio_due = now + RADIO_PERIOD
            session.send_radio(self._sticks.channels(setpoint, motion, self._status))

        # telemetry
        try:
            session.poll_telemetry()
        except AutopilotError as error:
            raise AutopilotError(session.wait_ended() or str(error)) from error
        self._status = session.status

        if self._unanswered > SILENT_STATES and now - session.motors_time > SILENT_TIME:
            raise AutopilotError(
                f"Betaflight has sent no motors for {now - session.motors_time:.2f} s"
            )
        return self.motor_speeds

    def _send_state(self) -> None:
        """Send the newest sample, if there is one."""
        sample = self._sample
        if sample is None:
            return

        self._unanswered += 1
        self._is_sent = True
        self.session.send_state(
            sample.rates[-1],
            sample.specific_force[-1],
            sample.orientation[-1],
            pressure=self._pressure,
        )


def tilt_to(up: Floats, heading: float) -> tuple[float, float]:
    """Return roll and pitch of a body with a heading and a z axis, world axes.

    The angles are in rad, intrinsic z-y-x.
    """
    c = math.cos(heading)
    s = math.sin(heading)
    forward = c * up[0] + s * up[1]
    left = c * up[1] - s * up[0]
    roll = -math.asin(min(max(float(left), -1.0), 1.0))
    pitch = math.atan2(float(forward), float(up[2]))
    return roll, pitch


def _radio(roll: float, pitch: float, throttle: float, yaw: float, arm: bool) -> list[float]:
    """Return the channels in the order of `betaflight_packets`; the angle mode is always on."""
    lever = packets.LOW if throttle <= 0.0 else MIN_CHECK + (packets.HIGH - MIN_CHECK) * throttle
    sticks = packets.stick(roll), packets.stick(pitch), lever, packets.stick(yaw)
    return [*sticks, packets.HIGH if arm else packets.LOW, packets.HIGH]
