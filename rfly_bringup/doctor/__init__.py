"""Diagnosis of a running ROS graph and its machine, from a plain snapshot, and its display."""
