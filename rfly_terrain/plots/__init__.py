"""Plots: shaded relief, costs over relief."""
