"""Betaflight as the attitude loop of a flight controller: it moves sticks of a radio, and the
firmware the motors.

Where the vehicle is to go, and in which mode, is the flight controller's own, and so is the
position loop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection

import numpy as np

from rfly_amphibious.autopilots import betaflight_packets as packets
from rfly_amphibious.autopilots.betaflight_cli import Status
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
MAX_YAW_RATE = math.radians(60.0)
"""of a stick at its stop, as in the shipped settings: `angle_limit`, `yaw_rc_rate` and `yaw_srate`
"""
MIN_CHECK = 1050.0
"""µs of the throttle, from which it begins: the firmware's `min_check`"""
IDLE = 0.02
"""of a motor's range when armed: `motor_idle`"""
POSITION_GAIN = 0.7
VELOCITY_GAIN = 1.3
"""1/s, level: less than the parameters', as the firmware's angle loop, filters and radio are slower
than our own
"""
YAW_GAIN = 1.5
"""1/s"""
AZIMUTHS = (-45.0, 45.0, 135.0, 225.0)
SPINS = (1, -1, 1, -1)
"""deg and sense of the rotors that the firmware's mixer for an X expects"""
RADIO_PERIOD = 0.01
"""s of the wall clock"""
ANSWER_TIME = 0.001
"""s that the firmware's answer to a packet of the state is waited for; if it is later, it counts in
the next step
"""
SILENT_TIME = 0.25
SILENT_STATES = 50
"""s without motors, and packets of the state that it has not answered: then it hangs"""


class BetaflightSticks:
    """A radio's channels for attitude setpoints. Raises ConfigError for a vehicle that the firmware
    can't fly.
    """

    def __init__(self, params: VehicleParameters) -> None:
        azimuths = zip(params.rotor_azimuth, AZIMUTHS, strict=False)
        places = [math.remainder(math.degrees(a) - b, 360.0) for a, b in azimuths]
        if params.rotors != 4 or max(map(abs, places)) > 1.0 or tuple(params.rotor_spin) != SPINS:
            raise ConfigError(
                f"vehicle {params.name!r}: Betaflight flies four rotors, front right, front left, rear left, rear "
                "right, that turn left, right, left, right seen from above, such as scale_quad"
            )
        self.params = params

    def channels(
        self,
        setpoint: AttitudeSetpoint | None,
        motion: EstimatedMotion | None,
        status: Status | None,
    ) -> list[float]:
        """(6,) µs, for `radio_packet`: disarmed without a setpoint, and as long as the firmware has
        said nothing.
        """
        if setpoint is None or motion is None or status is None:
            return _radio(0.0, 0.0, 0.0, 0.0, False)
        if not status.armed:  # its switch is thrown once it would arm, at low throttle
            return _radio(0.0, 0.0, 0.0, 0.0, not status.arming_disable_flags)
        rotation = motion.rotation
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        yaw_rate = 0.0
        if setpoint.acceleration is not None:
            up = setpoint.acceleration / np.linalg.norm(setpoint.acceleration)
            yaw_rate = (
                YAW_GAIN * math.remainder(setpoint.yaw - heading, math.tau) + setpoint.yaw_rate
            )
        else:
            assert setpoint.attitude is not None
            up = setpoint.attitude[:, 2]
            wanted = math.atan2(setpoint.attitude[1, 0], setpoint.attitude[0, 0])
            yaw_rate = setpoint.moment_share * YAW_GAIN * math.remainder(wanted - heading, math.tau)
        roll, pitch = tilt_to(up, heading)
        # a landing vehicle is not levelled any more: what the wheels carry turns it
        own_roll, own_pitch = tilt_to(rotation[:, 2], heading)
        share = setpoint.moment_share
        roll = own_roll + share * (roll - own_roll)
        pitch = own_pitch + share * (pitch - own_pitch)
        throttle = self.throttle(setpoint.thrust)
        return _radio(roll / MAX_ANGLE, pitch / MAX_ANGLE, throttle, -yaw_rate / MAX_YAW_RATE, True)

    def throttle(self, thrust: float) -> float:
        """0 … 1, at which the rotors together give this thrust (N) in still air."""
        p = self.params
        share = math.sqrt(max(thrust, 0.0) / (p.rotors * p.thrust_coefficient)) / p.max_rotor_speed
        return min(max((share - IDLE) / (1.0 - IDLE), 0.0), 1.0)


class BetaflightAttitudeLoop:
    """The `AttitudeLoop` of a running Betaflight.

    Each sample of the IMU is sent at once, so that the firmware answers while others still
    estimate; each step sends the sticks, and gives the motors that have come back. The firmware
    sees the IMU and the barometer only, with the attitude that the IMU's own filter makes of its
    readings.
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
        """To the initial state; the firmware goes on, and is disarmed by its switch."""
        self.motor_speeds = np.zeros(self.params.rotors)
        """(4,) rad/s, that the firmware asked for last"""
        self._status: Status | None = None
        self._is_to_arm = False
        self._sample: ImuSamples | None = None
        self._is_sent = False
        self._pressure = SEA_LEVEL_PRESSURE  # before the first sample of the barometer
        self._radio_due = 0.0
        self._unanswered = 0

    @property
    def arming_disable_flags(self) -> tuple[str, ...]:
        """Why the firmware does not arm, while it should."""
        if not self._is_to_arm or self._status is None or self._status.armed:
            return ()
        return self._status.arming_disable_flags

    def set_gains(self, params: VehicleParameters, _frequency: float = 0.0) -> None:
        """Of the position loop, as far as the firmware is fast enough; its own gains are settings
        of its.
        """
        self.level_gains = (
            min(params.position_gain, POSITION_GAIN),
            min(params.velocity_gain, VELOCITY_GAIN),
        )

    def sense(self, samples: SensorSamples) -> None:
        """What came in since the last step."""
        if samples.barometer is not None:
            self._pressure = float(samples.barometer.pressure[-1])
        if samples.imu is not None:
            self._sample = samples.imu
            self._send_state()

    def set_failed_rotors(self, failed: Collection[int]) -> None:
        """The firmware has one mixer only: it is not told."""

    def rotor_speeds(
        self, setpoint: AttitudeSetpoint | None, motion: EstimatedMotion | None
    ) -> Floats:
        """(4,) rad/s. Raises AutopilotError while the firmware has ended, or does not answer."""
        session = self.session
        if session.why_ended:
            raise AutopilotError(session.why_ended)
        if not self._is_sent:  # a step without a new sample
            self._send_state()
        self._is_sent = False
        outputs = session.motors(ANSWER_TIME)
        if outputs is not None:
            self._unanswered = 0
            self.motor_speeds = self.params.max_rotor_speed * outputs
        self._is_to_arm = setpoint is not None
        now = time.monotonic()
        if now >= self._radio_due:
            self._radio_due = now + RADIO_PERIOD
            session.send_radio(self._sticks.channels(setpoint, motion, self._status))
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
    """Roll and pitch (rad, intrinsic z-y-x) of a body with this heading whose z axis is `up` (3,),
    world axes.
    """
    c = math.cos(heading)
    s = math.sin(heading)
    forward = c * up[0] + s * up[1]
    left = c * up[1] - s * up[0]
    return -math.asin(min(max(float(left), -1.0), 1.0)), math.atan2(float(forward), float(up[2]))


def _radio(roll: float, pitch: float, throttle: float, yaw: float, arm: bool) -> list[float]:
    """Channels in the order of `betaflight_packets`; the angle mode is always on."""
    lever = packets.LOW if throttle <= 0.0 else MIN_CHECK + (packets.HIGH - MIN_CHECK) * throttle
    sticks = packets.stick(roll), packets.stick(pitch), lever, packets.stick(yaw)
    return [*sticks, packets.HIGH if arm else packets.LOW, packets.HIGH]
