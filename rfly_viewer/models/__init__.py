"""Simple meshes of vehicle types, to be drawn."""
