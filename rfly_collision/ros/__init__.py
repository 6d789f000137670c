"""ROS node and messages of collision detection."""
