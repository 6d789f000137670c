"""Placed objects: ground contact, registry, model offsets, vehicle XML."""
