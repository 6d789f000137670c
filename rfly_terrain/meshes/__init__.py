"""Meshes of the ground, to be drawn."""
