# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""States x, y, theta, which of them are valid on an occupancy map, and paths of them.

Source of properties, defaults and the distance: MathWorks, Navigation Toolbox, reference pages of
`stateSpaceSE2` and `validatorOccupancyMap`. The pages don't say whether the validator looks at the
state bounds; here it does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.config.matlab_properties import matlab_properties
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
from rfly_terrain.planning.grid_planner import Map, map_of

if TYPE_CHECKING:
    from rfly_terrain.planning.tree_kernels import Space


def _bounds(name: str, value: Any) -> Floats:
    rows = [np.ravel(row) for row in value]
    bounds = finite_array(name, np.array(rows), (3, 2), error=ValueError)
    if not (bounds[:, 0] <= bounds[:, 1]).all():
        raise ValueError(f"{name}: {bounds.tolist()}, expected [min, max] of x, y and theta")
    return bounds.copy()


def _weight(name: str, value: Any) -> float:
    return finite_number(name, value, at_least=0.0, error=ValueError)


def positive_or_inf(name: str, value: Any) -> float:
    """Return a distance above 0, which may be infinite."""
    if value == math.inf:
        return math.inf
    return finite_number(name, value, above=0.0, error=ValueError)


def states_of(states: ArrayLike, name: str) -> Floats:
    """Return states as (n, 3)."""
    array = finite_array(name, states, error=ValueError)
    if array.shape == (3,):
        array = array[None]
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{name}: the shape {array.shape}, expected x, y, theta, or n-by-3")
    return np.ascontiguousarray(array)


@matlab_properties(
    {"state_bounds": _bounds, "weight_xy": _weight, "weight_theta": _weight},
    {"weight_xy": "WeightXY"},
)
@dataclass(eq=False)
class StateSpaceSE2:
    """States x, y (m), theta (rad) with straight motions between them, MATLAB's `stateSpaceSE2`.

    The distance of two states is sqrt(weight_xy (dx² + dy²) + weight_theta dθ²), dθ the shorter
    turn.
    """

    state_bounds: ArrayLike = ((-100.0, 100.0), (-100.0, 100.0), (-math.pi, math.pi))
    """Least and greatest x, y (m) and theta (rad), (3, 2)."""
    weight_xy: float = 1.0
    """Weight of squared metres."""
    weight_theta: float = 0.1
    """Weight of squared radians."""

    def distance(self, states: ArrayLike, others: ArrayLike) -> Floats:
        """Return the distances between states (n, 3) and others, one or as many, (n,)."""
        difference = states_of(others, "others") - states_of(states, "states")
        turns = np.remainder(difference[:, 2] + math.pi, 2 * math.pi) - math.pi
        squares = (difference[:, :2] ** 2).sum(axis=1)
        return np.sqrt(self.weight_xy * squares + self.weight_theta * turns**2)

    def interpolate(self, start: ArrayLike, end: ArrayLike, shares: ArrayLike) -> Floats:
        """Return the states (n, 3) at shares 0 … 1 of the motion between two states."""
        a = states_of(start, "start")[0]
        b = states_of(end, "end")[0]
        share = finite_array("shares", shares, error=ValueError).reshape(-1, 1)
        turn = math.remainder(b[2] - a[2], 2 * math.pi)
        states = a + share * np.array([b[0] - a[0], b[1] - a[1], turn])
        states[:, 2] = np.remainder(states[:, 2] + math.pi, 2 * math.pi) - math.pi
        return states

    def sample_uniform(self, count: int = 1, rng: np.random.Generator | None = None) -> Floats:
        """Return random states within the bounds, (count, 3)."""
        low, high = np.asarray(self.state_bounds).T
        return (rng or np.random.default_rng()).uniform(low, high, (count, 3))

    def enforce_state_bounds(self, states: ArrayLike) -> Floats:
        """Return states (n, 3), each number moved to the nearest one within the bounds."""
        low, high = np.asarray(self.state_bounds).T
        return np.clip(states_of(states, "states"), low, high)


def _space(name: str, value: Any) -> StateSpaceSE2:
    if not isinstance(value, StateSpaceSE2):
        raise ValueError(f"{name}: {type(value).__name__}, expected a StateSpaceSE2")
    return value


@matlab_properties({"state_space": _space, "map": map_of, "validation_distance": positive_or_inf})
@dataclass(eq=False)
class ValidatorOccupancyMap:
    """Which states and motions are valid on an occupancy map, MATLAB's `validatorOccupancyMap`.

    A state is valid within the state bounds and in a cell that `check_occupancy` says is free (0):
    occupied and unknown cells are not, nor is the world off the map. Of a motion the states every
    `validation_distance` are checked; without a finite one only its ends are.

    >>> validator = ValidatorOccupancyMap()
    >>> validator.is_state_valid([[1, 2, 0], [11, 2, 0]])
    array([ True, False])
    """

    state_space: StateSpaceSE2 = field(default_factory=StateSpaceSE2)
    """Bounds of the states, and their distance."""
    map: Map = field(default_factory=BinaryOccupancyMap)
    """Map, by default 10 m x 10 m and empty."""
    validation_distance: float = math.inf
    """Distance between the states of a motion that are checked."""

    def is_state_valid(self, states: ArrayLike) -> Bools:
        """Return whether states, (n, 3) or one, are valid, (n,)."""
        from rfly_terrain.planning.tree_kernels import states_are_valid

        array = states_of(states, "states")
        valid = np.empty(len(array), bool)
        states_are_valid(self.kernel_space(), array, valid)
        return valid

    def is_motion_valid(self, start: ArrayLike, end: ArrayLike) -> tuple[bool, Floats]:
        """Return whether the motion between two states is valid, and its last valid state.

        The state is the last one before the first that is not valid; NaN if the start is not.
        """
        from rfly_terrain.planning.tree_kernels import valid_share

        a = states_of(start, "start")[0]
        b = states_of(end, "end")[0]
        share = valid_share(self.kernel_space(), a, b, np.empty(3))
        if share < 0.0:
            return False, np.full(3, np.nan)
        return share == 1.0, self.state_space.interpolate(a, b, [share])[0]

    def free_cells(self) -> Bools:
        """Return the cells that are free, (rows, columns)."""
        return np.ascontiguousarray(self.map.check_occupancy() == 0)

    def kernel_space(self) -> Space:
        """Return the map and the bounds as the kernels take them."""
        from rfly_terrain.planning.tree_kernels import Space

        x, y = self.map.grid_location_in_world.tolist()
        space = self.state_space
        return Space(
            self.free_cells(),
            (x, y, float(self.map.resolution)),
            np.ascontiguousarray(space.state_bounds, np.float64),
            (float(space.weight_xy), float(space.weight_theta)),
            float(self.validation_distance),
        )

    isStateValid = is_state_valid
    isMotionValid = is_motion_valid


def validator_of(name: str, value: Any) -> ValidatorOccupancyMap:
    """Return a planner's validator, checked."""
    if not isinstance(value, ValidatorOccupancyMap):
        raise ValueError(f"{name}: {type(value).__name__}, expected a ValidatorOccupancyMap")
    return value


@matlab_properties({})
@dataclass(frozen=True, eq=False)
class NavPath:
    """A path of states, MATLAB's `navPath`."""

    states: Floats
    """States x, y (m), theta (rad), (n, 3); none if no path was found."""
    state_space: StateSpaceSE2
    """State space."""

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.states)

    @property
    def length(self) -> float:
        """Sum of the distances between neighbouring states in the state space."""
        if len(self.states) < 2:
            return 0.0
        return float(self.state_space.distance(self.states[:-1], self.states[1:]).sum())

    NumStates = num_states
