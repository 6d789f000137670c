# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Declared parameters as clients of a node's parameter services see them."""

from __future__ import annotations

import importlib
import itertools

import pytest

pytestmark = pytest.mark.ros

PACKAGES = (
    "terrain",
    "ue_bridge",
    "trajectory",
    "missions",
    "collision",
    "amphibious",
    "autonomy",
    "mavlink",
    "bringup",
)


@pytest.fixture
def make_node(domain_id):
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    nodes = []

    def make(*overrides):
        arguments = ["--ros-args", *itertools.chain.from_iterable(("-p", o) for o in overrides)]
        nodes.append(rclpy.create_node("any", context=context, cli_args=arguments))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


def all_groups():
    """Return the dataclasses of parameters of all nodes."""
    modules = [importlib.import_module(f"rfly_{name}.ros.node_parameters") for name in PACKAGES]
    return {group for module in modules for groups in module.NODES.values() for group in groups}


def test_every_parameter_of_every_node_has_a_value(make_node):
    """rclpy answers a request for several values with none at all if one of them has no value."""
    from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters

    from rfly_common.ros.parameters import declare_parameters

    node = make_node()
    for group in all_groups():
        declare_parameters(node, group, prefix=f"{group.__name__}.")

    # rclpy's own services, called without a wire
    ask = {service.srv_type: service.callback for service in node.services}
    names = ask[ListParameters](ListParameters.Request(), ListParameters.Response()).result.names
    values = ask[GetParameters](GetParameters.Request(names=names), GetParameters.Response()).values
    assert len(values) == len(names) > 300

    of_groups = DescribeParameters.Request(names=[name for name in names if "Parameters." in name])
    described = ask[DescribeParameters](of_groups, DescribeParameters.Response()).descriptors
    types = {name: value.type for name, value in zip(names, values, strict=True)}
    assert [each.name for each in described if types[each.name] != each.type] == []
    assert sum(not each.read_only for each in described) < len(described) / 2


@pytest.mark.parametrize(
    ("override", "value"),
    [("vehicles:=[]", []), ("vehicles:=[a, b]", ["a", "b"]), ("other:=1", [])],
)
def test_a_list_that_is_empty_by_default(override, value, make_node):
    """It takes an empty list from the user too, and stays read-only."""
    from rclpy.parameter import Parameter

    from rfly_common.ros.parameters import declare_parameters
    from rfly_ue_bridge.ros.node_parameters import BridgeParameters

    node = make_node(override)
    assert declare_parameters(node, BridgeParameters).vehicles == value
    assert node.get_parameter("vehicles").get_parameter_value().string_array_value == value
    (result,) = node.set_parameters([Parameter("vehicles", value=["c"])])
    assert not result.successful


def test_a_list_of_another_type_is_refused(make_node):
    from rfly_common.errors import ConfigError
    from rfly_common.ros.parameters import declare_parameters
    from rfly_ue_bridge.ros.node_parameters import BridgeParameters

    with pytest.raises(
        ConfigError, match=r"parameter vehicles: \[1, 2\], expected a list of strings$"
    ):
        declare_parameters(make_node("vehicles:=[1, 2]"), BridgeParameters)
    for name, kind in (("host", "a string"), ("port", "an integer")):
        with pytest.raises(ConfigError, match=rf"parameter {name}: \[\], expected {kind}$"):
            declare_parameters(make_node(f"{name}:=[]"), BridgeParameters)
