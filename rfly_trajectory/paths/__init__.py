"""Shapes, curves, Dubins, points from files, altitude along a path."""
