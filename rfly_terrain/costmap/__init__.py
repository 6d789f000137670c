"""Where a vehicle can drive: a cost map of slope, roughness, steps, water and objects."""
