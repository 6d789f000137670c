# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ros2 launch rfly_suite amphibious.launch.py: land-air vehicles on a scenario's mission."""

from rfly_bringup.nodes.launch_nodes import amphibious_description


def generate_launch_description():
    """Return terrain and bridge, and the nodes of each vehicle: simulation to guidance."""
    return amphibious_description(__file__)
