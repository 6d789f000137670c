# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Setpoints of each flight mode: the rotors' column of the table in docs/model, section 9."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import AttitudeController, AttitudeSetpoint
from rfly_autonomy.control.axle_lift import Assist, AxleLift, RotorHelp
from rfly_autonomy.control.flight_laws import MIN_VERTICAL, SLOW_DESCENT, led_position
from rfly_autonomy.control.modes import (
    AFTER_BOUNCE,
    LANDING,
    TAKING_OFF,
    ModeLogic,
)
from rfly_autonomy.control.position_controller import PositionController
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

RAMP_SHARE = 0.5
"""Share of the weight to which the thrust rises before lift-off."""

RAMP_TIME = 2.0
"""Time in which the thrust rises before lift-off, s."""

ROLLING_RAMP_TIME = 1.0
"""Time in which the thrust rises to RAMP_SHARE while the wheels roll, s."""

CLIMB_SPEED = 0.75
"""Speed of the climb after lift-off, m/s."""

ROLLING_CLIMB = 1.0
"""Speed of the climb of a vehicle that takes off rolling, m/s."""

FAST_DESCENT = 1.5
"""Sink rate of a landing high above the ground, m/s."""

WEAK_DESCENT = 0.25
"""Sink rate near the ground with a weak battery, m/s: little thrust is left to brake with."""

SLOW_BELOW = 5.0
"""Clearance below which a landing is slow, m."""

ROLLING_SINK = 0.9
"""Sink rate of a rolling landing, m/s."""

FLARE_SINK = 0.5
"""Sink rate of its touch-down, m/s."""

FLARE_BELOW = 0.5
"""Clearance below which it flares, m."""

SPOOL_TIME = 0.3
"""Time constant with which the thrust decays on the ground, s."""

PRESS_RATE = 1.0
"""Rate at which a descent that stalls takes thrust away, weights/s."""

PRESS_AFTER = 1.0
"""Time from the begin of a descent until it counts as stalled, s: it has to gain speed first."""

RELEASE_TIME = 0.1
"""Time constant with which that thrust comes back while the vehicle sinks, s."""

LAND_TILT = math.radians(10.0)
"""Largest tilt of a descent beyond that which holds the place in a steady wind, rad."""

RETURN_SPEED = 0.5
"""Largest speed at which a descent returns to its place, m/s: it may touch down on the way."""

BRAKES_ABOVE = 0.8
"""Speed across the ground, m/s, above which a descent brakes before it sinks on."""

LONGEST_BRAKING = 3.0
"""Longest time for which it does, s: from 4 m/s by LAND_TILT, and not for ever in a storm."""

TURN_RATE = 0.5
"""Rate at which the held heading turns to the wanted one, rad/s."""

TURN_ABOVE = 1.0
"""Clearance below which a landing keeps its heading, m."""


RAMP_TIMES = {Mode.TAKEOFF: RAMP_TIME, Mode.ROLLING_TAKEOFF: ROLLING_RAMP_TIME}
"""Time of the ramp of each take-off, s."""


class TrajectorySetpoint(NamedTuple):
    """Setpoint of a flight: a position, a velocity, an attitude with a thrust, or a wrench."""

    position: ArrayLike | None = None
    """Position, (3,), world axes, m; None: by velocity from the present position."""

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Velocity of the position, world axes, m/s.

    Without a position it is forward, left and up by the heading; near the ground it is down no
    faster than a landing.
    """

    yaw: float | None = None
    """Heading to turn to in flight and above the landing place, rad; None: keep the heading."""

    yaw_rate: float = 0.0
    """Yaw rate, if there is no yaw, rad/s."""

    attitude: Floats | None = None
    """Attitude to turn to instead of flying anywhere, (3, 3), body -> world."""

    thrust: float = 0.0
    """Thrust with an attitude, N."""

    wrench: Floats | None = None
    """Thrust, N, and moments, N m, body axes, (4,), instead of all others."""

    @property
    def is_direct(self) -> bool:
        """True if it turns the vehicle itself, without the position loop."""
        return self.attitude is not None or self.wrench is not None


class FlightModes:
    """Position and attitude loop under a mode, from setpoints to rotor speeds.

    `update`, called for each estimate, decides where the thrust has to point. `rotor_speeds`,
    called for each IMU sample, lets the attitude loop turn the vehicle there. `logic` belongs to
    the caller and supplies the time in the mode and the contact of the wheels.
    """

    def __init__(
        self,
        params: VehicleParameters,
        logic: ModeLogic,
        attitude_loop: AttitudeController | None = None,
    ) -> None:
        self.params = params
        self.logic = logic
        self.attitude_loop = AttitudeController(params) if attitude_loop is None else attitude_loop
        self.position_controller = PositionController(params)

        self.position = np.zeros(3)
        """Held position, (3,), world axes, m."""

        self.yaw = 0.0
        """Held heading, rad."""

        self.attitude: Floats = np.eye(3)
        """Attitude at the begin of the mode, (3, 3), body -> world."""

        self.thrust = 0.0
        """Thrust, N."""

        self.press = 0.0
        """Thrust taken away because the descent stalls, as a share of the weight."""

        self.knows_speed = True
        """True while the estimate shows speed and heading well enough to brake by them."""

        self.is_weak = False
        """True with a battery that gives too little power."""

        self._brakes_for = 0.0
        """Time for which a descent has braked instead of sinking, s."""

        self._sinks_at = 0.0
        """Time in the mode since when it is to sink, s."""

        self.axle_lift = AxleLift()
        """Axle that the rotors lift while the vehicle drives."""

        self.failed_rotors: frozenset[int] = frozenset()
        """Rotors that no longer turn, from 0."""

        self._entered = Mode.DISARMED
        """Mode that began last."""

        self._rolls_at = (0.0, 0.0)
        """Level velocity of a vehicle that rolls, world axes, m/s."""

        self._setpoint: AttitudeSetpoint | None = None
        """Setpoint of the attitude loop; None: the rotors are off."""

    def set_failed_rotors(self, failed: frozenset[int]) -> None:
        """Let the other rotors do what they can without these ones (from 0)."""
        self.failed_rotors = failed
        self.attitude_loop.set_failed_rotors(failed)

    def enter(self, mode: Mode, now: EstimatedMotion) -> None:
        """Begin a mode: hold position, heading and attitude.

        The position is the present one. For an abort, and for a landing that ends a take-off or a
        rolling landing, it is that where the vehicle comes to rest: low above the ground, it would
        touch down on its way back. A landing after a flight has a place of its own.
        """
        self.position = np.array(now.position)
        if mode is Mode.ABORT or (mode is Mode.LAND and self._entered is not Mode.FLIGHT):
            self.position[:2] += self._way_to_rest(now.velocity[:2])
        self._entered = mode
        self.yaw = _heading(now)
        self.attitude = now.rotation
        self.press = 0.0
        self._brakes_for = 0.0
        self._sinks_at = 0.0
        self._rolls_at = (float(now.velocity[0]), float(now.velocity[1]))
        if mode in TAKING_OFF:
            self.position_controller.reset()
        self.axle_lift.reset()
        if mode is Mode.DRIVE:
            self.thrust = 0.0

    def _way_to_rest(self, velocity: Floats) -> Floats:
        """Return the way, (2,), m, in which a level velocity, (2,), m/s, ends. Eq. 9.1."""
        braking = GRAVITY * math.tan(LAND_TILT)
        speed = float(np.linalg.norm(velocity))
        return velocity * max(1.0 / self.params.position_gain, speed / (2.0 * braking))

    @property
    def touched(self) -> bool:
        """True if the vehicle has touched the ground since an abort."""
        return self.logic.mode is Mode.ABORT and self.logic.touch_down.touched

    @property
    def hover_thrust(self) -> float:
        """Thrust that carries the vehicle, as its flight has shown, N."""
        return self.params.mass * (GRAVITY + float(self.position_controller.integral[2]))

    @property
    def _stalled(self) -> bool:
        """True if a descent does not sink, although it should."""
        late = self.logic.since - self._sinks_at >= PRESS_AFTER
        return self.logic.touch_down.stalled and late

    def update(
        self,
        mode: Mode,
        now: EstimatedMotion,
        clearance: float,
        setpoint: TrajectorySetpoint | None,
        dt: float,
        clearance_measured: bool = True,
        assist: Assist | None = None,
    ) -> None:
        """Run the position loop, dt seconds after its last run.

        `clearance`: of the lowest wheel, m. Where it is not measured, landings are slow. `assist`:
        what the rotors do while the vehicle drives.
        """
        if mode is Mode.DRIVE:
            self._setpoint = None
            rotor_help = self.axle_lift.update(assist, now, dt)
            if rotor_help is not None:
                self._help(now, rotor_help)
        elif mode is Mode.DISARMED:
            self._setpoint = None
        elif mode is Mode.TAKEOFF and setpoint is not None and setpoint.wrench is not None:
            self._fly_directly(now, setpoint)
        elif mode is Mode.TAKEOFF:
            self._take_off(now, dt)
        elif mode is Mode.ROLLING_TAKEOFF:
            self._take_off_rolling(now, setpoint, dt)
        elif mode is Mode.ROLLING_LAND:
            self._land_rolling(now, clearance if clearance_measured else 0.0, setpoint, dt)
        elif mode is Mode.FLIGHT and setpoint is not None and setpoint.is_direct:
            self._fly_directly(now, setpoint)
        elif mode is Mode.FLIGHT:
            velocity, yaw_rate = self._follow(now, clearance, setpoint, dt)
            self._fly(now, velocity, dt, yaw_rate=yaw_rate)
        elif mode is Mode.LAND:
            if clearance > TURN_ABOVE and setpoint is not None:
                self._turn(setpoint.yaw, dt)
            high = clearance_measured and clearance > SLOW_BELOW
            low_rate = WEAK_DESCENT if self.is_weak else SLOW_DESCENT
            high_rate = SLOW_DESCENT if self.is_weak else FAST_DESCENT
            self._descend(now, high_rate if high else low_rate, dt)
        elif mode in AFTER_BOUNCE:
            share = self.logic.contact.load_share
            if math.isnan(share):
                share = 1.0 - self.thrust / self.hover_thrust
            self._spool_down(min(max(1.0 - share, 0.0), 1.0), dt)
        else:
            if self.touched:  # no second flight after a bounce
                self._spool_down(0.0, dt)
            else:
                self._descend(now, SLOW_DESCENT, dt)

    def advance(self, now: EstimatedMotion, dt: float) -> None:
        """Let the attitude loop learn from the dt seconds before this motion."""
        mode = self.logic.mode
        if mode in (Mode.DISARMED, Mode.DRIVE):
            self.attitude_loop.observer.reset()
        stands = mode in TAKING_OFF and self.logic.since < RAMP_TIMES[mode]
        stands = stands or self.logic.contact.wheels_down >= 0.5 or self.touched
        airborne = not stands and mode in (*TAKING_OFF, Mode.FLIGHT, *LANDING, Mode.ABORT)
        self.attitude_loop.advance(now, dt, airborne)

    def rotor_speeds(self, now: EstimatedMotion) -> Floats:
        """Return the rotor speeds of the attitude loop, (rotors,), rad/s."""
        setpoint = self._setpoint
        if setpoint is not None and setpoint.acceleration is not None:
            self.thrust = self.params.mass * float(setpoint.acceleration @ now.rotation[:, 2])
            setpoint = setpoint._replace(thrust=self.thrust)
        return self.attitude_loop.rotor_speeds(setpoint, now)

    def thrust_alone(self, thrust: float) -> Floats:
        """Return the rotor speeds, (rotors,), rad/s, of a thrust (N) without moments."""
        self.thrust = thrust
        level = EstimatedMotion(np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3))
        setpoint = AttitudeSetpoint(thrust, None, self.yaw, attitude=np.eye(3), moment_share=0.0)
        return self.attitude_loop.rotor_speeds(setpoint, level)

    def _take_off(self, now: EstimatedMotion, dt: float) -> None:
        """Raise the thrust while the wheels still stand, then climb."""
        if not self._ramps():
            self.position[2] += dt * CLIMB_SPEED
            self._fly(now, (0.0, 0.0, CLIMB_SPEED), dt)

    def _ramps(self) -> bool:
        """Raise the thrust at the attitude of the ground; return False once it has risen."""
        time = RAMP_TIMES[self.logic.mode]
        if self.logic.since >= time:
            return False
        self.thrust = RAMP_SHARE * self.params.mass * GRAVITY * self.logic.since / time
        self._hold_attitude()
        return True

    def _take_off_rolling(
        self, now: EstimatedMotion, setpoint: TrajectorySetpoint | None, dt: float
    ) -> None:
        """Raise the thrust while the wheels roll, then climb on at their velocity."""
        x, y = self._level_velocity(setpoint)
        self.position[:2] = now.position[:2]
        if not self._ramps():
            self.position[2] += dt * ROLLING_CLIMB
            self._fly(now, (x, y, ROLLING_CLIMB), dt)

    def _land_rolling(
        self,
        now: EstimatedMotion,
        clearance: float,
        setpoint: TrajectorySetpoint | None,
        dt: float,
    ) -> None:
        """Sink along the track of the setpoint, slowly just above the ground."""
        velocity = self._level_velocity(setpoint)
        target = now.position
        if setpoint is not None and setpoint.position is not None:
            target = np.asarray(setpoint.position, float)
            self._turn(setpoint.yaw, dt)
        self.position[:2] = target[:2]
        self._descend(now, FLARE_SINK if clearance < FLARE_BELOW else ROLLING_SINK, dt, velocity)

    def _level_velocity(self, setpoint: TrajectorySetpoint | None) -> tuple[float, float]:
        """Return the level velocity of a setpoint, else that at the begin of the mode, m/s."""
        if setpoint is None or setpoint.is_direct:
            return self._rolls_at
        x, y, _ = setpoint.velocity
        if setpoint.position is not None:
            return x, y
        return x * math.cos(self.yaw), x * math.sin(self.yaw)

    def _descend(
        self,
        now: EstimatedMotion,
        sink_rate: float,
        dt: float,
        level: tuple[float, float] | None = None,
    ) -> None:
        """Sink above the held place, which moves at a level velocity, with little tilt.

        `level`: that velocity, m/s; None: it rests. A vehicle that is too fast above a place that
        rests brakes first. While it does not sink, thrust is taken away: something else carries it.
        """
        rests = level is None
        is_fast = self.knows_speed and math.hypot(*now.velocity[:2]) > BRAKES_ABOVE
        flies = not self.logic.contact.wheels_down >= 0.5
        if rests and is_fast and flies and self._brakes_for < LONGEST_BRAKING:
            self._brakes_for += dt
            self._sinks_at = self.logic.since
            sink_rate = 0.0
        if self._stalled:
            self.press = min(self.press + dt * PRESS_RATE, 1.0)
        else:
            self.press *= math.exp(-dt / RELEASE_TIME)
        self.position[2] = min(self.position[2] - dt * sink_rate, now.position[2] + 0.5)
        most = min(LAND_TILT + self.position_controller.steady_tilt, self.params.max_tilt)
        most_return = RETURN_SPEED if rests else math.inf
        self._fly(now, (*(level or (0.0, 0.0)), -sink_rate), dt, most, most_return=most_return)

    def _spool_down(self, moment_share: float, dt: float) -> None:
        """Let the thrust decay, with a share of the moments that hold the attitude."""
        self.thrust *= math.exp(-dt / SPOOL_TIME)
        self._hold_attitude(moment_share)

    def _follow(
        self, now: EstimatedMotion, clearance: float, setpoint: TrajectorySetpoint | None, dt: float
    ) -> tuple[tuple[float, float, float], float]:
        """Move the held position; return its velocity, m/s, and the yaw rate, rad/s."""
        if setpoint is None:
            return (0.0, 0.0, 0.0), 0.0
        if setpoint.position is not None:
            self.position = np.array(setpoint.position, float)
            self._turn(setpoint.yaw, dt)
            return setpoint.velocity, 0.0

        yaw_rate = 0.0
        if setpoint.yaw is not None:
            self._turn(setpoint.yaw, dt)
        else:
            yaw_rate = setpoint.yaw_rate
            self.yaw = math.remainder(self.yaw + dt * yaw_rate, math.tau)

        held, velocity = led_position(
            self.position.tolist(),
            now.position.tolist(),
            setpoint.velocity,
            self.yaw,
            yaw_rate,
            clearance,
            self.params.velocity_gain,
            dt,
        )
        self.position = np.array(held)
        return velocity, yaw_rate

    def _turn(self, yaw: float | None, dt: float) -> None:
        """Turn the held heading towards the wanted one."""
        if yaw is not None:
            error = math.remainder(yaw - self.yaw, math.tau)
            self.yaw += min(max(error, -TURN_RATE * dt), TURN_RATE * dt)

    def _fly(
        self,
        now: EstimatedMotion,
        velocity: tuple[float, float, float],
        dt: float,
        max_tilt: float | None = None,
        yaw_rate: float = 0.0,
        most_return: float = math.inf,
    ) -> None:
        """Point the thrust so that the vehicle reaches the held position, moving by a velocity.

        `most_return`: largest speed across the ground at which it returns there, m/s.
        """
        if self.failed_rotors:  # no rotor can be spared for a heading
            self.yaw = _heading(now)
        frozen = self.logic.contact.wheels_down >= 2.0 or self._stalled
        way = self.position - now.position
        far = self.params.position_gain * math.hypot(way[0], way[1])
        if far > most_return:
            way[:2] *= most_return / far
        acceleration = self.position_controller.acceleration(
            way, now.velocity, velocity, dt, frozen, max_tilt
        )
        least = MIN_VERTICAL * GRAVITY
        acceleration[2] = max(acceleration[2] - self.press * GRAVITY, least)
        self._setpoint = AttitudeSetpoint(
            self.thrust, acceleration, self.yaw, yaw_rate, self.attitude
        )

    def _fly_directly(self, now: EstimatedMotion, setpoint: TrajectorySetpoint) -> None:
        """Obey an attitude or a wrench; afterwards the vehicle holds the place where it is then."""
        self.position = np.array(now.position)
        self.yaw = _heading(now)
        if setpoint.attitude is not None:
            self.attitude = setpoint.attitude
            self.thrust = setpoint.thrust
            self._hold_attitude()
        else:
            assert setpoint.wrench is not None
            self.thrust = float(setpoint.wrench[0])
            self._setpoint = AttitudeSetpoint(self.thrust, None, self.yaw, wrench=setpoint.wrench)

    def _help(self, now: EstimatedMotion, rotor_help: RotorHelp) -> None:
        """Turn the nose up or down and push while the wheels of one axle stand."""
        pitch = rotor_help.pitch
        yaw = _heading(now)
        c = math.cos(yaw)
        s = math.sin(yaw)
        forward = np.array((c * math.cos(pitch), s * math.cos(pitch), math.sin(pitch)))
        left = np.array((-s, c, 0.0))
        self.attitude = np.column_stack([forward, left, np.cross(forward, left)])
        self.thrust = rotor_help.thrust * self.params.mass * GRAVITY
        self._hold_attitude()

    def _hold_attitude(self, moment_share: float = 1.0) -> None:
        """Hold the attitude with the present thrust."""
        self._setpoint = AttitudeSetpoint(
            self.thrust, None, self.yaw, attitude=self.attitude, moment_share=moment_share
        )


def _heading(now: EstimatedMotion) -> float:
    """Return the heading of the body's x axis, rad."""
    return math.atan2(now.rotation[1, 0], now.rotation[0, 0])
