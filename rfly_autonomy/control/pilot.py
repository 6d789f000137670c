# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Truth pilot: both control laws under the mode table, from the ground truth.

Scenarios and tests use it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.simulation.commands import Mode, RotorQuantity
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.control.chassis_controller import SkidSteer, TractionControl, wheel_grip
from rfly_autonomy.control.flight_modes import FlightModes, TrajectorySetpoint
from rfly_autonomy.control.modes import DRIVEN, ModeInputs, ModeLogic, contact_of, near_ground
from rfly_autonomy.control.rotor_torque import RotorTorqueLaw
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.control.speed_controller import SpeedController, brake_torque_in, steering_lever
from rfly_autonomy.estimation.estimate import EstimatedMotion
from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix
from rfly_common.physics import GRAVITY

SetpointSource = Callable[[ModelState, Mode], Setpoint]
"""Source of the setpoint in a state and a mode: the same object while the setpoint is the same."""


def timed_setpoints(setpoints: Sequence[Setpoint]) -> SetpointSource:
    """Return a source of setpoints, each from its time; they are in the order of their times."""
    schedule = [Setpoint(-math.inf), *setpoints]

    def newest(state: ModelState, mode: Mode) -> Setpoint:
        return next(
            setpoint for setpoint in reversed(schedule) if setpoint.time <= state.time + 1e-9
        )

    return newest


class Pilot:
    """Pilot by setpoints, for `AmphibiousModel.run`, called every `period` seconds.

    It requests the mode of a setpoint until the mode is reached or another one is requested.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        setpoints: SetpointSource,
        mode: Mode = Mode.DRIVE,
        period: float = 0.004,
        rotor_command: RotorQuantity = "speed",
    ) -> None:
        self.params = model.params
        self.model = model
        self.period = period

        self.logic = ModeLogic(mode)
        self.flight_modes = FlightModes(model.params, self.logic)
        self.speed_controller = SpeedController(model.params)
        columns = state_layout.state_columns(model.params.rotors, len(model.params.wheels))
        self._wheel_speed = columns["wheel_speed"]
        self._rotor_speed = columns["rotor_speed"]
        self._torque_law = RotorTorqueLaw(model.params) if rotor_command == "torque" else None
        self._skid = SkidSteer(model.params) if model.params.steered == "none" else None
        self._traction = TractionControl(model.params)
        self._wheel_torque = np.zeros(len(model.params.wheels))
        self._loads = np.zeros(len(model.params.wheels))
        self._steering = 0.0
        self._lever = steering_lever(model.params)
        self._time = 0.0
        self.modes = [mode]
        """Modes up to now, in their order."""

        self._entered = False
        """True after the first call."""

        self._setpoints = setpoints
        self._setpoint = Setpoint(-math.inf)
        self._requested: Mode | None = None
        self._controls = Controls()

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """Return the commands from a state.

        `outputs`: those of the last step, if the caller has them.
        """
        now = EstimatedMotion(
            state.position, state.velocity, rotation_matrix(state.orientation), state.rates
        )
        situation = self._situation(state, now, outputs)

        # request a mode
        before = self.logic.mode
        setpoint = self._setpoints(state, before)
        if setpoint is not self._setpoint and setpoint.mode is not None:
            self._requested = setpoint.mode
        self._setpoint = setpoint
        if self._requested is not None and not self.logic.request(self._requested, situation):
            self._requested = None

        # enter it
        mode = self.logic.update(situation, self.period)
        self.flight_modes.advance(now, self.period)
        if mode is not before or not self._entered:
            self._enter(mode, now)
            if mode is not before:
                self.modes.append(mode)
            self._entered = True

        if self._torque_law is not None:
            self._torque_law.measure(state.time, state.x[self._rotor_speed].copy())
        self._time = state.time
        self._controls = self._commands(
            mode, now, situation.clearance, state.x[self._wheel_speed] - state.rates[1]
        )
        return self._controls

    def lose_rotor(self, rotor: int) -> None:
        """Fly without a rotor (from 0).

        Off the ground the flight is aborted; on the ground there is no take-off any more.
        """
        self.flight_modes.set_failed_rotors(self.flight_modes.failed_rotors | {rotor})
        if self.logic.mode not in (Mode.DISARMED, Mode.DRIVE):
            self._requested = Mode.ABORT

    def _situation(
        self, state: ModelState, now: EstimatedMotion, outputs: Outputs | None
    ) -> ModeInputs:
        """Return the situation on which the transitions of the mode depend."""
        out = self.model.outputs(state, self._controls) if outputs is None else outputs
        self._loads = out.wheel_load
        wheels_down, load_share = contact_of(out.wheel_load, self.params.mass * GRAVITY)
        slope = math.acos(max(-1.0, min(1.0, now.rotation[2, 2])))
        speed = float(np.linalg.norm(state.velocity))
        forward, aside, upward = (state.velocity @ now.rotation).tolist()
        return ModeInputs(
            wheels_down,
            load_share,
            float(out.clearance),
            speed,
            slope,
            climb=float(state.velocity[2]),
            thrust=float(out.thrust.sum()) / self.flight_modes.hover_thrust,
            near=near_ground(self.params.wheelbase),
            forward=forward,
            aside=aside,
            upward=upward,
        )

    def _enter(self, mode: Mode, now: EstimatedMotion) -> None:
        """Begin a mode."""
        self.flight_modes.enter(mode, now)
        if mode in (Mode.DRIVE, Mode.ROLL_OUT):
            self.speed_controller.reset()
            if self._skid is not None:
                self._skid.reset()

    def _commands(
        self, mode: Mode, now: EstimatedMotion, clearance: float, wheel_speed: Floats
    ) -> Controls:
        """Return the commands of a mode."""
        setpoint = self._setpoint
        trajectory = TrajectorySetpoint(setpoint.target, setpoint.velocity, setpoint.yaw)
        self.flight_modes.update(
            mode, now, clearance, trajectory, self.period, assist=setpoint.assist
        )

        if mode is Mode.DRIVE:
            wheels = self._drive(now, wheel_speed)
            if setpoint.assist is None:
                return wheels
        elif mode in DRIVEN and not self.logic.contact.wheels_down <= 0.5:
            wheels = self._drive(now, wheel_speed)
        else:
            brake_torque = brake_torque_in(
                mode, self.params, self.logic.contact.wheels_down, self.flight_modes.touched
            )
            wheels = Controls(brake_torque=brake_torque)

        speeds = self.flight_modes.rotor_speeds(now)
        if self._torque_law is None:
            return dataclasses.replace(wheels, rotor_speed=speeds)
        torques = self._torque_law.torques(self._time, speeds, self.period)
        return dataclasses.replace(wheels, rotor_torque=torques)

    def _drive(self, now: EstimatedMotion, wheel_speed: Floats) -> Controls:
        """Return the commands of a vehicle that drives.

        `wheel_speed`: against the body, (wheels,), rad/s.
        """
        setpoint = self._setpoint
        speed = float(now.rotation[:, 0] @ now.velocity)
        grade = math.asin(max(-1.0, min(1.0, now.rotation[2, 0])))
        if setpoint.assist is not None:
            grade = setpoint.assist.grade(grade)
        if self._skid is None:
            velocity = now.rotation.T @ now.velocity
            steered = self._steering * self.params.steering_sign
            self._traction.update(
                wheel_speed, steered, velocity, now.rates, self._wheel_torque, self.period
            )
        share = self._traction.share
        if setpoint.assist is not None:
            grip = wheel_grip(self._loads, self.params)
            share = setpoint.assist.shares(share, grip, self.params)
        drive, brake = self.speed_controller.torques(
            setpoint.speed, speed, self.period, grade, share=share
        )
        limit = self.speed_controller.steering_limit(speed)
        steering = min(max(setpoint.steering, -limit), limit)
        turn = setpoint.speed * math.tan(steering) / self._lever
        if setpoint.assist is not None and self._skid is None and setpoint.speed != 0.0:
            turning = setpoint.assist.turning(turn, float(now.rates[2]), self.params)
            drive = drive + self._traction.share * turning
        self._wheel_torque = drive - math.copysign(1.0, speed) * brake
        self._steering = steering

        # motors that steer
        if self._skid is not None and setpoint.speed != 0.0:
            yaw_rate = float(now.rates[2])
            drive = drive + self._skid.torques(turn, yaw_rate, speed, wheel_speed, self.period)
            steering = 0.0
        return Controls(steering=steering, drive_torque=drive, brake_torque=brake)


def abort_pilot(
    model: AmphibiousModel, period: float, rotor_command: RotorQuantity = "speed"
) -> Pilot:
    """Return the fail-safe of a simulation: level, 0.5 m/s down, brakes after contact.

    `period`: time between its commands, s. `rotor_command`: what it commands. docs/model, section
    11.1.
    """
    return Pilot(model, timed_setpoints([]), Mode.ABORT, period, rotor_command)
