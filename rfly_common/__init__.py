"""Frames, vehicle states, errors and geodesy for all packages; ROS only in `ros/`."""
