"""Placing objects, offsets, vehicle XML."""
