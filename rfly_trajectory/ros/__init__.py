"""Trajectory_node, mission_node, their topics."""
