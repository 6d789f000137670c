"""Flight controller with Betaflight as its attitude loop: stick positions out, motor speeds back.

Where the vehicle is to go, and in which mode, is the flight computer's own; of the flight law the position loop is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.autopilots import betaflight_packets as packets
from rfly_amphibious.autopilots.betaflight_cli import Status
from rfly_amphibious.control.flight_controller import COMMAND_TIMEOUT, FlightController
from rfly_amphibious.estimation.estimate import Motion
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError

Floats = NDArray[np.float64]

MAX_ANGLE = math.radians(30.0)
MAX_YAW_RATE = math.radians(60.0)
"""of a stick at its stop, as in the shipped settings: `angle_limit`, `yaw_rc_rate` and `yaw_srate`"""
MIN_CHECK = 1050.0
"""µs of the throttle, from which it begins: the firmware's `min_check`"""
IDLE = 0.02
"""of a motor's range when armed: `motor_idle`"""
POSITION_GAIN, VELOCITY_GAIN = 0.7, 1.3
"""1/s, level: less than the parameters', as the firmware's angle loop, filters and radio are slower than our own"""
YAW_GAIN = 1.5
"""1/s"""
AZIMUTHS, SPINS = (-45.0, 45.0, 135.0, 225.0), (1, -1, 1, -1)
"""deg and sense of the rotors that the firmware's mixer for an X expects"""


class BetaflightController(FlightController):
    """`FlightController` whose `step` gives the speeds that the firmware asked for last (`take_motors`), and which says
    by `channels` what the firmware is to do.
    """

    def __init__(
        self,
        params: VehicleParameters,
        sensors: SensorParameters | None = None,
        *,
        command_timeout: float = COMMAND_TIMEOUT,
    ) -> None:
        places = [math.remainder(math.degrees(a) - b, 360.0) for a, b in zip(_azimuths(params), AZIMUTHS, strict=False)]
        if params.rotors != 4 or max(map(abs, places)) > 1.0 or tuple(params.rotor_spin) != SPINS:
            raise ConfigError(
                f"vehicle {params.name!r}: Betaflight flies four rotors, front right, front left, rear left, rear "
                "right, that turn left, right, left, right seen from above, such as scale_quad"
            )
        super().__init__(params, sensors, command_timeout=command_timeout)

    def reset(self) -> None:
        """As it was made: disarmed, knowing nothing."""
        super().reset()
        self.flight.position_gain[:2] = min(self.params.position_gain, POSITION_GAIN)
        self.flight.velocity_gain[:2] = min(self.params.velocity_gain, VELOCITY_GAIN)
        self._status: Status | None = None
        self._motor_speeds = np.zeros(self.params.rotors)
        self.channels: list[float] = _radio(0.0, 0.0, 0.0, 0.0, False)
        """µs: for `radio_packet`"""

    @property
    def arming_disable_flags(self) -> tuple[str, ...]:
        """Why the firmware does not arm, while it should."""
        if self._off or self._status is None or self._status.armed:
            return ()
        return self._status.arming_disable_flags

    def take_status(self, status: Status | None) -> None:
        """What the firmware says about itself; None: nothing yet."""
        self._status = status

    def take_motors(self, outputs: ArrayLike) -> None:
        """What the firmware asks for: (4,) 0 … 1 in the order of the rotors."""
        self._motor_speeds = self.params.max_rotor_speed * np.asarray(outputs, float)

    def _rotor_speeds(self, now: Motion) -> Floats | None:
        self.channels = self._sticks(now)
        return self._motor_speeds

    def _sticks(self, now: Motion) -> list[float]:
        if self._off or self._status is None:
            return _radio(0.0, 0.0, 0.0, 0.0, False)
        if not self._status.armed:  # its switch is thrown once it would arm, at low throttle
            return _radio(0.0, 0.0, 0.0, 0.0, not self._status.arming_disable_flags)
        rotation = now.rotation
        up, turn = self._attitude[:, 2], 0.0
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        if self._wanted is not None:
            up = self._wanted / np.linalg.norm(self._wanted)
            self._collective = self.params.mass * float(self._wanted @ rotation[:, 2])
            turn = YAW_GAIN * math.remainder(self._yaw - heading, math.tau) + self._turning
        roll, pitch = tilt_to(up, heading)
        # a landing vehicle is not levelled any more: what the wheels carry turns it
        own_roll, own_pitch = tilt_to(rotation[:, 2], heading)
        roll, pitch = (own + self._tilting * (wanted - own) for own, wanted in ((own_roll, roll), (own_pitch, pitch)))
        return _radio(roll / MAX_ANGLE, pitch / MAX_ANGLE, self.throttle(self._collective), -turn / MAX_YAW_RATE, True)

    def throttle(self, thrust: float) -> float:
        """0 … 1, at which the rotors together give this thrust (N) in still air."""
        p = self.params
        share = math.sqrt(max(thrust, 0.0) / (p.rotors * p.thrust_coefficient)) / p.max_rotor_speed
        return min(max((share - IDLE) / (1.0 - IDLE), 0.0), 1.0)


def tilt_to(up: Floats, heading: float) -> tuple[float, float]:
    """Roll and pitch (rad, intrinsic z-y-x) of a body with this heading whose z axis is `up` (3,), world axes."""
    c, s = math.cos(heading), math.sin(heading)
    forward, left = c * up[0] + s * up[1], c * up[1] - s * up[0]
    return -math.asin(min(max(float(left), -1.0), 1.0)), math.atan2(float(forward), float(up[2]))


def _azimuths(params: VehicleParameters) -> list[float]:
    x, y = params.rotor_position[:, 0] - params.center_x, params.rotor_position[:, 1]
    return np.arctan2(y, x).tolist()


def _radio(roll: float, pitch: float, throttle: float, yaw: float, arm: bool) -> list[float]:
    """Channels in the order of `betaflight_packets`; the angle mode is always on."""
    lever = packets.LOW if throttle <= 0.0 else MIN_CHECK + (packets.HIGH - MIN_CHECK) * throttle
    sticks = packets.stick(roll), packets.stick(pitch), lever, packets.stick(yaw)
    return [*sticks, packets.HIGH if arm else packets.LOW, packets.HIGH]
