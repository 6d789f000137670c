# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Places of objects on a terrain, and the packets that show and remove them.

Numbers are worked out by hand.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from rfly_common.errors import PlacementError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.codec.state_datagrams import datagrams, encode_states
from rfly_ue_bridge.objects.placement import ObjectRegistry, PlacedObject, from_ned, place


@pytest.fixture(scope="module")
def slope():
    """A slope: z up = 100 + 0.5 x_east over 0 … 40 m east and 0 … 20 m north."""
    x = np.arange(0.0, 41.0, 10.0)
    return HeightMap(
        np.repeat(100 + 0.5 * x[:, None], 3, axis=1), origin_x=0, origin_y=0, step_x=10, step_y=10
    )


def sent(placement):
    return datagrams(encode_states(placement.to_ned_states(), in_fleet=False))


def test_experiment_2_a_target_to_the_last_byte():
    """Same bytes as sendUE4Pos(1001, 200150, 0, [43.943, 1.62, -11.465], [0, 0, 0])."""
    target = PlacedObject(200150, id=1001, **from_ned(43.943, 1.620, 0.0, -11.465))
    fields = (1001, 200150, 0, 0, 0, *[0.0] * 14, 43.943, 1.620, -11.465, -1.0)
    assert sent(place([target], None)) == [struct.pack("<6i14f4d", 1234567891, *fields)]


def test_experiment_3_a_person_on_the_ground_that_rflysim3d_finds():
    """Same bytes as sendUE4Pos2Ground(101, 30, 0, [-17.479, 1.45, 0], [0, 0, pi]).

    No terrain is needed, and z is 0.
    """
    person = PlacedObject(30, id=101, use_ground_packet=True, **from_ned(-17.479, 1.45, math.pi))
    expected = struct.pack("<3i7f", 1234567891, 101, 30, 0, -17.479, 1.45, 0, 0, 0, math.pi)
    assert sent(place([person], None)) == [expected]


def test_on_a_slope_the_offset_is_added_to_the_altitude(slope):
    """The origin is 1.25 m above the ground.

    At 15 m east the ground is at 107.5 m, so the origin is at 108.75 m: z = -108.75 in NED.
    """
    placement = place([PlacedObject(3, x=15.0, y=5.0, yaw=0.0, id=7, offset=1.25)], slope)
    assert placement.position.tolist() == [[15.0, 5.0, 108.75]]
    fields = (7, 3, 0, 0, 0, *[0.0] * 13, math.pi / 2, 5.0, 15.0, -108.75, -1.0)  # heading east
    assert sent(placement) == [struct.pack("<6i14f4d", 1234567891, *fields)]


def test_a_height_of_its_own_beats_the_terrain(slope):
    assert place([PlacedObject(3, x=15.0, y=5.0, z=3.0)], slope).position[0, 2] == 3.0


def test_off_the_map_the_edge_counts_and_inside_tells(slope):
    placement = place([PlacedObject(3, x=90.0, y=5.0), PlacedObject(3, x=0.0, y=5.0)], slope)
    assert placement.position[:, 2].tolist() == [120.0, 100.0]
    assert placement.inside.tolist() == [False, True]


@pytest.mark.parametrize(
    ("on_ground", "checksum"),
    [pytest.param(False, 1234567890, id="air"), pytest.param(True, 1234567891, id="ground")],
)
def test_a_scaled_object(slope, on_ground, checksum):
    scaled = PlacedObject(
        151,
        x=10.0,
        y=5.0,
        yaw=math.pi / 2,
        id=9,
        use_ground_packet=on_ground,
        scale=(1.0, 2.0, 0.5),
    )
    expected = struct.pack("<3i10f", checksum, 9, 151, 0, 5, 10, -105, 0, 0, 0, 1, 2, 0.5)
    assert sent(place([scaled], slope)) == [expected]


def test_the_box_stands_on_the_ground(slope):
    """The box of a placed object stands on the ground.

    Ground 105; a box 3 m high, the model's origin 1 m above the ground: its middle is at 106.5.
    """
    placement = place(
        [PlacedObject(3, x=10.0, y=5.0, offset=1.0, size=(4.0, 2.0, 3.0)), PlacedObject(3, 0, 0)],
        slope,
    )
    assert placement.box_origin.tolist() == [[10.0, 5.0, 106.5], [0.0, 0.0, 100.0]]
    assert placement.box_half_extent.tolist() == [[2.0, 1.0, 1.5], [0.0, 0.0, 0.0]]


def test_removal_is_out_of_sight(slope):
    """A kilometre below its place (ground 105), not kept on the ground; a scale is taken back."""
    things = [
        PlacedObject(151, x=10.0, y=5.0, yaw=math.pi / 2, id=9, use_ground_packet=True),
        PlacedObject(30, x=10.0, y=5.0, yaw=math.pi / 2, id=10, scale=(3.0, 3.0, 3.0)),
    ]
    gone, shrunk = datagrams(
        encode_states(place(things, slope).to_ned_states().to_removal(), in_fleet=False)
    )
    assert gone == struct.pack("<6i14f4d", 1234567891, 9, 151, 0, 0, 0, *[0.0] * 14, 5, 10, 895, -1)
    assert shrunk[:40] == struct.pack("<3i7f", 1234567890, 10, 30, 0, 5, 10, 895, 0, 0, 0)
    assert struct.unpack("<3f", shrunk[40:]) == pytest.approx((1, 1, 1), abs=1e-6)


def test_no_terrain_no_height():
    with pytest.raises(PlacementError, match=r"object 5: .* no terrain"):
        place([PlacedObject(3, x=0.0, y=0.0, id=5)], None)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"x": math.nan}, "x: nan"),
        ({"y": 1e9}, "y: 1000000000"),
        ({"yaw": math.inf}, "yaw"),
        ({"offset": math.nan}, "offset"),
        ({"z": math.inf}, "z: inf"),
        ({"z": 1.0, "offset": 1.0}, "offset: 1.0, but z"),
        ({"id": -1}, "id: -1"),
        ({"id": 2**31}, "id: 2147483648"),
        ({"vehicle_type": -1}, "vehicle_type"),
        ({"size": (1.0, -1.0, 1.0)}, "size: 1 -1 1"),
        ({"scale": (1.0, 0.0, 1.0)}, "scale: 1 0 1"),
    ],
)
def test_refused_objects(fields, named):
    with pytest.raises(PlacementError, match=named):
        PlacedObject(**{"vehicle_type": 3, "x": 0.0, "y": 0.0, **fields})


def test_ids_are_unique_among_objects_and_beside_vehicles():
    registry = ObjectRegistry({1001: "/fleet", 5: "topic car/pose"}.get)
    for expected in (1002, 1003):
        placed = registry.checked(PlacedObject(3, x=0.0, y=0.0))
        assert placed.id == expected
        registry.keep(placed)
    with pytest.raises(PlacementError, match="id 1002 is a placed object already"):
        registry.checked(PlacedObject(3, x=0.0, y=0.0, id=1002))
    with pytest.raises(PlacementError, match="id 5 is a vehicle of topic car/pose"):
        registry.checked(PlacedObject(3, x=0.0, y=0.0, id=5))
    assert registry.remove(1002).id == 1002
    assert [o.id for o in registry.objects] == [1003]
    with pytest.raises(PlacementError, match="id 1002: no such object is placed; there are 1003"):
        registry.get(1002)
    assert registry.checked(PlacedObject(3, x=0.0, y=0.0)).id == 1002


def test_moved_keeps_all_but_the_place():
    placed = PlacedObject(3, x=1.0, y=2.0, z=9.0, id=4, scale=(2.0, 2.0, 2.0))
    assert placed.moved(5.0, 6.0, 0.5) == PlacedObject(
        3, x=5.0, y=6.0, yaw=0.5, id=4, scale=(2.0, 2.0, 2.0)
    )
