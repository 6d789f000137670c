"""Kernel tables: paths, altitudes and motion of many vehicles as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints

ARC = 0
SPIRAL = 1
POLYNOMIAL = 2
SPIRAL_TERMS = 30
"""of the power series: exact to rounding for spirals that turn by up to π"""
PIECE_VALUES = 12
"""numbers of a piece. ARC: x, y of its start, curvature, cosine and sine of the heading there.
SPIRAL: x, y of its straight end, s there, sharpness (rate of curvature), cosine and sine of the
heading there. POLYNOMIAL: six coefficients of x and six of y, lowest power first
"""


class PathTable(NamedTuple):
    """Pieces of n paths, one path after the other. Plain arrays: what the kernels read."""

    first: Ints
    """(n + 1,) index of a path's first piece; the last one is the number of pieces"""
    start: Floats
    """(p,) arc length from the path's start at which a piece begins, m"""
    kind: NDArray[np.uint8]
    """(p,) ARC, SPIRAL or POLYNOMIAL"""
    values: Floats
    """(p, 12) see PIECE_VALUES"""
    length: Floats
    """(n,) m"""
    closed: Bools
    """(n,) the end is the start: arc length counts round and round"""


class AltitudeTable(NamedTuple):
    """Profiles of n paths, one after the other; a path without one has no pieces. Plain arrays for
    the kernels.
    """

    first: Ints
    """(n + 1,) index of a path's first piece"""
    start: Floats
    """(p,) m"""
    values: Floats
    """(p, 4) see AltitudeProfile"""
    length: Floats
    """(n,) of the paths, m"""
    closed: Bools
    """(n,)"""


class Departures(NamedTuple):
    """The motion of n vehicles, one after the other. Plain arrays: what the kernels read."""

    first: Ints
    """(n + 1,) index of a vehicle's first piece"""
    start: Floats
    """(p,) time since the vehicle's departure at which a piece begins, s"""
    law: Floats
    """(p, 4) arc length [m], speed [m/s] and acceleration [m/s²] at the piece's start, and its jerk
    [m/s³]; speed < 0 drives backwards
    """
    delay: Floats
    """(n,) departure, s"""
    loop_start: Floats
    """(n,) time since departure from which the motion repeats, s"""
    loop_period: Floats
    """(n,) s; inf: it does not repeat"""


class Placements(NamedTuple):
    """What k vehicles are and how high they go."""

    kind: NDArray[np.uint8]
    """(k,) GROUND, MULTIROTOR or FIXED_WING"""
    height: Floats
    """(k,) above the ground, or z where absolute, m"""
    absolute: Bools
    """(k,)"""


class GroundRows(NamedTuple):
    """The ground under k points, components as rows."""

    altitude: Floats
    """(k,) z up, m"""
    gradient: Floats
    """(2, k) dz/dx, dz/dy of the exact ground"""
    smooth: Floats
    """(2, k) the smooth gradient"""
    smooth_rate: Floats
    """(2, k) its derivative by time along the vehicle's motion, 1/s"""


class VehiclePoses(NamedTuple):
    """k vehicles at an instant each; ENU, SI."""

    position: Floats
    """(k, 3) never below the ground"""
    orientation: Floats
    """(k, 4) xyzw, base_link (FLU) -> map"""
    velocity: Floats
    """(k, 3) m/s, axes of map"""
    angular_velocity: Floats
    """(k, 3) rad/s, axes of base_link (FLU)"""


class WheelBases(NamedTuple):
    """Where the wheels of k vehicles are."""

    wheelbase: Floats
    """(k,) m"""
    track: Floats
    """(k,) m"""


class WheelGround(NamedTuple):
    """The ground under k vehicles on wheels."""

    altitude: Floats
    """(k, 4) at the wheels, m"""
    gradient: Floats
    """(k, 4, 2) at the wheels"""
    middle: Floats
    """(k,) what the wheels' plane at the origin is not to be below, m"""
    middle_gradient: Floats
    """(k, 2) at the origin"""


GROUND = 0
MULTIROTOR = 1
FIXED_WING = 2
STEEPEST = 0.99
"""sine of the steepest slope of a vehicle on wheels: a plane that stands upright has none"""
