# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Integration of one vehicle in place, for long runs.

It goes without the shape checks and copies of `AmphibiousModel.step`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.arguments import (
    METHODS,
    HeldControls,
    Integrator,
    Samples,
    Vehicles,
)
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, Method, ModelState, Outputs
from rfly_amphibious.dynamics.wind import Wind, gust_series
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Floats


class Stepper:
    """Run of `steps` steps of `dt` seconds, with the wind's gusts.

    It gives the same numbers as `AmphibiousModel.step`, bit by bit. `state`, `outputs` and, with
    `keep_steps`, `step_states` are views that change with each `advance`.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        begin: ModelState,
        steps: int,
        dt: float,
        wind: Wind,
        method: Method = "rk4",
        *,
        keep_steps: bool = False,
    ) -> None:
        from rfly_amphibious.dynamics import stepping

        self._simulate = stepping.simulate
        self._integrator = Integrator(dt, METHODS[method])
        self._model = model
        self._dt = dt
        self._begin = begin
        self.done = 0
        """Number of steps that have been taken."""
        x = np.array(begin.x)[None]
        memory = np.array(begin.memory)[None]
        self._vehicle = Vehicles(x, memory, np.zeros((1, 2), np.int64))

        self._rotors = model.params.rotors
        wheels = len(model.params.wheels)
        self._row = np.zeros((1, 1, state_layout.controls_size(self._rotors, wheels)))
        self._columns = state_layout.control_columns(self._rotors, wheels)

        self._keep_steps = keep_steps
        self._samples = self._room(1)
        self._mean = np.array(wind.mean, float)
        self._wind = gust_series(wind, self._mean[None], begin.time, dt, steps)
        self._gusts = np.concatenate([[0], np.cumsum(self._wind.gust_begins)])

    @property
    def state(self) -> ModelState:
        """Present state, as views."""
        return ModelState(*self.arrays, self._begin.time + self.done * self._dt)

    @property
    def arrays(self) -> tuple[Floats, Floats]:
        """Present state (states,) and memory (memory,), as views."""
        return self._vehicle.x[0], self._vehicle.memory[0]

    @property
    def outputs(self) -> Outputs:
        """Outputs of the last step; all zero before the first."""
        return Outputs(self._samples.outputs[0, -1], self._rotors)

    @property
    def step_states(self) -> tuple[Floats, Floats]:
        """States (k, states) and memories (k, memory) after each step of the last `advance`.

        They are there only with `keep_steps`.
        """
        return self._samples.states[0], self._samples.memories[0]

    def _room(self, samples: int) -> Samples:
        """Return room for samples after every step."""
        outputs = state_layout.reported(len(self._model.params.wheels))
        return Samples(
            1,
            np.empty((1, samples, self._vehicle.x.shape[1])),
            np.empty((1, samples, self._vehicle.memory.shape[1])),
            np.zeros((1, samples, outputs)),
        )

    def advance(self, controls: Controls, steps: int, more_wind: ArrayLike = 0.0) -> None:
        """Take `steps` steps with the controls held and a wind, m/s (3,), on top of mean and gusts.

        Raise DynamicsError as `AmphibiousModel.step` does.
        """
        self._set_controls(controls)
        if self._keep_steps and steps != self._samples.states.shape[1]:
            self._samples = self._room(steps)
        samples = self._samples
        if not self._keep_steps:
            samples = samples._replace(every=steps)

        first = self.done
        last = self.done + steps
        now = self._begin.time + first * self._dt
        obstacles = self._model.obstacles_at(now, self._vehicle.x[0], steps * self._dt)
        wind = self._wind._replace(
            mean=np.add(self._mean, more_wind)[None],
            noise=self._wind.noise[:, self._gusts[first] : self._gusts[last]],
            gust_begins=self._wind.gust_begins[first:last],
        )
        self._simulate(
            self._vehicle,
            HeldControls(self._row, controls.torques, steps),
            wind,
            self._integrator,
            self._model._records,
            self._model._ground,
            obstacles,
            samples,
        )

        status = self._vehicle.status
        if status[0, 0]:
            raise self._model._diverged(self._vehicle.x, status, self.state.time, self._dt, False)
        self.done = last

    def _set_controls(self, controls: Controls) -> None:
        """Set the row of commands."""
        row = self._row[0, 0]
        rotor = controls.rotor_torque if controls.torques else controls.rotor_speed
        row[state_layout.STEERING_COMMAND] = controls.steering
        row[self._columns["steering_trim"]] = controls.steering_trim
        row[self._columns["drive_torque"]] = controls.drive_torque
        row[self._columns["brake_torque"]] = controls.brake_torque
        row[self._columns["rotor"]] = 0.0 if rotor is None else rotor
