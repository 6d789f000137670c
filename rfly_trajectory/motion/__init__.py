"""Speed profiles, attitude, wheels on the ground, formations, take-over."""
