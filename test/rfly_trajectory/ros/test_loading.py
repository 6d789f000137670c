# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet is loaded in parallel to the executor: the one before it drives on."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.ros


@pytest.mark.slow
def test_the_old_fleet_drives_on_while_a_large_one_loads(domain_id, tmp_path):
    """States of the old fleet come as often as before, but for switches of Python's threads."""
    from node_harness import NodeProcess, Peer
    from rfly_suite.msg import TerrainMap, VehicleStateArray
    from rfly_suite.srv import LoadFleet

    from rfly_common.ros.qos import FLEET_IN, LATCHED

    n = 2000
    peer = Peer(domain_id)
    shape = "{type: circle, center: [0, 0], radius: 20}"
    rows = [
        f"  - {{name: v{i}, id: {i}, type: 3, shape: {shape}, speed: 1}}"
        for i in range(1000, 1000 + n)
    ]
    (tmp_path / "many.yaml").write_text(
        "\n".join(["version: 1", "vehicles:", *rows, ""]), encoding="utf-8"
    )
    try:
        parameters = {
            "fleet": "ring_convoy",
            "rate": "20.0",
            "file_folders": f"[{tmp_path}]",
        }
        with NodeProcess("trajectory_node", domain_id, parameters):
            ground = TerrainMap(
                name="level",
                rows=2,
                columns=2,
                step_x=200.0,
                step_y=200.0,
                height=[0.0] * 4,
            )
            ground.origin_x = ground.origin_y = -100.0
            peer.publisher(TerrainMap, "terrain_map", LATCHED).publish(ground)
            states = peer.receive(VehicleStateArray, "vehicle_states", FLEET_IN)
            load = peer.node.create_client(LoadFleet, "trajectory_node/load_fleet")
            peer.spin_until(lambda: load.service_is_ready() and len(states) > 20)
            first = len(states)
            loaded = load.call_async(LoadFleet.Request(fleet=str(tmp_path / "many.yaml")))
            again = load.call_async(LoadFleet.Request(fleet="ring_convoy"))
            peer.spin_until(loaded.done)
            assert loaded.result().success, loaded.result().message
            assert "another fleet is being loaded" in again.result().message
            meanwhile = [m for m in states[first:] if len(m.id) == 8]
            # one may have overtaken the request, and one may have waited for its end
            assert len(meanwhile) >= 3
            peer.spin_until(lambda: len(states[-1].id) == n)
    finally:
        peer.close()
