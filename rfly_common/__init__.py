"""What all parts of rfly_suite share: frames, vehicle states, errors, geodesy. Needs no ROS but in `ros.py` and `*_msgs.py`."""
