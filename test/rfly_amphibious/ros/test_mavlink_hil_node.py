# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mavlink_hil_node with a stand-in for an autopilot and the simulation, through real sockets."""

from __future__ import annotations

import contextlib
import math

import pytest
from hil_double import HilDouble

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]


@contextlib.contextmanager
def simulation(domain_id, world, **parameters):
    """Yield a peer, both nodes in lock-step, and the port of mavlink_hil_node."""
    from node_harness import NodeProcess, Peer

    world = {"lock_step": "true", "real_time_factor": "0.0", **world}
    parameters = {"lock_step": "true", "port": "0", **parameters}
    with (
        NodeProcess("amphibious_sim_node", domain_id, world) as simulator,
        NodeProcess("mavlink_hil_node", domain_id, parameters) as node,
    ):
        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: "stands on" in simulator.output)
            peer.spin_until(lambda: "listening for" in node.output)
            yield peer, simulator, node, int(node.output.split("tcp 127.0.0.1:")[1].split()[0])
        finally:
            peer.close()
        assert (simulator.stop(), node.stop()) == (0, 0), simulator.output + node.output


@contextlib.contextmanager
def autopilot(*arguments, **options):
    double = HilDouble(*arguments, **options)
    try:
        yield double
    finally:
        double.close()


def place(odometry):
    position = odometry.pose.pose.position
    return position.x, position.y, position.z


@pytest.mark.parametrize("armed", [False, True])
def test_a_disarmed_vehicle_stays_on_its_slope(domain_id, armed):
    """Zeros of a disarmed autopilot brake, those of an armed one coast down the hill."""
    from nav_msgs.msg import Odometry

    from rfly_common.ros.qos import sensor_qos

    with simulation(domain_id, {"scenario": "hills"}) as (peer, _, _, port):
        truth = peer.receive(Odometry, "ground_truth/odom", sensor_qos(True))
        with autopilot(port, armed=armed) as double:
            peer.spin_until(lambda: double.answered and double.answered[-1] > 4_000_000)
    start, end = (place(message) for message in (truth[0], truth[-1]))
    moved = math.dist(start, end)
    assert (moved > 1.0) if armed else (moved < 0.02)
