"""Height maps and occupancy maps: files, queries, rays, point clouds, and the terrain node."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap, TerrainQuery
    from rfly_terrain.height_map.ray_cast import hit_points
    from rfly_terrain.occupancy.image import cells_to_image, image_to_cells
    from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
    from rfly_terrain.sdk.matlab_tools import LoadPngData, getTerrainAltData
    from rfly_terrain.sdk.ue_map_serve import UEMapServe

__all__ = [
    "BinaryOccupancyMap",
    "HeightMap",
    "LoadPngData",
    "TerrainQuery",
    "UEMapServe",
    "cells_to_image",
    "getTerrainAltData",
    "hit_points",
    "image_to_cells",
]

_HOME = {
    "BinaryOccupancyMap": "rfly_terrain.occupancy.occupancy_map",
    "HeightMap": "rfly_terrain.height_map.height_map",
    "LoadPngData": "rfly_terrain.sdk.matlab_tools",
    "TerrainQuery": "rfly_terrain.height_map.height_map",
    "UEMapServe": "rfly_terrain.sdk.ue_map_serve",
    "cells_to_image": "rfly_terrain.occupancy.image",
    "getTerrainAltData": "rfly_terrain.sdk.matlab_tools",
    "hit_points": "rfly_terrain.height_map.ray_cast",
    "image_to_cells": "rfly_terrain.occupancy.image",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, so that `import rfly_terrain` costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
