"""Legs of a trip to set-points."""
