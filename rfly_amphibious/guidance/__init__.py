"""Guidance: legs of a mission to setpoints."""
