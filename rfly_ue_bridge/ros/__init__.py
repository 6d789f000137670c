"""ROS node, topics and messages of the bridge."""
