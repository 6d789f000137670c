# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A batch of environments in the browser window of `rfly view`, while it is stepped."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.vehicle.motor_channels import FIRST_ID, model_type, motor_channels
from rfly_amphibious.vehicle.state_layout import POSITION, QUATERNION_XYZW, RATES, VELOCITY
from rfly_common.arrays import Bools, Ints
from rfly_common.config.vehicle_models import type_number
from rfly_common.files import Closing
from rfly_common.vehicle_states import VehicleStates
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_viewer.window.live_window import LiveWindow
from rfly_viewer.window.server import Settings

MOST_SHOWN = 100
"""Vehicles that are shown, the first ones of a batch."""
TARGET_TYPE = type_number("sphere_target")
"""vehicleType of a target: two crossed hoops."""
HOOP_RADIUS = 0.475
"""Radius within the hoops in their natural size, m."""
NEXT_TARGET = 10_000
"""Id of a vehicle's next target beyond that of the vehicle."""
TARGET_AFTER = 20_000
"""Id of the target after it beyond that of the vehicle."""


class Pace:
    """Pace of calls that come at least a period apart, s.

    One that is late does not make the next ones hurry.
    """

    def __init__(
        self,
        period: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._period = period
        self._clock = clock
        self._wait = wait
        self._due = -np.inf

    def keep(self) -> None:
        """Wait until a period has passed since the last call was due, or came if it was late."""
        now = self._clock()
        if now < self._due:
            self._wait(self._due - now)
        self._due = max(now, self._due) + self._period


class BatchWindow(Closing):
    """Window that shows the first MOST_SHOWN vehicles of a batch, each with its next targets.

    Environment i is vehicle FIRST_ID + i. The hoops of a target are as large as the sphere within
    which it is reached. The address goes to the terminal, and a browser opens it if there is one.
    """

    def __init__(self, batch: LandAirBatch) -> None:
        self._batch = batch
        vehicles = len(batch.vehicles.x)
        self._shown = min(vehicles, MOST_SHOWN)
        self._pace = Pace(batch.period)
        self._target = np.zeros(self._shown, np.int64)
        """Number of each vehicle's target when it was shown last."""

        # the window
        settings = Settings(
            terrain=batch.terrain,
            world=batch.objects,
            follow=FIRST_ID if vehicles == 1 else None,
        )
        shown = f"{self._shown} of {vehicles} learning vehicles"
        self.live = LiveWindow(settings, shown)
        print(f"{self.live.address} shows {shown}", file=sys.stderr)
        webbrowser.open(self.live.address)

    def show(self, is_there: Bools | None = None) -> None:
        """Show how the vehicles are now, a period of the batch after the last call.

        `is_there`: (n,), True for those that are shown; None: all.
        """
        self._pace.keep()
        which = np.arange(self._shown)
        if is_there is not None:
            which = which[is_there[: self._shown]]

        # a new episode begins elsewhere, as does a new target
        episodes = self._batch.episodes
        begins = episodes.steps[: self._shown] == 0
        target = episodes.target[: self._shown].copy()
        changes = begins | (target != self._target)
        self._target = target
        ids = FIRST_ID + np.arange(self._shown)
        of_targets = (ids[changes] + NEXT_TARGET, ids[changes] + TARGET_AFTER)
        anew = np.concatenate([ids[begins], *of_targets])
        self.live.show(self._states(which), anew)

    def _states(self, which: Ints) -> VehicleStates:
        """Return the states of some vehicles and their targets."""
        batch = self._batch
        p = batch.params
        ids = FIRST_ID + which
        x = batch.vehicles.x[which]
        motors = motor_channels(x, p.rotors, len(p.wheels))

        # the targets that it sees
        episodes = batch.episodes
        after = episodes.target[which] + 1
        is_last = after == episodes.targets.shape[1]
        target = episodes.targets[which, episodes.target[which]]
        later = episodes.targets[which[~is_last], after[~is_last]]
        targets = np.concatenate([target, later])
        target_ids = np.concatenate([ids + NEXT_TARGET, ids[~is_last] + TARGET_AFTER])

        def both(of_vehicles: NDArray[Any], of_targets: ArrayLike) -> NDArray[Any]:
            """Return numbers of the vehicles, then those of all targets."""
            shape = (len(targets), *of_vehicles.shape[1:])
            return np.concatenate([of_vehicles, np.broadcast_to(of_targets, shape)])

        return VehicleStates(
            id=both(ids, target_ids),
            vehicle_type=both(np.full_like(ids, model_type(p.rotors)), TARGET_TYPE),
            position=both(x[:, POSITION : POSITION + 3], targets),
            orientation=both(x[:, QUATERNION_XYZW], (0.0, 0.0, 0.0, 1.0)),
            velocity=both(x[:, VELOCITY : VELOCITY + 3], 0.0),
            angular_velocity=both(x[:, RATES : RATES + 3], 0.0),
            motor_speed=both(motors, 0.0),
            scale=both(np.ones((len(ids), 3)), batch.task.reach / HOOP_RADIUS),
        )

    def close(self) -> None:
        """Close the window."""
        self.live.close()
