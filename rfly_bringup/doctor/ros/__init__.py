"""The ROS side of `rfly doctor` and `rfly status`: a watcher of the graph."""
