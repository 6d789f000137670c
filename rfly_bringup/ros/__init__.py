"""Nodes inside commands: what `rfly` and the demo say and hear on ROS."""
