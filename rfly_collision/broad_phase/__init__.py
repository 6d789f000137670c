"""Broad phase: pairs of overlapping swept boxes."""
