"""Motion along paths: speed profiles, attitude, wheels on the ground, formations, take-over."""
