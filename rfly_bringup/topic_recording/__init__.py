# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS topics to MCAP files and Foxglove, and back, as bytes with definitions; without ROS."""
