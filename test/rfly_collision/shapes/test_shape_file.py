# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shapes of vehicle types: the shipped set, scales, and wrong files.

Each error names file, line and key.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rfly_collision.shapes.shape import Box, Capsule, ConvexHull, Sphere
from rfly_collision.shapes.vehicle_shapes import (
    VehicleShape,
    VehicleShapes,
    load_shapes,
    parse_shapes,
    scaled,
    shape_bounds,
    shipped_shapes,
)
from rfly_common.errors import ConfigError

ONE_OF_EACH = """\
version: 1
default: {shape: {type: sphere, radius: 2.0}, centre_height: 2.0}
vehicles:
  - {name: buggy, types: [7, 100-109], shape: {type: box, size: [4, 2, 1.5]}, \
centre_height: 0.5, ground_clearance: 0.3}
  - {name: rocket, types: [300150], \
shape: {type: capsule, radius: 0.5, length: 3, offset: [1, 0, 0]}}
  - {name: ball, types: [8], shape: {type: sphere, radius: 0.25}}
  - {name: wedge, types: [9], upright: true,
     shape: {type: hull, vertices: [[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]]}}
"""


def names(table, types):
    return [table[index].name for index in table.index_of(types).tolist()]


def test_the_shipped_set_knows_rflysims_types():
    """Type 50 is a car, and 100050 and 10050050 are variants of its class.

    150 to 152 are targets. An unlisted type is a box of 1 m around its origin.
    """
    assert shipped_shapes() == ["rflysim3d"]

    table = load_shapes()
    found = names(
        table,
        [
            3,
            30,
            50,
            100050,
            10_050_050,
            51,
            100,
            150,
            200150,
            151,
            152,
            0,
            10,
            29,
            200,
            250000,
            2**31 - 1,
            -5,
        ],
    )

    assert found == [
        "multirotor",
        "person",
        *["car"] * 3,
        "truck",
        "aeroplane",
        *["ring_target"] * 2,
        "quad_target",
        "sphere_target",
        *["box"] * 7,
    ]

    assert table.default.touching == Box((1, 1, 1))


def test_what_can_touch_of_a_car_begins_above_its_wheels():
    """A car of 4.3 x 1.96 x 1.42 m touches with the part above its wheels.

    The lowest 0.2 m are wheels: the part is 0.2 … 1.42 m high, its middle at 0.81 m.
    """
    table = load_shapes()
    car = table[int(table.index_of(50))]
    assert car.low.tolist() == [-2.15, -0.98, 0]
    assert car.high.tolist() == [2.15, 0.98, 1.42]
    assert car.touching.size == pytest.approx((4.3, 1.96, 1.22))
    assert car.touching.offset == pytest.approx((0, 0, 0.81))


def test_one_of_each_shape():
    """A shape without an offset stands centre_height below the origin.

    A hull lies where its corners are.
    """
    table = parse_shapes(ONE_OF_EACH.encode(), "shapes.yaml", "mine")
    assert table.name == "mine"

    assert names(table, [7, 105, 300150, 150, 8, 9, 1]) == [
        "buggy",
        "buggy",
        "rocket",
        "box",
        "ball",
        "wedge",
        "box",
    ]

    buggy, rocket, ball, wedge = table.shapes
    assert buggy.touching == Box((4, 2, 1.2), (0, 0, 0.4))  # from -0.5 + 0.3 up
    assert rocket.touching == Capsule(0.5, 3, (1, 0, 0))
    assert ball.touching == Sphere(0.25, (0, 0, 0.25))
    assert isinstance(wedge.touching, ConvexHull)
    assert wedge.upright

    assert table.default.touching == Sphere(2.0)
    assert table.column("centre_height").tolist() == [0.5, 0, 0, 0, 2]


def test_a_type_of_its_own_goes_before_its_class():
    text = ONE_OF_EACH.replace("[8]", "[150]")
    assert names(parse_shapes(text.encode(), "f"), [150, 100150, 300150]) == [
        "ball",
        "ball",
        "rocket",
    ]


def test_scales_stretch_along_the_axes():
    """The wheels of a car twice as high are twice as high too."""
    assert scaled(Box((4, 2, 1), (1, 0, 0.5)), (2, 3, 4)) == Box((8, 6, 4), (2, 0, 2))
    assert scaled(Sphere(1, (0, 1, 0)), (1, 2, 3)) == Sphere(3, (0, 2, 0))
    assert scaled(Capsule(0.5, 3), (2, 1, 3)) == Capsule(1.5, 6)

    hull = scaled(
        ConvexHull(
            [
                [0, 0, 0],
                [2, 0, 0],
                [0, 2, 0],
                [0, 0, 2],
            ],
            (0, 0, 1),
        ),
        (1, 2, 3),
    )
    assert shape_bounds(hull)[1].tolist() == [2, 4, 9]

    table = load_shapes()
    shapes, which, row = table.touching(
        table.index_of([50, 3, 50, 50]),
        [
            [1, 1, 2],
            [1, 1, 1],
            [1, 1, 2],
            [1, 1, 1],
        ],
    )
    assert len(shapes) == 3
    assert row.tolist() == [0, 1, 2, 3]
    assert which[0] == which[2]

    low, high = shape_bounds(shapes[which[0]])
    assert (low[2], high[2]) == pytest.approx((0.4, 2.84))
    assert shape_bounds(shapes[which[3]])[0][2] == pytest.approx(0.2)


def test_a_frame_has_sides_around_its_opening_and_a_post():
    """The quad target's opening is 1.6 m wide between bars of 0.12 m, its middle 1.2 m high.

    A square of sides 0.8 m from the middle ends 0.92 m from it. The post of 0.28 m touches from
    0.1 m above the ground up, z -1.1 to -0.92.
    """
    table = load_shapes()
    quad = table[int(table.index_of(151))]
    assert quad.low == pytest.approx([-0.06, -0.92, -1.2])
    assert quad.high == pytest.approx([0.06, 0.92, 0.92])

    bodies = table.touching(table.index_of([50, 151]), np.ones((2, 3)))
    assert bodies.row.tolist() == [0, 1, 1, 1, 1, 1]
    *sides, post = [bodies.shapes[index] for index in bodies.shape_index[1:]]
    near = sorted(np.abs(shape_bounds(side)[k][1:]).min() for side in sides for k in (0, 1))
    assert near == pytest.approx([0.8] * 4 + [0.92] * 4)
    assert post.size == pytest.approx((0.12, 0.12, 0.18))
    assert post.offset == pytest.approx((0, 0, -1.01))


def test_a_table_without_types_gives_the_default():
    assert VehicleShapes((), ()).index_of(np.array([3, 4])).tolist() == [0, 0]


def test_clearance_is_for_boxes():
    with pytest.raises(ValueError, match="ground_clearance: ball is no box"):
        VehicleShape("ball", Sphere(1.0), ground_clearance=0.1)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("version: 1", "version: 2", "f.yaml:1: version: 2, allowed: 1"),
        ("name: ball, ", "", "f.yaml:6: vehicles[2]: the key name is missing"),
        ("radius: 0.25", "radius: 0", "f.yaml:6: vehicles[2].shape.radius: 0, allowed: 0.001 … "
            "10000 (m, more than 0)"),
        ("radius: 0.25", "radius: -1", "f.yaml:6: vehicles[2].shape.radius: -1, allowed"),
        ("radius: 0.25", "radius: .nan", "f.yaml:6: vehicles[2].shape.radius: .nan is not a "
            "finite number"),
        ("radius: 0.25", "radius: 0.25, size: [1, 1, "
            "1]", "f.yaml:6: vehicles[2].shape.size: unknown key; allowed"),
        ("type: capsule", "type: cylinder", "f.yaml:5: vehicles[1].shape.type: 'cylinder', "
            "allowed: box, sphere,"),
        ("size: [4, 2, "
            "1.5]", "size: [4, 2]", "f.yaml:4: vehicles[0].shape.size: 2 elements, allowed: 3"),
        ("size: [4, 2, "
            "1.5]", "size: [4, wide, "
                "2]", "f.yaml:4: vehicles[0].shape.size[1]: 'wide', expected a number"),
        ("[8]", "[8, 103]", "f.yaml:6: vehicles[2].types: type 103 is listed twice"),
        ("[8]", "[9-8]", "f.yaml:6: vehicles[2].types: '9-8' runs backwards"),
        ("[8]", "[car+]", "f.yaml:6: vehicles[2].types[0]: 'car+' is not allowed (a vehicleType "
            "such as 150, a range"),
        ("[8]", "[cra]", "f.yaml:6: vehicles[2].types: no model is named 'cra'; did you mean car"),
        ("radius: 0.25}", "radius: 0.25}}\n  - {name: gate, types: [9], "
            "shape: {type: frame, opening: 1, bar: 0.1, sides: 2}",
            "f.yaml:7: vehicles[3].shape.sides: 2, allowed: 3 … 64"),
        ("ground_clearance: "
            "0.3", "ground_clearance: 1.5", "f.yaml:4: vehicles[0].ground_clearance: 1.5 m"),
        ("types: [8],", "types: [8], ground_clearance: "
            "0.1,", "f.yaml:6: vehicles[2].ground_clearance: ball is no box"),
        ("[0, 0, 2]]", "[2, 2, 0]]", "f.yaml:8: vehicles[3].shape: ConvexHull.vertices: the "
            "points lie in one plane"),
        ("  - {name: ball", "  - {name: ball: x", "f.yaml:6: not valid YAML"),
        ("vehicles:", "vehicels:", "f.yaml:3: vehicels: unknown key; did you mean vehicles?"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_line_and_key(old, new, error):
    assert old in ONE_OF_EACH
    with pytest.raises(ConfigError) as found:
        parse_shapes(ONE_OF_EACH.replace(old, new).encode(), "f.yaml")
    assert str(found.value).startswith(error)


def test_files_that_are_not_there_or_no_text(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"none.yaml': no such file, and no shipped set of this name \(rflysim3d\)",
    ):
        load_shapes(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"version: 1\nvehicles: \xff")
    with pytest.raises(ConfigError, match=r"bytes.yaml:2: not UTF-8"):
        load_shapes(tmp_path / "bytes.yaml")
    (tmp_path / "mine.yaml").write_text(ONE_OF_EACH, encoding="utf-8")
    assert len(load_shapes(tmp_path / "mine.yaml").shapes) == 4


def test_the_file_of_the_page_is_one():
    page = Path(__file__).resolve().parents[3] / "docs" / "howto" / "collisions.md"
    text = page.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    table = parse_shapes(text.encode(), page.name)
    assert names(table, [55, 100070, 150, 70, 71, 72, 73]) == [
        "rover",
        "rover",
        "box",
        "balloon",
        "rocket",
        "wedge",
        "gate",
    ]
    low, high = shape_bounds(table.shapes[0].touching)
    assert (low[2], high[2]) == pytest.approx((0.15, 0.6))


def test_half_a_million_errors_are_not_all_looked_for(monkeypatch):
    """The first error is reported after a few of them: finding all would take a minute."""
    from rfly_common.config import documents

    looked = []
    describe = documents._describe
    monkeypatch.setattr(
        documents, "_describe", lambda error: looked.append(error) or describe(error)
    )
    text = "version: 1\nvehicles: [" + "1," * 5000 + "1]\n"
    with pytest.raises(ConfigError, match=r"f.yaml:2: vehicles"):
        parse_shapes(text.encode(), "f.yaml")
    assert len(looked) <= documents.MAX_ERRORS
