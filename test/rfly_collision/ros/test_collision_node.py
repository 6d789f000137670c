# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""collision_node from outside: a running process and real DDS.

Two nodes serve the whole module. Two vehicles that lie within each other are in every message, so a
test sees in the contacts of a step when its own states have been tested.
"""

from __future__ import annotations

import itertools
import math
import signal

import numpy as np
import pytest
from node_harness import PATIENCE

from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.ros

BEGIN = 0
STAY = 1
END = 2
GROUND = -2
STATIC = -1
BOX = 999
CAR = 50
MARKS = [(1001, CAR, (500.0, 500.0, 900.0)), (1002, CAR, (501.0, 500.0, 900.0))]
MINE = """\
version: 1
vehicles:
  - {name: ball, types: [8], shape: {type: sphere, radius: 1.0, offset: [0, 0, 0]}}
"""


def ground():
    """Return 400 m x 400 m of ground at 100 m, rising by 0.2 to the east."""
    axis = np.linspace(-200.0, 200.0, 21)
    heights = 100.0 + 0.2 * np.repeat(axis[:, None], 21, axis=1)
    return HeightMap(
        heights, origin_x=-200.0, origin_y=-200.0, step_x=20.0, step_y=20.0, name="ramp"
    )


class Scene:
    """A running node and its messages."""

    def __init__(self, peer, node, namespace=""):
        from diagnostic_msgs.msg import DiagnosticArray
        from rfly_suite.msg import ContactArray, PlacedObjectArray, VehicleStateArray
        from visualization_msgs.msg import MarkerArray

        from rfly_common.ros.qos import FLEET_OUT, LATCHED

        self.peer = peer
        self.node = node
        self.namespace = namespace
        self.contacts = peer.receive(ContactArray, f"{namespace}/contacts", 100)
        self.markers = peer.receive(MarkerArray, f"{namespace}/contact_markers", 10)
        self.statuses = peer.receive(DiagnosticArray, "/diagnostics", 10)
        self.states = peer.publisher(VehicleStateArray, f"{namespace}/vehicle_states", FLEET_OUT)
        self.objects = peer.publisher(PlacedObjectArray, f"{namespace}/placed_objects", LATCHED)
        self._seconds = itertools.count(100)
        self._known = {}

    def publish(self, *vehicles, source="/test", frame="map", seconds=None, **arrays):
        """Send states of (id, type, position); return the stamp, s, 0.02 s after the last."""
        from bridge_harness import fleet

        seconds = next(self._seconds) / 50 if seconds is None else seconds
        ids, types, positions = (list(column) for column in zip(*vehicles, strict=True))
        self._known = {
            **{vehicle_id: (kind, source) for vehicle_id, kind, _ in vehicles},
            **self._known,
        }
        position = [float(value) for place in positions for value in place]
        arrays.setdefault("orientation", [0.0, 0.0, 0.0, 1.0] * len(ids))
        self.states.publish(
            fleet(
                ids,
                source,
                frame,
                seconds,
                vehicle_type=types,
                position=position,
                **arrays,
            )
        )
        return seconds

    def part(self):
        """Move all known vehicles apart, so that every contact has ended."""
        apart = {}
        for vehicle_id, (kind, source) in self._known.items():
            if (vehicle_id, kind) not in [mark[:2] for mark in MARKS]:
                apart.setdefault(source, []).append(
                    (vehicle_id, kind, (100.0 * vehicle_id, 5000.0, 5000.0))
                )
        for source, vehicles in apart.items():
            self.publish(*vehicles, source=source)
        self.tested(self.publish(*MARKS))
        self._known.clear()

    def tested(self, seconds):
        """Return the message of the step with that stamp."""
        stamps = lambda m: abs(m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 - seconds) < 1e-6  # noqa: E731
        return self.peer.spin_until(lambda: next((m for m in self.contacts if stamps(m)), None))

    def see(self, *vehicles, **options):
        """Return the contacts of the step with these states.

        The keys are (id_a, id_b, object_id), the values (event, position, normal, …).
        """
        seconds = self.publish(*MARKS, *vehicles, **options)
        found = rows(self.tested(seconds))
        ids = {vehicle[0] for vehicle in vehicles}
        return {pair: row for pair, row in found.items() if pair[0] in ids or pair[1] in ids}

    def place(self, *placed):
        """Publish objects of (id, middle, half extent)."""
        from rfly_suite.msg import PlacedObjectArray

        n = len(placed)
        middle, half = ([float(v) for each in placed for v in each[k]] for k in (1, 2))
        message = PlacedObjectArray(
            id=[each[0] for each in placed],
            vehicle_type=[CAR] * n,
            position=middle,
            orientation=[0.0, 0, 0, 1] * n,
            box_origin=middle,
            box_half_extent=half,
            offset=[0.0] * n,
            scale=[1.0] * 3 * n,
            use_ground_packet=[0] * n,
        )
        message.header.frame_id = "map"
        self.objects.publish(message)

    def status(self):
        from node_harness import diagnostic

        name = f"{self.namespace}/collision_node: collisions"
        mine = [m for m in self.statuses if any(status.name == name for status in m.status)]
        return diagnostic(mine, "collisions") or (None, "", {})

    def check(self, *vehicles, frame="map", **arrays):
        from bridge_harness import fleet
        from rfly_suite.srv import CheckCollision

        ids, types, positions = (list(column) for column in zip(*vehicles, strict=True))
        position = [float(value) for place in positions for value in place]
        states = fleet(ids, "", frame, 0, vehicle_type=types, position=position,
                       orientation=[0.0, 0.0, 0.0, 1.0] * len(ids), **arrays)  # fmt: skip
        return self.peer.call(CheckCollision, f"{self.namespace}/check_collision", states=states)


def rows(message):
    """Return {(id_a, id_b, object_id): (event, position, normal, depth, time)} of the contacts."""
    position, normal = (
        np.asarray(a).reshape(-1, 3).tolist() for a in (message.position, message.normal)
    )
    keys = zip(message.id_a, message.id_b, message.object_id, strict=True)
    values = zip(message.event, position, normal, message.depth, message.time, strict=True)
    return dict(zip(keys, values, strict=True))


def events(found):
    return {pair: row[0] for pair, row in found.items()}


@pytest.fixture(scope="module")
def scenes(shared_domain_id, tmp_path_factory):
    """Two nodes: one with the shipped shapes over a terrain, one in map_ned.

    The second has shapes of its own and no terrain.
    """
    from node_harness import NodeProcess, Peer
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    mine = tmp_path_factory.mktemp("shapes") / "mine.yaml"
    mine.write_text(MINE, encoding="utf-8")
    rules = {"ignore": "['801,802', 'type:30,ground']", "stale_after": "3.0"}
    plain = NodeProcess("collision_node", shared_domain_id, rules)
    other = {
        "frame_id": "map_ned",
        "shapes": str(mine),
        "max_markers": "1",
        "stale_after": "60.0",
    }
    with (
        plain,
        NodeProcess("collision_node", shared_domain_id, other, "-r", "__ns:=/ned") as ned,
    ):
        peer = Peer(shared_domain_id)
        try:
            terrain = peer.publisher(TerrainMap, "terrain_map", LATCHED)
            terrain.publish(height_map_to_msg(ground(), (47.0, 8.0, 0.0), 1, 10**9))
            made = Scene(peer, plain), Scene(peer, ned, "/ned")
            peer.spin_until(lambda: made[0].status()[2].get("terrain") == "ramp")
            peer.spin_until(lambda: made[1].status()[0] is not None)
            yield made
        finally:
            peer.close()


@pytest.fixture
def scene(scenes):
    yield scenes[0]
    scenes[0].part()


@pytest.fixture
def ned(scenes):
    yield scenes[1]
    scenes[1].part()


def test_two_vehicles_crash(scene):
    """A crash begins where vehicles meet, stays while they overlap, and ends when they part.

    Events come in this order, with ids, place, depth, the normal from the second to the first, and
    the time within the step.
    """
    other = (102, BOX, (0, 0, 500))
    assert scene.see((101, BOX, (-1.5, 0, 500)), other) == {}

    event, position, normal, depth, seconds = scene.see((101, BOX, (-0.75, 0, 500)), other)[
        101, 102, 0
    ]
    assert (event, depth) == (BEGIN, pytest.approx(0.25))
    assert normal == pytest.approx([-1, 0, 0])
    assert position[0] == pytest.approx(-0.375)
    assert seconds == pytest.approx(0.02 * 0.5 / 0.75, abs=1e-5)
    assert scene.contacts[-1].header.frame_id == "map"

    expected = {(101, 102, 0): STAY}
    assert events(scene.see((101, BOX, (-0.7, 0, 500)), other)) == expected

    event, _, _, depth, seconds = scene.see((101, BOX, (-2.0, 0, 500)), other)[101, 102, 0]
    assert (event, depth, seconds) == (END, pytest.approx(0.3), 0)
    assert scene.see((101, BOX, (-2.5, 0, 500)), other) == {}


def test_a_bullet_does_not_pass_through(scene):
    """A bullet at 700 m/s, 14 m in 20 ms, does not pass through a face 6 m away."""
    wall = (112, BOX, (7, 0, 510))
    assert scene.see((111, BOX, (0, 0, 510)), wall) == {}
    event, _, _, depth, seconds = scene.see((111, BOX, (14, 0, 510)), wall)[111, 112, 0]
    assert (event, depth, seconds) == (BEGIN, 0, pytest.approx(6 / 700, abs=1e-5))
    expected = {(111, 112, 0): END}
    assert events(scene.see((111, BOX, (28, 0, 510)), wall)) == expected


def test_partial_updates_of_several_sources_are_one_world(scene):
    """Each source reports its own vehicle only.

    States for another source's id are ignored.
    """
    before = int(scene.status()[2].get("other_source", 0))
    assert scene.see((121, BOX, (50, 0, 500))) == {}
    scene.publish((122, BOX, (50.5, 0, 500)), source="/b")
    assert (121, 122, 0) in scene.see((121, BOX, (50, 0, 500)))
    scene.publish((121, BOX, (90, 0, 500)), source="/b")
    assert events(scene.see((123, BOX, (90, 0, 500)))) == {}
    scene.peer.spin_until(lambda: int(scene.status()[2]["other_source"]) == before + 1)


def test_the_ground(scene):
    """The ground touches a box, but not a car on its wheels.

    It is 104 m high at x = 20 m. A car is 0.2 m off it on its wheels; a box sent level into the
    slope touches it, with the slope's normal.
    """
    slope = np.array([-0.2, 0, 1]) / math.sqrt(1.04)
    found = scene.see((131, BOX, (20, 0, 104.4)), (132, CAR, (20, 50, 104.5)))
    assert events(found) == {(131, GROUND, 0): BEGIN}
    assert found[131, GROUND, 0][2] == pytest.approx(slope.tolist(), abs=1e-3)
    expected = {(131, GROUND, 0): END}
    assert events(scene.see((131, BOX, (20, 0, 106)))) == expected


def test_fit_ground_puts_vehicles_on_the_ground_before_the_test(scene):
    """Vehicles sent 50 m below the ground are fitted to it before the test.

    They then stand next to each other, within a metre of 104 m.
    """
    three = (
        (141, CAR, (20, -50, 50)),
        (142, CAR, (23, -50, 50)),
        (143, BOX, (20, -50, 105)),
    )
    found = scene.see(*three, fit_ground=[0, 0, 1, 1, 0])
    expected = {(141, 142, 0): BEGIN, (141, 143, 0): BEGIN}
    assert events(found) == expected
    assert 104 < found[141, 142, 0][1][2] < 106


def test_a_placed_object_is_static(scene):
    """A pole of 1 x 1 x 20 m is touched; the contact ends when the object goes."""
    scene.place((2001, (0, 80, 200), (0.5, 0.5, 10)))
    scene.peer.spin_until(lambda: scene.status()[2].get("objects") == "1")
    assert scene.see((151, BOX, (-3, 80, 205))) == {}
    found = scene.see((151, BOX, (-0.9, 80, 205)))
    assert events(found) == {(151, STATIC, 2001): BEGIN}
    assert found[151, STATIC, 2001][2] == pytest.approx([-1, 0, 0])
    scene.place()
    scene.peer.spin_until(
        lambda: rows(scene.contacts[-1]).get((151, STATIC, 2001), (STAY,))[0] == END
    )
    assert scene.see((151, BOX, (-0.8, 80, 205))) == {}


def test_objects_that_are_none_are_refused(scene):
    before = int(scene.status()[2].get("refused_objects", 0))
    scene.place((2002, (0, math.nan, 200), (0.5, 0.5, 10)))

    def refused():
        scene.publish(*MARKS)  # without vehicles that would be reported first
        level, _, values = scene.status()
        return level == 1 and int(values["refused_objects"]) == before + 1

    scene.peer.spin_until(refused)
    _, message, values = scene.status()
    assert values["objects"] == "0"
    assert "placed_objects: position of object 2002 is nan, expected -1e+07 … 1e+07" in message
    scene.place()


def test_ignored_pairs_never_count(scene):
    """Two ids, and persons with the ground, are ignored; the third contact is reported."""
    at = (100, 100, 500)
    found = scene.see(
        (801, BOX, at),
        (802, BOX, at),
        (803, BOX, at),
        (804, 30, (0, 0, 99.5)),
    )
    expected = {(801, 803, 0): BEGIN, (802, 803, 0): BEGIN}
    assert events(found) == expected


def test_what_no_vehicle_can_be_is_dropped_alone(scene):
    """A vehicle with a NaN is counted and left out; the others of the message are tested."""
    before = int(scene.status()[2].get("not_finite", 0))
    at = (0, 100, 500)
    expected = {(162, 163, 0): BEGIN}
    assert (
        events(scene.see((161, BOX, (math.nan, 0, 0)), (162, BOX, at), (163, BOX, at))) == expected
    )
    scene.peer.spin_until(lambda: int(scene.status()[2]["not_finite"]) == before + 1)
    level, message, _ = scene.status()
    assert (level, "not_finite: vehicle_states of '/test'" in message) == (1, True)


def test_types_without_a_shape_are_reported_once(scene):
    for _ in range(3):
        scene.see((171, 777, (0, 0, 600)))
    scene.peer.spin_until(lambda: "777" in scene.status()[1])
    assert (
        scene.node.output.count(
            "types without a shape of their own, taken for the default: 777 (parameter shapes)"
        )
        == 1
    )


def test_silent_vehicles_are_gone_after_a_time(scene):
    """The contact of silent vehicles ends by itself while only the marks go on."""
    at = (100, 0, 500)
    assert events(scene.see((181, BOX, at), (182, BOX, at))) == {(181, 182, 0): BEGIN}
    scene.contacts.clear()

    def ended():
        scene.publish(*MARKS)
        return any(rows(m).get((181, 182, 0), (STAY,))[0] == END for m in scene.contacts)

    scene.peer.spin_until(ended)


def test_arrows_come_and_go(scene):
    """Each contact has an arrow along its normal, and a DELETE when it has ended."""
    from visualization_msgs.msg import Marker

    other = (192, BOX, (0, 0, 700))

    def arrow():
        scene.see((191, BOX, (-0.9, 0, 700)), other)
        for message in scene.markers:
            for m in message.markers:
                if m.action == Marker.ADD and abs(m.points[0].z - 700) < 1:
                    return m
        return None

    shown = scene.peer.spin_until(arrow)
    assert (shown.ns, shown.type, shown.header.frame_id) == (
        "contacts",
        Marker.ARROW,
        "map",
    )
    assert [
        shown.points[1].x - shown.points[0].x,
        shown.points[1].z - shown.points[0].z,
    ] == pytest.approx([-10, 0])
    scene.markers.clear()

    def gone():
        scene.see((191, BOX, (-5, 0, 700)), other)
        return any(
            (m.id, m.action) == (shown.id, Marker.DELETE)
            for message in scene.markers
            for m in message.markers
        )

    scene.peer.spin_until(gone)


def test_check_collision_answers_for_hypothetical_poses(scene):
    """Hypothetical poses meet ground, each other and present vehicles; no contact begins."""
    scene.see((201, BOX, (0, 0, 800)))
    answer = scene.check((202, CAR, (0, 0, 799.5)), (203, CAR, (0, -100, 90)))
    assert (answer.success, answer.message) == (True, "")
    found = rows(answer.contacts)
    expected = {(201, 202, 0): BEGIN, (203, GROUND, 0): BEGIN}
    assert events(found) == expected
    assert answer.contacts.header.frame_id == "map"
    assert scene.see((201, BOX, (0, 0, 800))) == {}
    answer = scene.check((204, 778, (0, 0, 900)))
    assert answer.message.startswith(
        "types without a shape of their own, taken for the default: 778"
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"position": (math.nan, 0, 0)}, "vehicle 205 can't be tested (not_finite: 1)"),
        ({"frame": "mars"}, "'mars'"),
        ({"scale": [1.0]}, "scale: 1 numbers for 1 vehicles, expected 3"),
        ({"scale": [0.0, 1.0, 1.0]}, "vehicle 205 can't be tested (bad_scale: 1)"),
    ],
)
def test_a_check_that_cannot_be_made_says_why(scene, fields, message):
    given = {"position": (0, 0, 0), **fields}
    answer = scene.check((205, BOX, given.pop("position")), **given)
    assert not answer.success
    assert message in answer.message


def test_the_other_world_frame_and_shapes_of_ones_own(ned):
    """Two balls of 1 m, one 1.5 m over the other at 10 m north, touch in map_ned.

    There x is north and z down, for normals too. There is no ground.
    """
    found = ned.see((301, 8, (0, 10, 51.5)), (302, 8, (0, 10, 50)))
    _, position, normal, depth, _ = found[301, 302, 0]
    assert depth == pytest.approx(0.5)
    assert normal == pytest.approx([0, 0, -1])
    assert position == pytest.approx([10, 0, -50.75])
    assert ned.contacts[-1].header.frame_id == "map_ned"
    answer = ned.check((303, 8, (10, 0, -49)), frame="map_ned")
    assert "the ground was not tested: no terrain_map has come yet" in answer.message
    assert rows(answer.contacts)[302, 303, 0][2] == pytest.approx([0, 0, -1])
    level, message, _ = ned.status()
    assert (level, message.startswith("no terrain_map has come yet")) == (3, True)


def test_the_deepest_contacts_are_shown(ned):
    """The single arrow shown is that of the deepest contact, 1.9 m, between 311 and 312.

    Neither the contact of 0.1 m nor one of the test before is shown.
    """
    balls = (
        (311, 8, (0, 0, 60)),
        (312, 8, (0, 0.1, 60)),
        (313, 8, (0, 50, 60)),
        (314, 8, (0, 51.9, 60)),
    )

    def arrow():
        expected = {(311, 312, 0), (313, 314, 0)}
        assert set(ned.see(*balls)) == expected
        return ned.markers and any(
            abs(m.points[0].x - 0.05) < 1e-6 for m in ned.markers[-1].markers if m.points
        )

    ned.peer.spin_until(arrow)
    assert all(sum(m.action == m.ADD for m in message.markers) <= 1 for message in ned.markers)


def test_a_wrong_file_or_rule_ends_the_node_with_one_line(domain_id, tmp_path):
    from node_harness import NodeProcess

    (tmp_path / "bad.yaml").write_text(
        "version: 1\nvehicles:\n  - {name: x, types: [1]}\n", encoding="utf-8"
    )
    starts = {
        "bad.yaml:3: vehicles[0]: the key shape is missing": {"shapes": str(tmp_path / "bad.yaml")},
        "0 .xml files, expected 1 to 1000": {"vehicle_xml": str(tmp_path)},
        "ignore: 'cars' in 'cars,2', expected an id or range": {"ignore": "['cars,2']"},
    }
    running = {
        text: NodeProcess("collision_node", domain_id, parameters)
        for text, parameters in starts.items()
    }
    for text, node in running.items():
        with node:
            assert node.process.wait(PATIENCE) == 2
            node.stop()
            assert text in node.output
            assert "Traceback" not in node.output


@pytest.mark.exhaustive
def test_a_hundred_thousand_in_one_place_hold_back_neither_services_nor_signals(
    domain_id,
):
    """Services and signals are answered; they once waited for more than a minute."""
    from bridge_harness import fleet
    from node_harness import NodeProcess, Peer
    from rcl_interfaces.srv import GetParameters

    n = 100_000
    peer = Peer(domain_id)
    try:
        with NodeProcess("collision_node", domain_id, {"stale_after": "100.0"}) as node:
            scene = Scene(peer, node)
            peer.call(GetParameters, "collision_node/get_parameters")  # its kernels are compiled
            crowd = fleet(
                list(range(1, n + 1)),
                "/crowd",
                "map",
                1.0,
                vehicle_type=[CAR] * n,
                position=[0.0, 0.0, 5.0] * n,
                orientation=[0.0, 0.0, 0.0, 1.0] * n,
            )
            scene.states.publish(crowd)
            peer.spin_until(lambda: scene.status()[2].get("vehicles") == str(n))
            peer.call(GetParameters, "collision_node/get_parameters")
            peer.spin_until(
                lambda: (
                    "only the ground is tested: the boxes of more than 50,000" in scene.status()[1]
                )
            )
            crowd.header.stamp.sec = 2
            scene.states.publish(crowd)
            assert node.stop(signal.SIGTERM) == 0
    finally:
        peer.close()
