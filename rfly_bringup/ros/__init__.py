"""recorder_node, and ROS nodes inside commands."""
