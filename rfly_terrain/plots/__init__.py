"""Shaded relief, costs over relief."""
