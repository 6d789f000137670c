"""What all parts of rfly_suite share: frames, vehicle states, errors, geodesy; ROS only in `ros.py` and `*_msgs.py`."""
