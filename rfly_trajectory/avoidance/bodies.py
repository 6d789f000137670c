# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Upright cylinders around the bodies of vehicle types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints

if TYPE_CHECKING:
    from rfly_collision.shapes.vehicle_shapes import VehicleShapes

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
