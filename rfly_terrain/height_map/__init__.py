# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height map: look-ups, normals, point clouds, rays."""

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import TerrainQuery

__all__ = ["HeightMap", "TerrainQuery"]
