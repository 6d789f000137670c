"""Vehicle parameters and the layout of its state."""
