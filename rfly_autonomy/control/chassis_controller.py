# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Chassis controller: steering, motor and brake commands from estimates.

It gives each steered wheel its own angle, controls traction, and steers vehicles without steered
wheels by their motors.
"""

from __future__ import annotations

import enum
import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.sensors.samples import JointSamples, SensorSamples
from rfly_amphibious.simulation.commands import Mode, WheelCommand
from rfly_amphibious.vehicle.ackermann import virtual_steering, wheel_angles
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.axle_lift import Assist
from rfly_autonomy.control.command_age import MOST_AGE
from rfly_autonomy.control.drive_laws import (
    HOLD_SHARE,
    SkidLaw,
    skid_torques,
    traction,
    twist_curvature,
    wheel_velocities,
)
from rfly_autonomy.control.modes import DRIVEN, ContactFilter, contact_of
from rfly_autonomy.control.path_following import PoseFollower
from rfly_autonomy.control.speed_controller import (
    SpeedController,
    brake_torque_in,
    drive_law,
    max_virtual_steering,
)
from rfly_autonomy.control.steady_turn import steady_turn
from rfly_autonomy.control.stuck import SteeringWatch, StuckLimits, StuckWatch
from rfly_autonomy.control.wheel_watch import RateCheck, WheelStates, WheelWatch
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import CAREFUL_SPEED, EstimateTrust, Trust, TrustLimits
from rfly_autonomy.estimation.wheel_contact import WheelContact
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.physics import GRAVITY

COMMAND_TIMEOUT = 0.5
"""Age at which a motion command counts as lost, s."""

ESTIMATE_TIMEOUT = 0.5
"""Age at which an estimate counts as lost, s."""

BRAKED_SHARE = 0.3
"""Share of the weight on the wheels above which the brakes are on after an abort."""

LOADED_SHARE = 0.3
"""Share of its load at rest from which on a wheel has its whole torque."""

LOWERING_TIME = 1.0
"""Time after an assist within which wheels may still hang, s."""

LEAST_GRIP = 0.05
"""Share of its torque that a wheel has in the air, where nothing damps it."""

SKID_TIME = 0.025
"""Time constant of the loop that holds the speed difference between the sides, s."""

SCRUB_SHARE = 0.8
"""Share of the torque against which all tyres slide that is fed forward."""


class TractionControl:
    """Limiter of the torque of motors and brakes whose wheels slip. Eq. 10.8."""

    def __init__(self, params: VehicleParameters) -> None:
        self._law = drive_law(params)
        self.peak = self._law.peak_slip
        """Slip κ at which a tyre pulls most."""

        self.slip = np.zeros(len(params.wheels))
        """Last slips κ, (wheels,); positive drives."""

        self.share = np.ones(len(params.wheels))
        """Share of the torque that each wheel keeps, (wheels,)."""

    def update(
        self,
        wheel_rate: Floats,
        steering: Floats,
        velocity: Floats,
        rates: Floats,
        torque: Floats,
        dt: float,
    ) -> None:
        """Update slips and shares, dt seconds after the last update.

        The arguments are those of `traction`.
        """
        self.slip, self.share = traction(
            self._law, self.share, wheel_rate, steering, velocity, rates, torque, dt
        )


def turning_on_the_spot(p: VehicleParameters) -> tuple[float, float, float]:
    """Return width, friction along the wheels and whole friction of turning on the spot.

    The vehicle turns as if its track had the width, m; the frictions are in the same unit.
    Eq. 10.13, 10.14.
    """
    if p.middle_axle is None:
        return (
            (p.track**2 + p.wheelbase**2) / p.track,
            p.wheelbase,
            math.hypot(p.track, p.wheelbase),
        )

    load = p.static_load
    x = p.hub_position[:, 0] - p.center_x
    low = 0.0
    high = 2.0 * float((x**2).max()) / p.track

    # slide: distance that the treads slide along per radian; the moments of all forces balance
    for _ in range(60):
        slide = 0.5 * (low + high)
        moment = load @ ((p.track / 2.0 * slide - x**2) / np.hypot(slide, x))
        if moment < 0.0:
            low = slide
        else:
            high = slide

    along = float(load @ (slide / np.hypot(slide, x)))
    return p.track + 2.0 * slide, along, float(load.sum())


def skid_law(params: VehicleParameters) -> SkidLaw:
    """Return the constants of a vehicle that steers by its motors. Eq. 10.13."""
    p = params
    radius = float(p.rolling_radius.mean())
    width, along, whole = turning_on_the_spot(p)
    load = p.mass * GRAVITY / len(p.wheels)
    arm = float(np.abs(p.hub_position[:, 0] - p.center_x).mean())
    return SkidLaw(
        radius=radius,
        lever=width / (2.0 * radius),
        scrub=SCRUB_SHARE * p.friction_y * load * radius * along / whole,
        scrub_lever=arm * p.cornering_stiffness_per_rad / p.friction_y,
        low_speed=p.low_speed,
        gain=p.wheel_inertia / SKID_TIME,
        sides=np.tile((-1.0, 1.0), len(p.axles)),
        driven=p.is_driven,
        most=p.max_drive_torque,
    )


def wheel_grip(loads: Floats | None, params: VehicleParameters) -> Floats | float:
    """Return the share of their torque that wheels have by their loads, (wheels,), N.

    Those of unknown loads have all of it.
    """
    if loads is None or not np.isfinite(loads).all():
        return 1.0
    return np.clip(loads / (LOADED_SHARE * params.static_load), LEAST_GRIP, 1.0)


def turn_in_common(apart: Floats, steered: float) -> float:
    """Return the difference of right and left wheels that all axles have in common, m/s.

    `apart`: speeds of the wheels beyond those of the estimate, (wheels,), m/s. A wrong yaw rate, as
    that without a gyroscope, causes one, and a single wheel at fault none. Wheels of one side at
    fault cause one, too, but no more than `steered`, m/s, comes of the way that the wheels steer.
    """
    turns = (*(apart[1::2] - apart[0::2]).tolist(), steered)
    if min(turns) < 0.0 < max(turns):
        return 0.0
    return min(turns, key=abs)


class SkidSteer:
    """Steering by the motors: the wheels of one side run faster than those of the other. Eq. 10.13.

    All tyres slide while the vehicle turns on the spot. With the same friction along and aside, the
    moments of both balance if the wheels roll as if the track were (b² + L²)/b wide (three axles:
    Eq. 10.14), by the direction of sliding. In wide bends the tyres slide less; the yaw rate's
    error and its integral make up for it.
    """

    def __init__(self, params: VehicleParameters) -> None:
        self.law = skid_law(params)
        """Constants of the vehicle."""
        self.reset()

    def reset(self) -> None:
        """Forget the integrals."""
        self._torque = self._rate = 0.0

    def torques(
        self, wanted: float, yaw_rate: float, speed: float, wheel_rate: Floats, dt: float
    ) -> Floats:
        """Return the torques for a yaw rate, (wheels,), N m, to be added to those that drive.

        The arguments are those of `skid_torques`.
        """
        torques, self._rate, self._torque = skid_torques(
            self.law, self._rate, self._torque, wanted, yaw_rate, speed, wheel_rate, dt
        )
        return torques

    def twist_of(self, left: float, right: float) -> tuple[float, float]:
        """Return the speed, m/s, and the yaw rate, rad/s, that rates of the sides, rad/s, mean."""
        law = self.law
        return 0.5 * law.radius * (left + right), 0.5 * (right - left) / law.lever


class _SteerBy(enum.Enum):
    """Kind of steering in a motion command."""

    ANGLE = enum.auto()
    YAW_RATE = enum.auto()
    POSE = enum.auto()


class _DriveSetpoint(NamedTuple):
    """Motion command: a speed with a steering angle or a yaw rate, or a leading pose."""

    steer_by: _SteerBy
    speed: float = 0.0
    """Speed, m/s."""

    steering: float = 0.0
    """Steering angle, rad."""

    yaw_rate: float = 0.0
    """Yaw rate, rad/s."""

    acceleration: float = 0.0
    """Acceleration, m/s²; 0: as the vehicle can."""


class ChassisController:
    """Controller of steering, motors and brakes under a given mode.

    `sense` takes samples; `step` takes the newest estimate and the mode, and returns a command. A
    motion command older than `command_timeout` (s) is lost, and the vehicle brakes. So it does with
    an estimate that is too uncertain, by `trust_limits`.
    """

    def __init__(
        self,
        params: VehicleParameters,
        *,
        command_timeout: float = COMMAND_TIMEOUT,
        trust_limits: TrustLimits | None = None,
        stuck_limits: StuckLimits | None = None,
    ) -> None:
        if not command_timeout > 0.0:
            raise ConfigError(f"command_timeout is {command_timeout} s, expected more than 0")
        self.params = params
        self.command_timeout = command_timeout
        self._turn = steady_turn(params)
        self.trust = EstimateTrust(trust_limits)
        """Trust in the estimate."""

        self.stuck = StuckWatch(stuck_limits)
        """Watch over a vehicle that is to drive and does not move."""

        self.steering_watch = SteeringWatch(params)
        """Watch over the steering; with a fault of it the vehicle stops."""

        self.wheel_watch = WheelWatch(params)
        """Watch over motors and brakes; if the motors get no power the vehicle stops."""

        self.reset()

    def reset(self) -> None:
        """Return to the initial state, for example when the simulation's time is reset."""
        self.trust.reset()
        self.stuck.reset()
        self.steering_watch.reset()
        self.wheel_watch.reset()
        self._speed_controller = SpeedController(self.params)
        self.traction = TractionControl(self.params)
        self._skid = SkidSteer(self.params) if self.params.steered == "none" else None
        self._pose_follower = PoseFollower(self.params)

        self._contact = ContactFilter()
        self._wheels = WheelContact(self.params)
        self._rate_check = RateCheck(len(self.params.wheels))
        self._wheel_rate = np.zeros(len(self.params.wheels))
        self._steering = np.zeros(len(self.params.wheels))
        self._joints: JointSamples | None = None
        self._commanded_steering = 0.0
        self._joints_time = math.nan
        self._slips_time = math.nan
        self._wheel_torque = np.zeros(len(self.params.wheels))

        self._setpoint: _DriveSetpoint | None = None
        self._setpoint_time = self._time = -math.inf
        self._assist: Assist | None = None
        self._assist_time = -math.inf
        self._assisted_at = -math.inf
        """Last time with an assist, s."""

        self._ramped_speed = math.nan
        self._ramp_rate = 0.0
        """Present change of the ramped speed, m/s²."""

        self._mode: Mode | None = None
        self._touched = False

    @property
    def time(self) -> float:
        """Time of the newest sample, estimate or tick, s; -inf before the first."""
        return self._time

    def advance_clock(self, time: float) -> None:
        """Note the present time, s: it shows how old samples and estimates are."""
        self._time = max(self._time, time)

    @property
    def command_lost(self) -> bool:
        """True if there was a motion command that has become too old."""
        return (
            self._setpoint is not None and self._time - self._setpoint_time > self.command_timeout
        )

    # setpoints

    def set_speed(
        self,
        speed: float,
        steering: float = 0.0,
        time: float | None = None,
        acceleration: float = 0.0,
    ) -> None:
        """Drive at a speed with a steering angle.

        `speed`: m/s, negative backwards. `steering`: of the virtual wheel, rad, positive to the
        left. `acceleration`: largest change of the speed, m/s²; 0: as the vehicle can. `time`: of
        the command, s; None: now. Raise CommandError for a number that is not finite.
        """
        speed = _finite("speed", speed)
        steering = _finite("steering", steering)
        limit = abs(_finite("acceleration", acceleration))
        self._set(_DriveSetpoint(_SteerBy.ANGLE, speed, steering, acceleration=limit), time)

    def set_twist(self, speed: float, yaw_rate: float, time: float | None = None) -> None:
        """Drive at a speed, m/s, and turn at a yaw rate, rad/s.

        Steered wheels cannot turn a vehicle that stands.
        """
        speed = _finite("speed", speed)
        yaw_rate = _finite("yaw_rate", yaw_rate)
        self._set(_DriveSetpoint(_SteerBy.YAW_RATE, speed, yaw_rate=yaw_rate), time)

    def set_target(
        self, position: ArrayLike, velocity: ArrayLike | None = None, time: float | None = None
    ) -> None:
        """Follow a leading pose: position (2 or 3,), m, and velocity, m/s, world axes.

        Without a velocity it is derived from the poses. While the vehicle rolls and flies at once,
        poses are for the rotors, and do nothing here.
        """
        place = finite_array("position", np.asarray(position)[:2], (2,), error=CommandError)
        speed = None
        if velocity is not None:
            speed = finite_array("velocity", np.asarray(velocity)[:2], (2,), error=CommandError)
        rolls = self._mode in (Mode.ROLLING_TAKEOFF, Mode.ROLL_OUT)
        if not rolls and self._set(_DriveSetpoint(_SteerBy.POSE), time):
            self._pose_follower.set_pose(place, speed, self._setpoint_time)

    def set_assist(self, assist: Assist | None, time: float | None = None) -> None:
        """Drive on the wheels of one axle while rotors lift the other one; None: on all wheels.

        `time`: of the command, s; None: now. It holds for `command_timeout`.
        """
        self._assist = assist
        self._assist_time = self._time if time is None else time

    def _set(self, setpoint: _DriveSetpoint, time: float | None) -> bool:
        """Take a setpoint, unless it is older than the last one; return whether it was taken."""
        stamp = self._time if time is None else float(time)
        if math.isnan(stamp) or stamp < self._setpoint_time:
            return False

        before = self._setpoint
        begins = before is None or before.steer_by is not _SteerBy.POSE
        if setpoint.steer_by is _SteerBy.POSE and begins:
            self._pose_follower = PoseFollower(self.params)
        self._setpoint = setpoint
        self._setpoint_time = stamp
        return True

    # samples and commands

    def sense(self, samples: SensorSamples) -> None:
        """Take the samples since the last step; only wheel loads and joints matter."""
        self._wheels.sense(samples)
        joints = samples.joints
        if joints is not None:
            self._wheel_rate = joints.wheel_rate[-1]
            self._steering = joints.steering[-1]
            self._joints = joints
            self._joints_time = float(joints.time[-1])
            self._time = max(self._time, self._joints_time)

    def step(self, estimate: Estimate | None, mode: Mode | None, dt: float) -> WheelCommand:
        """Return the command, dt seconds after the last one.

        `estimate`: the newest, None before the first. `mode`: None if it is unknown; then the
        brakes are on.
        """
        if estimate is not None:
            self._time = max(self._time, estimate.time)
            self.trust.update(estimate)

        # contact
        weight = self.params.mass * GRAVITY
        self._contact.update(*contact_of(self._wheels.loads(self._time), weight), dt)

        # mode
        if mode is not self._mode:
            self._enter(mode)
        self._touched |= mode is Mode.ABORT and not self._contact.load_share <= BRAKED_SHARE

        # brake, unless the vehicle is to drive and knows where it is
        time = max(self._time, 0.0)
        old = estimate is None or self._time - estimate.time > ESTIMATE_TIMEOUT
        lost = old or self.trust.level >= Trust.STOP
        if mode is Mode.DRIVE and estimate is not None and not lost:
            self._watch_steering(estimate)
            lost = bool(self.steering_watch.text or self.wheel_watch.no_power)
        drives = mode is Mode.DRIVE or (mode in DRIVEN and not self._contact.wheels_down <= 0.5)
        if mode is None or (drives and lost):
            self._ramped_speed = math.nan
            self._commanded_steering = 0.0
            self._speed_controller.reset()
            self.wheel_watch.skip_power()
            return WheelCommand.braked(self.params, time, HOLD_SHARE * self.params.max_brake_torque)
        if not drives:
            brake = brake_torque_in(mode, self.params, self._contact.wheels_down, self._touched)
            return WheelCommand.braked(self.params, time, brake)

        assert estimate is not None
        command = self._drive(time, estimate, dt)
        self._commanded_steering = command.steering_angle
        return command

    def _watch_steering(self, estimate: Estimate) -> None:
        """Compare the measured angle of the steering with its command.

        Readings that are too old show nothing of it.
        """
        if self._joints is None or self._time - self._joints_time > MOST_AGE:
            return
        speed = float(rotation_matrix(estimate.orientation)[:, 0] @ estimate.velocity)
        self.steering_watch.update(
            self._joints, self._commanded_steering, speed, float(estimate.rates[2])
        )

    def _enter(self, mode: Mode | None) -> None:
        """Begin a mode."""
        self._mode = mode
        self._touched = False
        self.stuck.reset()
        self.steering_watch.reset()
        self.wheel_watch.reset(keep_battery=mode is not Mode.DISARMED)
        self._commanded_steering = 0.0
        self._ramped_speed = math.nan
        if mode in (Mode.DRIVE, Mode.ROLL_OUT):
            self._speed_controller.reset()
            self.traction.share[:] = 1.0
            if self._skid is not None:
                self._skid.reset()
            if self.command_lost:  # a command from before the flight does not count
                self._setpoint = None

    def _drive(self, time: float, estimate: Estimate, dt: float) -> WheelCommand:
        """Return the command of a vehicle that drives."""
        rotation = rotation_matrix(estimate.orientation)
        velocity = rotation.T @ estimate.velocity
        speed = float(velocity[0])
        self._update_traction(velocity, estimate)
        wanted, steering, yaw_rate = self._speed_steering_yaw_rate(estimate, rotation, speed, dt)

        if self.trust.level is Trust.SLOW:
            wanted = min(max(wanted, -CAREFUL_SPEED), CAREFUL_SPEED)
        assist = self._assist_now()
        if assist is not None:
            wanted = min(max(wanted, -assist.max_speed), assist.max_speed)
        self.stuck.update(time, estimate.position[:2], wanted)

        limit = self._speed_controller.steering_limit(speed)
        steering = min(max(steering, -limit), limit)
        grade = math.asin(max(-1.0, min(1.0, float(rotation[2, 0]))))
        share = self.traction.share
        if assist is not None:
            self._assisted_at = self._time
            grade = assist.grade(grade)
            share = assist.shares(share, self._grip(), self.params)
        elif self._time - self._assisted_at < LOWERING_TIME:
            share = share * self._grip()
        drive, brake = self._speed_controller.torques(
            wanted,
            speed,
            dt,
            grade,
            hold=yaw_rate == 0.0,
            yaw_rate=float(estimate.rates[2]),
            share=share,
            acceleration=self._ramp_rate,
        )

        if assist is not None and self._skid is None and wanted != 0.0:
            turn_rate = wanted * math.tan(steering) / self._turn.lever
            turning = assist.turning(turn_rate, float(estimate.rates[2]), self.params)
            drive = drive + self.traction.share * turning

        turns = self._skid is not None and yaw_rate != 0.0
        cuts = bool((self.traction.share < 1.0).any())
        if assist is None and not turns and not cuts and not brake.any():
            told = self._speed_controller.motor_force
            resistance = self._speed_controller.resistance(speed, grade)
            self.wheel_watch.watch_power(told, resistance, speed, dt)
        else:
            self.wheel_watch.skip_power()

        # traction, and motors that steer
        self._wheel_torque = drive - math.copysign(1.0, speed) * brake
        if self._skid is not None:
            if yaw_rate == 0.0 and wanted == 0.0:  # the brakes hold it
                self._skid.reset()
                return WheelCommand(time, 0.0, drive, brake)
            turn = self._skid.torques(
                yaw_rate, float(estimate.rates[2]), speed, self._wheel_rate, dt
            )
            return WheelCommand(time, 0.0, drive + turn, brake)
        angles = wheel_angles(self.params, steering)
        return WheelCommand(time, steering, drive, brake, angles)

    def _grip(self) -> Floats | float:
        """Return the share of their torque that the wheels have by their loads, (wheels,)."""
        return wheel_grip(self._wheels.loads(self._time), self.params)

    def _assist_now(self) -> Assist | None:
        """Return what the rotors do; None if the last command about it is too old."""
        old = self._time - self._assist_time > self.command_timeout
        return None if old else self._assist

    def _update_traction(self, velocity: Floats, estimate: Estimate) -> None:
        """Update the slips once for each sample of the wheels; `velocity`: in body axes, m/s."""
        if math.isnan(self._joints_time) or self._joints_time == self._slips_time:
            return

        period = 0.0
        if not math.isnan(self._slips_time):
            period = min(max(self._joints_time - self._slips_time, 0.0), 0.1)
        self._slips_time = self._joints_time
        if self._skid is None:
            self.traction.update(
                self._wheel_rate,
                self._steering,
                velocity,
                estimate.rates,
                self._wheel_torque,
                period,
            )
            if self._mode is Mode.DRIVE and self._assist_now() is None:
                self._watch_wheels(velocity, estimate, period)
            else:
                self.wheel_watch.skip_slips()

    def _watch_wheels(self, velocity: Floats, estimate: Estimate, period: float) -> None:
        """Watch over motors and brakes, `period` seconds after the last time."""
        along, across = wheel_velocities(
            drive_law(self.params), self._steering, velocity, estimate.rates
        )
        assert self._joints is not None
        angle = self._joints.wheel_angle[-1]
        loads = self._wheels.loads(self._time)
        slip = self.traction.slip
        speeds = np.maximum(np.abs(along), self.params.low_speed)
        turn = turn_in_common(slip * speeds, self._unseen_turn(velocity, estimate))
        sides = np.tile((-0.5, 0.5), len(self.params.axles))
        wheels = WheelStates(
            slip=slip - turn * sides / speeds,
            along=along,
            across=across,
            steering=self._steering,
            rate=self._wheel_rate,
            shown=self._rate_check.agrees(angle, self._wheel_rate, self._joints_time),
            torque=self._wheel_torque,
            load=self.params.static_load if loads is None else loads,
        )
        doubt = 0.0
        if estimate.covariance is not None:
            doubt = math.sqrt(estimate.covariance[[3, 4], [3, 4]].max())
        self.wheel_watch.update(wheels, float(velocity[0]), doubt, period)

    def _unseen_turn(self, velocity: Floats, estimate: Estimate) -> float:
        """Return by how much right wheels are faster than left ones by the steering alone, m/s.

        That is beyond the estimated yaw rate, at a velocity (3,), m/s, in body axes.
        """
        angle = virtual_steering(self.params, self._steering)
        due = float(velocity[0]) * math.tan(angle) / self._turn.lever
        return self.params.track * (due - float(estimate.rates[2]))

    def _speed_steering_yaw_rate(
        self, estimate: Estimate, rotation: Floats, speed: float, dt: float
    ) -> tuple[float, float, float]:
        """Return speed, steering angle and, for motors that steer, yaw rate."""
        setpoint = self._setpoint
        self._ramp_rate = 0.0
        if setpoint is None or self.command_lost:
            self._ramped_speed = 0.0
            return 0.0, 0.0 if setpoint is None else setpoint.steering, 0.0

        if setpoint.steer_by is _SteerBy.ANGLE:
            wanted = self._ramp(setpoint, speed, dt)
            most = max_virtual_steering(self.params)
            steering = min(max(setpoint.steering, -most), most)
            if self._skid is None:
                return wanted, steering, 0.0
            return wanted, steering, wanted * math.tan(steering) / self._turn.lever

        if setpoint.steer_by is _SteerBy.POSE:
            heading = math.atan2(rotation[1, 0], rotation[0, 0])
            wanted, curvature = self._pose_follower.command(
                estimate.position[:2], heading, speed, self._time
            )
        else:
            wanted = self._ramp(setpoint, speed, dt)
            if self._skid is not None:
                return wanted, 0.0, setpoint.yaw_rate
            curvature = twist_curvature(wanted, setpoint.yaw_rate)

        if self._skid is not None:
            return wanted, 0.0, wanted * curvature
        return wanted, self._turn.steering(curvature, speed), 0.0

    def _ramp(self, setpoint: _DriveSetpoint, speed: float, dt: float) -> float:
        """Return the speed on the way to the ordered one, m/s."""
        if setpoint.acceleration == 0.0:
            self._ramped_speed = setpoint.speed
            return self._ramped_speed

        begin = speed if math.isnan(self._ramped_speed) else self._ramped_speed
        change = setpoint.acceleration * dt
        step = min(max(setpoint.speed - begin, -change), change)
        self._ramped_speed = begin + step
        self._ramp_rate = math.copysign(setpoint.acceleration, step) if abs(step) == change else 0.0
        return self._ramped_speed


_finite = partial(finite_number, error=CommandError)
