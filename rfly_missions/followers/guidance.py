# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's guidance models of fixed-wing aircraft and multirotors: derivatives of their states.

A model stands for a vehicle together with its autopilot, which answers commands as low-order
systems do. States are arrays, (8,) or (13,), or (8, n) or (13, n) for n vehicles at once; an
integrator such as `scipy.integrate.solve_ivp` needs nothing more.

Source of states, commands, default gains and equations: MathWorks, UAV Toolbox, reference pages of
`fixedwing`, `multirotor` and the Guidance Model block; R. W. Beard, T. W. McLain, Small Unmanned
Aircraft, Princeton 2012, chapters 2 (wind triangle) and 9 (guidance models). The pages leave open
to which rates of a multirotor the gains of attitude belong; here they are the rates of its Euler
angles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.config.matlab_properties import matlab_properties

GRAVITY = 9.81
"""Default gravity of MATLAB's `environment`, m/s²."""


def _number(name: str, value: Any) -> Any:
    """Return a finite number, or one for each of n vehicles."""
    array = finite_array(name, value, error=ValueError)
    return float(array) if array.ndim == 0 else array


def _positive(name: str, value: Any) -> float:
    return finite_number(name, value, above=0.0, error=ValueError)


def _gain(name: str, value: Any) -> float:
    return finite_number(name, value, at_least=0.0, error=ValueError)


def _gains(name: str, value: Any) -> tuple[float, float]:
    """Return the gains of a PD controller."""
    first, second = finite_array(name, value, (2,), error=ValueError).tolist()
    return first, second


def _path_angles(name: str, value: Any) -> tuple[float, float]:
    """Return the least and the greatest angle of a flight path."""
    low, high = finite_array(name, value, (2,), error=ValueError).tolist()
    if not -math.pi / 2 <= low <= high <= math.pi / 2:
        raise ValueError(f"{name}: {low:g}, {high:g}, expected [min, max] from −π/2 to π/2 rad")
    return low, high


@matlab_properties(dict.fromkeys(("height", "air_speed", "roll_angle"), _number))
@dataclass(eq=False)
class FixedWingControl:
    """Commands to a fixed wing's autopilot; MATLAB's `control(fixedwing)`."""

    height: float = 0.0
    """Height, m, up."""
    air_speed: float = 0.0
    """Airspeed, m/s."""
    roll_angle: float = 0.0
    """Roll angle, rad."""


@matlab_properties(
    dict.fromkeys(("wind_north", "wind_east", "wind_down", "gravity"), _number),
)
@dataclass(eq=False)
class FixedWingEnvironment:
    """Wind and gravity; MATLAB's `environment(fixedwing)`."""

    wind_north: float = 0.0
    """Wind towards north, m/s."""
    wind_east: float = 0.0
    """Wind towards east, m/s."""
    wind_down: float = 0.0
    """Wind downwards, m/s."""
    gravity: float = GRAVITY
    """Gravity, m/s²."""


@matlab_properties(
    {
        "pd_roll": _gains,
        "p_height": _gain,
        "p_flight_path_angle": _gain,
        "p_air_speed": _gain,
        "flight_path_angle_limits": _path_angles,
    },
    {"pd_roll": "PDRoll"},
)
@dataclass(eq=False)
class FixedWingConfiguration:
    """Gains of a fixed wing's autopilot, with MATLAB's defaults."""

    pd_roll: tuple[float, float] = (3402.97, 116.67)
    """Gains of roll angle, 1/s², and roll rate, 1/s."""
    p_height: float = 3.9
    """Gain of height, 1/s."""
    p_flight_path_angle: float = 39.0
    """Gain of the flight path's angle, 1/s."""
    p_air_speed: float = 0.39
    """Gain of airspeed, 1/s."""
    flight_path_angle_limits: tuple[float, float] = (-math.pi / 2, math.pi / 2)
    """Least and greatest angle of the flight path that is commanded, rad."""


@matlab_properties({})
@dataclass(eq=False)
class FixedWingGuidance:
    """A fixed wing in coordinated turns, MATLAB's `fixedwing`.

    State: north, east, height (m), airspeed (m/s), course, angle of the flight path, roll angle
    (rad), roll rate (rad/s). Airspeed and flight path follow their commands as first-order
    systems, roll as a second-order one. The commanded flight path angle is
    asin(clip(gain · (height wanted − height), −Vg, Vg) / Vg) within its limits, Vg being the speed
    over the ground. The course turns by g/Vg · tan(roll) · cos(course − heading). A vehicle that
    does not move does not turn.

    >>> model = FixedWingGuidance()
    >>> state = model.state()
    >>> state[3] = 15.0
    >>> model.derivative(state, model.control(air_speed=15.0)).round(3) + 0.0
    array([15.,  0.,  0.,  0.,  0.,  0.,  0.,  0.])
    """

    STATES: ClassVar[tuple[str, ...]] = (
        "North",
        "East",
        "Height",
        "AirSpeed",
        "HeadingAngle",
        "FlightPathAngle",
        "RollAngle",
        "RollAngleRate",
    )
    """MATLAB's names of the elements of a state."""

    configuration: FixedWingConfiguration = field(default_factory=FixedWingConfiguration)
    """Gains."""

    def state(self) -> Floats:
        """Return a state of zeros, (8,)."""
        return np.zeros(len(self.STATES))

    def control(self, **commands: Any) -> FixedWingControl:
        """Return commands, all 0 but those given, in either spelling."""
        return FixedWingControl(**commands)

    def environment(self, **values: Any) -> FixedWingEnvironment:
        """Return an environment without wind but for the values given, in either spelling."""
        return FixedWingEnvironment(**values)

    def derivative(
        self,
        state: ArrayLike,
        control: FixedWingControl | None = None,
        environment: FixedWingEnvironment | None = None,
    ) -> Floats:
        """Return the time derivative of states (8,) or (8, n), in the same shape.

        ValueError for another shape and for a wind against which the vehicle can't hold its
        course.
        """
        x = _states(state, len(self.STATES))
        u = control or FixedWingControl()
        air = environment or FixedWingEnvironment()
        gains = self.configuration
        _, _, height, airspeed, course, climb, roll, roll_rate = x

        # speed over the ground and heading, by the wind triangle
        ground_speed = _ground_speed(airspeed, course, climb, air)
        drift = _drift(airspeed, ground_speed, course, climb, air)

        # the commanded flight path
        rise = np.clip(gains.p_height * (u.height - height), -ground_speed, ground_speed)
        low, high = gains.flight_path_angle_limits
        path_angle = np.clip(np.arcsin(_over(rise, ground_speed)), low, high)

        level_speed = ground_speed * np.cos(climb)
        roll_gain, roll_rate_gain = gains.pd_roll
        rates = (
            level_speed * np.cos(course),
            level_speed * np.sin(course),
            ground_speed * np.sin(climb),
            gains.p_air_speed * (u.air_speed - airspeed),
            _over(air.gravity * np.tan(roll) * np.cos(drift), ground_speed),
            gains.p_flight_path_angle * (path_angle - climb),
            roll_rate,
            roll_gain * (u.roll_angle - roll) - roll_rate_gain * roll_rate,
        )
        return np.stack([np.broadcast_to(rate, airspeed.shape) for rate in rates])


@matlab_properties(dict.fromkeys(("roll", "pitch", "yaw_rate", "thrust"), _number))
@dataclass(eq=False)
class MultirotorControl:
    """Commands to a multirotor's autopilot; MATLAB's `control(multirotor)`."""

    roll: float = 0.0
    """Roll angle, rad."""
    pitch: float = 0.0
    """Pitch angle, rad."""
    yaw_rate: float = 0.0
    """Rate of the yaw angle, rad/s."""
    thrust: float = 0.0
    """Thrust, N."""


@matlab_properties({"gravity": _number})
@dataclass(eq=False)
class MultirotorEnvironment:
    """Gravity; MATLAB's `environment(multirotor)`."""

    gravity: float = GRAVITY
    """Gravity, m/s²."""


@matlab_properties(
    {
        "pd_roll": _gains,
        "pd_pitch": _gains,
        "p_yaw_rate": _gain,
        "p_thrust": _gain,
        "mass": _positive,
    },
    {"pd_roll": "PDRoll", "pd_pitch": "PDPitch"},
)
@dataclass(eq=False)
class MultirotorConfiguration:
    """Gains of a multirotor's autopilot and its mass, with MATLAB's defaults."""

    pd_roll: tuple[float, float] = (3402.97, 116.67)
    """Gains of roll angle, 1/s², and its rate, 1/s."""
    pd_pitch: tuple[float, float] = (3402.97, 116.67)
    """Gains of pitch angle, 1/s², and its rate, 1/s."""
    p_yaw_rate: float = 1950.0
    """Gain of yaw rate, 1/s."""
    p_thrust: float = 3900.0
    """Gain of thrust, 1/s."""
    mass: float = 0.1
    """Mass, kg."""


@matlab_properties({})
@dataclass(eq=False)
class MultirotorGuidance:
    """A multirotor with its attitude controller, MATLAB's `multirotor`.

    State: position (NED, m), velocity (NED, m/s), yaw, pitch, roll (rad), body rates p, q, r
    (rad/s), thrust (N). Roll and pitch follow their commands as second-order systems, yaw rate and
    thrust as first-order ones. The thrust acts along the body's z axis, upwards.

    >>> model = MultirotorGuidance()
    >>> hover = model.state()
    >>> hover[12] = 0.981
    >>> model.derivative(hover, model.control(thrust=0.981)).round(6) + 0.0
    array([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.])
    """

    STATES: ClassVar[tuple[str, ...]] = (
        *("x", "y", "z"),
        *("vx", "vy", "vz"),
        *("psi", "theta", "phi"),
        *("p", "q", "r"),
        "Thrust",
    )
    """Names of the elements of a state."""

    configuration: MultirotorConfiguration = field(default_factory=MultirotorConfiguration)
    """Gains and mass."""

    def state(self) -> Floats:
        """Return a state of zeros, (13,)."""
        return np.zeros(len(self.STATES))

    def control(self, **commands: Any) -> MultirotorControl:
        """Return commands, all 0 but those given, in either spelling."""
        return MultirotorControl(**commands)

    def environment(self, **values: Any) -> MultirotorEnvironment:
        """Return an environment, with the values given, in either spelling."""
        return MultirotorEnvironment(**values)

    def derivative(
        self,
        state: ArrayLike,
        control: MultirotorControl | None = None,
        environment: MultirotorEnvironment | None = None,
    ) -> Floats:
        """Return the time derivative of states (13,) or (13, n), in the same shape.

        ValueError for another shape. The Euler angles have no rates at a pitch of ±π/2.
        """
        x = _states(state, len(self.STATES))
        u = control or MultirotorControl()
        gravity = (environment or MultirotorEnvironment()).gravity
        gains = self.configuration
        velocity = x[3:6]
        yaw, pitch, roll = x[6:9]
        p, q, r = x[9:12]
        thrust = x[12]

        sin_yaw = np.sin(yaw)
        cos_yaw = np.cos(yaw)
        sin_pitch = np.sin(pitch)
        cos_pitch = np.cos(pitch)
        sin_roll = np.sin(roll)
        cos_roll = np.cos(roll)

        # the body's z axis in the world; thrust pulls the other way
        down = np.stack(
            [
                cos_yaw * sin_pitch * cos_roll + sin_yaw * sin_roll,
                sin_yaw * sin_pitch * cos_roll - cos_yaw * sin_roll,
                cos_pitch * cos_roll,
            ]
        )
        acceleration = -thrust / gains.mass * down
        acceleration[2] += gravity

        # rates of the Euler angles
        yaw_rate = (sin_roll * q + cos_roll * r) / cos_pitch
        pitch_rate = cos_roll * q - sin_roll * r
        roll_rate = p + sin_pitch * yaw_rate

        # how they change
        roll_change = gains.pd_roll[0] * (u.roll - roll) - gains.pd_roll[1] * roll_rate
        pitch_change = gains.pd_pitch[0] * (u.pitch - pitch) - gains.pd_pitch[1] * pitch_rate
        yaw_change = gains.p_yaw_rate * (u.yaw_rate - yaw_rate)

        # the same in body rates: p = φ' − ψ' sin θ, and so on, differentiated
        p_change = roll_change - yaw_change * sin_pitch - yaw_rate * cos_pitch * pitch_rate
        yaw_part = yaw_change * cos_pitch - yaw_rate * sin_pitch * pitch_rate
        q_change = pitch_change * cos_roll + yaw_part * sin_roll + r * roll_rate
        r_change = yaw_part * cos_roll - pitch_change * sin_roll - q * roll_rate

        thrust_change = gains.p_thrust * (u.thrust - thrust)
        angles = (yaw_rate, pitch_rate, roll_rate)
        rates = (*velocity, *acceleration, *angles, p_change, q_change, r_change, thrust_change)
        return np.stack([np.broadcast_to(rate, thrust.shape) for rate in rates])


def _states(state: ArrayLike, count: int) -> Floats:
    """Return states as (count,) or (count, n)."""
    array = finite_array("state", state, error=ValueError)
    if array.ndim not in (1, 2) or array.shape[0] != count:
        raise ValueError(f"state: the shape {array.shape}, expected ({count},) or ({count}, n)")
    return array


def _wind_along(course: Any, climb: Any, air: FixedWingEnvironment) -> Any:
    """Return the wind's component along a flight path, m/s."""
    level = np.cos(course) * air.wind_north + np.sin(course) * air.wind_east
    return np.cos(climb) * level - np.sin(climb) * air.wind_down


def _ground_speed(airspeed: Any, course: Any, climb: Any, air: FixedWingEnvironment) -> Any:
    """Return the speed along a flight path, m/s. Beard and McLain, (2.9)."""
    wind_squared = air.wind_north**2 + air.wind_east**2 + air.wind_down**2
    along = _wind_along(course, climb, air)
    square = along**2 - wind_squared + airspeed**2
    speed = along + np.sqrt(np.maximum(square, 0.0))
    if (square < 0.0).any() or (speed < 0.0).any():
        raise ValueError(
            "environment: the wind is faster than the vehicle, which can't hold its course"
        )
    return speed


def _drift(
    airspeed: Any, ground_speed: Any, course: Any, climb: Any, air: FixedWingEnvironment
) -> Any:
    """Return course minus heading, rad. Beard and McLain, (2.11), (2.12)."""
    across = np.cos(course) * air.wind_east - np.sin(course) * air.wind_north
    sink = ground_speed * np.sin(climb) + air.wind_down
    level_airspeed = np.sqrt(np.maximum(airspeed**2 - sink**2, 0.0))
    return np.arcsin(np.clip(_over(across, level_airspeed), -1.0, 1.0))


def _over(numerator: Any, denominator: Any) -> Any:
    """Return a quotient, 0 where the denominator is 0."""
    is_zero = denominator == 0.0
    return np.where(is_zero, 0.0, numerator / np.where(is_zero, 1.0, denominator))
