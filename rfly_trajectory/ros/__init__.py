"""ROS nodes, topics and messages of trajectories and missions."""
