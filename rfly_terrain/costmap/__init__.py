"""Cost map of the ground for vehicles: slope, roughness, steps, water and objects."""
