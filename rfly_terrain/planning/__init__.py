"""Path planning: driving over costs, flying over ground, both in turn."""
