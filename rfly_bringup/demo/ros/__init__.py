"""The ROS side of `make demo`: a node that measures from outside."""
