"""Truth pilot: both control laws under the mode table, fed by ground truth, for scenarios and tests of the dynamics."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.control.commands import Setpoint
from rfly_amphibious.control.flight_actions import FlightActions, TrajectorySetpoint
from rfly_amphibious.control.modes import Mode, Situation
from rfly_amphibious.control.speed_controller import SpeedController, brake_in
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.estimation.estimate import Motion
from rfly_amphibious.vehicle.parameters import GRAVITY
from rfly_common.frames import rotation_matrix

Floats = NDArray[np.float64]


class Pilot(FlightActions):
    """Flies and drives by a list of setpoints; for `AmphibiousModel.run`, asked every `period` seconds."""

    def __init__(
        self, model: AmphibiousModel, setpoints: Sequence[Setpoint], mode: Mode = Mode.DRIVE, period: float = 0.004
    ) -> None:
        super().__init__(model.params, mode)
        self.model, self.period = model, period
        self.chassis = SpeedController(model.params)
        self.modes = [mode]
        """in the setpoint in which they came"""
        self._setpoints, self._next = list(setpoints), 0
        self._setpoint = Setpoint(0.0)
        self._wanted_mode: Mode | None = None
        self._fresh = True
        self._controls = Controls()

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """The commands from a state on; `outputs`: those of the last step, where the caller has them."""
        rotation = rotation_matrix(state.orientation)
        situation = self._situation(state, rotation, outputs)
        self._choose(state, rotation, situation)
        before = self.logic.mode
        if self._wanted_mode is not None and not self.logic.request(self._wanted_mode, situation):
            self._wanted_mode = None
        mode = self.logic.update(situation, self.period)
        now = Motion(state.position, state.velocity, rotation, state.rates)
        if mode is not before or self._fresh:
            self._enter(mode, now)
            if mode is not before:
                self.modes.append(mode)
            self._fresh = False
        self._controls = self._act(mode, now, situation.clearance)
        return self._controls

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: off the ground the flight is aborted, on it there is no take-off any more."""
        super().lose_rotor(rotor)
        if self.logic.mode not in (Mode.DISARMED, Mode.DRIVE):
            self._wanted_mode = Mode.ABORT

    def _choose(self, state: ModelState, rotation: Floats, now: Situation) -> None:
        """What is to be done: here what the list of setpoints says."""
        while self._next < len(self._setpoints) and self._setpoints[self._next].time <= state.time + 1e-9:
            self._setpoint = self._setpoints[self._next]
            self._wanted_mode = self._setpoint.mode
            self._next += 1

    def _situation(self, state: ModelState, rotation: Floats, outputs: Outputs | None) -> Situation:
        out = self.model.outputs(state, self._controls) if outputs is None else outputs
        load = out.wheel_load
        slope = math.acos(max(-1.0, min(1.0, rotation[2, 2])))
        share = float(load.sum()) / (self.params.mass * GRAVITY)
        speed = float(np.linalg.norm(state.velocity))
        return Situation(int((load > 0.0).sum()), share, float(out.clearance), speed, slope)

    def _enter(self, mode: Mode, now: Motion) -> None:
        super()._enter(mode, now)
        if mode is Mode.DRIVE:
            self.chassis.reset()

    def _act(self, mode: Mode, now: Motion, clearance: float) -> Controls:
        setpoint = self._setpoint
        self._aim(
            mode, now, clearance, TrajectorySetpoint(setpoint.target, setpoint.velocity, setpoint.yaw), self.period
        )
        if mode is Mode.DRIVE:
            speed = float(now.rotation[:, 0] @ now.velocity)
            grade = math.asin(max(-1.0, min(1.0, now.rotation[2, 0])))
            drive, brake = self.chassis.torques(setpoint.speed, speed, self.period, grade)
            limit = self.chassis.steering_limit(speed)
            return Controls(steering=min(max(setpoint.steering, -limit), limit), drive_torque=drive, brake_torque=brake)
        brake_torque = brake_in(mode, self.params, self.logic.contact.wheels_down, self._down)
        return Controls(rotor_speed=self._rotor_speeds(now), brake_torque=brake_torque)
