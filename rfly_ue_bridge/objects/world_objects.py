"""Objects of a world as objects that the bridge places: one list holds both."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from rfly_terrain.world.models import Model, placed_part
from rfly_terrain.world.world import World, WorldObject
from rfly_ue_bridge.objects.placement import PlacedObject

SCALES = (1e-3, 1e3)
"""of a picture; what is larger is drawn too small"""


def world_to_placed(world: World, level: bool = False) -> list[PlacedObject]:
    """The objects, their ids to be chosen. `level`: there is no terrain, and the ground lies at z = 0.

    One that shows no model of RflySim3D's is drawn as a box: its origin is the middle of its height, and its scale the
    box's size.
    """
    return [_placed(each, level) for each in world.objects]


def _placed(each: WorldObject, level: bool) -> PlacedObject:
    model = each.scaled_model
    z = 0.0 if each.z is None and level else each.z
    if model.vehicle_type:
        shown, offset, scale = model, 0.0, (each.scale,) * 3
    else:
        shown, offset = _about_middle(model)
        length, width, height = np.clip(2.0 * np.maximum(*np.abs(shown.bounds)), *SCALES).tolist()
        scale = (length, width, height)
    placed = PlacedObject(model.vehicle_type, each.x, each.y, each.yaw, scale=scale, model=shown)
    if z is None:
        return dataclasses.replace(placed, offset=offset)
    return dataclasses.replace(placed, z=z + offset)


@functools.lru_cache(maxsize=4096)
def _about_middle(model: Model) -> tuple[Model, float]:
    """The model from half its height up, and how high that is above its own z = 0; x and y stay."""
    low, high = model.bounds
    offset = 0.5 * float(low[2] + high[2])
    parts = tuple(placed_part(part, (0.0, 0.0, -offset), 0.0) for part in model.parts)
    return dataclasses.replace(model, parts=parts), offset
