# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A small pilot for the vehicle `scale` in plain Python, shared by both external controllers.

It does not know how its numbers are transported. World axes: x east, y north, z up; body axes: x
forward, y left, z up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

G = 9.80665  # m/s²

# the vehicle
MASS = 30.0  # kg
INERTIA = (1.73, 2.78, 4.10)  # kg m², about forward, left, up
THRUST = 7.5e-4  # N at 1 rad/s
TORQUE = 3.2084e-5  # N m at 1 rad/s
ARM = 0.75  # m
AZIMUTHS_DEG = (-30, 30, 90, 150, 210, 270)
SPINS = (-1, 1, -1, 1, -1, 1)
MAX_ROTOR_SPEED = 350.0  # rad/s
WHEEL_RADIUS = 0.108  # m
ROLLING_RESISTANCE = 0.02  # share of the weight
HOLD_TORQUE = 5.0  # N m at each wheel, while it stands

# control
ATTITUDE_FREQUENCY = 7.0  # rad/s
ATTITUDE_DAMPING = 0.9
POSITION_GAIN = 1.0  # 1/s
VELOCITY_GAIN = 2.5  # 1/s
INTEGRAL_GAIN = 0.6  # 1/s²
MAX_TILT = 0.3  # rad

# the flight
DRIVE_SPEED = 1.5  # m/s
DRIVE_LENGTH = 3.0  # m
TAKEOFF_RAMP = 1.2  # s
CLIMB = 0.9  # m/s
SINK = 0.5  # m/s
HOVER_HEIGHT = 1.0  # m
HOVER_TIME = 1.2  # s
SPOOL_DOWN = 0.3  # s
REST_TIME = 0.8  # s

Vector = tuple[float, float, float]


class State(NamedTuple):
    """State of the vehicle."""

    time: float  # s of the simulation
    position: Vector  # m
    velocity: Vector  # m/s, world
    quat_wxyz: tuple[float, float, float, float]  # body -> world
    rates: Vector  # rad/s, body


class Outputs(NamedTuple):
    """Commands to the actuators."""

    rotor_speeds: tuple[float, ...] = (0.0,) * 6  # rad/s
    steering: float = 0.0  # rad, positive = left
    drive_torque: float = 0.0  # N m at each wheel
    brake_torque: float = HOLD_TORQUE  # N m at each wheel


class SmallPilot:
    """A pilot that drives straight ahead, stops, takes off, hovers, lands and rests in `phase`."""

    def __init__(self) -> None:
        self.phase = "begin"
        self.reached: dict[str, tuple[float, Vector]] = {}  # when and where each phase began
        self.last: State | None = None
        self._began = 0.0
        self._still_since = 0.0
        self._start: Vector = (0.0, 0.0, 0.0)
        self._hold: Vector = (0.0, 0.0, 0.0)
        self._yaw = 0.0
        self._integral = [0.0, 0.0, 0.0]

    @property
    def done(self) -> bool:
        return self.phase == "done"

    def __call__(self, state: State) -> Outputs:
        """Return the outputs for a state."""
        dt = 0.0 if self.last is None else state.time - self.last.time
        if self.phase == "begin":
            self._start = state.position
            self._yaw = yaw_of(state.quat_wxyz)
            self._enter("drive", state)
        self.last = state
        return getattr(self, f"_{self.phase}")(state, dt)

    def _enter(self, phase: str, state: State) -> None:
        self.phase = phase
        self._began = state.time
        self._still_since = state.time
        self.reached[phase] = (state.time, state.position)

    def _drive(self, state: State, dt: float) -> Outputs:
        along = (math.cos(self._yaw), math.sin(self._yaw))
        gone = [state.position[k] - self._start[k] for k in (0, 1)]
        ahead = DRIVE_LENGTH - (gone[0] * along[0] + gone[1] * along[1])
        aside = gone[1] * along[0] - gone[0] * along[1]
        speed = state.velocity[0] * along[0] + state.velocity[1] * along[1]

        # stand still for a moment, then take off
        if ahead < 0.05 and abs(speed) < 0.05:
            if state.time - self._still_since > 0.3:
                self._hold = (*state.position[:2], state.position[2] + HOVER_HEIGHT)
                self._enter("takeoff", state)
            return Outputs()

        # drive along the line
        self._still_since = state.time
        target_speed = min(DRIVE_SPEED, math.sqrt(1.6 * max(ahead, 0.0)))
        force = MASS * (4.0 * (target_speed - speed) + ROLLING_RESISTANCE * G)
        torque = clip(force * WHEEL_RADIUS / 4.0, -5.0, 3.0)
        steering = clip(-1.5 * turn(yaw_of(state.quat_wxyz) - self._yaw) - 1.0 * aside, -0.3, 0.3)
        return Outputs(
            steering=steering, drive_torque=max(torque, 0.0), brake_torque=max(-torque, 0.0)
        )

    def _takeoff(self, state: State, dt: float) -> Outputs:
        share = (state.time - self._began) / TAKEOFF_RAMP
        if state.position[2] > self._hold[2] - 0.1:
            self._enter("hover", state)

        on_ground = share < 1.0
        rotors = self._fly(state, 0.0 if on_ground else dt, None, min(share, 1.0))
        return Outputs(rotors, brake_torque=HOLD_TORQUE if on_ground else 0.0)

    def _hover(self, state: State, dt: float) -> Outputs:
        if state.time - self._began > HOVER_TIME:
            self._enter("land", state)
        return Outputs(self._fly(state, dt), brake_torque=0.0)

    def _land(self, state: State, dt: float) -> Outputs:
        if state.velocity[2] < -0.15 or state.time - self._began < 1.0:
            self._still_since = state.time
        elif state.time - self._still_since > 0.2:
            self._enter("rest", state)
        return Outputs(self._fly(state, dt, -SINK), brake_torque=0.0)

    def _rest(self, state: State, dt: float) -> Outputs:
        gone = state.time - self._began
        if gone > SPOOL_DOWN + REST_TIME:
            self._enter("done", state)
        share = max(1.0 - gone / SPOOL_DOWN, 0.0)
        return Outputs(mix(0.6 * share * MASS * G, (0.0, 0.0, 0.0)))

    def _done(self, state: State, dt: float) -> Outputs:
        return Outputs()

    def _fly(
        self, state: State, dt: float, climb: float | None = None, share: float = 1.0
    ) -> tuple[float, ...]:
        """Return rotor speeds that hold the position.

        `climb` (m/s) replaces the hold of the height. `share` is the share of the thrust.
        """
        target = [
            clip(POSITION_GAIN * (self._hold[k] - state.position[k]), -1.0, 1.0) for k in range(3)
        ]
        target[2] = clip(target[2], -SINK, CLIMB) if climb is None else climb

        # acceleration
        a = [0.0, 0.0, 0.0]
        for k in range(3):
            error = target[k] - state.velocity[k]
            self._integral[k] = clip(self._integral[k] + dt * INTEGRAL_GAIN * error, -2.0, 2.0)
            a[k] = VELOCITY_GAIN * error + self._integral[k]
        a[2] = max(a[2] + G, 0.3 * G)

        # limit the tilt
        level = math.hypot(a[0], a[1])
        if level > a[2] * math.tan(MAX_TILT):
            a[0], a[1] = (component * a[2] * math.tan(MAX_TILT) / level for component in a[:2])

        # target attitude: z axis along the acceleration, x axis towards the yaw
        up = unit(a)
        left = unit(cross(up, (math.cos(self._yaw), math.sin(self._yaw), 0.0)))
        target_axes = (cross(left, up), left, up)
        axes = axes_of(state.quat_wxyz)

        # half the difference of both attitudes, as an axis in the body
        error = (
            0.5 * (dot(target_axes[2], axes[1]) - dot(target_axes[1], axes[2])),
            0.5 * (dot(target_axes[0], axes[2]) - dot(target_axes[2], axes[0])),
            0.5 * (dot(target_axes[1], axes[0]) - dot(target_axes[0], axes[1])),
        )

        # moments
        moments = []
        for k, frequency in enumerate(
            (ATTITUDE_FREQUENCY, ATTITUDE_FREQUENCY, 0.4 * ATTITUDE_FREQUENCY)
        ):
            turning = (
                -frequency * frequency * error[k]
                - 2.0 * ATTITUDE_DAMPING * frequency * state.rates[k]
            )
            moments.append(share * INERTIA[k] * turning)
        return mix(share * MASS * dot(a, axes[2]), moments)


def mix(thrust: float, moments) -> tuple[float, ...]:
    """Return rotor speeds for a thrust (N) and moments (N m) of six rotors on a regular hexagon."""
    speeds = []
    for azimuth, spin in zip(AZIMUTHS_DEG, SPINS, strict=True):
        x = ARM * math.cos(math.radians(azimuth))
        y = ARM * math.sin(math.radians(azimuth))
        square = thrust / (6.0 * THRUST)
        square += (moments[0] * y - moments[1] * x) / (3.0 * ARM * ARM * THRUST)
        square -= moments[2] * spin / (6.0 * TORQUE)
        speeds.append(math.sqrt(clip(square, 0.0, MAX_ROTOR_SPEED**2)))
    return tuple(speeds)


def axes_of(quat_wxyz) -> tuple[Vector, Vector, Vector]:
    """Return forward, left and up of the body, in world axes."""
    w, x, y, z = quat_wxyz
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )


def yaw_of(quat_wxyz) -> float:
    """Return the yaw, rad from east."""
    forward = axes_of(quat_wxyz)[0]
    return math.atan2(forward[1], forward[0])


def turn(angle: float) -> float:
    """Return the same angle within half a turn."""
    return math.remainder(angle, math.tau)


def clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def dot(a, b) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b) -> Vector:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def unit(a) -> Vector:
    size = math.sqrt(dot(a, a))
    return a[0] / size, a[1] / size, a[2] / size


def report(pilot: SmallPilot) -> str:
    """Return when and where each phase began, one line per phase."""
    lines = []
    for phase, (time, (x, y, z)) in pilot.reached.items():
        lines.append(f"{time:8.3f} s  {phase:8s} at {x:8.3f} {y:8.3f} {z:8.3f} m")
    return "\n".join(lines)
