"""Height maps: files, queries, point clouds and the terrain node."""
