"""Two running simulations whose vehicles run into each other, over real DDS."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = [pytest.mark.ros, pytest.mark.needs("numba")]

TOUCH = 0.75 * np.cos(np.pi / 6) + 0.1 * 0.355 + 0.75
"""m between two of type 600003: from the middle of the one to the front of its hubs, half the other's box"""
STARTS = {"red": (1, "[-6.0, 0.0, 0.0]"), "blue": (2, "[0.0, 0.0, 0.0]")}


def test_one_rolls_into_the_other_and_pushes_it(domain_id) -> None:
    """At 2 m/s into one that stands braked: it never goes through it, loses speed, and moves the other along."""
    from contextlib import ExitStack

    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic
    from rfly_suite.msg import RotorCommand, VehicleStateArray, WheelCommand
    from sensor_msgs.msg import Imu
    from simulation_interfaces.msg import EntityState
    from simulation_interfaces.srv import SetEntityState

    from rfly_common.ros.qos import COMMANDS, FLEET_IN, STATE_OUT, sensor_qos

    common = {"ground": "level", "type": "600003", "tf_source": "truth", "command_timeout": "10.0"}
    with ExitStack() as stack:
        for name, (number, start) in STARTS.items():
            given = {**common, "id": str(number), "start": start}
            remap = ("-r", f"__ns:=/{name}", "-r", "vehicle_states:=/vehicle_states")
            stack.enter_context(NodeProcess("amphibious_sim_node", domain_id, given, *remap))
        peer = Peer(domain_id)
        stack.callback(peer.close)
        told = peer.receive(VehicleStateArray, "/vehicle_states", FLEET_IN)
        imu = peer.receive(Imu, "/red/imu/data", sensor_qos(False))
        status = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        wheels = peer.publisher(WheelCommand, "/red/cmd/wheels", COMMANDS)
        rotors = peer.publisher(RotorCommand, "/red/cmd/rotors", COMMANDS)
        peer.spin_until(lambda: imu and {message.id[0] for message in told} == {1, 2})
        rolling = EntityState()
        rolling.pose.position.x, rolling.pose.position.z = -3.0, 0.22
        rolling.pose.orientation.w, rolling.twist.linear.x = 1.0, 2.0
        wheels.publish(WheelCommand(header=imu[-1].header))
        rotors.publish(RotorCommand(header=imu[-1].header, value=[0.0] * 6))
        peer.spin_for(0.1)
        del told[:]
        moved = peer.call(SetEntityState, "/red/amphibious_sim_node/set_entity_state", entity="red", state=rolling)
        assert moved.result.result == 1

        def of(number: int) -> np.ndarray:
            rows = [(*m.position, *m.velocity) for m in told if m.id[0] == number]
            return np.array(rows).reshape(-1, 6)

        peer.spin_until(lambda: len(of(1)) and of(1)[-1, 0] > -2.0 and of(1)[-1, 3] < 0.5)
        peer.spin_until(lambda: len(of(2)) and of(2)[-1, 0] > 0.005)  # it gives way
        red, blue = of(1), of(2)
        assert red[:, 3].max() > 1.5
        assert red[:, 0].max() < blue[:, 0].max() - TOUCH + 0.1
        said = diagnostic(status, "simulation")
        assert said[2]["other_vehicles_passed_through"] == "0"
