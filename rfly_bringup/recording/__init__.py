"""ROS topics to MCAP files and Foxglove, and back, as bytes with definitions; without ROS."""
