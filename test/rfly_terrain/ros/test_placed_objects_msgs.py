# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""placed_objects -> solids: frames and axes by hand, and arrays that contradict each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import PlacementError
from rfly_common.transform_buffer import IDENTITY, FrameToWorld, Transform

pytestmark = pytest.mark.ros

H = math.sqrt(0.5)
WEDGE = [(0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 3.0)]
BLADE = [(5.0, 0.0, 0.0), (6.0, 0.0, 0.0), (5.0, 1.0, 0.0), (5.0, 0.0, 1.0)]


def message(**changes):
    """A box, and a solid of two parts that looks north, 100 m east of the origin."""
    from rfly_suite.msg import PlacedObjectArray

    made = PlacedObjectArray(
        id=[7, 8],
        vehicle_type=[0, 0],
        position=[0.0, 0.0, 0.0, 100.0, 0.0, 5.0],
        orientation=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, H, H],
        box_origin=[0.0, 0.0, 1.0, 100.0, 0.0, 6.0],
        box_half_extent=[1.0, 2.0, 1.0, 9.0, 9.0, 9.0],
        offset=[0.0, 0.0],
        scale=[1.0] * 6,
        use_ground_packet=[0, 0],
        solid=[-1, 0],
        solid_parts=[2],
        part_vertices=[4, 4],
        vertices=[number for corner in WEDGE + BLADE for number in corner],
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def frame(axes="enu", moved=None):
    transform = IDENTITY if moved is None else Transform(np.array(moved), IDENTITY.quat_xyzw)
    return FrameToWorld(axes, transform, is_world=moved is None)


def corners(solids, row):
    return sorted(
        map(tuple, np.round(solids.vertices[solids.first[row] : solids.first[row + 1]], 9).tolist())
    )


def test_boxes_and_parts_where_they_are():
    from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids

    solids = placed_objects_to_solids(message(), frame())
    assert len(solids) == 3
    assert corners(solids, 0)[0] == (-1.0, -2.0, 0.0)
    assert corners(solids, 1) == [
        (99.0, 0.0, 5.0),
        (100.0, 0.0, 5.0),
        (100.0, 0.0, 8.0),
        (100.0, 2.0, 5.0),
    ]
    assert corners(solids, 2) == [
        (99.0, 5.0, 5.0),
        (100.0, 5.0, 5.0),
        (100.0, 5.0, 6.0),
        (100.0, 6.0, 5.0),
    ]
    moved = placed_objects_to_solids(message(), frame(moved=np.array([0.0, 1000.0, 0.0])))
    assert moved.vertices == pytest.approx(solids.vertices + np.array((0.0, 1000.0, 0.0)))


def test_north_east_down_is_turned_back():
    """The scene in map_ned, as the bridge publishes it, is turned back.

    x and y are exchanged, z is down, and bodies are half a turn about (1, 1, 0).
    """
    from rfly_common.frames import QUAT_ENU_NED_XYZW, quat_conjugate, quat_multiply
    from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids

    enu = message()
    back = quat_conjugate(QUAT_ENU_NED_XYZW)
    turned = quat_multiply(np.broadcast_to(back, (2, 4)), np.reshape(enu.orientation, (2, 4)))
    ned = message(
        position=[0.0, 0.0, 0.0, 0.0, 100.0, -5.0],
        box_origin=[0.0, 0.0, -1.0, 0.0, 100.0, -6.0],
        orientation=turned.reshape(-1).tolist(),
    )
    expected = placed_objects_to_solids(enu, frame())
    assert placed_objects_to_solids(ned, frame("ned")).vertices == pytest.approx(expected.vertices)


def test_who_knows_boxes_only():
    from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids

    plain = message(solid=[], solid_parts=[], part_vertices=[], vertices=[])
    assert len(placed_objects_to_solids(plain, frame())) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"solid": [0]}, "solid: 1 numbers for 2 objects"),
        ({"solid": [0, 1]}, "solid: expected -1 … 0"),
        ({"solid": [-2, 0]}, "solid: expected -1 … 0"),
        ({"solid_parts": [1]}, "solid_parts: expected 1 and more, together 2"),
        ({"solid_parts": [0]}, "solid_parts"),
        ({"solid_parts": [2147483647]}, "solid_parts"),
        ({"part_vertices": [3, 5]}, "part_vertices: expected 4 … 256"),
        ({"part_vertices": [-4, 12]}, "part_vertices"),
        ({"vertices": [0.0] * 23}, "vertices: 23 numbers, expected 24"),
        ({"vertices": [math.nan] + [0.0] * 23}, "vertices: expected metres within"),
        ({"vertices": [1e300] + [0.0] * 23}, "vertices: expected metres within"),
        ({"orientation": [0.0, 0.0, 0.0, 1.0]}, "orientation"),
    ],
)
def test_arrays_that_contradict_each_other(changes, words):
    from rfly_terrain.ros.placed_objects_msgs import placed_objects_to_solids

    with pytest.raises(PlacementError, match=words):
        placed_objects_to_solids(message(**changes), frame())


def test_contacts_take_the_same_parts():
    """Rows of bodies are the box, and one for each part.

    Hulls without a volume are refused; colours of 0 0 0 are none.
    """
    from rfly_collision.ros.contact_msgs import msg_to_placed

    placed = msg_to_placed(message(color=[0, 0, 0, 255, 51, 0], class_id=[3, 5]), "enu")
    assert placed.id.tolist() == [7, 8, 8]
    assert placed.hull_index.tolist() == [-1, 0, 1]
    assert placed.has_box.tolist() == [True, False, False]
    assert placed.color[1:] == pytest.approx(np.array([(1.0, 0.2, 0.0)] * 2))
    assert np.isnan(placed.color[0]).all()
    assert placed.class_id.tolist() == [3, 5, 5]
    parts = msg_to_placed(
        message(color=[0, 0, 51, 255, 51, 0], part_color=[0, 0, 0, 0, 102, 0]), "enu", seen=True
    )
    assert parts.color == pytest.approx(
        np.array([(0.0, 0.0, 0.2), (1.0, 0.2, 0.0), (0.0, 0.4, 0.0)])
    )
    parts = msg_to_placed(message(part_color=[51, 0, 0, 0, 0, 0]), "enu")
    assert parts.color[1].tolist() == [0.2, 0.0, 0.0]
    assert np.isnan(parts.color[[0, 2]]).all()
    with pytest.raises(
        PlacementError, match="part_color: 3 numbers for 2 parts, expected 6 or none"
    ):
        msg_to_placed(message(part_color=[1, 2, 3]), "enu")
    shapes, index, _ = placed.shapes(of_types())
    assert shapes[index[2]].vertices.tolist() == [list(corner) for corner in BLADE]
    with pytest.raises(PlacementError, match="in one plane or line"):
        msg_to_placed(message(vertices=[0.0] * 24), "enu")
    with pytest.raises(PlacementError, match="color: 3 numbers for 2 objects"):
        msg_to_placed(message(color=[1, 2, 3]), "enu")
    with pytest.raises(PlacementError, match="class_id: 1 numbers for 2 objects"):
        msg_to_placed(message(class_id=[1]), "enu")


def test_rays_take_triangles_where_there_are_any():
    """The object of two parts has one row, while contacts stay with its parts.

    Counts and numbers that disagree are refused.
    """
    from rfly_collision.ros.contact_msgs import msg_to_placed

    sheet = [
        (0.0, 0.0, 0.0),
        (2.0, 0.0, 0.0),
        (0.0, 1.0, 0.0),
        (2.0, 0.0, 0.0),
        (2.0, 1.0, 0.0),
        (0.0, 1.0, 0.0),
    ]
    told = message(solid_triangles=[2], triangles=[number for corner in sheet for number in corner])
    seen = msg_to_placed(told, "enu", seen=True)
    assert seen.id.tolist() == [7, 8]
    shapes, index, _ = seen.shapes(of_types())
    assert shapes[index[1]].triangles.reshape(-1, 3).tolist() == [list(corner) for corner in sheet]
    assert msg_to_placed(told, "enu").id.tolist() == [7, 8, 8]
    assert msg_to_placed(message(solid_triangles=[0]), "enu", seen=True).id.tolist() == [7, 8, 8]
    for changes, words in (
        ({"solid_triangles": [1, 1]}, "solid_triangles: expected 1 counts"),
        ({"solid_triangles": [-1]}, "solid_triangles"),
        ({"solid_triangles": [2]}, "triangles: 0 numbers, expected 18"),
        ({"triangles": [0.0] * 9}, "triangles: 9 numbers, expected 0"),
        (
            {"solid_triangles": [1], "triangles": [math.nan] * 9},
            "triangles: 9 numbers, expected 9 numbers within",
        ),
    ):
        with pytest.raises(PlacementError, match=words):
            msg_to_placed(message(**changes), "enu", seen=True)


def of_types():
    from rfly_collision import load_shapes

    return load_shapes()


def test_class_ids_of_the_message_are_those_of_the_library():
    from pathlib import Path

    from rfly_terrain.world.models import CLASSES

    text = (Path(__file__).parents[3] / "msg" / "PlacedObjectArray.msg").read_text(encoding="utf-8")
    assert ", ".join(f"{number} {name}" for number, name in enumerate(CLASSES)) in text


def test_what_moves_is_no_part_of_what_stands_and_is_refused_where_it_contradicts_itself():
    """The solid of two parts moves 4 m west and back at 2 m/s, given in both kinds of axes."""
    from rfly_terrain.ros.placed_objects_msgs import (
        placed_objects_to_moving,
        placed_objects_to_solids,
    )

    way = {
        "path_corners": [0, 2],
        "path": [100.0, 0.0, 5.0, 96.0, 0.0, 5.0],
        "path_speed": [0.0, 2.0],
        "path_start": [0.0, 1.0],
        "path_loops": [0, 0],
    }
    assert len(placed_objects_to_solids(message(**way), frame())) == 1
    moving = placed_objects_to_moving(message(**way), frame())
    assert [len(each) for each in moving.parts] == [2]
    position, _, velocity = moving.paths[0].at(1.0)
    assert (*position, *velocity) == pytest.approx((97.0, 0.0, 5.0, -2.0, 0.0, 0.0))
    ned = placed_objects_to_moving(
        message(**way | {"path": [0.0, 100.0, -5.0, 0.0, 96.0, -5.0]}), frame("ned")
    )
    assert ned.paths[0].corners == pytest.approx(moving.paths[0].corners)
    assert placed_objects_to_moving(message(), frame()) is None
    for changes, words in (
        ({"path": [1.0]}, "path: 1 numbers, expected 6"),
        ({"path_speed": [2.0]}, "expected 2 numbers each"),
        ({"path_corners": [2, 0]}, "a moving object must be one of the solids"),
        ({"path_speed": [0.0, math.nan]}, "expected 0 … 100 m/s"),
    ):
        with pytest.raises(PlacementError, match=words):
            placed_objects_to_moving(message(**way | changes), frame())
