"""The vehicle that a node's parameters name: its name, parameter set, gains and sensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from rfly_amphibious.ros.node_parameters import GainParameters, VehicleNameParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import parameters_of
from rfly_common.ros.parameters import declare_parameters


def declare_vehicle_name(node: Node) -> str:
    """The parameter `vehicle_name`, by default the node's namespace."""
    default = {"vehicle_name": node.get_namespace().strip("/") or "amphibious"}
    return declare_parameters(node, VehicleNameParameters, defaults=default).vehicle_name


def declare_gains(node: Node, params: VehicleParameters) -> VehicleParameters:
    """The vehicle with the gains that the node's parameters set; the others are its own."""
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
    """Call `changed` with the vehicle of other gains when a parameter of `declare_gains` is set;
    what none can have is refused.
    """
    newest = params
    names = {each.name for each in parameters_of(GainParameters)}

    def asked(given: Sequence[Parameter]) -> dict[str, Any]:
        gains = {each.name: each.value for each in given if each.name in names}
        return {name: value for name, value in gains.items() if value != getattr(newest, name)}

    def check(given: Sequence[Parameter]) -> SetParametersResult:
        # thousands of others, or of what is so already, cost no check of the whole vehicle each
        try:
            if gains := asked(given):
                newest.replace(**gains)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def take(given: Sequence[Parameter]) -> None:
        nonlocal newest
        if gains := asked(given):
            newest = newest.replace(**gains)
            changed(newest)

    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(take)


def load_sensors(name: str, params: VehicleParameters) -> SensorParameters:
    """The named sensor set; without a name the vehicle's, or `scale`."""
    return SensorParameters.load(
        name or (params.name if params.name in shipped_sensor_sets() else "scale")
    )
