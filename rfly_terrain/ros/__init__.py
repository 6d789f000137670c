"""Terrain_node, planner_node, their topics and message conversions."""
