"""Robot description: URDF and base_footprint."""
