"""Where a vehicle can drive: costs from slope, steps, objects."""
