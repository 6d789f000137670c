# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle that a node's parameters name: its name, parameter set and gains."""

from __future__ import annotations

from rclpy.node import Node

from rfly_amphibious.ros.node_parameters import VehicleNameParameters
from rfly_common.ros.parameters import declare_parameters


def declare_vehicle_name(node: Node) -> str:
    """Return the parameter `vehicle_name`, by default the node's namespace."""
    default = {"vehicle_name": node.get_namespace().strip("/") or "amphibious"}
    return declare_parameters(node, VehicleNameParameters, defaults=default).vehicle_name
