# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Running simulations whose vehicles roll towards another one, over real DDS."""

from __future__ import annotations

import time
from contextlib import ExitStack

import numpy as np
import pytest
from fleet_harness import stamp

from rfly_sensing.neighbours import SILENT_S

pytestmark = pytest.mark.ros

TRUCK = 9999
HALF_LENGTH = 1.5
"""a box of 1 m, three times as large; m"""


@pytest.mark.exhaustive
def test_it_runs_into_one_that_stands_in_its_way(domain_id) -> None:
    """A vehicle at 2 m/s never gets with its front beyond the other's side.

    With `other_vehicles:=false` it rolls through.
    """
    from node_harness import NodeProcess, Peer
    from rfly_suite.msg import RotorCommand, VehicleStateArray, WheelCommand
    from sensor_msgs.msg import Imu
    from simulation_interfaces.msg import EntityState
    from simulation_interfaces.srv import SetEntityState

    from rfly_common.ros.qos import COMMANDS, FLEET_IN, STATE_OUT, sensor_qos

    common = {"ground": "level", "type": "600003", "tf_source": "truth", "command_timeout": "10.0"}
    vehicles = {"solid": (1, "true"), "ghost": (2, "false")}
    with ExitStack() as stack:
        for name, (number, other_vehicles) in vehicles.items():
            start = f"[0.0, {50.0 * number}, 0.0]"
            given = {**common, "id": str(number), "other_vehicles": other_vehicles, "start": start}
            remapped = ("-r", f"__ns:=/{name}", "-r", "vehicle_states:=/vehicle_states")
            stack.enter_context(NodeProcess("amphibious_sim_node", domain_id, given, *remapped))
        peer = Peer(domain_id)
        stack.callback(peer.close)
        told = []
        peer.node.create_subscription(
            VehicleStateArray,
            "/vehicle_states",
            lambda message: told.append((time.monotonic(), message)),
            FLEET_IN,
        )
        imu = {name: peer.receive(Imu, f"/{name}/imu/data", sensor_qos(False)) for name in vehicles}
        trucks = peer.publisher(VehicleStateArray, "/vehicle_states", STATE_OUT)
        here = VehicleStateArray(
            source="trucks", id=[8, 9], vehicle_type=[TRUCK] * 2, scale=[3.0] * 6
        )
        here.orientation = [0.0, 0.0, 0.0, 1.0] * 2
        here.header.frame_id = "map"
        here.position = [4.0, 50.0, 0.0, 4.0, 100.0, 0.0]

        shown: list[float] = []

        def show() -> None:
            here.header.stamp = peer.node.get_clock().now().to_msg()
            trucks.publish(here)
            shown.append(time.monotonic())

        peer.node.create_timer(0.05, show)
        peer.spin_until(lambda: all(imu.values()) and {m.id[0] for _, m in told} >= {1, 2})
        commands = {
            name: (
                peer.publisher(WheelCommand, f"/{name}/cmd/wheels", COMMANDS),
                peer.publisher(RotorCommand, f"/{name}/cmd/rotors", COMMANDS),
            )
            for name in vehicles
        }

        def roll(name: str, number: int) -> float:
            """Put a vehicle in front of its truck, at 2 m/s; return the time then."""
            wheels, rotors = commands[name]
            wheels.publish(WheelCommand(header=imu[name][-1].header))
            rotors.publish(RotorCommand(header=imu[name][-1].header, value=[0.0] * 6))
            rolling = EntityState()
            rolling.pose.position.x = 0.5
            rolling.pose.position.y = 50.0 * number
            rolling.pose.position.z = 0.22
            rolling.pose.orientation.w = 1.0
            rolling.twist.linear.x = 2.0
            service = f"/{name}/amphibious_sim_node/set_entity_state"
            assert peer.call(SetEntityState, service, entity=name, state=rolling).result.result == 1
            return peer.node.get_clock().now().nanoseconds * 1e-9

        def along(number: int, since: float) -> np.ndarray:
            return np.array(
                [
                    message.position[0]
                    for _, message in told
                    if message.id[0] == number and stamp(message.header) > since
                ]
            )

        # once more where the machine kept a process waiting until the trucks were silent
        while True:
            told.clear()
            shown.clear()
            since = [roll(name, number) for name, (number, _) in vehicles.items()]
            peer.spin_until(lambda since=since: along(2, since[1]).max(initial=0.0) > 4.0)
            heard = [at for at, message in told if message.id[0] == 1]
            if max(np.diff(shown).max(), np.diff(heard).max()) < SILENT_S / 2.0:
                break
        assert 1.0 < along(1, since[0]).max() < 4.0 - HALF_LENGTH
