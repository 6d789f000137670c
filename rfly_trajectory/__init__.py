"""Trajectories, ground following and the trajectory node."""
