# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`get_grid_map` and `terrain_grid_map` as grid_map's users meet them.

The tests use a running terrain_node and a decoder of their own. The map's samples run from north to
south and hold numbers that no other place holds, so that nothing can be mirrored.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from grid_map_reference import cells

pytestmark = pytest.mark.ros

LAYERS = {"elevation", "slope", "roughness", "traversability", "normal_x", "normal_y", "normal_z"}
ROWS = 7
COLUMNS = 5


def height(x, y):
    return 0.125 * x + 0.5 * y + (4.0 if (x, y) == (2, -3) else 0.0)


@pytest.fixture(scope="module")
def peer(shared_domain_id, tmp_path_factory):
    from node_harness import NodeProcess, Peer

    from rfly_terrain.files.writer import write_map

    folder = tmp_path_factory.mktemp("maps")
    heights = [[height(r, -c) for c in range(COLUMNS)] for r in range(ROWS)]
    write_map(
        np.array(heights), folder / "slant", origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=-1.0
    )
    parameters = {
        "map": f"'{folder / 'slant.png'}'",
        "vehicle_radius": "0.0",
        "publish_grid_map": "true",
    }
    with NodeProcess(
        "terrain_node", shared_domain_id, {**parameters, "max_slope_deg": "60.0"}
    ) as node:
        peer = Peer(shared_domain_id)
        peer.process = node
        yield peer
        peer.close()


@pytest.fixture(scope="module")
def terrain(peer):
    """Return the heights that the node has read, from its own message: the png has rounded them."""
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.files.terrain_message import msg_to_height_map

    maps = peer.receive(TerrainMap, "terrain_map", LATCHED)
    return msg_to_height_map(peer.spin_until(lambda: maps and maps[0]))


@pytest.fixture(scope="module")
def whole(peer, terrain):
    """The latched map, which a late subscriber gets."""
    from grid_map_msgs.msg import GridMap

    from rfly_common.ros.qos import LATCHED

    received = peer.receive(GridMap, "terrain_grid_map", LATCHED)
    return peer.spin_until(lambda: received and received[0])


def ask(peer, **fields):
    from grid_map_msgs.srv import GetGridMap

    return peer.call(GetGridMap, "get_grid_map", **fields).map


def test_each_cell_of_the_topic_has_the_ground_below_it(whole, terrain):
    assert whole.header.frame_id == "map"
    assert (set(whole.layers), whole.basic_layers) == (LAYERS, ["elevation"])
    q = whole.info.pose.orientation
    assert (whole.info.pose.position.z, q.x, q.y, q.z, q.w) == (0.0, 0.0, 0.0, 0.0, 1.0)
    found = cells(whole)
    assert set(found) == {(float(x), float(-y)) for x in range(ROWS) for y in range(COLUMNS)}
    for (x, y), layers in found.items():
        assert layers["elevation"] == pytest.approx(height(x, y), abs=2e-4), "the png's rounding"
        assert layers["elevation"] == pytest.approx(terrain.altitude(x, y), abs=1e-6)
    # off the peak's neighbours the ground rises by 1/8 to the east and 1/2 to the north
    at = found[5.0, -1.0]
    up = 1 / math.sqrt(1 + 1 / 64 + 1 / 4)
    assert [at[f"normal_{axis}"] for axis in "xyz"] == pytest.approx(
        [-up / 8, -up / 2, up], abs=2e-4
    )
    slope = math.atan(math.hypot(1 / 8, 1 / 2))
    assert at["slope"] == pytest.approx(slope, abs=2e-4)
    # slope against 60°, the rise of half a metre a cell against tan 60°: the slope is the worse
    assert at["traversability"] == pytest.approx(
        1 - round(99 * math.degrees(slope) / 60) / 100, abs=1e-6
    )
    assert found[2.0, -3.0]["traversability"] == 0.0, "a step of 4 m"
    assert math.isnan(found[0.0, -2.0]["slope"]), "its disc leaves the map"


def test_a_region_has_the_same_cells_as_the_whole(peer, whole):
    everything = cells(whole)
    part = ask(peer, frame_id="map", position_x=4.0, position_y=-1.0, length_x=2.2, length_y=1.4)
    found = cells(part)
    assert set(found) == {(x, y) for x in (3.0, 4.0, 5.0) for y in (-2.0, -1.0, 0.0)}
    for place, layers in found.items():
        assert layers == pytest.approx(everything[place], abs=1e-6, nan_ok=True)
    assert cells(ask(peer)).keys() == everything.keys(), "no lengths: all of the map"


def test_a_region_in_map_ned_and_some_layers(peer, whole):
    """The region has lengths 1.4 m along north and 2.2 m along east about the same place.

    x is north, y east. The answer is in map.
    """
    part = ask(
        peer,
        frame_id="map_ned",
        position_x=-1.0,
        position_y=4.0,
        length_x=1.4,
        length_y=2.2,
        layers=["elevation"],
    )

    assert part.header.frame_id == "map"
    everything = cells(whole)
    assert cells(part) == {
        place: {"elevation": everything[place]["elevation"]}
        for place in everything
        if place[0] in (3, 4, 5) and place[1] >= -2
    }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"frame_id": "mars", "length_x": 1.0}, "'mars'"),
        ({"position_x": 900.0, "length_x": 1.0, "length_y": 1.0}, "off the map, x 0 … 6, y -4 … 0"),
        ({"position_x": math.nan, "length_x": 1.0}, "no rectangle"),
        ({"length_x": -1.0}, "no rectangle"),
        ({"layers": ["elevation", "colour"]}, "layers: colour"),
    ],
)
def test_what_can_not_be_answered_has_no_layers_and_the_log_says_why(peer, terrain, fields, reason):
    answer = ask(peer, **fields)
    assert (answer.layers, answer.data) == ([], [])
    peer.spin_until(lambda: reason in peer.process.output)


def test_a_new_map_makes_a_new_grid_map_and_a_limit_makes_larger_cells(domain_id, tmp_path):
    """9 x 6 cells of 2 m where 10 may be published: 3 to a side, so 3 x 2 of 6 m."""
    from grid_map_msgs.msg import GridMap
    from node_harness import NodeProcess, Peer
    from rfly_suite.srv import LoadTerrain

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.files.writer import write_map

    for name, level in (("low", 1.0), ("high", 7.0)):
        write_map(
            np.full((9, 6), level), tmp_path / name, origin_x=10, origin_y=20, step_x=2, step_y=2
        )
    parameters = {
        "map": f"'{tmp_path / 'low.png'}'",
        "publish_grid_map": "true",
        "grid_map_max_cells": "10",
    }
    parameters["map_search_path"] = f"['{tmp_path}']"
    with NodeProcess("terrain_node", domain_id, parameters):
        peer = Peer(domain_id)
        received = peer.receive(GridMap, "terrain_grid_map", LATCHED)
        peer.spin_until(lambda: received)
        assert received[-1].info.resolution == 6.0
        assert peer.call(LoadTerrain, "load_terrain", map=str(tmp_path / "high.png")).success
        peer.spin_until(lambda: cells(received[-1])[12.0, 22.0]["elevation"] == pytest.approx(7.0))
        assert len(cells(received[-1])) == 6
        peer.close()


def test_it_is_not_published_unless_asked_for(domain_id, tmp_path):
    from node_harness import NodeProcess, Peer

    from rfly_terrain.files.writer import write_map

    write_map(np.zeros((3, 3)), tmp_path / "flat", origin_x=0, origin_y=0, step_x=1, step_y=1)
    with NodeProcess("terrain_node", domain_id, {"map": f"'{tmp_path / 'flat.png'}'"}):
        peer = Peer(domain_id)
        peer.spin_until(lambda: len(ask(peer).layers) == len(LAYERS))
        assert peer.node.count_publishers("terrain_grid_map") == 0
        peer.close()
