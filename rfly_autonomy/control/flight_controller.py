# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight controller: mode table and flight law, from estimates and sensor samples."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode, RotorCommand, RotorQuantity
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import AttitudeController, AttitudeLaw
from rfly_autonomy.control.axle_lift import Assist
from rfly_autonomy.control.flight_modes import FlightModes, TrajectorySetpoint
from rfly_autonomy.control.modes import (
    AFTER_BOUNCE,
    AFTER_TOUCH_DOWN,
    FLYING,
    TAKING_OFF,
    ModeInputs,
    ModeLogic,
    contact_of,
    near_ground,
)
from rfly_autonomy.control.path_following import CLIMBING, SINKING
from rfly_autonomy.control.position_controller import MAX_SPEED
from rfly_autonomy.control.rotor_health import ENCODER_TIMEOUT, RotorHealth, RotorWitnesses
from rfly_autonomy.control.rotor_link import RotorLink
from rfly_autonomy.control.rotor_torque import RotorTorqueLaw
from rfly_autonomy.control.rotor_watch import RotorWatch
from rfly_autonomy.estimation.clearance import Clearance
from rfly_autonomy.estimation.dead_reckoning import DeadReckoning
from rfly_autonomy.estimation.estimate import Estimate, EstimatedMotion
from rfly_autonomy.estimation.stuck_readings import StuckSensors
from rfly_autonomy.estimation.trust import CAREFUL_SPEED, EstimateTrust, Trust, TrustLimits
from rfly_autonomy.estimation.wheel_contact import WheelContact
from rfly_common.arrays import Floats
from rfly_common.config.checks import check_choice, finite_array, finite_number
from rfly_common.errors import CommandError, ConfigError
from rfly_common.physics import GRAVITY

COMMAND_TIMEOUT = 0.5
"""Age at which a motion command counts as lost, s."""

ATTITUDE_TIMEOUT = 0.25
"""Time for which an attitude or a wrench takes precedence over positions and velocities, s."""

WRENCH_TIMEOUT = 0.1
"""Age at which a wrench counts as lost, s: nothing holds the attitude meanwhile.

Shipped policies whose wrenches all come 0.1 to 0.13 s late turn the vehicle over.
"""

STEADY_TIME = 0.5
"""Time for which wrenches have to come in time, once one was lost, until they count again, s."""

HOVER_TIME = 2.0
"""Time from the loss of the motion command to the landing, s."""

ESTIMATE_TIMEOUT = 0.5
"""Age at which an estimate counts as lost, s."""

IMU_TIMEOUT = 0.1
"""Age at which the IMU counts as silent, s."""

MOST_TILT = 0.25
"""Standard deviation of the tilt above which an estimate without IMU does not show it, rad."""

MOST_HEADING = 0.35
"""Standard deviation of the heading from which it does not show where to brake, rad."""

BLIND_SINK = 1.0
"""Sink rate of a vehicle without IMU and estimate, m/s, by the damping of its rotors."""

WORDS = {
    "arm": Mode.DRIVE,
    "disarm": Mode.DISARMED,
    "drive": Mode.DRIVE,
    "takeoff": Mode.TAKEOFF,
    "fly": Mode.FLIGHT,
    "land": Mode.LAND,
    "abort": Mode.ABORT,
    "rolling_takeoff": Mode.ROLLING_TAKEOFF,
    "rolling_land": Mode.ROLLING_LAND,
}
"""Requests, and the mode that each of them wants."""


class FlightController:
    """Owner of the mode, and commander of the rotors.

    `sense` takes samples; `step` takes an estimate and returns speeds or torques of the rotors. The
    attitude loop runs in each step, the position loop for each new estimate. Between estimates the
    IMU shows how the vehicle moves on.

    `sensors`: sensors of the vehicle and their places; None: the shipped set of the vehicle's name.
    `delay` (s): known one from a sample until its command acts; the loops are made slower for it,
    and for a longer one that the encoders show. A motion command older than `command_timeout` (s)
    is lost. `trust_limits`: of the estimate's uncertainty. `attitude_law`: by default the geometric
    one. `rotor_command`: what it commands.
    """

    def __init__(
        self,
        params: VehicleParameters,
        sensors: SensorParameters | None = None,
        *,
        delay: float = 0.0,
        command_timeout: float = COMMAND_TIMEOUT,
        trust_limits: TrustLimits | None = None,
        attitude_law: AttitudeLaw | None = None,
        rotor_command: RotorQuantity = "speed",
    ) -> None:
        self.sensors = SensorParameters.load(params.name) if sensors is None else sensors
        finite_number("delay", delay, "s", at_least=0.0)
        if not command_timeout > 0.0:
            raise ConfigError(f"command_timeout is {command_timeout} s, expected more than 0")

        if self.sensors.imu is None:
            raise ConfigError(f"sensors {self.sensors.name!r}: flying takes an imu")

        self._imu = self.sensors.imu
        self._height = self.sensors.height
        self.attitude_loop = AttitudeController(params, None, attitude_law)
        self._link = RotorLink(self.attitude_loop, delay)
        self._torque_law = RotorTorqueLaw(params) if rotor_command == "torque" else None
        self._health = RotorHealth(self.attitude_loop, self._link, self._torque_law)
        self.command_timeout = command_timeout
        self.trust = EstimateTrust(trust_limits)
        """Trust in the estimate."""

        self.params = params
        self.reset()

    def attitude_frequency_of(self, params: VehicleParameters) -> float:
        """Return the frequency of the loop in roll and pitch, rad/s, for the link's delay."""
        return self._link.frequency(params)

    def set_gains(self, params: VehicleParameters) -> None:
        """Use the gains of these parameters, in flight too.

        All other parameters have to stay the same.
        """
        self.params = self.flight_modes.params = params
        self.flight_modes.position_controller.set_gains(params)
        self._link.soften(self.flight_modes)

    def reset(self) -> None:
        """Return to the initial state: disarmed, without any knowledge.

        The simulation calls it, for example, when it resets its time.
        """
        self.attitude_loop.reset()
        if self._torque_law is not None:
            self._torque_law.reset()
        self.trust.reset()
        self._health.reset()
        self.logic = ModeLogic(Mode.DISARMED)
        self.flight_modes = FlightModes(self.params, self.logic, self.attitude_loop)
        self._link.soften(self.flight_modes)
        self._dead_reckoning = DeadReckoning(self._imu)
        self._clearance = Clearance(self.params, self._height)
        self._wheels = WheelContact(self.params)
        self._stuck = StuckSensors(self.sensors)
        self._clock = -math.inf
        self._imu_time = -math.inf
        self._situation: ModeInputs | None = None
        self._entered: Mode | None = None

        self.reason = ""
        """Reason for the present mode."""

        self.no_power = ""
        """Text about a battery that gives the wheels no power: it takes off nowhere; empty: none.

        The chassis controller finds it, and forgets it when the vehicle is disarmed.
        """

        self._setpoint: TrajectorySetpoint | None = None
        self._setpoint_time = -math.inf
        self._assist: Assist | None = None
        self._assist_time = -math.inf
        self._encoders_time = -math.inf
        self._command_lost_at: float | None = None
        """Time when the motion command was lost, s; None if it is not."""

        self._wrench_lost = False
        """True from the loss of a wrench until they have come in time for STEADY_TIME."""

        self._wrench_stamp = -math.inf
        """Time of what the newest wrench that was not late answers, s; -inf before the first one.

        Each mode begins without one.
        """

        self._steady_since = -math.inf
        """Time since when no wrench has been lost before the next one came, s."""

        self._failsafe = False
        """True while the simulation's fail-safe commands the rotors."""

        self._since_update = 0.0
        self._stepped_at = -math.inf
        """Time of the newest sample of the last step, s."""

    # setpoints and requests

    @property
    def mode(self) -> Mode:
        """Present mode. docs/model, section 9."""
        return self.logic.mode

    @property
    def time(self) -> float:
        """Time of the newest sample, estimate or tick, s; -inf before the first."""
        return max(self._dead_reckoning.time, self._clock)

    @property
    def failed_rotors(self) -> tuple[int, ...]:
        """Rotors (from 0) that no longer turn, as reported or noticed."""
        return tuple(sorted(self.flight_modes.failed_rotors))

    @property
    def rotor_watch(self) -> RotorWatch:
        """Watch over the rotors."""
        return self._health.watch

    @property
    def warnings(self) -> dict[str, str]:
        """Texts about rotors, encoders and the link to the rotors, by the part's name."""
        return self._health.warnings

    @property
    def is_ready(self) -> bool:
        """True once its motion is known, by the first estimate."""
        return self._situation is not None

    def request(self, word: str) -> str:
        """Carry out a request of WORDS; return "" if it is obeyed, else the reason of the refusal.

        `disarm` forgets which rotors have failed. Raise CommandError for any other word.
        """
        check_choice("request", word, WORDS, error=CommandError)
        wanted = WORDS[word]

        # refused in any mode
        if self._situation is None:
            return f"nothing is known of the vehicle yet: no {' and no '.join(self.missing)}"
        if self._estimate_is_old and wanted is not Mode.ABORT:
            return "its position is not known: no estimate"

        # words that mean more than their mode
        if word == "drive" and self.mode is Mode.DISARMED:
            return "it is disarmed: arm it first"
        if word == "drive" and self.mode is Mode.ABORT:
            return "it was aborted: arm it first"
        if wanted is Mode.DRIVE and self.mode is Mode.ABORT:
            speeds = self.rotor_watch.believed
            for rotor in self.failed_rotors:
                if speeds[rotor] > self.params.hover_speed:
                    return f"rotor {rotor + 1} runs away: the others hold the vehicle"
        if word == "fly" and self.mode in TAKING_OFF:
            return ""
        if wanted in TAKING_OFF and self._imu_is_old:
            return self._imu_fault
        if self.trust.level >= _MOST_TRUST_NEEDED.get(wanted, math.inf):
            return f"its estimate is {self.trust.text}"
        if wanted in TAKING_OFF and self.failed_rotors:
            return f"rotor {', '.join(str(rotor + 1) for rotor in self.failed_rotors)} failed"
        if dead := self._health.refusal(wanted):
            return dead
        if wanted in TAKING_OFF and self.no_power:
            return self.no_power
        if wanted in TAKING_OFF and self.rotor_watch.warnings:
            return next(iter(self.rotor_watch.warnings.values()))

        refusal = self._request(wanted, f"requested: {word}")
        if wanted is Mode.DISARMED and not refusal:
            self._health.forget(self.flight_modes)
        return refusal

    def _request(self, wanted: Mode, reason: str) -> str:
        """Request a mode of the logic, and keep the reason if the mode changes."""
        assert self._situation is not None
        before = self.mode
        refusal = self.logic.request(wanted, self._situation)
        if self.mode is not before:
            self.reason = reason
        return refusal

    def set_target(
        self,
        position: ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        yaw: float | None = None,
        time: float | None = None,
    ) -> None:
        """Fly to a position (3,), m, which moves with a velocity (3,), m/s, world axes.

        `yaw`: rad, None: keep the heading. `time`: of the command, s; None: now. Raise CommandError
        for a number that is not finite.
        """
        x, y, z = _three("position", position)
        setpoint = TrajectorySetpoint((x, y, z), _three("velocity", velocity), _finite("yaw", yaw))
        self._set(setpoint, time)

    def set_velocity(
        self, velocity: ArrayLike, yaw_rate: float = 0.0, time: float | None = None
    ) -> None:
        """Fly forward, left and up at a velocity (3,), m/s, and turn at a yaw rate, rad/s.

        At a velocity of 0 the vehicle holds its place. It climbs and sinks no faster than missions
        do. Raise CommandError for a number that is not finite.
        """
        forward, left, up = _three("velocity", velocity)
        rate = _finite("yaw_rate", yaw_rate) or 0.0
        limited = (forward, left, min(max(up, -SINKING), CLIMBING))
        self._set(TrajectorySetpoint(None, limited, None, rate), time)

    def set_attitude(self, rotation: Floats, thrust: float) -> None:
        """Turn to an attitude in flight, and push with a share (0 … 1) of the largest thrust.

        `rotation`: (3, 3), body -> world. It takes precedence over positions and velocities until
        it is older than ATTITUDE_TIMEOUT. Raise CommandError for more than the largest tilt.
        """
        p = self.params
        finite_number("thrust", thrust, error=CommandError, at_least=0.0, at_most=1.0)
        if not rotation[2, 2] >= math.cos(p.max_tilt) - 1e-9:
            tilt = math.degrees(math.acos(min(max(float(rotation[2, 2]), -1.0), 1.0)))
            raise CommandError(
                f"it is tilted by {tilt:.1f}°, expected at most {math.degrees(p.max_tilt):.1f}°"
            )

        most = p.rotors * p.thrust_coefficient * p.max_rotor_speed**2
        self._set(TrajectorySetpoint(attitude=rotation, thrust=thrust * most), None)

    def set_wrench(self, wrench: ArrayLike, time: float | None = None) -> None:
        """Push with a thrust, N, and turn by moments, N m, body axes, (4,), in flight.

        `time`: of what it answers, s; None: now. It takes precedence as an attitude does, and is
        lost when that is WRENCH_TIMEOUT ago: then the vehicle hovers where it is, or flies by other
        setpoints, until wrenches have come in time for STEADY_TIME. A take-off is flown by it, too,
        and ended where it is lost. What the rotors cannot do is given up, the yaw moment first.
        Raise CommandError for one that comes later than that, for a negative thrust, and for
        numbers that are not finite.
        """
        wanted = finite_array("wrench", wrench, (4,), error=CommandError)
        if wanted[0] < 0.0:
            raise CommandError(f"thrust is {wanted[0]:g} N, expected 0 or more: rotors only push")
        age = 0.0 if time is None else self.time - time
        if not age <= WRENCH_TIMEOUT:
            raise CommandError(
                f"it answers what was {age:.2f} s ago, expected at most {WRENCH_TIMEOUT:g} s"
            )
        if self.time - self._wrench_stamp > WRENCH_TIMEOUT:
            self._wrench_lost = math.isfinite(self._wrench_stamp)
            self._steady_since = self.time
        elif self.time - self._steady_since >= STEADY_TIME:
            self._wrench_lost = False
        stamp = self.time - max(age, 0.0)
        self._wrench_stamp = max(self._wrench_stamp, stamp)
        if not self._wrench_lost:
            self._set(TrajectorySetpoint(wrench=wanted), stamp)

    def set_assist(self, assist: Assist | None, time: float | None = None) -> None:
        """Help the wheels of a vehicle that drives; None: lower the axle that is lifted.

        `time`: of the command, s; None: now. After `command_timeout` the axle is lowered, too.
        """
        self._assist = assist
        self._assist_time = self.time if time is None else time

    def _set(self, setpoint: TrajectorySetpoint, time: float | None) -> None:
        """Take a setpoint, unless it is too old, or an attitude or wrench takes precedence."""
        stamp = self.time if time is None else float(time)

        # an attitude or a wrench takes precedence while it is new
        before = self._setpoint
        recent = self.time - self._setpoint_time < ATTITUDE_TIMEOUT
        if before is not None and before.is_direct and not setpoint.is_direct and recent:
            return

        # one that comes too late is no sign that commands arrive again
        too_late = self._command_lost_at is not None and self.time - stamp > self.command_timeout
        takes_over = setpoint.is_direct and not (before is not None and before.is_direct)
        is_newer = stamp >= self._setpoint_time or takes_over
        if not math.isnan(stamp) and is_newer and not too_late:
            self._setpoint = setpoint
            self._setpoint_time = stamp
            self._command_lost_at = None

    def failsafe(self, acts: bool) -> None:
        """Take note of whether the simulation's fail-safe acts instead of this controller."""
        if acts and not self._failsafe and self._situation is not None:
            self._request(Mode.ABORT, "the simulation's fail-safe acts: commands were lost")
        self._failsafe = acts

    def lose_rotor(self, rotor: int, reason: str = "", speeds: Floats | None = None) -> None:
        """Fly without a rotor (from 0).

        Off the ground the flight is aborted; on the ground there is no take-off any more. One that
        runs away there is held by the others, in ABORT, too. `speeds`: measured, (rotors,), rad/s;
        None: it stands still.
        """
        failed = self.flight_modes.failed_rotors
        if rotor in failed:
            return

        self.flight_modes.set_failed_rotors(failed | {rotor})
        if speeds is not None:
            self.attitude_loop.note_speeds(speeds)
        pulls = speeds is not None and speeds[rotor] > self.params.hover_speed
        rests = self.mode is Mode.DISARMED or (self.mode is Mode.DRIVE and not pulls)
        if self._situation is not None and not rests:
            reason = reason or f"rotor {rotor + 1} failed"
            if not self.attitude_loop.can_hover():
                reason += ", the others cannot carry it level: it is lost"
            self._request(Mode.ABORT, reason)

    # samples and commands

    @property
    def missing(self) -> list[str]:
        """Names of the inputs without which it cannot fly."""
        received = {
            "estimate": self._dead_reckoning.estimate is not None and not self._estimate_is_old,
            "imu": self._dead_reckoning.estimate is None or not self._imu_is_old,
        }
        return [name for name, known in received.items() if not known]

    @property
    def _estimate_is_old(self) -> bool:
        estimate = self._dead_reckoning.estimate
        return estimate is None or self.time - estimate.time > ESTIMATE_TIMEOUT

    @property
    def _imu_is_old(self) -> bool:
        return "imu" in self._stuck.stuck or self.time - self._imu_time > IMU_TIMEOUT

    @property
    def _imu_fault(self) -> str:
        """What is wrong with an IMU that is old."""
        return f"the IMU is {'stuck' if 'imu' in self._stuck.stuck else 'silent'}"

    @property
    def _is_dark(self) -> bool:
        """True without an IMU and without an estimate of the vertical speed to rely on."""
        return self._imu_is_old and (self._estimate_is_old or self.trust.level >= Trust.STOP)

    @property
    def _knows_tilt(self) -> bool:
        """True with an estimate of the attitude to rely on, by the speeds of the rotors."""
        estimate = self._dead_reckoning.estimate
        if estimate is None or estimate.covariance is None or self._is_dark:
            return False
        if self.time - self._encoders_time >= IMU_TIMEOUT:
            return False
        variance = estimate.covariance[6, 6] + estimate.covariance[7, 7]
        return self.time - estimate.time < IMU_TIMEOUT and variance < MOST_TILT**2

    def advance_clock(self, time: float) -> None:
        """Note the present time, s: it shows how old samples and estimates are."""
        self._clock = max(self._clock, time)

    def sense(self, samples: SensorSamples) -> None:
        """Take the samples since the last step; IMU, height, wheel loads and joints matter."""
        self._wheels.sense(samples)
        imu = self._stuck.sound("imu", samples.imu)
        if imu is not None:
            self._dead_reckoning.sense(imu)
            self._imu_time = max(self._imu_time, float(imu.time[-1]))
        height = self._stuck.sound("height", samples.height)
        if height is not None or samples.joints is not None:
            self._clearance.sense(height, samples.joints)
        if samples.joints is not None:
            self._encoders_time = float(samples.joints.time[-1])
            self._wheels.witness(self._dead_reckoning.lift, self._specific_thrust)
        is_blind = self.time - self._encoders_time > ENCODER_TIMEOUT
        if samples.joints is not None or (imu is not None and is_blind):
            self._health.check(
                samples.joints,
                self.time,
                self._stepped_at,
                self._rotor_witnesses,
                self.flight_modes,
                failsafe=self._failsafe,
            )
            self._lose_rotors()

    def step(self, estimate: Estimate | None, dt: float) -> RotorCommand:
        """Return the command that answers the newest sample, dt seconds after the last one.

        `estimate`: the newest, which may be that of the last step; None before the first.
        """
        reckoning = self._dead_reckoning
        fresh = estimate is not None and (
            reckoning.estimate is None or estimate.time > reckoning.estimate.time
        )
        if fresh:
            assert estimate is not None
            reckoning.correct(estimate)
            slow = self.trust.update(estimate) >= Trust.SLOW
            self.flight_modes.position_controller.max_speed = CAREFUL_SPEED if slow else MAX_SPEED
            self.flight_modes.knows_speed = not slow and _knows_heading(estimate)
        self._stepped_at = self.time

        # rotors stay off before anything is known
        if reckoning.estimate is None:
            return self._command(max(self.time, 0.0), np.zeros(self.params.rotors), dt)

        now = reckoning.motion
        self.flight_modes.advance(now, dt)
        self._situation = self._situation_in(now, dt)
        clearance = self._situation.clearance

        # mode
        self._check_timeouts()
        before = self.mode
        mode = self.logic.update(self._situation, dt)
        if mode is not before:
            self.reason = _REASONS[before, mode]

        self._since_update += dt

        # the loop knows of a failed rotor by joints, or here
        if self.rotor_watch.failed:
            touched = self.flight_modes.touched
            loads = self._wheels.loads(self.time) if touched else None
            self.rotor_watch.watch_ground(loads, self.attitude_loop.expected, dt)
            self.attitude_loop.note_speeds(self.rotor_watch.believed)

        # position loop
        changed = mode is not self._entered
        if changed:
            self._enter(mode, now)
        if fresh or changed or self._estimate_is_old:
            self.flight_modes.update(
                mode,
                now,
                clearance,
                self._setpoint_now(),
                self._since_update,
                self._situation.clearance_measured,
                self._assist_now(),
            )
            self._since_update = 0.0

        speeds = self._rotor_speeds(now)
        self._link.rest(self.flight_modes)
        return self._command(self.time, speeds, dt)

    def note_command(self, speeds: Floats) -> None:
        """Take note of the speeds sent in place of the last command, (rotors,), rad/s."""
        self.attitude_loop.commanded = speeds

    def _command(self, time: float, speeds: Floats, dt: float) -> RotorCommand:
        """Return the command for wanted speeds, (rotors,), rad/s, dt seconds after the last one."""
        if self._torque_law is None:
            return RotorCommand(time, speeds)
        return RotorCommand(time, self._torque_law.torques(time, speeds, dt), torques=True)

    def _rotor_speeds(self, now: EstimatedMotion) -> Floats:
        """Return the rotor speeds, (rotors,), rad/s, of the flight law, or without an IMU.

        Without an attitude nothing shows how the vehicle turns then. All rotors turn alike, which
        leaves it as it is, and it sinks by the vertical speed of an estimate, or else by the
        damping of the rotors.
        """
        modes = self.flight_modes
        if not self._imu_is_old or self.mode in (Mode.DISARMED, Mode.DRIVE) or self._knows_tilt:
            return modes.rotor_speeds(now)
        if self._is_dark and not modes.touched:
            p = self.params
            damping = p.rotors * p.inflow_coefficient * p.hover_speed
            return modes.thrust_alone(p.mass * GRAVITY - damping * BLIND_SINK)
        modes.rotor_speeds(now)
        return modes.thrust_alone(modes.thrust)

    def _situation_in(self, now: EstimatedMotion, dt: float) -> ModeInputs:
        """Return the situation of a motion, dt seconds after the last one."""
        time = self.time
        weight = self.params.mass * GRAVITY
        climb = float(now.velocity[2])
        forward, aside, upward = (now.velocity @ now.rotation).tolist()
        loads = self._wheels.loads(time)
        wheels_down, load_share = contact_of(loads, weight)
        _, strut_share = contact_of(self._wheels.by_struts(time), weight)

        # clearance, measured or above the last ground
        clearance = self._clearance
        level_speed = math.hypot(now.velocity[0], now.velocity[1])
        clearance.go_on(climb, level_speed, dt)
        altitude = float(now.position[2])
        if self.mode in (Mode.DISARMED, Mode.DRIVE):
            clearance.stand(altitude, now.rotation)
        elif self.mode in TAKING_OFF and self.logic.is_carried:
            clearance.judge(altitude, now.rotation)
        measured = clearance.measured(time)
        risen = clearance.above_last_ground(altitude, now.rotation)
        lowest = clearance.lowest_wheel(now.rotation) if measured else risen

        thrust = self.params.mass * self._specific_thrust
        return ModeInputs(
            wheels_down,
            load_share,
            lowest,
            math.sqrt(now.velocity @ now.velocity),
            clearance.ground_slope(now.rotation, loads),
            climb=math.nan if self._is_dark else climb,
            thrust=thrust / self.flight_modes.hover_thrust,
            clearance_measured=measured,
            near=near_ground(self.params.wheelbase),
            strut_share=strut_share,
            risen=risen,
            forward=forward,
            aside=aside,
            upward=upward,
        )

    @property
    def _specific_thrust(self) -> float:
        """Thrust of the rotors by their expected speeds, for each kg, m/s²."""
        squares = 0.0
        for speed in self.attitude_loop.expected.tolist():
            squares += speed * speed
        return self.params.thrust_coefficient * squares / self.params.mass

    def _enter(self, mode: Mode, now: EstimatedMotion) -> None:
        """Begin a mode; a setpoint that is too old does not count in it."""
        self.flight_modes.enter(mode, now)
        self._entered = mode
        self._command_lost_at = None
        self._wrench_lost = False
        self._wrench_stamp = -math.inf
        is_old = self.time - self._setpoint_time > self.command_timeout
        if (mode is Mode.FLIGHT and is_old) or (mode is Mode.TAKEOFF and self._has_wrench):
            self._setpoint = None

    @property
    def _has_wrench(self) -> bool:
        """True if the setpoint is a wrench."""
        return self._setpoint is not None and self._setpoint.wrench is not None

    def _setpoint_now(self) -> TrajectorySetpoint | None:
        """Return the setpoint, its position moved on by its velocity."""
        setpoint = self._setpoint
        if setpoint is None or setpoint.position is None or not any(setpoint.velocity):
            return setpoint

        age = min(max(self.time - self._setpoint_time, 0.0), self.command_timeout)
        position = np.add(setpoint.position, np.multiply(age, setpoint.velocity))
        return setpoint._replace(position=position)

    def _assist_now(self) -> Assist | None:
        """Return what the rotors do while the vehicle drives.

        They stop at once where they cannot hold it, or it does not know how it stands.
        """
        unsound = self._imu_is_old or self._estimate_is_old or self.trust.level >= Trust.STOP
        if unsound or self.failed_rotors:
            self.flight_modes.axle_lift.reset()
            return None
        old = self.time - self._assist_time > self.command_timeout
        return None if old else self._assist

    # what goes wrong

    def _check_timeouts(self) -> None:
        """React to what is too old, before the mode advances."""
        mode = self.mode
        if mode not in (Mode.DISARMED, Mode.DRIVE, Mode.ABORT):
            self._health.note_battery(self.flight_modes)
            if self._imu_is_old:
                self._request(Mode.ABORT, self._imu_fault)
            elif self._estimate_is_old:
                self._request(Mode.ABORT, "the estimate is lost")
            elif self.trust.level is Trust.LOST:
                self._request(Mode.ABORT, f"its estimate is {self.trust.text}")
            elif self.trust.level is Trust.STOP and mode in FLYING:
                self._request(Mode.LAND, f"its estimate is {self.trust.text}")
            elif weak := self._health.refusal(mode):
                self._request(Mode.LAND, weak)
        elif mode is Mode.DRIVE and self.trust.level is Trust.LOST:
            self._request(Mode.ABORT, f"its estimate is {self.trust.text}")

        timeout = self.command_timeout
        if self._has_wrench:
            timeout = min(timeout, WRENCH_TIMEOUT)
        is_lost = self._setpoint is not None and self.time - self._setpoint_time > timeout
        if self.mode is Mode.TAKEOFF and self._has_wrench and is_lost:
            self._request(Mode.LAND, "the motion command is lost")
        if self.mode not in (Mode.FLIGHT, Mode.ROLLING_LAND):
            return

        now = self._dead_reckoning.motion
        if is_lost:
            self._setpoint = None
            self._command_lost_at = self.time
            # the place where it comes to rest
            self.flight_modes.position = now.position + now.velocity / self.params.position_gain

        lost_at = self._command_lost_at
        hovers = self.mode is Mode.FLIGHT and not self.logic.is_carried
        patience = HOVER_TIME if hovers else 0.0
        if lost_at is not None and self.time - lost_at >= patience:
            self._request(Mode.LAND, "the motion command is lost")

    @property
    def _rotor_witnesses(self) -> RotorWitnesses:
        """What shows how the rotors turn besides their encoders."""
        situation = self._situation
        climb = 0.0 if situation is None or math.isnan(situation.upward) else situation.upward
        loads = self._wheels.loads(self.time)
        if self._imu_is_old:
            return RotorWitnesses(math.nan, None, loads, climb)
        observer = self.attitude_loop.observer
        learning = observer if observer.learns else None
        return RotorWitnesses(self._dead_reckoning.lift, learning, loads, climb)

    def _lose_rotors(self) -> None:
        """Fly without the rotors that the watch has found to fail."""
        watch = self.rotor_watch
        loop = self.attitude_loop
        for rotor, reason in watch.failed.items():
            self.lose_rotor(rotor, reason, watch.believed)
        if watch.failed and not loop.learns_on:
            loop.learns_on = loop.can_hover()


_MOST_TRUST_NEEDED = {
    Mode.TAKEOFF: Trust.SLOW,
    Mode.ROLLING_TAKEOFF: Trust.SLOW,
    Mode.ROLLING_LAND: Trust.SLOW,
    Mode.FLIGHT: Trust.STOP,
    Mode.DRIVE: Trust.LOST,
}
"""Level of trust at which each mode is refused."""

_REASONS = {
    **dict.fromkeys(((mode, Mode.FLIGHT) for mode in TAKING_OFF), "it has lifted off"),
    **dict.fromkeys(AFTER_TOUCH_DOWN.items(), "it has touched the ground"),
    **dict.fromkeys(AFTER_BOUNCE.items(), "it has bounced off the ground"),
    (Mode.SPOOL_DOWN, Mode.DRIVE): "it stands on its wheels",
    (Mode.ROLL_OUT, Mode.DRIVE): "its wheels carry it",
    (Mode.ROLLING_TAKEOFF, Mode.ROLL_OUT): "it has become too slow to lift off",
}
"""Reasons of the changes of mode that come without a request."""


def _knows_heading(estimate: Estimate) -> bool:
    """Return whether an estimate shows the heading well enough to brake by it."""
    covariance = estimate.covariance
    return covariance is None or float(covariance[8, 8]) < MOST_HEADING**2


def _three(name: str, value: ArrayLike) -> tuple[float, float, float]:
    """Return three finite numbers. Raise CommandError for anything else."""
    x, y, z = finite_array(name, value, (3,), error=CommandError).tolist()
    return x, y, z


def _finite(name: str, value: float | None) -> float | None:
    """Return a finite number, or None. Raise CommandError for anything else."""
    return None if value is None else finite_number(name, value, error=CommandError)
