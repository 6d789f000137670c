# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that move towards their wishes and keep clear of each other, of objects and the ground.

`avoidance_kernels` has the method.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints, Rows
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.ground import level_ground
from rfly_trajectory.kernels.tables import (
    FIXED_WING,
    GROUND,
    MULTIROTOR,
    AbilityTable,
    Prisms,
    Strangers,
)

if TYPE_CHECKING:
    from rfly_collision.shapes.vehicle_shapes import VehicleShapes
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.solids import Solids

STEP = 0.05
"""Usual time between two steps, s."""
MAX_VEHICLES = 10_000
"""Largest number of vehicles, and of others."""
MAX_PLACES = 2_000
"""Largest number of steps of a fallback."""
MAX_AGE = 3600.0
"""Age of a position beyond which it counts as this old, s."""
WASH_RADII = 5.0
"""Depth of a multirotor's downwash in radii of its body.

Preiss et al. (Downwash-aware trajectory planning for large quadrotor teams, IROS 2017) keep
quadrotors of 0.12 m radius 0.6 m apart in height.
"""

# columns of states
X, Y, Z, COURSE, SPEED, CLIMB, TURN = range(7)
MEMORY = 6
"""Columns of `Avoidance.memory`: the last wish, (4,), time of waiting and of backing off, s."""

THINNEST = 0.05
"""Least radius and height of a body, m."""


class UprightCylinders(NamedTuple):
    """Upright cylinders around n bodies, (n,) each."""

    radius: Floats
    """Radius, m."""
    below: Floats
    """Lowest part below the body's origin, m."""
    height: Floats
    """Height, m."""


def upright_cylinders(
    shapes: VehicleShapes, vehicle_types: Sequence[int] | Ints, scale: Floats
) -> UprightCylinders:
    """Return the cylinders of vehicle types whose shapes are enlarged by `scale` (n, 3)."""
    rows = shapes.index_of(vehicle_types)
    low = shapes.column("low")[rows] * scale
    high = shapes.column("high")[rows] * scale
    radius = np.hypot(*np.maximum(np.abs(low), np.abs(high))[:, :2].T)
    height = high[:, 2] - np.minimum(low[:, 2], 0.0)
    return UprightCylinders(
        np.maximum(radius, THINNEST),
        np.maximum(-low[:, 2], 0.0),
        np.maximum(height, THINNEST),
    )


class AvoidanceAction(enum.IntEnum):
    """Action of a vehicle in a step."""

    FOLLOWED = 0
    """It went for its wish."""
    AVOIDED = 1
    """It went for another course, speed or climb."""
    FELL_BACK = 2
    """It braked, or circled, as nothing else was safe."""


@dataclass(frozen=True)
class OtherVehicles(Rows):
    """Vehicles that others move, which need not give way, (k,) rows.

    Where one may be grows with the age of its position: from where its velocity leads by
    ½ `unrest` t², but at most by `most` t. So a link that loses messages keeps others farther away.
    """

    position: Floats
    """Positions, (k, 3), ENU, m."""
    velocity: Floats
    """Velocities, (k, 3), ENU, m/s."""
    radius: Floats
    """Radius of the upright cylinder around the body, (k,), m."""
    below: Floats
    """Lowest part of the body below its position, (k,), m."""
    above: Floats
    """Highest part of the body above its position, (k,), m."""
    multirotor: Bools
    """True for those with a downwash, (k,)."""
    flies: Bools
    """True for aircraft, (k,)."""
    age: Floats
    """Age of the position, (k,), s."""
    unrest: Floats
    """Acceleration that it may have in any direction, (k,), m/s²."""
    most: Floats
    """Largest difference from its velocity, (k,), m/s."""

    def __post_init__(self) -> None:
        k = len(self.radius)
        for field in fields(self):
            width = (3,) if field.name in ("position", "velocity") else ()
            dtype = bool if field.name in ("multirotor", "flies") else float
            values = _checked(field.name, getattr(self, field.name), (k, *width), dtype)
            object.__setattr__(self, field.name, values)
            if not width and dtype is float and (values < 0.0).any():
                raise ConfigError(f"{values.min():g}, expected at least 0", key=field.name)

    def table(self) -> tuple[Strangers, Floats]:
        """Return them as kernels read them: bodies, and positions and velocities (k, 6) now."""
        age = np.minimum(self.age, MAX_AGE)
        wash = np.where(self.multirotor, WASH_RADII * self.radius, 0.0)
        bodies = Strangers(
            self.radius, self.below, self.above, wash, self.flies, age, self.unrest, self.most
        )
        now = self.position + age[:, None] * self.velocity
        return bodies, np.hstack([now, self.velocity])


def abilities(
    kind: ArrayLike,
    *,
    radius: ArrayLike,
    height: ArrayLike,
    most: ArrayLike,
    gain: ArrayLike,
    brake: ArrayLike,
    below: ArrayLike = 0.0,
    least: ArrayLike = 0.0,
    lateral: ArrayLike = 5.0,
    turn_radius: ArrayLike = 0.0,
    turn_rate: ArrayLike = math.inf,
    climb: ArrayLike = 0.0,
    climb_gain: ArrayLike = 4.0,
    steepest: ArrayLike = 1.0,
) -> AbilityTable:
    """Return the bodies and abilities of n vehicles of kinds GROUND, MULTIROTOR and FIXED_WING.

    Every argument is (n,) or one for all: radius and height of the body and its part below the
    origin, m; largest and least speed, m/s; gain and loss of speed and acceleration across the way,
    m/s²; turning radius, m; rate of the course, rad/s; climb, m/s, and its change, m/s²; slope
    under ground vehicles, height over distance. Raises ConfigError for what no vehicle can have.
    """
    given = np.atleast_1d(np.asarray(kind))
    if given.ndim != 1 or not np.isin(given, (GROUND, MULTIROTOR, FIXED_WING)).all():
        text = f"expected {GROUND}, {MULTIROTOR} or {FIXED_WING} for each vehicle"
        raise ConfigError(text, key="kind")
    kinds = given.astype(np.uint8)
    n = len(kinds)

    def column(name: str, values: ArrayLike, above_zero: bool) -> Floats:
        numbers = np.full(n, values, float) if np.ndim(values) == 0 else values
        wide = _checked(name, numbers, (n,), float)
        if (wide < 0.0).any() or (above_zero and (wide == 0.0).any()):
            least_value = "more than 0" if above_zero else "at least 0"
            raise ConfigError(f"{wide.min():g}, expected {least_value}", key=name)
        return wide

    body = column("radius", radius, True)
    low = column("below", below, False)
    size = column("height", height, True)
    slowest = column("least", least, False)
    fastest = column("most", most, False)
    if (slowest[kinds != FIXED_WING] > 0.0).any() or (slowest > fastest).any():
        raise ConfigError("only a fixed wing has one, and at most its largest speed", key="least")

    turn = column("turn_radius", turn_radius, False)
    rates = np.full(n, turn_rate, float) if np.ndim(turn_rate) == 0 else np.array(turn_rate, float)
    is_free = rates == math.inf
    return AbilityTable(
        kind=kinds,
        radius=body,
        below=low,
        above=np.maximum(size - low, 0.0),
        most=fastest,
        least=slowest,
        gain=column("gain", gain, True),
        brake=column("brake", brake, True),
        lateral=column("lateral", lateral, True),
        bend=np.divide(1.0, turn, out=np.full(n, np.inf), where=turn > 0.0),
        turn_rate=np.where(
            is_free, math.inf, column("turn_rate", np.where(is_free, 1.0, rates), True)
        ),
        climb=np.where(kinds == GROUND, 0.0, column("climb", climb, False)),
        climb_gain=column("climb_gain", climb_gain, True),
        steepest=column("steepest", steepest, True),
        wash=np.where(kinds == MULTIROTOR, WASH_RADII * body, 0.0),
    )


def prisms_of(solids: Solids | None) -> Prisms:
    """Return the upright prisms around the objects of a world."""
    if solids is None or not len(solids):
        none = np.zeros(0)
        return Prisms(np.zeros((0, 2)), np.zeros(1, np.int64), none, none, *np.zeros((2, 0, 2)))
    outlines = solids.outlines
    low, high = outlines.bounds
    return Prisms(outlines.corners, outlines.first, outlines.bottom, outlines.top, low, high)


class Avoidance:
    """Vehicles with states (n, 7): x, y, z, course, speed, climb, turn; see `manoeuvre_kernels`.

    Nothing depends on the number of threads: the same calls give the same bits. Raises ConfigError
    for states and steps that are impossible.
    """

    def __init__(
        self,
        able: AbilityTable,
        state: ArrayLike,
        *,
        step: float = STEP,
        terrain: HeightMap | None = None,
        solids: Solids | None = None,
    ) -> None:
        if len(able.kind) > MAX_VEHICLES:
            raise ConfigError(f"{len(able.kind)} vehicles, at most {MAX_VEHICLES} are taken")
        finite_number("step", step, "s", at_least=0.005, at_most=0.5)
        self.able = able
        self.time_step = step
        self.state = _checked("state", state, (len(able.kind), 7), float)
        """States, (n, 7)."""
        self.action: Ints = np.zeros(len(self), np.int64)
        """What each vehicle did in the last step, see `AvoidanceAction`."""
        self._ground = level_ground() if terrain is None else terrain.ground
        self._prisms = prisms_of(solids)
        self._choice = np.column_stack([self.state[:, COURSE : CLIMB + 1], np.zeros(len(self))])
        self._waited = np.zeros(len(self))
        self._backing = np.zeros(len(self))

    def __len__(self) -> int:
        return len(self.able.kind)

    @property
    def waited(self) -> Floats:
        """Time for which each vehicle has been waiting without progress, (n,), s."""
        return self._waited.copy()

    @property
    def memory(self) -> Floats:
        """Memory of each vehicle from step to step in addition to its state, (n, MEMORY)."""
        return np.column_stack([self._choice, self._waited, self._backing])

    def recall(self, rows: Ints | Bools, memory: Floats) -> None:
        """Take the `memory` (k, MEMORY) of some vehicles."""
        self._choice[rows] = memory[:, :4]
        self._waited[rows] = memory[:, 4]
        self._backing[rows] = memory[:, 5]

    def remember(self, earlier: Avoidance, rows: Ints) -> None:
        """Take over what vehicles have chosen, and how long they have waited, from another one.

        `rows` (n,) are their numbers there, -1 for those that are new.
        """
        known = rows >= 0
        self.recall(known, earlier.memory[rows[known]])

    def step(
        self,
        wish: ArrayLike,
        plan: ArrayLike | None = None,
        exact: ArrayLike | None = None,
        others: OtherVehicles | None = None,
    ) -> None:
        """Move all vehicles by a step towards their wishes, as far as that is safe.

        `wish` (n, 4): course, rad, speed, m/s, climb, m/s, and rate of the course, rad/s. Those
        that are `exact` (n,) go to the state of `plan` (n, 7) instead, if that is safe.
        """
        from rfly_trajectory.kernels.avoidance_kernels import (
            AvoidanceMemory,
            Plans,
            Surroundings,
            keep_clear,
        )

        n = len(self)
        wishes = _checked("wish", wish, (n, 4), float)
        planned = _checked("plan", self.state if plan is None else plan, (n, 7), float)
        is_exact = _checked("exact", np.zeros(n) if exact is None else exact, (n,), bool)
        if others is not None and len(others) > MAX_VEHICLES:
            raise ConfigError(f"{len(others)} others, at most {MAX_VEHICLES} are taken")
        strangers, motion = _no_others() if others is None else others.table()

        keep_clear(
            self.able,
            AvoidanceMemory(self.state, self._choice, self._waited, self._backing),
            Plans(wishes, planned, is_exact),
            Surroundings(self._ground, self._prisms, strangers, motion),
            self.time_step,
            self._places(planned),
            self.action,
        )

    def _places(self, planned: Floats) -> int:
        """Return the number of places of the longest fallback."""
        able = self.able
        step = self.time_step
        speed = np.maximum(np.abs(self.state[:, SPEED]), np.abs(planned[:, SPEED]))
        speed = np.maximum(speed, able.most) + able.gain * step
        climb = np.maximum(np.abs(self.state[:, CLIMB]), np.abs(planned[:, CLIMB]))
        climb = np.maximum(climb, able.climb) + able.climb_gain * step

        brakes = able.kind != FIXED_WING
        seconds = np.maximum(np.where(brakes, speed / able.brake, 0.0), climb / able.climb_gain)
        places = math.ceil(float(seconds.max(initial=0.0)) / step) + 5
        if places > MAX_PLACES:
            raise ConfigError(
                f"a vehicle needs {seconds.max():.0f} s to stop, longer than possible"
            )
        return places


@functools.cache
def _no_others() -> tuple[Strangers, Floats]:
    """Return the tables of no others."""
    none = np.zeros(0)
    no = np.zeros(0, bool)
    places = np.zeros((0, 3))
    nobody = OtherVehicles(places, places, none, none, none, no, no, none, none, none)
    return nobody.table()


def _checked(
    name: str, values: ArrayLike, shape: tuple[int, ...], dtype: type[Any]
) -> NDArray[Any]:
    """Return a contiguous copy of finite values of a shape."""
    try:
        array = np.array(values, dtype, order="C")
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expected numbers: {error}", key=name) from None
    if array.shape != shape:
        raise ConfigError(f"expected the shape {shape}, got {array.shape}", key=name)
    finite_array(name, array, error=ConfigError)
    return array
