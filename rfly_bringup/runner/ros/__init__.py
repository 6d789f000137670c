"""The ROS side of `rfly up`: a check of the ROS domain."""
