"""A vehicle's model as lit triangles, for viewers that draw triangles in the colours that they are given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_collision.models.vehicle_models import CENTRE_HEIGHT, MODELS, kind_of
from rfly_common.arrays import Floats

_LIGHT = np.array((0.25, 0.45, 0.86)) / np.linalg.norm((0.25, 0.45, 0.86))
"""towards the lamp, body axes: from above, a little from ahead and the left, so that the three sides differ"""
_SHADE = 0.45
"""brightness of a face that looks away from it"""


class ModelTriangles(NamedTuple):
    """A model in body axes FLU, around the place where the vehicle's position is."""

    points: Floats
    """(t, 3, 3): the corners of each triangle, m, counter-clockwise from outside"""
    colours: Floats
    """(t, 3): red, green, blue of each triangle, 0 … 1"""


def model_triangles(vehicle_type: int, colour: ArrayLike, scale: ArrayLike = 1.0) -> ModelTriangles:
    """The model of a vehicleType in a vehicle's own colour (RGB 0 … 255), `scale` (1 or 3 factors) times its size.

    It grows from the ground that it stands on: wheels that touch the ground do so at any size.
    """
    kind = int(kind_of(vehicle_type))
    factors = np.broadcast_to(np.asarray(scale, float), 3)
    points, colours = [], []
    for part in MODELS[kind].parts:
        corners = part.mesh.vertices[part.mesh.faces].astype(np.float64)
        places = np.zeros((1, 3)) if part.positions is None else part.positions
        points.append((corners + places[:, None, None]).reshape(-1, 3, 3))
        rgb = np.asarray(colour if part.colour is None else part.colour, float) / 255
        colours.append(np.broadcast_to(rgb, (len(points[-1]), 3)))
    grown = np.concatenate(points) * factors
    grown[..., 2] += (factors[2] - 1.0) * CENTRE_HEIGHT[kind]
    across = np.cross(grown[:, 1] - grown[:, 0], grown[:, 2] - grown[:, 0])
    size = np.linalg.norm(across, axis=1)
    facing = np.where(size > 0, across @ _LIGHT / np.where(size > 0, size, 1.0), 0.0)
    light = _SHADE + (1.0 - _SHADE) * np.maximum(facing, 0.0)
    return ModelTriangles(grown, np.concatenate(colours) * light[:, None])
