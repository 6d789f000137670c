# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Gains of a vehicle as a node's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.ros.node_parameters import GainParameters
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import parameters_of
from rfly_common.ros.parameters import declare_parameters


def declare_gains(node: Node, params: VehicleParameters) -> VehicleParameters:
    """Return the vehicle with the gains that the node's parameters set."""
    names = [each.name for each in parameters_of(GainParameters)]
    gains = declare_parameters(
        node, GainParameters, defaults={name: getattr(params, name) for name in names}
    )
    try:
        return params.replace(**asdict(gains))
    except ConfigError as error:
        raise ConfigError(f"parameters {', '.join(names)}: {error}") from None


def follow_gains(
    node: Node, params: VehicleParameters, changed: Callable[[VehicleParameters], None]
) -> None:
    """Call `changed` with the new vehicle when a parameter of `declare_gains` is set.

    Gains that no vehicle can have are refused.
    """
    newest = params
    names = {parameter.name for parameter in parameters_of(GainParameters)}

    def new_gains(parameters: Sequence[Parameter]) -> dict[str, Any]:
        gains = {
            parameter.name: parameter.value for parameter in parameters if parameter.name in names
        }
        return {name: value for name, value in gains.items() if value != getattr(newest, name)}

    def check(parameters: Sequence[Parameter]) -> SetParametersResult:
        # only changed gains cost a check of the whole vehicle
        try:
            if gains := new_gains(parameters):
                newest.replace(**gains)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def apply(parameters: Sequence[Parameter]) -> None:
        nonlocal newest
        if gains := new_gains(parameters):
            newest = newest.replace(**gains)
            changed(newest)

    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(apply)
