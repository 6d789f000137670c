"""URDF, footprint."""
