"""3-D map from clouds."""
