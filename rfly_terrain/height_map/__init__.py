"""Height map: look-ups, normals, point clouds, rays."""

from rfly_terrain.height_map.height_map import HeightMap, TerrainQuery

__all__ = ["HeightMap", "TerrainQuery"]
