"""Node sets, described once."""
