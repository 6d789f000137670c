# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A world file is one scene for all: planner, contacts, lidar and window know the same tower."""

from __future__ import annotations

import math
import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

from rfly_bringup.nodes.amphibious_set import amphibious_nodes
from rfly_bringup.nodes.argument_files import (
    check_files,
    tracks_off_map,
    with_defaults_of_world,
)
from rfly_bringup.nodes.node_set import (
    BRIDGE,
    COLLISION,
    PLANNER,
    TERRAIN,
    node_parameters,
)
from rfly_common.errors import ConfigError
from rfly_terrain import HeightMap, load_world, shipped_worlds, write_height_map
from rfly_trajectory.fleet.fleet_file import load_fleet
from rfly_trajectory.fleet.limit_check import check_separation, check_tracks

TOWER = (20.0, 0.0)
"""a box of 6 m x 6 m that is 150 m high; a pillar and a house beside it"""
WORLD = """\
version: 1
map: plain
objects:
  - {box: [6, 6, 150], x: 20, y: 0, class: building, color: [200, 30, 30]}
  - {cylinder: {radius: 1.5, height: 12}, x: 0, y: 15, class: pole}
  - {model: hut, x: 0, y: -12, yaw_deg: 90}
moving:
  - {box: [2, 2, 1.5], class: vehicle, color: [20, 40, 60], speed: 2, path: [[-20, 6], [-12, 12]]}
models:
  hut:
    class: building
    parts:
      - {box: [4, 4, 3]}
      - {hull: [[-2, -2, 3], [-2, 2, 3], [2, -2, 3], [2, 2, 3], [-2, 0, 5], [2, 0, 5]]}
"""


@pytest.fixture(scope="module")
def world_file(tmp_path_factory):
    """Return a world, and next to it its map: a plain of 200 m with a raised corner."""
    folder = tmp_path_factory.mktemp("world")
    heights = np.zeros((101, 101))
    heights[0, 0] = 20.0
    terrain = HeightMap(heights, origin_x=-100.0, origin_y=-100.0, step_x=2.0, step_y=2.0)
    write_height_map(terrain, folder / "plain")
    file = folder / "tower.yaml"
    file.write_text(WORLD, encoding="utf-8")
    return file


def test_the_map_of_a_world_is_the_nodes_map(world_file):
    arguments = with_defaults_of_world({"world": str(world_file)})
    assert node_parameters(TERRAIN, arguments) == {
        "map": "plain",
        "map_search_path": [str(world_file.parent)],
    }
    assert node_parameters(BRIDGE, arguments)["world"] == str(world_file)
    assert with_defaults_of_world({"world": str(world_file), "map": "other"})["map"] == "other"
    assert with_defaults_of_world({"map": "other"}) == {"map": "other"}
    with pytest.raises(ConfigError, match=r"world 'atlantis': no such file, and no shipped world"):
        with_defaults_of_world({"world": "atlantis"})


def test_the_fleet_of_a_world_drives_there(world_file, tmp_path):
    """A fleet file next to the world's, or a shipped one; a given one counts."""
    folder = world_file.parent
    for fleet in ("mine.yaml", "ring_convoy"):
        (tmp_path / "world.yaml").write_text(WORLD.replace("map:", f"fleet: {fleet}\nmap:"))
        (tmp_path / "mine.yaml").write_text("version: 1\n")
        arguments = {"world": str(tmp_path / "world.yaml"), "map_search_path": str(folder)}
        expected = str(tmp_path / fleet) if fleet == "mine.yaml" else fleet
        assert with_defaults_of_world(arguments)["fleet"] == expected
        arguments["fleet"] = "demo_convoy"
        assert with_defaults_of_world(arguments)["fleet"] == "demo_convoy"


@pytest.mark.parametrize("name", shipped_worlds())
def test_shipped_worlds_have_a_fleet_that_keeps_clear_of_them(name):
    """The tracks stay on the map, and 5 m away from whatever stands there."""
    arguments = with_defaults_of_world({"world": name, "fleet": ""})
    assert tracks_off_map(arguments) == ""
    terrain = HeightMap.load(arguments["map"])
    fleet = load_fleet(arguments["fleet"]).on_terrain(terrain)
    assert check_tracks(fleet) + check_separation(fleet) == []
    tracks = fleet.sample_times(np.arange(0.0, 110.0, 0.25)).position[..., :2].reshape(-1, 2)
    corners = load_world(name).on(terrain).solids.vertices[:, :2]
    for corner in corners:
        assert np.hypot(*(tracks - corner).T).min() > 5.0


def test_a_fleet_that_leaves_the_map_is_named():
    arguments = {"map": "RollingHills", "fleet": ""}
    assert "give another one as fleet" in tracks_off_map(arguments)
    assert tracks_off_map({"map": "", "fleet": ""}) == ""
    assert tracks_off_map({"map": "RollingHills", "fleet": "ring_convoy"}) == ""


def test_the_share_off_the_map(tmp_path):
    """A ring of radius 60 m around the corner of a square map: three quarters of 377 m."""
    fleet = tmp_path / "ring.yaml"
    fleet.write_text(
        "version: 1\nvehicles: [{name: ring, id: 1, type: 50, kind: ground, speed: 5, "
        "shape: {type: circle, center: [192.0, 192.0], radius: 60.0}}]\n"
    )
    text = tracks_off_map({"map": "RollingHills", "fleet": str(fleet)})
    assert text == (
        f"fleet {str(fleet)!r} leaves the map 'RollingHills': about 282 m of the 377 m long track "
        "of 'ring' are off it"
    )


def test_a_recording_needs_mcap(monkeypatch):
    """The commands `rfly up` and `ros2 launch` ask before anything starts."""
    monkeypatch.setitem(sys.modules, "mcap", None)
    for record in ("true", "run.mcap"):
        with pytest.raises(ConfigError, match="record needs mcap; in the folder of rfly_suite: "):
            check_files({"record": record})
    for record in ("", "false"):
        check_files({"record": record})


def test_a_world_of_land_air_vehicles(world_file, tmp_path):
    """The vehicles stand on the scenario's map if the world is made for it.

    On level ground the bridge knows by a parameter that no map will come.
    """
    bridge = next(
        n
        for n in amphibious_nodes({"scenario": "hills", "world": "forest"})
        if "bridge" in n.executable
    )
    assert bridge.parameters["world"] == "forest"
    assert "level_ground" not in bridge.parameters
    with pytest.raises(
        ValueError,
        match=r"world: 'forest' is made for the map 'RollingHills', the scenario 'valley'",
    ):
        amphibious_nodes({"scenario": "valley", "world": "forest"})

    anywhere = tmp_path / "anywhere.yaml"
    anywhere.write_text(WORLD.replace("map: plain\n", ""), encoding="utf-8")
    level = amphibious_nodes({"scenario": "hop", "world": str(anywhere)})
    assert next(n for n in level if "bridge" in n.executable).parameters["level_ground"] is True

    trip = tmp_path / "trip.yaml"
    trip.write_text(
        "version: 1\nworld: anywhere.yaml\nvehicle: scale\nend: {time_s: 5}\n"
        "mission: {items: [{mode: waypoint, position_m: [5, 0]}]}\n",
        encoding="utf-8",
    )
    named = amphibious_nodes({"scenario": str(trip)})
    assert next(n for n in named if "bridge" in n.executable).parameters["world"] == str(anywhere)


@pytest.fixture(scope="module")
def scene(world_file, shared_domain_id):
    """Run all nodes that share the world, with the parameters of `rfly up --world`, and a lidar
    vehicle.
    """
    from contextlib import ExitStack

    from bridge_harness import Window
    from node_harness import NodeProcess, Peer

    arguments = with_defaults_of_world(
        {"world": str(world_file), "collision": "true", "planner": "true"}
    )
    window = Window()
    more = {
        BRIDGE.executable: {
            "port": window.port,
            "feedback_port": 0,
            "objects_resend_period": 0.2,
        },
        "amphibious_sim_node": {
            "noise": "false",
            "id": "610",
            "ground": "terrain_map",
            "start": "[0.0, 0.0, 0.0]",
        },
    }
    with ExitStack() as nodes:
        for node in (TERRAIN, BRIDGE, PLANNER, COLLISION):
            given = {
                **node_parameters(node, arguments),
                **more.get(node.executable, {}),
            }
            nodes.enter_context(
                NodeProcess(
                    node.executable,
                    shared_domain_id,
                    {key: str(value) for key, value in given.items()},
                )
            )
        remapped = (
            "-r",
            "__ns:=/seer",
            "-r",
            "terrain_map:=/terrain_map",
            "-r",
            "placed_objects:=/placed_objects",
        )
        nodes.enter_context(
            NodeProcess(
                "amphibious_sim_node",
                shared_domain_id,
                more["amphibious_sim_node"],
                *remapped,
            )
        )
        peer = Peer(shared_domain_id)
        peer.window = window
        yield peer
        peer.close()
        window.socket.close()


@pytest.fixture(scope="module")
def objects(scene):
    """Return the objects of `placed_objects`, after the world stands on its map."""
    from rfly_suite.msg import PlacedObjectArray

    from rfly_common.ros.qos import LATCHED

    arrays = scene.receive(PlacedObjectArray, "placed_objects", LATCHED)
    return scene.spin_until(lambda: next((a for a in arrays[::-1] if len(a.id)), None))


@pytest.mark.ros
@pytest.mark.parametrize("axes", ["enu", "ned"])
def test_rays_meet_by_the_topic_what_they_meet_in_the_world(axes):
    """Boxes, parts, and a hollow surface in two sizes: the same ranges with and without messages
    between.
    """
    from rfly_collision import load_shapes
    from rfly_collision.ros.contact_msgs import msg_to_placed
    from rfly_sensing.neighbours import Neighbours, world_bodies
    from rfly_sensing.scene_rays import SceneRays
    from rfly_terrain.world.models import (
        Model,
        box_part,
        cylinder_part,
        part_faces,
        placed_part,
    )
    from rfly_terrain.world.moving import MovingObject, MovingPath
    from rfly_terrain.world.world import World, WorldObject
    from rfly_ue_bridge.objects.placement import place, world_to_placed
    from rfly_ue_bridge.ros.object_topics import placement_to_msg

    slab = box_part(1.0, 1.0, 4.0)
    posts = [part_faces(placed_part(slab, (0.0, y, 0.0), 0.0)) for y in (-3.0, 3.0)]
    gate = Model("gate", (box_part(1.0, 7.0, 4.0),), 4, surface=np.concatenate(posts))
    lamp = Model("lamp", (cylinder_part(0.3, 5.0), placed_part(slab, (0.0, 0.0, 5.0), 0.3)), 5)
    models = gate, gate, lamp, Model("crate", (box_part(2.0, 3.0, 2.0),))
    places = ((12.0, 0.0), (-15.0, 4.0), (0.0, 9.0), (3.0, -8.0))
    way = MovingPath(np.array([(-30.0, -10.0, 0.0), (20.0, -10.0, 0.0)]), 4.0)
    car = MovingObject(Model("car", (box_part(4.0, 2.0, 3.0),), 6), way)
    world = World("w", tuple(
        WorldObject(model, x, y, 0.4 * k, 0.0, 2.0 if k == 1 else 1.0)
        for k, (model, (x, y)) in enumerate(zip(models, places, strict=True))
    ), moving=(car,))  # fmt: skip
    placement = place(
        [replace(o, id=k) for k, o in enumerate(world_to_placed(world, level=True))],
        None,
    )
    told = placement_to_msg(placement.at(100.0), "map" if axes == "enu" else "map_ned", axes, 0)
    neighbours = Neighbours(load_shapes(), own_id=1)
    neighbours.set_objects(msg_to_placed(told, axes, seen=True))
    turn = np.linspace(-math.pi, math.pi, 1441)
    directions = np.column_stack([np.cos(turn), np.sin(turn), 0.6 * np.sin(200 * turn)])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    origins = np.tile([0.0, 0.0, 1.5], (1441, 1))
    by_topic, in_world = (
        SceneRays(None, bodies).cast(origins, directions, 50.0, float(bodies.time.max()))
        for bodies in (neighbours.bodies(None, 0, 5.0, 2.0), world_bodies(world, 7.0))
    )
    np.testing.assert_allclose(
        by_topic.ranges, in_world.ranges, atol=1e-5
    )  # triangles are told as float32
    assert math.isinf(by_topic.ranges[720])  # through the gate ahead
    assert (
        len(np.unique(in_world.body)) == 6 + 2
    )  # a lamp's two parts, three others, a car, ground and nothing
    # the car: 28 m along after 7 s, at (-2, -10), and 0.25 s on one metre further
    down = np.array([[0.0, -1.0, 0.0]] * 3)
    x = np.array([[-3.9, 0.0, 1.5], [-2.9, 0.0, 1.5], [0.9, 0.0, 1.5]])
    for bodies, now in (
        (neighbours.bodies(None, 0, 5.0, 2.0), 5.0),
        (world_bodies(world, 7.0), 7.0),
    ):
        for later, seen in ((0.0, (9.0, 9.0, np.inf)), (0.25, (np.inf, 9.0, 9.0))):
            assert SceneRays(None, bodies).cast(x, down, 9.5, now + later).ranges == pytest.approx(
                seen
            )


@pytest.mark.ros
def test_one_topic_tells_of_it(objects):
    assert list(objects.id) == [1001, 1002, 1003, 1004]
    assert list(objects.class_id) == [1, 5, 1, 6]
    assert list(objects.color[:3]) == [200, 30, 30]
    assert list(objects.solid) == [-1, 0, 1, 2]  # the box that stands is told as a box
    assert (list(objects.solid_parts), list(objects.part_vertices)) == (
        [1, 2, 1],
        [32, 8, 6, 8],
    )
    assert list(objects.box_origin[:3]) == pytest.approx([20.0, 0.0, 75.0], abs=0.01)
    pillar = [1.5 / math.cos(math.pi / 16)] * 2
    expected = pytest.approx([3, 3, 75, *pillar, 6, 2, 2, 2.5, 1, 1, 0.75], rel=0.02)
    assert list(objects.box_half_extent) == expected
    assert objects.version >= 1


@pytest.mark.ros
def test_a_plan_keeps_clear_of_it(scene, objects):
    from geometry_msgs.msg import PoseStamped
    from rfly_suite.srv import PlanPath

    def pose(x, y, z):
        made = PoseStamped()
        made.header.frame_id = "map"
        made.pose.position.x = x
        made.pose.position.y = y
        made.pose.position.z = z
        made.pose.orientation.w = 0.0
        return made

    for mode, vehicle_class, radius in (
        (0, "car", 1.2),
        (1, "multirotor", 0.6),
        (2, "land_air", 0.8),
    ):
        ends = {"start": pose(-40.0, 0.2, 0.0), "goal": pose(70.0, 0.0, 0.0)}
        wanted = {"vehicle_class": vehicle_class, "mode": mode, **ends}

        def keeps_clear(wanted=wanted, radius=radius):
            """Return whether the plan keeps clear, once map and objects have come."""
            answer = scene.call(PlanPath, "plan_path", **wanted)
            if "no terrain_map" in answer.message:
                return False
            assert answer.success, answer.message
            corners = np.array([[p.pose.position.x, p.pose.position.y] for p in answer.path.poses])
            share = np.linspace(0.0, 1.0, 200)[:, None, None]
            way = (corners[:-1] + share * np.diff(corners, axis=0)).reshape(-1, 2)
            away = np.linalg.norm(np.maximum(np.abs(way - TOWER) - 3.0, 0.0), axis=1)
            return away.min() >= radius + 0.49

        scene.spin_until(keeps_clear)


@pytest.mark.ros
def test_what_touches_it_is_told(scene, objects):
    """Contacts are with the solids, not with their boxes.

    Vehicles stand next to the tower and in it, in the pillar and next to its round side within its
    box, and likewise at the hut's gable.
    """
    from bridge_harness import EAST, fleet
    from rfly_suite.srv import CheckCollision

    places = {
        1: (20.0, 5.0, 60.0),
        2: (20.0, 3.2, 100.0),
        3: (0.0, 13.4, 5.0),
        4: (1.7, 16.7, 5.0),
        5: (0.0, -12.0, 4.8),
        6: (1.9, -13.9, 4.9),
    }
    positions = [number for place in places.values() for number in place]
    states = fleet(list(places), position=positions, orientation=list(EAST) * len(places))

    def touched():
        """Return the objects that are touched, once the node knows them."""
        answer = scene.call(CheckCollision, "check_collision", states=states)
        assert answer.success, answer.message
        found = answer.contacts
        pairs = zip(found.id_a, found.id_b, found.object_id, strict=True)
        return {a: o for a, b, o in pairs if b == -1}

    assert scene.spin_until(touched) == {2: 1001, 3: 1002, 5: 1003}


@pytest.mark.ros
def test_a_lidar_sees_it(scene, objects):
    """The lidar at the origin sees the tower's face 17 m ahead.

    The pillar's round side is 13.5 m to the left.
    """
    from sensor_msgs.msg import LaserScan

    from rfly_common.ros.qos import SENSORS

    scans = scene.receive(LaserScan, "/seer/scan", SENSORS)

    def at(scan, angle):
        index = round((angle - scan.angle_min) / scan.angle_increment) % len(scan.ranges)
        return scan.ranges[index]

    scan = scene.spin_until(
        lambda: next((s for s in scans[::-1] if math.isfinite(at(s, 0.0))), None)
    )
    assert at(scan, 0.0) == pytest.approx(17.0, abs=0.05)
    assert at(scan, math.pi / 2) == pytest.approx(13.5, abs=0.05)
    assert at(scan, -math.pi / 2) == pytest.approx(10.0, abs=0.05)
    assert not math.isfinite(at(scan, math.pi))


@pytest.mark.ros
def test_the_window_shows_it(scene, objects):
    """Datagrams of the tower: at its middle, 75 m up, 6 m x 6 m x 150 m."""

    def of_tower():
        return next(
            (d for d in scene.window.poll()[::-1] if struct.unpack_from("<i", d, 4) == (1001,)),
            None,
        )

    datagram = scene.spin_until(of_tower)
    position, scale = (struct.unpack_from("<3f", datagram, at) for at in (16, 40))
    assert position == pytest.approx((0.0, 20.0, -75.0), abs=0.01)  # north, east, down
    assert scale == pytest.approx((6.0, 6.0, 150.0))


@pytest.mark.ros
def test_what_moves_is_told_shown_and_seen(scene, objects):
    """A car to and fro on 10 m at 2 m/s: by the clock on its topic, in `placed_objects`, the
    window, a lidar.
    """
    from rfly_suite.msg import VehicleStateArray
    from sensor_msgs.msg import LaserScan

    from rfly_common.ros.qos import SENSORS, STATE_OUT

    def by_hand(seconds):
        along = 2.0 * seconds % 20.0
        ahead = along if along <= 10.0 else 20.0 - along
        return -20.0 + 0.8 * ahead, 6.0 + 0.6 * ahead

    states = scene.receive(VehicleStateArray, "moving_objects", STATE_OUT)
    scans = scene.receive(LaserScan, "/seer/scan", SENSORS)
    scene.window.clear()
    scene.spin_until(lambda: len(states) > 5)
    for state in states:
        seconds = state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec
        assert list(state.id) == [1004]
        assert list(state.position) == pytest.approx((*by_hand(seconds), 0.75), abs=1e-3)
        assert math.hypot(*state.velocity) == pytest.approx(2.0)
    assert list(objects.path_corners[:3]) == [0, 0, 0]
    line = np.reshape(objects.path, (-1, 3))
    assert len(line) == objects.path_corners[3]
    assert np.vstack([line[0], line[-1]]) == pytest.approx(
        np.array([(-20, 6, 0.75), (-12, 12, 0.75)])
    )

    def shown():
        datagrams = [d for d in scene.window.poll() if struct.unpack_from("<i", d, 4) == (1004,)]
        places = {struct.unpack_from("<3f", d, 16) for d in datagrams}
        return places if len(places) > 1 else None

    for north, east, down in scene.spin_until(shown):
        assert (east + 20.0) * 0.6 == pytest.approx((north - 6.0) * 0.8, abs=1e-3)
        assert down == pytest.approx(-0.75)

    def seen(scan):
        """Return the returns next to the path, where nothing stands."""
        angles = scan.angle_min + scan.angle_increment * np.arange(len(scan.ranges))
        ranges = np.asarray(scan.ranges)
        xy = np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])[
            np.isfinite(ranges)
        ]
        return (np.abs((xy + np.array((20.0, -6.0))) @ (-0.6, 0.8)) < 1.6) & (xy[:, 0] < -9.0)

    assert scene.spin_until(lambda: next((True for s in scans[::-1] if seen(s).any()), None))
