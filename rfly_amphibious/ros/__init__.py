"""ROS nodes, topics and messages of the land-air vehicle."""
