"""ROS nodes inside commands."""
