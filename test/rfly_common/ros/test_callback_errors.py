# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Errors in callbacks, ours and rclpy's own: the node logs, counts, answers and goes on."""

from __future__ import annotations

import re

import pytest
from node_harness import NodeProcess, Peer

pytestmark = pytest.mark.ros

NODES = ["terrain_node", "chassis_control_node"]
"""one for each of the executors"""


@pytest.fixture
def peer(shared_domain_id):
    made = Peer(shared_domain_id)
    yield made
    made.close()


@pytest.fixture(scope="module", params=NODES)
def node(request, shared_domain_id):
    with NodeProcess(request.param, shared_domain_id, {"use_sim_time": "true"}) as process:
        process.name = request.param
        yield process
        assert process.stop() == 0
        assert "Traceback" not in process.output


def errors_of(statuses):
    """Return the errors that the node's diagnostics count."""
    rows = [row for message in statuses for status in message.status for row in status.values]
    return max((int(row.value) for row in rows if row.key == "errors_in_callbacks"), default=0)


def test_a_negative_time_on_clock_is_dropped_and_counted(node, peer):
    """rclpy's time source raises there, and the node with it."""
    from builtin_interfaces.msg import Time
    from diagnostic_msgs.msg import DiagnosticArray
    from rcl_interfaces.srv import GetParameters
    from rosgraph_msgs.msg import Clock

    statuses = peer.receive(DiagnosticArray, "/diagnostics", 10)
    clock = peer.publisher(Clock, "/clock", 10)
    peer.spin_until(lambda: statuses)
    before = errors_of(statuses)

    def counted():
        clock.publish(Clock(clock=Time(sec=-1)))  # best effort: one may be lost
        peer.spin_for(0.1)
        return errors_of(statuses) > before

    peer.spin_until(counted)
    clock.publish(Clock(clock=Time(sec=77)))
    peer.spin_until(lambda: statuses[-1].header.stamp.sec == 77)
    assert (
        len(peer.call(GetParameters, f"{node.name}/get_parameters", names=["use_sim_time"]).values)
        == 1
    )
    assert re.search(
        r"what came is dropped, by an error in \S*rclpy/time.py:\d+: ValueError", node.output
    )


def test_a_parameter_of_no_known_type_is_answered(node, peer):
    """rclpy's parameter service raises and answers nothing."""
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import GetParameters, SetParameters

    odd = [Parameter(name="anything", value=ParameterValue(type=255))]
    assert peer.call(SetParameters, f"{node.name}/set_parameters", parameters=odd).results == []
    assert (
        len(peer.call(GetParameters, f"{node.name}/get_parameters", names=["use_sim_time"]).values)
        == 1
    )


def test_bytes_that_are_no_message_are_dropped(node, peer):
    from ackermann_msgs.msg import AckermannDriveStamped
    from rcl_interfaces.srv import GetParameters
    from rfly_suite.msg import PlacedObjectArray

    from rfly_common.ros.qos import LATCHED

    kind, topic = {
        "terrain_node": (PlacedObjectArray, "/placed_objects"),
        "chassis_control_node": (AckermannDriveStamped, "/cmd/ackermann"),
    }[node.name]
    out = peer.publisher(kind, topic, LATCHED)
    for size in (0, 3, 4, 5, 9, 40):
        out.publish(b"\x00\x01\x00\x00" + b"\xff" * size)
    assert (
        len(peer.call(GetParameters, f"{node.name}/get_parameters", names=["use_sim_time"]).values)
        == 1
    )


def test_many_bad_transforms_are_told_in_one_line(shared_domain_id, peer):
    """20,000 held up every node that listens for a quarter of a minute."""
    from geometry_msgs.msg import TransformStamped
    from rcl_interfaces.srv import GetParameters
    from tf2_msgs.msg import TFMessage

    from rfly_common.ros.qos import TF

    with NodeProcess("collision_node", shared_domain_id) as process:
        out = peer.publisher(TFMessage, "/tf", TF)
        peer.call(GetParameters, "collision_node/get_parameters")
        out.publish(TFMessage(transforms=[TransformStamped()] * 20_000))
        peer.spin_until(lambda: "transform ignored: " in process.output)
        peer.call(GetParameters, "collision_node/get_parameters")
        assert process.output.count("transform ignored: ") == 1
