"""Which vehicles, objects and terrain touch: shapes, broad phase, narrow phase, contact events."""
