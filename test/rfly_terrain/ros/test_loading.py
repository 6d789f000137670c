# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Long work next to the executor: services go on meanwhile, a second call is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.ros


@pytest.mark.slow
def test_queries_are_answered_while_a_large_map_loads(domain_id, tmp_path):
    """Requests about the previous map are answered while another map loads.

    Once they waited for the whole load, like everything else in the node.
    """
    from node_harness import NodeProcess, Peer
    from rfly_suite.srv import GetTerrainAltitude, LoadTerrain

    from rfly_terrain.files.writer import write_map

    x = np.linspace(0.0, 9.0, 4000)
    write_map(
        np.sin(x)[:, None] * np.cos(x),
        tmp_path / "large",
        origin_x=0,
        origin_y=0,
        step_x=1,
        step_y=1,
    )
    peer = Peer(domain_id)
    try:
        with NodeProcess("terrain_node", domain_id, {"map_search_path": f"[{tmp_path}]"}):
            ask = {"x": 1.0, "y": 2.0}
            before = peer.call(GetTerrainAltitude, "get_terrain_altitude", **ask).altitude
            load = peer.node.create_client(LoadTerrain, "load_terrain")
            query = peer.node.create_client(GetTerrainAltitude, "get_terrain_altitude")
            peer.spin_until(lambda: load.service_is_ready() and query.service_is_ready())
            loaded = load.call_async(LoadTerrain.Request(map="large"))
            second = load.call_async(LoadTerrain.Request(map="JacksboroFault"))
            answers = []
            while not loaded.done():
                answer = query.call_async(GetTerrainAltitude.Request(**ask))
                peer.spin_until(answer.done)
                answers.append(answer.result().altitude)
            assert loaded.result().success, loaded.result().message
            assert second.done()
            assert "another map is being loaded" in second.result().message
            # one may have overtaken the request, and one may have waited for its end
            assert answers.count(before) >= 3
            peer.spin_until(
                lambda: (
                    abs(peer.call(GetTerrainAltitude, "get_terrain_altitude", **ask).altitude) < 1.1
                )
            )
    finally:
        peer.close()
