"""In-place integration of one vehicle, without the shape checks and copies of
`AmphibiousModel.step`: for long runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.dynamics.arguments import (
    RK4,
    SEMI_IMPLICIT_EULER,
    HeldControls,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, Method, ModelState, Outputs
from rfly_amphibious.dynamics.wind import GUST_PERIOD, Wind, gust_times
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.arrays import Floats


class Stepper:
    """A run of `steps` steps of `dt` seconds, with the wind's gusts; the same numbers as
    `AmphibiousModel.step`, bit by bit. `state`, `outputs` and, with `keep_steps`, `step_states`
    show what is there now and change with each `advance`.
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
        code = RK4 if method == "rk4" else SEMI_IMPLICIT_EULER
        self._integrator = Integrator(dt, code)
        self._model = model
        self._dt = dt
        self._begin = begin
        self.done = 0
        """steps"""
        self._vehicle = Vehicles(
            np.array(begin.x)[None], np.array(begin.memory)[None], np.zeros((1, 2), np.int64)
        )
        self._rotors = model.params.rotors
        wheels = len(model.params.wheels)
        self._row = np.zeros((1, 1, at.controls_size(self._rotors, wheels)))
        self._columns = at.control_columns(self._rotors, wheels)
        self._keep_steps = keep_steps
        self._samples = self._room(1)
        periods = gust_times(begin.time, dt, steps)
        self._new = periods[1:] > periods[:-1]
        noise = wind.gust_noise(1, int(periods[0]) + 1, int(periods[-1] - periods[0]))
        self._noise = np.ascontiguousarray(noise[:, periods[1:][self._new] - periods[0] - 1])
        self._gusts = np.concatenate([[0], np.cumsum(self._new)])
        self._keep, self._add = wind.gust_coefficients()
        self._mean = np.array(wind.mean, float)
        self._turbulence = float(wind.turbulence)

    @property
    def state(self) -> ModelState:
        """Views of what is there now."""
        return ModelState(
            self._vehicle.x[0], self._vehicle.memory[0], self._begin.time + self.done * self._dt
        )

    @property
    def outputs(self) -> Outputs:
        """Of the last step; all zero before the first."""
        return Outputs(self._samples.outputs[0, -1], self._rotors)

    @property
    def step_states(self) -> tuple[Floats, Floats]:
        """States (k, states) and memories (k, memory) after every step of the last `advance`, where
        they are kept.
        """
        return self._samples.states[0], self._samples.memories[0]

    def _room(self, samples: int) -> Samples:
        states, memories = (np.empty((1, samples, part.shape[1])) for part in self._vehicle[:2])
        return Samples(
            1, states, memories, np.zeros((1, samples, at.reported(len(self._model.params.wheels))))
        )

    def advance(self, controls: Controls, steps: int, more_wind: ArrayLike = 0.0) -> None:
        """`steps` steps with the controls held and m/s (3,) of wind on top of mean and gusts.

        Raises DynamicsError as `AmphibiousModel.step` does.
        """
        row = self._row[0, 0]
        row[at.STEERING_COMMAND] = controls.steering
        row[self._columns["drive_torque"]] = controls.drive_torque
        row[self._columns["brake_torque"]] = controls.brake_torque
        rotor = controls.rotor_torque if controls.torques else controls.rotor_speed
        row[self._columns["rotor"]] = 0.0 if rotor is None else rotor
        if self._keep_steps and steps != self._samples.states.shape[1]:
            self._samples = self._room(steps)
        first = self.done
        last = self.done + steps
        now = self._begin.time + first * self._dt
        x = self._vehicle.x[0]
        obstacles = self._model.obstacles_at(now, x, steps * self._dt)
        gusts = self._noise[:, self._gusts[first] : self._gusts[last]]
        self._simulate(
            self._vehicle,
            HeldControls(self._row, controls.torques, steps),
            WindSeries(
                np.add(self._mean, more_wind)[None],
                gusts,
                self._new[first:last],
                self._keep,
                self._add,
                self._turbulence,
                GUST_PERIOD,
            ),
            self._integrator,
            self._model._records,
            self._model._ground,
            obstacles,
            self._samples if self._keep_steps else self._samples._replace(every=steps),
        )
        if self._vehicle.status[0, 0]:
            raise self._model._diverged(
                self._vehicle.x, self._vehicle.status, self.state.time, self._dt, False
            )
        self.done = last
