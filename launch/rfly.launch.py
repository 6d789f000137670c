# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ros2 launch rfly_suite rfly.launch.py: terrain, bridge to RflySim3D, and a driving fleet."""

from rfly_bringup.nodes.launch_nodes import launch_description
from rfly_bringup.nodes.node_set import NODES


def generate_launch_description():
    """Return all nodes of the node set."""
    return launch_description(NODES, __file__)
