# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Stand-in for ROS's sensor_msgs_py on a machine with the ROS wheels, which lack it.

It has the functions of `sensor_msgs_py.point_cloud2`. `make env` installs it into .venv only if no
ROS is sourced, so that it never hides the real one.
"""
