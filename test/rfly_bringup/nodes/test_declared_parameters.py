# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A node declares the parameters that its page shows."""

from __future__ import annotations

DEFAULTS = {
    "rate_limit": 0.0,
    "windows": 1,
    "stale_after": 1.0,
    "broadcast": False,
    "packets": "auto",
}


def test_a_node_declares_what_its_table_says(domain_id):
    """Names, types, defaults and ranges, as another node sees them."""
    from node_harness import NodeProcess, Peer
    from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters

    from rfly_common.ros.node_parameters import parameters_of
    from rfly_ue_bridge.ros.node_parameters import NODES, RobotParameters

    groups = [group for group in NODES["ue_bridge_node"] if group is not RobotParameters]
    table = {each.name: each for group in groups for each in parameters_of(group)}
    with NodeProcess("ue_bridge_node", domain_id, {"feedback_port": "0", "port": "46010"}):
        peer = Peer(domain_id)
        try:
            listed = peer.call(ListParameters, "ue_bridge_node/list_parameters").result.names
            own = {
                name
                for name in listed
                if not name.startswith(("qos_overrides", "use_sim_time", "start_type"))
            }
            assert own == set(table)
            names = sorted(own)
            values = peer.call(
                GetParameters, "ue_bridge_node/get_parameters", names=list(DEFAULTS)
            ).values
            described = peer.call(
                DescribeParameters, "ue_bridge_node/describe_parameters", names=names
            ).descriptors
        finally:
            peer.close()
    for name, descriptor in zip(names, described, strict=True):
        assert descriptor.description == table[name].description
        assert descriptor.read_only is not table[name].changeable
    for (name, default), value in zip(DEFAULTS.items(), values, strict=True):
        assert table[name].default == default
        assert default in (
            value.double_value,
            value.integer_value,
            value.bool_value,
            value.string_value,
        )
    ports = described[names.index("port")].integer_range[0]
    assert (ports.from_value, ports.to_value) == (table["port"].low, table["port"].high)
