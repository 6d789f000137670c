# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS nodes, topics and messages of terrain and planning."""
