# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ros2 launch rfly_suite avoidance.launch.py: robots of any make that keep clear of each other."""

from rfly_bringup.nodes.launch_nodes import launch_description
from rfly_bringup.nodes.node_set import AVOIDANCE, RECORDER


def generate_launch_description():
    """Return the avoidance node, and a recorder on request."""
    return launch_description((RECORDER, AVOIDANCE), __file__)
