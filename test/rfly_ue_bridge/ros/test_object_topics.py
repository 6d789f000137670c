# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placed objects for robots and RflySim3D: a running bridge, real DDS, a real UDP socket."""

from __future__ import annotations

import math
import struct
import time

import numpy as np
import pytest
from bridge_harness import Bridge, H, assert_same, fleet, pose, time_packet, transform, vector3

from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.ros

NONE = (0.0, 0.0, 0.0)


def terrain(name, height):
    """A slope: z up = height + 0.5 x_east over 0 … 40 m east and 0 … 20 m north."""
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    x = np.arange(0.0, 41.0, 10.0)
    heights = np.repeat(height + 0.5 * x[:, None], 3, axis=1)
    ground = HeightMap(heights, origin_x=0, origin_y=0, step_x=10, step_y=10, name=name)
    return height_map_to_msg(ground, NONE, 0, 10_000)


class Scene(Bridge):
    def __init__(self, domain, **parameters):
        from rfly_suite.msg import PlacedObjectArray, TerrainMap

        from rfly_common.ros.qos import LATCHED

        super().__init__(domain, **parameters)
        self.arrays = self.peer.receive(PlacedObjectArray, "placed_objects", LATCHED)
        self.terrain_publisher = self.peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED)

    def call(self, name, **fields):
        import rfly_suite.srv as types

        kind = "".join(part.capitalize() for part in name.split("_"))
        return self.peer.call(getattr(types, kind), name, **fields)

    def place(self, **fields):
        return self.call("place_object", **{"vehicle_type": 151, **fields})

    def remove(self, vehicle_id):
        """Remove an object, and wait for the three deletes."""
        self.window.clear()
        assert self.call("remove_object", id=vehicle_id).success
        self.peer.spin_until(lambda: len(self.deletes(vehicle_id)) == 3)

    def deletes(self, vehicle_id):
        command = struct.pack("<i52s", 1234567890, f"RflyDelVehicles {vehicle_id}".encode())
        return [number for number, d in enumerate(self.window.poll()) if bytes(d) == command]

    def seen(self, ready):
        """The newest placed_objects that fits."""
        return self.peer.spin_until(lambda: next((a for a in self.arrays[-1:] if ready(a)), None))

    def sent(self, vehicle_id, count=1):
        """The datagrams of one id, as soon as there are enough."""
        self.peer.spin_until(lambda: len(self.so_far(vehicle_id)) >= count)
        return self.so_far(vehicle_id)

    def so_far(self, vehicle_id):
        return [
            bytes(d) for d in self.window.poll() if struct.unpack_from("<i", d, 4) == (vehicle_id,)
        ]


@pytest.fixture
def scene(domain_id):
    scene = Scene(domain_id, vehicles="[car]", **{"car.id": 7})
    yield scene
    scene.close()


def show_terrain(scene, name="hill", height=100.0):
    scene.terrain_publisher.publish(terrain(name, height))
    scene.peer.spin_until(lambda: diagnostics(scene).get("terrain") == name)


def diagnostics(scene):
    from node_harness import diagnostic

    return (diagnostic(scene.statuses, "objects") or (None, "", {}))[2]


def test_a_life_of_objects(scene):
    """An object is placed, listed, moved, follows the ground, and is removed.

    Callers, other nodes and RflySim3D learn of it.
    """
    assert scene.seen(lambda array: True).id.tolist() == []
    early = scene.place(id=5, x=1.0, y=1.0)
    assert (early.success, early.id) == (False, 0)
    assert "terrain_node" in early.message
    show_terrain(scene)

    # 15 m east: ground 107.5 m, the origin 1.25 m above
    placed = scene.place(
        x=15.0, y=5.0, yaw=math.pi / 2, offset=1.25, **{"size": vector(4.0, 2.0, 3.0)}
    )
    assert (placed.success, placed.message, placed.id) == (True, "", 1001)
    assert point(placed.pose) == (15.0, 5.0, 108.75)
    q = placed.pose.orientation
    np.testing.assert_allclose((q.x, q.y, q.z, q.w), (0, 0, H, H), atol=1e-12)
    assert scene.sent(1001)[0] == time_packet(1001, 151, (5.0, 15.0, -108.75), (0, 0, 0))

    in_ned = scene.place(
        id=30, frame_id="map_ned", x=10.0, y=20.0, yaw=0.0, vehicle_type=0, model="quad_target"
    )
    assert point(in_ned.pose) == (10.0, 20.0, -110.0)
    array = scene.seen(lambda array: len(array.id) == 2)
    assert array.header.frame_id == "map"
    assert array.id.tolist() == [30, 1001]
    assert array.vehicle_type.tolist() == [151, 151]
    assert array.position.tolist() == [20.0, 10.0, 110.0, 15.0, 5.0, 108.75]
    assert array.box_origin.tolist() == [20.0, 10.0, 110.0, 15.0, 5.0, 109.0]
    assert array.box_half_extent.tolist() == [0.0, 0.0, 0.0, 2.0, 1.0, 1.5]
    assert array.offset.tolist() == [0.0, 1.25]
    assert array.scale.tolist() == [1.0] * 6
    assert array.use_ground_packet.tolist() == [0, 0]

    moved = scene.call("move_object", id=1001, x=5.0, y=5.0, yaw=0.0)
    assert (moved.success, point(moved.pose)) == (True, (5.0, 5.0, 103.75))
    assert_same(
        scene.sent(1001, 2)[-1], time_packet(1001, 151, (5.0, 5.0, -103.75), (0, 0, math.pi / 2))
    )

    scene.window.clear()
    show_terrain(scene, "lower", 50.0)
    assert scene.seen(lambda array: array.position[2] < 100).position.tolist() == [
        20.0,
        10.0,
        60.0,
        5.0,
        5.0,
        53.75,
    ]
    assert struct.unpack_from("<3d", scene.sent(1001)[0], 80) == (5.0, 5.0, -53.75)

    scene.window.clear()
    assert scene.call("remove_object", id=1001).success
    assert scene.seen(lambda array: len(array.id) == 1).id.tolist() == [30]
    scene.peer.spin_until(lambda: len(scene.deletes(1001)) == 3)
    shown = [n for n, d in enumerate(scene.window.poll()) if bytes(d[4:8]) == b"\xe9\x03\0\0"]
    assert max(shown, default=-1) < min(scene.deletes(1001)), "nothing shows it again"
    listed = scene.call("list_objects")
    assert (listed.success, listed.objects.id.tolist()) == (True, [30])


def test_old_windows_get_objects_lowered_out_of_sight(domain_id):
    """The object's centre at 0, 0 and altitude 100 is at down -100, and then at 900."""
    scene = Scene(domain_id, removal="lower")
    show_terrain(scene)
    assert scene.place(id=41, x=0.0, y=0.0).success
    scene.window.clear()
    assert scene.call("remove_object", id=41).success
    below = time_packet(41, 151, (0.0, 0.0, 900.0), (0, 0, math.pi / 2))  # it faces east
    scene.peer.spin_until(lambda: sum(d[80:] == below[80:] for d in scene.so_far(41)) == 3)
    assert_same(scene.so_far(41)[-1], below)
    assert not scene.deletes(41)
    scene.close()


def vector(x, y, z):
    from geometry_msgs.msg import Vector3

    return Vector3(x=x, y=y, z=z)


def point(pose_message):
    p = pose_message.position
    return p.x, p.y, p.z


def test_objects_are_sent_again_and_wait_while_a_map_loads(scene):
    from rfly_suite.srv import SendUeCommand

    show_terrain(scene)
    for k in range(3):
        assert scene.place(id=100 + k, x=float(k), y=0.0).success
    scene.window.clear()
    first = [scene.sent(100 + k, 2)[1] for k in range(3)]
    expected = [(0.0, k, -100 - 0.5 * k) for k in (0.0, 1.0, 2.0)]
    assert [struct.unpack_from("<3d", d, 80) for d in first] == expected
    since = time.monotonic()
    scene.peer.call(
        SendUeCommand, "send_ue_command", command="RflyChangeMapbyName Grasslands", window=-1
    )
    scene.window.clear()
    assert scene.place(id=110, x=1.0, y=1.0).success
    scene.sent(110)
    assert time.monotonic() - since > 0.7


def test_the_ground_packet_needs_no_terrain(scene):
    """Experiment 3: sendUE4Pos2Ground(101, 30, 0, [-17.479, 1.45, 0], [0, 0, pi])."""
    person = scene.place(
        id=101,
        vehicle_type=30,
        x=-17.479,
        y=1.45,
        yaw=math.pi,
        frame_id="map_ned",
        use_ground_packet=True,
    )
    assert person.success

    expected = struct.pack("<3i7f", 1234567891, 101, 30, 0, -17.479, 1.45, 0, 0, 0, math.pi)
    assert scene.sent(101)[0] == expected

    assert scene.place(id=102, x=1.0, y=2.0, use_ground_packet=True, scale=vector3(2, 2, 3)).success
    assert scene.sent(102)[0][:8] == struct.pack("<2i", 1234567891, 102)
    assert scene.sent(102)[0][-12:] == struct.pack("<3f", 2, 2, 3)


def test_ids_of_vehicles_and_objects_are_kept_apart(scene):
    show_terrain(scene)
    assert "id 7 is a vehicle of topic car/pose" in scene.place(id=7, x=1.0, y=1.0).message

    scene.shown("vehicle_states", fleet([1001, 20]))
    refused = scene.place(id=20, x=1.0, y=1.0)
    assert (refused.success, "id 20 is a vehicle of /fleet" in refused.message) == (False, True)

    scene.shown("vehicle_states", fleet([1001, 20]))
    assert scene.place(x=1.0, y=1.0).id == 1002
    assert "already" in scene.place(id=1002, x=1.0, y=1.0).message

    scene.dropped(
        "vehicle_states", fleet([1002]), "configured", "vehicle 1002 comes from place_object"
    )

    assert scene.call("remove_object", id=1002).success
    scene.peer.spin_until(scene.window.poll)
    scene.window.clear()

    scene.publish_until(
        "vehicle_states", fleet([1002], position=[1.0, 2.0, 3.0]), lambda: scene.so_far(1002)
    )


@pytest.mark.parametrize(
    ("name", "fields", "named"),
    [
        ("place_object", {"x": math.nan}, "x: nan"),
        ("place_object", {"offset": math.inf}, "offset: inf"),
        ("place_object", {"scale": (1, 0, 1)}, "scale: 1 0 1"),
        ("place_object", {"id": -4}, "id: -4"),
        ("place_object", {"vehicle_type": -1}, "vehicle_type: -1"),
        ("place_object", {"model": "ring"}, "model: no model is named 'ring'; did you mean"),
        ("place_object", {"frame_id": "moon"}, "moon"),
        ("move_object", {"id": 99}, "id 99: no such object is placed; there are none"),
        ("remove_object", {"id": 99}, "id 99: no such object"),
    ],
)
def test_refusals_say_why(shared_scene, name, fields, named):
    shared_scene.window.clear()
    if "scale" in fields:
        fields = {"scale": vector3(*fields["scale"])}
    response = shared_scene.call(name, **fields)
    assert not response.success
    assert named in response.message
    assert shared_scene.window.poll() == []


@pytest.fixture(scope="module")
def running(shared_domain_id):
    scene = Scene(shared_domain_id)
    show_terrain(scene)
    yield scene
    scene.close()


@pytest.fixture
def shared_scene(running):
    """Bridge on the hill; each test removes the objects that it has placed."""
    running.window.clear()
    return running


def test_off_the_map_is_told(shared_scene):
    response = shared_scene.place(id=61, x=90.0, y=5.0)
    assert response.success
    assert point(response.pose) == (90.0, 5.0, 120.0)
    assert response.message == "off the map 'hill': the altitude is that of its edge"
    shared_scene.remove(61)


def test_a_frame_of_tf(shared_scene):
    """A site at (10, 5) has its x to the north.

    2 m ahead of it and 1 m to its left is (9, 7), ground 104.5.
    """
    from tf2_msgs.msg import TFMessage

    shared_scene.publisher(TFMessage, "/tf_static").publish(
        transform("map", "site", (10.0, 5.0, 4.0), (0, 0, H, H))
    )
    response = shared_scene.peer.spin_until(
        lambda: next(
            iter(
                [r]
                if (r := shared_scene.place(id=62, x=2.0, y=1.0, frame_id="site")).success
                else []
            ),
            None,
        )
    )
    assert point(response.pose) == pytest.approx((2.0, 1.0, 100.5))
    assert struct.unpack_from("<3d", shared_scene.sent(62)[0], 80) == pytest.approx(
        (7.0, 9.0, -104.5)
    )
    shared_scene.remove(62)


def test_poses_still_go_at_once(scene):
    show_terrain(scene)
    assert scene.place(id=63, x=0.0, y=0.0).success
    scene.publish_until("car/pose", pose(), lambda: scene.so_far(7))


def test_three_hundred_at_once_make_few_messages(scene):
    """Every object is placed and published, but not each in a message of its own."""
    show_terrain(scene)
    from rfly_suite.srv import PlaceObject

    client = scene.peer.node.create_client(PlaceObject, "place_object")
    scene.peer.spin_until(client.service_is_ready)
    before = len(scene.arrays)
    ids = []
    for start in range(0, 300, 5):  # a service keeps ten requests
        requests = [
            PlaceObject.Request(vehicle_type=3, x=float((start + k) % 40), y=1.0) for k in range(5)
        ]
        calls = [client.call_async(request) for request in requests]
        scene.peer.spin_until(lambda calls=calls: all(call.done() for call in calls))
        ids += [call.result().id for call in calls]
    assert sorted(ids) == list(range(1001, 1301))
    assert scene.seen(lambda array: len(array.id) == 300).id.tolist() == list(range(1001, 1301))
    assert len(scene.arrays) - before < 100
    scene.window.clear()
    for vehicle_id in (1001, 1150, 1300):
        scene.sent(vehicle_id)
