"""In-place integration of one vehicle, without the shape checks and copies of `AmphibiousModel.step`: for long runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, Method, ModelState, Outputs
from rfly_amphibious.dynamics.wind import Wind, gust_times
from rfly_amphibious.vehicle import state_layout as at

Floats = NDArray[np.float64]


class Stepper:
    """A run of `steps` steps of `dt` seconds, with the wind's gusts; the same numbers as `AmphibiousModel.step`, bit by
    bit. `state` and `outputs` show what is there now and change with the next `advance`; `keep_steps` keeps the `way`.
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
        self._method = stepping.RK4 if method == "rk4" else stepping.SEMI_IMPLICIT_EULER
        self._model, self._dt, self._begin = model, dt, begin
        self.done = 0
        """steps"""
        self._x, self._memory = np.array(begin.x)[None], np.array(begin.memory)[None]
        self._rotors = model.params.rotors
        self._row = np.zeros((1, 1, at.ROTOR_COMMAND + self._rotors))
        self._keep_steps = keep_steps
        self._make_room(1)
        self._status = np.zeros((1, 2), np.int64)
        periods = gust_times(begin.time, dt, steps)
        self._new = periods[1:] > periods[:-1]
        noise = wind.gust_noise(1, int(periods[0]) + 1, int(periods[-1] - periods[0]))
        self._noise = np.ascontiguousarray(noise[:, periods[1:][self._new] - periods[0] - 1])
        self._gusts = np.concatenate([[0], np.cumsum(self._new)])
        self._keep, self._add = wind.gust_coefficients()
        self._mean = np.array(wind.mean, float)

    @property
    def state(self) -> ModelState:
        """Views of what is there now."""
        return ModelState(self._x[0], self._memory[0], self._begin.time + self.done * self._dt)

    @property
    def outputs(self) -> Outputs:
        """Of the last step; all zero before the first."""
        return Outputs(self._numbers[0, -1], self._rotors)

    @property
    def way(self) -> tuple[Floats, Floats]:
        """States (k, states) and memories (k, 9) after every step of the last `advance`, where they are kept."""
        return self._samples[0], self._memories[0]

    def _make_room(self, samples: int) -> None:
        self._samples = np.empty((1, samples, self._x.shape[1]))
        self._memories = np.empty((1, samples, at.MEMORY))
        self._numbers = np.zeros((1, samples, at.REPORTED))

    def advance(self, controls: Controls, steps: int, more_wind: ArrayLike = 0.0) -> None:
        """`steps` steps with the controls held and m/s (3,) of wind on top of mean and gusts.

        Raises DynamicsError as `AmphibiousModel.step` does.
        """
        row = self._row[0, 0]
        row[at.STEERING_COMMAND] = controls.steering
        row[at.DRIVE_COMMAND : at.DRIVE_COMMAND + 4] = controls.drive_torque
        row[at.BRAKE_COMMAND : at.BRAKE_COMMAND + 4] = controls.brake_torque
        rotor = controls.rotor_torque if controls.torques else controls.rotor_speed
        row[at.ROTOR_COMMAND :] = 0.0 if rotor is None else rotor
        if self._keep_steps and steps != self._samples.shape[1]:
            self._make_room(steps)
        first, last = self.done, self.done + steps
        self._simulate(
            self._x,
            self._memory,
            self._row,
            controls.torques,
            steps,
            (self._mean + more_wind)[None],
            self._noise[:, self._gusts[first] : self._gusts[last]],
            self._new[first:last],
            self._keep,
            self._add,
            self._dt,
            self._method,
            self._model._record,
            self._model._ground,
            1 if self._keep_steps else steps,
            self._samples,
            self._memories,
            self._numbers,
            self._status,
        )
        if self._status[0, 0]:
            raise self._model._diverged(self._x, self._status, self.state.time, self._dt, False)
        self.done = last
