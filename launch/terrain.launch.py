# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ros2 launch rfly_suite terrain.launch.py: the terrain alone, as a cloud and as services."""

from rfly_bringup.nodes.launch_nodes import launch_description
from rfly_bringup.nodes.node_set import RECORDER, TERRAIN


def generate_launch_description():
    """Return the terrain node, and a recorder on request."""
    return launch_description((RECORDER, TERRAIN), __file__)
