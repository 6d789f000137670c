# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernel tables: paths, altitudes and motion of many vehicles as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints

# kinds of pieces
ARC = 0
SPIRAL = 1
POLYNOMIAL = 2

SPIRAL_TERMS = 30
"""Terms of the power series: exact to rounding for spirals that turn by up to π."""

PIECE_VALUES = 12
"""Numbers of a piece.

ARC: x, y of its start, curvature, cosine and sine of the heading there. SPIRAL: x, y of its
straight end, s there, sharpness (rate of curvature), cosine and sine of the heading there.
POLYNOMIAL: six coefficients of x and six of y, lowest power first.
"""


class PathTable(NamedTuple):
    """Pieces of n paths, one path after the other, as plain arrays for kernels."""

    first: Ints
    """Index of each path's first piece, (n + 1,); the last one is the number of pieces."""
    start: Floats
    """Arc length from the path's start at which a piece begins, (p,), m."""
    kind: NDArray[np.uint8]
    """ARC, SPIRAL or POLYNOMIAL, (p,)."""
    values: Floats
    """Numbers of each piece, (p, PIECE_VALUES)."""
    length: Floats
    """Length of each path, (n,), m."""
    closed: Bools
    """True where the end is the start and arc length counts round and round, (n,)."""


class AltitudeTable(NamedTuple):
    """Altitude profiles of n paths, one after the other, as plain arrays for kernels.

    A path without a profile has no pieces.
    """

    first: Ints
    """Index of each path's first piece, (n + 1,)."""
    start: Floats
    """Arc length at which a piece begins, (p,), m."""
    values: Floats
    """Coefficients of each piece, (p, 4), see AltitudeProfile."""
    length: Floats
    """Length of each path, (n,), m."""
    closed: Bools
    """True for closed paths, (n,)."""


class Departures(NamedTuple):
    """Motion of n vehicles, one after the other, as plain arrays for kernels."""

    first: Ints
    """Index of each vehicle's first piece, (n + 1,)."""
    start: Floats
    """Time since the vehicle's departure at which a piece begins, (p,), s."""
    law: Floats
    """Arc length, m, speed, m/s, and acceleration, m/s², at the piece's start, and its jerk, m/s³.

    (p, 4); a speed below 0 drives backwards.
    """
    delay: Floats
    """Time of departure, (n,), s."""
    loop_start: Floats
    """Time since departure at which the repeated part begins, (n,), s."""
    loop_period: Floats
    """Period of the repeated part, (n,), s; inf: none."""


class Placements(NamedTuple):
    """Kinds and heights of k vehicles."""

    kind: NDArray[np.uint8]
    """GROUND, MULTIROTOR or FIXED_WING, (k,)."""
    height: Floats
    """Height above the ground, or z where absolute, (k,), m."""
    absolute: Bools
    """True where the height is z, (k,)."""


class GroundRows(NamedTuple):
    """Ground under k points, components as rows."""

    altitude: Floats
    """Height, (k,), m, z up."""
    gradient: Floats
    """dz/dx and dz/dy of the exact ground, (2, k)."""
    smooth: Floats
    """Smooth gradient, (2, k)."""
    smooth_rate: Floats
    """Its derivative by time along the vehicle's motion, (2, k), 1/s."""


class VehiclePoses(NamedTuple):
    """Poses of k vehicles at an instant each; ENU, SI."""

    position: Floats
    """Positions, (k, 3), m, never below the ground."""
    orientation: Floats
    """Quaternions xyzw, base_link (FLU) -> map, (k, 4)."""
    velocity: Floats
    """Velocities, axes of map, (k, 3), m/s."""
    angular_velocity: Floats
    """Angular velocities, axes of base_link (FLU), (k, 3), rad/s."""


class WheelBases(NamedTuple):
    """Places of the wheels of k vehicles."""

    wheelbase: Floats
    """Distance of the axles, (k,), m."""
    track: Floats
    """Distance of left and right wheels, (k,), m."""


class WheelGround(NamedTuple):
    """Ground under k vehicles on wheels."""

    altitude: Floats
    """Height at the wheels, (k, 4), m."""
    gradient: Floats
    """Gradient at the wheels, (k, 4, 2)."""
    middle: Floats
    """Least height of the wheels' plane at the origin, (k,), m."""
    middle_gradient: Floats
    """Gradient at the origin, (k, 2)."""


# kinds of vehicles
GROUND = 0
MULTIROTOR = 1
FIXED_WING = 2

STEEPEST = 0.99
"""Sine of the steepest slope of a vehicle on wheels; an upright plane has no slope."""


class AbilityTable(NamedTuple):
    """Bodies and abilities of n vehicles that keep clear of each other, (n,) each."""

    kind: NDArray[np.uint8]
    """GROUND, MULTIROTOR or FIXED_WING."""
    radius: Floats
    """Radius of the upright cylinder around the body, m."""
    below: Floats
    """Lowest part of the body below its origin, m."""
    above: Floats
    """Highest part of the body above its origin, m."""
    most: Floats
    """Largest speed, m/s."""
    least: Floats
    """Least speed, m/s; 0 for vehicles that can stop."""
    gain: Floats
    """Largest gain of speed, m/s²; of a multirotor any change of its level velocity."""
    brake: Floats
    """Largest loss of speed, m/s²."""
    lateral: Floats
    """Largest acceleration across the way, m/s²."""
    bend: Floats
    """Largest curvature of the way, 1/m; inf where only `lateral` and `turn_rate` limit it."""
    turn_rate: Floats
    """Largest rate of the course, rad/s; inf where only `lateral` and `bend` limit it."""
    climb: Floats
    """Largest vertical speed, m/s."""
    climb_gain: Floats
    """Largest change of the vertical speed, m/s²."""
    steepest: Floats
    """Largest slope of ground under a ground vehicle, height over distance."""
    wash: Floats
    """Depth to which the air below a multirotor is kept free of aircraft, m."""


class Prisms(NamedTuple):
    """Upright prisms around static objects."""

    corners: Floats
    """Corners of all outlines, (c, 2), m, each one's counter-clockwise, one after the other."""
    first: Ints
    """Place of each outline's first corner, (p + 1,)."""
    bottom: Floats
    """Lowest z, (p,), m."""
    top: Floats
    """Highest z, (p,), m."""
    low: Floats
    """Lowest x and y, (p, 2), m."""
    high: Floats
    """Highest x and y, (p, 2), m."""


class Strangers(NamedTuple):
    """Vehicles that others move, (k,) each."""

    radius: Floats
    """Radius of the body, m."""
    below: Floats
    """Lowest part of the body below its origin, m."""
    above: Floats
    """Highest part of the body above its origin, m."""
    wash: Floats
    """Depth to which the air below it is kept free of aircraft, m; 0 for no multirotor."""
    flies: Bools
    """True for aircraft."""
    age: Floats
    """Age of the position, s."""
    unrest: Floats
    """Acceleration that it may have in any direction, m/s²."""
    most: Floats
    """Largest speed by which it may differ from its velocity, m/s."""
