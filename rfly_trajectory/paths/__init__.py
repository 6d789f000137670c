"""Paths: shapes, curves, Dubins paths, waypoint files, altitude profiles."""
