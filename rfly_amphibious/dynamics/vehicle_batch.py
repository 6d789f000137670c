# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Many vehicles of one kind over one ground, which a control loop steps period by period."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.dynamics.arguments import (
    METHODS,
    HeldControls,
    Integrator,
    Samples,
    Vehicles,
    WindSeries,
)
from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Method, ModelState, Outputs
from rfly_amphibious.dynamics.obstacle_contacts import may_touch
from rfly_amphibious.dynamics.obstacles import STEP_MARGIN, Obstacles
from rfly_amphibious.dynamics.records import new_workspace, read_row
from rfly_amphibious.dynamics.wind import (
    GUST_PERIOD,
    Wind,
    gust_numbers,
    gust_times,
)
from rfly_amphibious.vehicle import state_layout
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import kernel
from rfly_common.kernels.record_vectors import vector
from rfly_common.kernels.vectors import norm

FASTEST_GAIN = 300.0
"""Acceleration that no vehicle has away from obstacles, m/s²: thirty times that of its rotors."""


class VehicleBatch:
    """n vehicles that hold their commands for `steps` steps of `dt` seconds at a time.

    Each goes through the same numbers as `AmphibiousModel.step` gives for it alone, bit by bit,
    whatever the number of vehicles and of threads. Vehicles may have begun at different times: each
    has its own count of periods, and its own wind and gusts. The strength of the gusts is that of
    `wind`, whose mean and seed do not matter. `others` are models of vehicles with the same wheels
    and rotors, over the same ground: `kind` says which model a vehicle has.
    """

    def __init__(
        self,
        model: AmphibiousModel,
        vehicles: int,
        steps: int,
        dt: float,
        *,
        method: Method = "semi_implicit_euler",
        wind: Wind = STILL,
        others: Sequence[AmphibiousModel] = (),
    ) -> None:
        self.models = (model, *others)
        """Models of the kinds of vehicles."""
        self.kind: Ints = np.zeros(vehicles, np.int64)
        """Place of each vehicle's model in `models`, (n,)."""
        self._integrator = Integrator(dt, METHODS[method])
        self._steps = steps
        params = model.params
        wheels = len(params.wheels)
        self.x: Floats = np.zeros((vehicles, params.state_size))
        """States, (n, states)."""
        self.memory: Floats = np.zeros((vehicles, state_layout.memory_size(wheels)))
        """Memories, (n, memory)."""
        self.outputs: Floats = np.zeros((vehicles, state_layout.reported(wheels)))
        """Numbers of `Outputs` of each vehicle's last step, (n, outputs), at first of its state."""
        self.has_failed: Bools = np.zeros(vehicles, np.bool_)
        """True for a vehicle whose state is not finite or 1000 km away, (n,), since `put`."""

        # the wind: gusts begin at the same steps of each period
        self.mean_wind: Floats = np.zeros((vehicles, 3))
        """Mean wind at each vehicle, (n, 3), m/s, world."""
        self.gust_keys: NDArray[np.uint64] = np.zeros(vehicles, np.uint64)
        """Key of each vehicle's gusts, (n,); see `gust_numbers`."""
        self.periods: Ints = np.zeros(vehicles, np.int64)
        """Number of periods that each vehicle has gone through since `put`, (n,)."""
        self._wind = wind
        self._gusts = round(steps * dt / GUST_PERIOD)
        wind.check_period(steps * dt)

    def put(self, which: Ints, x: Floats, memory: Floats | float = 0.0) -> None:
        """Set the states (k, states) and memories of vehicles (k,), which begin anew.

        Their kinds and the mean wind at them are set before.
        """
        self.x[which] = x
        self.memory[which] = memory
        for kind in np.unique(self.kind[which]).tolist():
            own = which[self.kind[which] == kind]
            begin = ModelState(self.x[own], self.memory[own])
            outputs = self.models[kind].outputs(begin, wind=self.mean_wind[own])
            self.outputs[own] = outputs.numbers
        self.has_failed[which] = False
        self.periods[which] = 0

    def outputs_of(self, which: Ints | slice = slice(None)) -> Outputs:
        """Return the outputs of some vehicles by name."""
        return Outputs(self.outputs[which], self.models[0].params.rotors)

    def advance(self, rows: Floats, torques: bool = False) -> None:
        """Take all vehicles through a period with commands, (n, controls), as of `Controls.rows`.

        Those that roll and those that fly are brought together: lanes spare what none of their
        vehicles needs. Those that may touch something solid go one by one. A vehicle that has
        failed fails again.
        """
        rolls = self.outputs_of().wheel_load.any(axis=1)
        near = self._near()
        group = 2 * self.kind + near
        order = np.lexsort((rolls, group))
        for which in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            first = which[0]
            model = self.models[self.kind[first]]
            self._advance(which, rows, torques, model, model._obstacles if near[first] else None)
        self.periods += 1

    def _near(self) -> Bools:
        """Return which vehicles may touch something solid within a period, (n,)."""
        near = np.zeros(len(self.x), np.bool_)
        period = self._steps * self._integrator.dt
        for kind, model in enumerate(self.models):
            if model._obstacles is not None:
                own = self.kind == kind
                is_near = np.zeros(np.count_nonzero(own), np.bool_)
                may_touch_soon(self.x[own], model._records, model._obstacles, period, is_near)
                near[own] = is_near
        return near

    def _advance(
        self,
        which: Ints,
        rows: Floats,
        torques: bool,
        model: AmphibiousModel,
        obstacles: Obstacles | None,
    ) -> None:
        """Take some vehicles (k,) of one kind through a period."""
        count = len(which)
        x = self.x[which]
        memory = self.memory[which]
        status = np.zeros((count, 2), np.int64)
        outputs = np.zeros((count, 1, self.outputs.shape[1]))

        model.simulate(
            Vehicles(x, memory, status),
            HeldControls(rows[which, None], torques, self._steps),
            self._series(which),
            self._integrator,
            Samples(self._steps, x[:, None].copy(), memory[:, None].copy(), outputs),
            obstacles,
        )

        self.x[which] = x
        self.memory[which] = memory
        self.outputs[which] = outputs[:, 0]
        self.has_failed[which] = status[:, 0] != 0

    def _series(self, order: Ints) -> WindSeries:
        """Return the wind of the next period at the vehicles in this order."""
        keep, add = self._wind.gust_coefficients()
        begins = np.zeros(self._steps, np.bool_)
        noise = np.zeros((len(order), 0, 3))
        if self._wind.has_gusts:
            periods = gust_times(0.0, self._integrator.dt, self._steps)
            begins = periods[1:] > periods[:-1]
            first = (self.periods[order] * self._gusts).astype(np.uint64)
            noise = gust_numbers(self.gust_keys[order], first, self._gusts)
        return WindSeries(
            self.mean_wind[order], noise, begins, keep, add, self._wind.turbulence, GUST_PERIOD
        )


@kernel
def may_touch_soon(
    states: Floats, records: Any, obstacles: Any, duration: float, near: Bools
) -> None:
    """Write to `near` (n,) whether vehicles may be near a part within `duration` seconds.

    Those that may not move as they do without obstacles, as far as any step can see.
    """
    workspace = new_workspace()
    p = records[0]
    for v in range(states.shape[0]):
        x = workspace[0].x
        read_row(states[v], p.state_columns, x)
        speed = norm(vector(x.velocity)) + 0.5 * FASTEST_GAIN * duration
        is_slow = speed * duration < STEP_MARGIN and math.isfinite(speed)
        near[v] = not is_slow or may_touch(x, 0.0, p, obstacles)
