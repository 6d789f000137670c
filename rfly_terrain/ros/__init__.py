"""ROS nodes, topics and messages of terrain and planning."""
