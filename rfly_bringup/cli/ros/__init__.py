"""The ROS side of the `rfly` commands: clients of nodes, topics and services."""
