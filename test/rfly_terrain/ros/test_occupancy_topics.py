# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`terrain_occupancy` as planners and map displays meet it.

The tests use a running terrain_node, objects and parameters that change. The ground is level but
for one peak at x_east 7, y_north -12 of a map whose samples run from north to south.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

pytestmark = pytest.mark.ros

PEAK = {(7, -12), (6, -12), (8, -12), (7, -11), (7, -13)}
"""x, y of the cells whose plane, or whose steps, the peak spoils: discs of one cell"""


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    from rfly_terrain.files.writer import write_map

    folder = tmp_path_factory.mktemp("maps")
    heights = np.zeros((21, 33))
    heights[7, 12] = 5.0
    write_map(heights, folder / "peak", origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=-1.0)
    east, _ = np.meshgrid(np.arange(9.0), np.arange(6.0), indexing="ij")
    write_map(
        east * 2 * math.tan(math.radians(20)),
        folder / "hill",
        origin_x=10,
        origin_y=20,
        step_x=2,
        step_y=2,
    )
    return folder


@pytest.fixture(scope="module")
def peer(shared_domain_id, maps):
    """A peer of one running node that serves the peak; each test leaves it so."""
    from node_harness import NodeProcess, Peer

    parameters = {
        "map": f"'{maps / 'peak.png'}'",
        "map_search_path": f"['{maps}']",
        "vehicle_radius": "0.5",
    }
    with NodeProcess("terrain_node", shared_domain_id, parameters):
        peer = Peer(shared_domain_id)
        yield peer
        peer.close()


@pytest.fixture(scope="module")
def grids(peer):
    """Return all grids received, first that of a late subscriber."""
    from nav_msgs.msg import OccupancyGrid
    from rfly_suite.srv import GetTerrainAltitude

    from rfly_common.ros.qos import LATCHED

    up = peer.call(GetTerrainAltitude, "get_terrain_altitude").success
    assert up, "the node has been up before we subscribe"
    received = peer.receive(OccupancyGrid, "terrain_occupancy", LATCHED)
    peer.spin_until(lambda: received)
    return received


@pytest.fixture(scope="module")
def objects(peer):
    from rfly_suite.msg import PlacedObjectArray

    from rfly_common.ros.qos import LATCHED

    return peer.publisher(PlacedObjectArray, "placed_objects", LATCHED)


def lethal(grid):
    """Places x, y of the cells of 100, by the definition of the message."""
    info = grid.info
    data = np.asarray(grid.data).reshape(info.height, info.width)
    return {
        (
            round(info.origin.position.x + (column + 0.5) * info.resolution, 6),
            round(info.origin.position.y + (row + 0.5) * info.resolution, 6),
        )
        for row, column in np.argwhere(data == 100).tolist()
    }


def set_parameter(peer, name, value):
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    parameter = Parameter(name, value=value).to_parameter_msg()
    (result,) = peer.call(
        SetParameters, "terrain_node/set_parameters", parameters=[parameter]
    ).results
    return result


def boxes(places, frame_id="map"):
    """Boxes of 1.8 x 1.8 x 1 m."""
    from rfly_suite.msg import PlacedObjectArray

    message = PlacedObjectArray(
        id=list(range(len(places))),
        box_origin=[float(v) for place in places for v in place],
        box_half_extent=[0.9, 0.9, 0.5] * len(places),
        orientation=[0.0, 0.0, 0.0, 1.0] * len(places),
    )
    message.header.frame_id = frame_id
    return message


def test_a_late_subscriber_gets_the_grid_in_map(grids):
    """Width runs along x_east, height along y_north; the grid is not mirrored.

    The corner is half a cell from the first sample.
    """
    grid = grids[0]
    info = grids[0].info
    assert (grid.header.frame_id, info.width, info.height, info.resolution) == ("map", 21, 33, 1.0)

    # the corner
    origin = info.origin
    assert (origin.position.x, origin.position.y, origin.position.z) == (-0.5, -32.5, 0.0)
    assert (
        origin.orientation.x,
        origin.orientation.y,
        origin.orientation.z,
        origin.orientation.w,
    ) == (0, 0, 0, 1)

    # the costs
    assert lethal(grid) == PEAK
    data = np.asarray(grid.data).reshape(33, 21)
    assert (data[[0, -1]] == -1).all()
    assert (data[:, [0, -1]] == -1).all()
    assert data[5, 5] == 0


def test_objects_forbid_cells_until_they_are_gone(peer, grids, objects):
    objects.publish(boxes([(15.0, -20.0, 0.5)]))
    around = {(x, y) for x in (14, 15, 16) for y in (-21, -20, -19)}
    peer.spin_until(lambda: lethal(grids[-1]) == PEAK | around)
    objects.publish(boxes([(-20.0, 15.0, -0.5)], "map_ned"))  # x north, y east: the same place
    objects.publish(boxes([(-25.0, 4.0, -0.5)], "map_ned"))
    peer.spin_until(
        lambda: lethal(grids[-1]) == PEAK | {(x, y) for x in (3, 4, 5) for y in (-26, -25, -24)}
    )
    objects.publish(boxes([]))
    peer.spin_until(lambda: lethal(grids[-1]) == PEAK)


def test_traversability_marker_shows_forbidden_ground_on_the_relief(peer, grids, objects):
    """Corners of the colour of forbidden ground lie on the cells of 100.

    They are half a metre above the ground.
    """
    from visualization_msgs.msg import Marker

    from rfly_common.ros.qos import LATCHED

    shown = peer.receive(Marker, "traversability_marker", LATCHED)

    def forbidden():
        corners = zip(shown[-1].points, shown[-1].colors, strict=True) if shown else ()
        return {
            (p.x, p.y): p.z for p, c in corners if (round(c.r, 2), round(c.a, 2)) == (0.16, 0.85)
        }

    peer.spin_until(forbidden)
    assert (shown[-1].header.frame_id, shown[-1].ns) == ("map", "traversability")
    assert forbidden() == {place: 5.5 if place == (7, -12) else 0.5 for place in PEAK}
    assert len(shown[-1].points) == 3 * 2 * 20 * 32
    objects.publish(boxes([(15.0, -20.0, 0.5)]))
    around = {(x, y) for x in (14, 15, 16) for y in (-21, -20, -19)}
    peer.spin_until(lambda: set(forbidden()) == PEAK | around)
    objects.publish(boxes([]))
    peer.spin_until(lambda: set(forbidden()) == PEAK and lethal(grids[-1]) == PEAK)


def test_a_burst_of_changes_makes_few_grids(peer, grids, objects):
    before = len(grids)
    for n in range(16):  # each for itself: the topic's queue of one has no share in it
        objects.publish(boxes([(3.0 + n, -25.0, 0.5)]))
        peer.spin_for(0.02)
    objects.publish(boxes([(15.0, -5.0, 0.5)]))
    peer.spin_until(lambda: (15, -5) in lethal(grids[-1]))
    assert 1 <= len(grids) - before <= 6
    same = len(grids)
    objects.publish(boxes([(15.0, -5.0, 0.5)]))
    objects.publish(boxes([]))
    peer.spin_until(lambda: lethal(grids[-1]) == PEAK)
    assert len(grids) - same <= 2, "what changes nothing makes no grid"


def test_an_array_that_contradicts_itself_or_has_no_place_is_told(peer, grids, objects):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic
    from rclpy.qos import QoSProfile

    reports = peer.receive(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
    broken = boxes([(15.0, -5.0, 0.5)])
    broken.box_half_extent = [1.0, 1.0]
    for message, told in ((broken, "placed_objects"), (boxes([(1.0, 1.0, 1.0)], "mars"), "'mars'")):
        objects.publish(message)
        peer.spin_until(lambda told=told: told in (diagnostic(reports, "occupancy") or ["", ""])[1])
    objects.publish(boxes([]))
    peer.spin_until(lambda: (diagnostic(reports, "occupancy") or [9])[0] == 0)
    _, _, values = diagnostic(reports, "occupancy")
    assert float(values["forbidden_share"]) == pytest.approx(5 / 693, abs=1e-4)


def test_limits_change_at_run_time(peer, grids):
    """A radius of 1.1 m grows the peak's cells by their neighbours.

    A level of 1 m leaves only the peak dry.
    """
    assert set_parameter(peer, "vehicle_radius", 1.1).successful
    grown = PEAK | {(x + a, y + b) for x, y in PEAK for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))}
    peer.spin_until(lambda: lethal(grids[-1]) == grown)
    assert set_parameter(peer, "vehicle_radius", 0.5).successful
    assert set_parameter(peer, "water_level", 1.0).successful
    peer.spin_until(lambda: len(lethal(grids[-1])) == 21 * 33)
    assert set_parameter(peer, "water_level", -1e9).successful
    assert set_parameter(peer, "occupancy_resolution", 0.5).successful
    peer.spin_until(lambda: grids[-1].info.resolution == 0.5)
    assert (grids[-1].info.width, grids[-1].info.height) == (41, 65)
    assert set_parameter(peer, "occupancy_resolution", 0.0).successful
    peer.spin_until(lambda: lethal(grids[-1]) == PEAK)


@pytest.mark.parametrize(
    ("name", "value"), [("max_slope_deg", 95.0), ("vehicle_radius", -1.0), ("max_step", math.nan)]
)
def test_limits_that_make_no_sense_are_refused(peer, name, value):
    refused = set_parameter(peer, name, value)
    assert not refused.successful
    assert name in refused.reason


def test_a_resolution_with_too_many_cells_is_an_error_and_keeps_the_grid(peer, grids):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import diagnostic
    from rclpy.qos import QoSProfile

    reports = peer.receive(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
    before = len(grids)
    assert set_parameter(peer, "occupancy_resolution", 1e-4).successful
    peer.spin_until(
        lambda: "resolution: 0.0001 m" in (diagnostic(reports, "occupancy") or ["", ""])[1]
    )
    assert len(grids) == before
    assert set_parameter(peer, "occupancy_resolution", 0.0).successful
    peer.spin_until(lambda: (diagnostic(reports, "occupancy") or [9])[0] == 0)


def test_a_reload_publishes_the_new_maps_grid(peer, grids, maps):
    """20° of slope on cells of 2 m cost round(99 · 20/25) = 79 where the limit is 25°."""
    from rfly_suite.srv import LoadTerrain

    assert peer.call(LoadTerrain, "load_terrain", map=str(maps / "hill.png")).success
    grid = peer.spin_until(lambda: grids[-1].info.width == 9 and grids[-1])
    assert (grid.info.height, grid.info.resolution) == (6, 2.0)
    assert (grid.info.origin.position.x, grid.info.origin.position.y) == (9.0, 19.0)
    assert set(np.asarray(grid.data).reshape(6, 9)[1:-1, 1:-1].ravel().tolist()) == {79}
    assert peer.call(LoadTerrain, "load_terrain", map=str(maps / "peak.png")).success
    peer.spin_until(lambda: lethal(grids[-1]) == PEAK)


def test_a_huge_map_gets_cells_whose_message_is_not(monkeypatch):
    """1,000 x 500 cells of 2 m x 4 m get a side of 6 m.

    They are 1,000 x 1,000 of 2 m, and at most 250,000 may travel: 3 to a side.
    """
    from rfly_terrain import HeightMap
    from rfly_terrain.ros.occupancy_topics import default_resolution

    terrain = HeightMap(np.zeros((1000, 500)), origin_x=0, origin_y=0, step_x=2, step_y=-4)
    assert default_resolution(terrain) == 2.0
    monkeypatch.setattr("rfly_terrain.ros.occupancy_topics.LARGEST_MESSAGE", 250_000)
    assert default_resolution(terrain) == 6.0
