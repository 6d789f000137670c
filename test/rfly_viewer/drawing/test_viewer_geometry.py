# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain meshes, picking, contacts, cameras and scans, against values worked out by hand."""

from __future__ import annotations

import dataclasses

import cv2
import numpy as np
import pytest

from rfly_collision.shapes import vehicle_meshes as models
from rfly_common.errors import CommandError
from rfly_common.frames import euler_to_quat
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.drawing.terrain_mesh import terrain_mesh
from rfly_viewer.scene.contacts import find_contacts
from rfly_viewer.scene.picking import pick
from rfly_viewer.scene.scan import scan_terrain
from rfly_viewer.scene.scene_commands import ScanTerrain
from rfly_viewer.scene.scene_state import flat_ground
from rfly_viewer.scene.vehicle_table import WorldPoses
from rfly_viewer.scene.viewpoint import Viewpoint, from_browser, vertical_fov

QUARTER = np.pi / 2
# x_east 0, 10, 20 down the rows and y_north 0, 10, 20 along the columns: one peak of 8 m at x = 10,
# y = 20
PEAK = HeightMap(
    [
        [0, 0, 0],
        [0, 0, 8.0],
        [0, 0, 0],
    ],
    origin_x=0,
    origin_y=0,
    step_x=10,
    step_y=10,
    name="Peak",
)


def poses(*vehicles):
    """WorldPoses of (id, kind, position NED, Euler, scale)."""
    ids, kinds, positions, euler, scale = (list(column) for column in zip(*vehicles, strict=True))
    scales = np.array([[value] * 3 for value in scale], float)
    return WorldPoses(
        np.array(ids),
        np.array(kinds),
        np.array(kinds),
        np.array(positions, float),
        euler_to_quat(np.array(euler, float)),
        scales,
        np.zeros(len(ids)),
        np.zeros(len(ids)),
        np.zeros(len(ids), bool),
    )


def box(vehicle_id, position, euler=(0, 0, 0), scale=1.0, kind=models.MARKER):
    return (vehicle_id, kind, position, euler, scale)


def test_mesh_of_one_quad_for_each_cell():
    """3 x 3 samples, 4 cells: 9 corners and 4 middles, 16 triangles.

    A middle is the mean of its four corners.
    """
    mesh = terrain_mesh(PEAK, max_triangles=16)
    assert (len(mesh.vertices), len(mesh.faces)) == (13, 16)
    height = {(x, y): z for x, y, z in mesh.vertices.tolist()}
    assert height[10, 20] == 8
    assert [height[x, y] for x in (0, 10, 20) for y in (0, 10)] == [0] * 6
    assert (height[5, 15], height[15, 15], height[5, 5]) == (2, 2, 0)


def test_triangles_cover_the_map_once_with_their_fronts_up():
    mesh = terrain_mesh(PEAK, max_triangles=16)
    a, b, c = (mesh.vertices[mesh.faces[:, i]].astype(float) for i in range(3))
    double_area = np.cross(b - a, c - a)[:, 2]
    assert (double_area > 0).all()
    assert double_area.sum() / 2 == pytest.approx(20 * 20)


@pytest.mark.parametrize("budget", [4, 16, 100, 145, 5000])
def test_the_budget_of_triangles_is_kept_and_borders_stay(budget):
    rows, columns = np.mgrid[0:9, 0:17]
    terrain = HeightMap(rows * 1.0 + columns, origin_x=0, origin_y=0, step_x=1, step_y=1)
    mesh = terrain_mesh(terrain, max_triangles=budget)
    assert len(mesh.faces) <= budget
    assert mesh.vertices[:, 0].min() == mesh.vertices[:, 1].min() == 0
    assert (mesh.vertices[:, 0].max(), mesh.vertices[:, 1].max()) == (8, 16)
    expected = mesh.vertices[:, 0] + mesh.vertices[:, 1]
    assert mesh.vertices[:, 2] == pytest.approx(expected, abs=1e-5)


def test_the_picture_has_north_at_its_top_and_the_peak_pale():
    """The peak is in the middle of the north edge, where the ground is coloured as the highest."""
    picture = terrain_mesh(PEAK).picture.astype(int)
    assert picture.shape == (48, 48, 3)  # 16 pixels for each sample
    peak = picture[:4, 22:26].mean()
    south = picture[-4:, 22:26].mean()
    assert peak > south + 20


def test_a_ray_meets_the_ground_or_a_vehicle_or_nothing():
    """Straight down at x_east = 10, y_north = 15 the ground is 4 m high."""
    nobody = poses(box(1, (500, 500, 0)))
    click = pick(PEAK, nobody, (10, 15, 100), (0, 0, -1))
    assert click.point == pytest.approx((15, 10, -4), abs=1e-6)
    assert click.vehicle_id is None
    above = pick(
        PEAK,
        poses(box(5, (15, 10, -20))),
        (10, 15, 100),
        (0, 0, -1),
    )
    assert (above.vehicle_id, above.object_position) == (5, (15, 10, -20))
    assert above.point == pytest.approx((15, 10, -20.5))
    assert pick(PEAK, nobody, (10, 15, 100), (0, 0, 1)) is None
    assert pick(PEAK, nobody, (10, 15, 100), (1, 0, 0)) is None


def test_a_ray_meets_the_turned_box():
    """A ray meets the box of a vehicle in its own axes.

    A car is 4.3 m long and 1.96 m wide: 2 m east of its middle it is met only when it looks east.
    """
    ray = ((2.0, 0.0, 50.0), (0, 0, -1))
    for yaw, met in ((0.0, None), (QUARTER, 1)):
        car = poses(box(1, (0, 0, 0), (0, 0, yaw), kind=models.CAR))
        assert pick(flat_ground(), car, *ray).vehicle_id == met


def test_contacts_with_each_other_and_with_the_ground():
    """Boxes of 1 m touch 0.9 m apart, and not 1.4 m apart.

    Feet 0.2 m deep are under ground, 0.05 m deep not.
    """
    found = find_contacts(
        poses(
            box(11, (0, 0, -5)),
            box(12, (0.9, 0, -5)),
            box(13, (2.3, 0, -5)),
            box(14, (50, 0, -0.3)),
            box(15, (60, 0, -0.45)),
            box(16, (70, 0, -5), (0, QUARTER, 0)),
        ),
        flat_ground(),
    )

    assert found.crash_type.tolist() == [12, 11, 0, -2, 0, 0]
    assert found.point_ned[0] == pytest.approx([0.45, 0, -5])
    assert found.point_ned[3] == pytest.approx([50, 0, 0.2], abs=0.11)
    assert found.point_ned[5].tolist() == [70, 0, -5]


def test_contacts_of_turned_and_scaled_models():
    """Contacts are those of turned and scaled boxes.

    Looking east, the 8.6 m of a car of double size lie along east: another one 4.7 m east of it is
    touched, one 4.7 m north is not. Turned by 45 degrees only the corner of the axes' box around it
    reaches the third.
    """
    big = box(1, (0, 0, -5), (0, 0, QUARTER), 2.0, models.CAR)
    found = find_contacts(poses(big, box(2, (0, 4.7, -7)), box(3, (4.7, 0, -7))), flat_ground())
    assert found.crash_type.tolist() == [2, 1, 0]
    turned = box(1, (0, 0, -5), (0, 0, QUARTER / 2), 2.0, models.CAR)
    found = find_contacts(
        poses(turned, box(2, (3.0, -3.0, -7)), box(3, (3.0, 3.0, -7))), flat_ground()
    )
    assert found.crash_type.tolist() == [3, 0, 1]


def test_the_deepest_contact_of_several_counts():
    found = find_contacts(
        poses(box(4, (0.8, 0, -5)), box(5, (0, 0, -5)), box(6, (-0.5, 0, -5))), flat_ground()
    )
    assert found.crash_type.tolist() == [5, 6, 5]


def test_what_is_kept_on_the_ground_does_not_crash_into_its_slope():
    """A car that is kept on the ground of the peak's flank, 4 m in 10 m, stands along it.

    A level one, placed by its own packet, has its front in the ground.
    """
    car = (5.0, 15.0)
    place = (15.0, 5.0, -float(PEAK.altitude(*car)))
    two = poses(box(1, place, kind=models.CAR), box(2, (15.0, 15.0, place[2]), kind=models.CAR))
    assert find_contacts(two, PEAK).crash_type.tolist() == [-2, -2]
    kept = dataclasses.replace(two, on_ground=np.array([True, False]))
    assert find_contacts(kept, PEAK).crash_type.tolist() == [0, -2]


def test_in_a_crowd_only_the_ground_counts():
    """201 in one place are 20,100 pairs; 200 are 19,900."""
    together = [box(i, (0, 0, -0.2)) for i in range(1, 202)]
    assert set(find_contacts(poses(*together), flat_ground()).crash_type.tolist()) == {-2}


def test_nothing_is_touched_beyond_the_map_or_out_of_this_world():
    """The peak's map ends at 20 m; numbers that no vehicle can have are no reason to fail."""
    odd = poses(
        box(1, (5, 25, 3)),
        box(2, (3e38, 0, 0)),
        box(3, (0, 0, -5), scale=0.0),
        box(4, (0, 0, -5), scale=1e30),
    )
    assert find_contacts(odd, PEAK).crash_type.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("euler", "forward", "up"),
    [
        ((0, 0, 0), (0, 1, 0), (0, 0, 1)),
        ((0, 0, QUARTER), (1, 0, 0), (0, 0, 1)),
        ((0, -QUARTER, 0), (0, 0, -1), (0, 1, 0)),
        ((QUARTER, 0, 0), (0, 1, 0), (1, 0, 0)),
    ],
)
def test_camera_axes_in_enu(euler, forward, up):
    """Headings north, east, straight down with north on top, and rolled right with east on top."""
    pose = Viewpoint(np.zeros(3), np.array(euler, float))
    assert np.concatenate(pose.axes_enu()) == pytest.approx([*forward, *up], abs=1e-12)


def test_a_browsers_camera_that_looks_north_is_level():
    """Optical axes (x right = east, y down, z forward = north) in ENU.

    The camera is turned about x by -90 degrees.
    """
    pose = from_browser((7, 8, 9), (np.sqrt(0.5), -np.sqrt(0.5), 0, 0))
    assert pose.position_ned == pytest.approx([8, 7, -9])
    assert pose.euler == pytest.approx([0, 0, 0], abs=1e-12)


def test_vertical_angle_of_a_wide_picture():
    """90 degrees across a picture twice as wide as high: tan is 1 across and a half upwards."""
    assert vertical_fov(QUARTER, 2.0) == pytest.approx(2 * np.arctan(0.5))


def test_a_scan_is_a_map_of_the_shown_terrain(tmp_path):
    path = scan_terrain(ScanTerrain((0, 0), (20, 20), 5), PEAK, "../Peak one", tmp_path)
    assert path == tmp_path / "Peak_one"
    assert cv2.imread(f"{path}.png", cv2.IMREAD_UNCHANGED).shape == (5, 5)

    scanned = HeightMap.load(f"{path}.png")
    x, y = np.meshgrid(np.linspace(0, 20, 9), np.linspace(0, 20, 9))

    on_samples = (
        scanned.altitude(10.0, 20.0),
        scanned.altitude(10.0, 15.0),
        scanned.altitude(0.0, 0.0),
    )
    assert on_samples == pytest.approx((8, 4, 0), abs=0.01)
    assert scanned.bounds == pytest.approx((0, 20, 0, 20))
    # bilinear in cells half as wide
    assert np.abs(scanned.altitude(x, y) - PEAK.altitude(x, y)).max() < 0.51


@pytest.mark.parametrize("folder", [None, "there"])
def test_a_scan_that_is_refused(folder, tmp_path):
    """A scan is refused without a folder, or if it has 40,001 x 40,001 samples."""
    size = 20 if folder is None else 40_000
    with pytest.raises(CommandError, match="RflyScanTerrainH"):
        scan_terrain(ScanTerrain((0, 0), (size, size), 1), PEAK, "x", folder and tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "numbers",
    [
        (-1e308, 0, 1e308, 20, 5),
        (0, 0, 20, 1e308, 5),
        (0, 0, 20, 20, 1e-320),
        (1e300, 1e300, 1.1e300, 1.1e300, 1e299),
    ],
)
def test_a_scan_of_enormous_numbers_is_refused(numbers, tmp_path):
    """Corners that are finite and in order are accepted, but their quotient may be infinite."""
    *corners, interval = numbers
    with pytest.raises(CommandError, match="RflyScanTerrainH"):
        scan_terrain(
            ScanTerrain(tuple(corners[:2]), tuple(corners[2:]), interval), PEAK, "x", tmp_path
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("viser")
def test_lines_on_the_ground_lie_below_what_flies():
    """Lines on the ground lie 15 cm over the triangles.

    One vehicle is 20 m over the plain, one rolls, one flies to the peak of 8 m.
    """
    from rfly_viewer.drawing.trail_layer import with_ground_lines

    ways = np.array(
        [
            [(0, 0, 20.15), (5, 0, 20.15)],
            [(0, 5, 0.15), (0, 9, 0.15)],
            [(10, 10, 9.0), (10, 20, 9.0)],
        ],
        float,
    )
    colours = np.full((3, 2, 3), 200, np.uint8)
    points, drawn = with_ground_lines(ways, colours, PEAK)
    assert points[:3].tolist() == ways.tolist()
    expected = np.array([[(0, 0, 0.15), (5, 0, 0.15)], [(10, 10, 0.15), (10, 20, 8.15)]])
    assert points[3:] == pytest.approx(expected)
    assert (drawn[:3].min(), drawn[3:].max()) == (200, 110)
