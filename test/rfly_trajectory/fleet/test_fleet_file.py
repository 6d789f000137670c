# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleet files: their meaning and their errors.

Errors name file, line, key and the allowed values.
"""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_collision.world.collision_world import CollisionWorld
from rfly_common.config.documents import load_schema
from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet import fleet_file
from rfly_trajectory.fleet.fleet_file import load_fleet, parse_fleet, shipped_fleets
from rfly_trajectory.fleet.limit_check import check_limits, check_separation, check_tracks

LINE = "{type: line, from: [0, 0], to: [100, 0]}"
CIRCLE = "{type: circle, center: [0, 0], radius: 50}"


def fleet_of(*vehicles, head="version: 1"):
    return parse_fleet(
        "\n".join([head, "vehicles:", *(f"  - {vehicle}" for vehicle in vehicles)]).encode(),
        "f.yaml",
    )


def refused(text):
    with pytest.raises(ConfigError) as error:
        parse_fleet(text.encode() if isinstance(text, str) else text, "f.yaml")
    assert "\n" not in str(error.value)
    return str(error.value)


class TestMeaning:
    def test_one_vehicle_and_its_defaults(self):
        (vehicle,) = fleet_of(f"{{id: 5, type: 30, speed: 1.5, shape: {LINE}}}").vehicles

        assert (vehicle.name, vehicle.id, vehicle.vehicle_type, vehicle.kind) == (
            "vehicle_5",
            5,
            30,
            "ground",
        )
        assert (vehicle.at_end, vehicle.delay, vehicle.phase, vehicle.height) == (
            "stop",
            0.0,
            0.0,
            0.0,
        )
        assert (vehicle.fit_ground, vehicle.scale, vehicle.absolute) == (
            False,
            (1.0, 1.0, 1.0),
            False,
        )

        assert vehicle.path.length == pytest.approx(100.0)

    def test_closed_paths_repeat_by_default(self):
        assert (
            fleet_of(f"{{id: 5, type: 30, speed: 1.5, shape: {CIRCLE}}}").vehicles[0].at_end
            == "repeat"
        )

    def test_a_key_of_the_vehicle_replaces_the_default_as_a_whole(self):
        head = (
            f"version: 1\ndefaults: {{type: 3, speed: {{cruise: 9, acceleration: 2}}, "
            f"shape: {CIRCLE}}}"
        )
        a, b = fleet_of("{id: 1}", "{id: 2, type: 4, speed: {cruise: 5}}", head=head).vehicles

        assert (a.vehicle_type, a.profile.cruise, a.profile.acceleration) == (
            3,
            9.0,
            2.0,
        )
        assert (b.vehicle_type, b.profile.cruise, b.profile.acceleration) == (
            4,
            5.0,
            None,
        )
        assert a.path is b.path

    def test_copies_have_names_and_ids_in_order_and_start_one_after_the_other(self):
        fleet = fleet_of(
            f"{{name: car, id: 10, type: 3, count: 3, delay: 2.5, speed: 4, shape: {LINE}}}"
        )
        assert [v.name for v in fleet.vehicles] == ["car_1", "car_2", "car_3"]
        assert [v.id for v in fleet.vehicles] == [10, 11, 12]
        assert [v.delay for v in fleet.vehicles] == [0.0, 2.5, 5.0]
        np.testing.assert_allclose(fleet.sample(6.0).position[:, 0], [24.0, 14.0, 4.0], atol=1e-12)

    def test_copies_without_a_name_are_named_by_their_ids(self):
        fleet = fleet_of(f"{{id: 7, type: 3, count: 2, speed: 4, shape: {LINE}}}")
        assert [v.name for v in fleet.vehicles] == ["vehicle_7", "vehicle_8"]

    def test_whole_numbers_may_be_written_as_floats(self):
        fleet = fleet_of(f"{{id: 7.0, type: 3.0, count: 2.0, speed: 4, shape: {LINE}}}")
        assert [v.name for v in fleet.vehicles] == ["vehicle_7", "vehicle_8"]
        np.testing.assert_array_equal(fleet.sample(0.0).id, [7, 8])

    @pytest.mark.parametrize(
        ("delay", "count", "delays"),
        [
            ("4", 1, [4]),
            ("{first: 4}", 2, [4, 4]),
            ("{first: 4, step: 1}", 3, [4, 5, 6]),
            ("{step: 2}", 2, [0, 2]),
        ],
    )
    def test_delays(self, delay, count, delays):
        fleet = fleet_of(
            f"{{id: 7, type: 3, count: {count}, delay: {delay}, speed: 4, shape: {LINE}}}"
        )
        assert [v.delay for v in fleet.vehicles] == delays

    def test_spacing_in_metres_puts_copies_behind_each_other(self):
        fleet = fleet_of(
            f"{{id: 1, type: 3, count: 3, phase: 60, spacing: 20, speed: 4, shape: {LINE}}}"
        )
        np.testing.assert_allclose(fleet.sample(0.0).position[:, 0], [60, 40, 20], atol=1e-12)

    def test_spacing_as_a_vector_moves_the_whole_path(self):
        fleet = fleet_of(
            f"{{id: 1, type: 3, count: 3, spacing: [1, -10], speed: 4, shape: {LINE}}}"
        )
        expected = [[0, 0], [1, -10], [2, -20]]
        np.testing.assert_allclose(fleet.sample(0.0).position[:, :2], expected, atol=1e-12)
        expected = [[100, 0], [101, -10], [102, -20]]
        np.testing.assert_allclose(fleet.sample(99.0).position[:, :2], expected, atol=1e-12)

    def test_even_spacing_fills_a_ring(self):
        fleet = fleet_of(f"{{id: 1, type: 3, count: 4, spacing: even, speed: 4, shape: {CIRCLE}}}")
        expected = [
            [50, 0],
            [0, -50],
            [-50, 0],
            [0, 50],
        ]
        np.testing.assert_allclose(fleet.sample(0.0).position[:, :2], expected, atol=1e-9)

    def test_delay_and_spacing_combine(self):
        fleet = fleet_of(
            f"{{id: 1, type: 3, count: 2, delay: 5, spacing: [0, 8], speed: 4, shape: {LINE}}}"
        )
        np.testing.assert_allclose(
            fleet.sample(10.0).position[:, :2], [[40, 0], [20, 8]], atol=1e-12
        )

    def test_altitude_scale_and_ground_flag(self):
        a, b, c = fleet_of(
            f"{{id: 1, type: 3, speed: 4, shape: {LINE}, altitude: {{agl: 0.4}}, fit_ground: "
            f"true, scale: 2}}",
            f"{{id: 2, type: 3, speed: 4, shape: {LINE}, kind: multirotor, altitude: {{agl: 30}}, "
            f"scale: [1, 2, 3]}}",
            f"{{id: 3, type: 3, speed: 4, shape: {LINE}, kind: fixed_wing, altitude: {{absolute: "
            f"300}}}}",
        ).vehicles

        assert (a.height, a.absolute, a.fit_ground, a.scale) == (
            0.4,
            False,
            True,
            (2, 2, 2),
        )
        assert (b.height, b.absolute, b.fit_ground, b.scale) == (
            30.0,
            False,
            False,
            (1, 2, 3),
        )
        assert (c.height, c.absolute, c.kind) == (300.0, True, "fixed_wing")

    @pytest.mark.parametrize(
        ("shape", "start", "heading_deg"),
        [
            (LINE, [0, 0], 0),
            (
                "{type: circle, center: [1, 2], radius: 5, start_angle_deg: 90}",
                [1, 7],
                180,
            ),
            (
                "{type: circle, center: [1, 2], radius: 5, direction: clockwise}",
                [6, 2],
                -90,
            ),
            (
                "{type: figure_eight, center: [1, 2], width: 100, height: 50, heading_deg: -45}",
                [1, 2],
                0,
            ),
            (
                "{type: polyline, points: [[0, 0], [0, 50], [50, 50]], corner_radius: 5}",
                [0, 0],
                90,
            ),
            (
                "{type: ellipse, center: [1, 2], width: 20, height: 10, heading_deg: 90}",
                [1, 12],
                180,
            ),
            (
                "{type: ellipse, center: [1, 2], width: 20, height: 10, direction: clockwise}",
                [11, 2],
                -90,
            ),
            (
                "{type: lawn_mower, center: [1, 2], length: 20, width: 10, spacing: 5, "
                "heading_deg: 90}",
                [6, -8],
                90,
            ),
            ("{type: spline, points: [[0, 0], [0, 50]]}", [0, 0], 90),
        ],
    )
    def test_every_shape(self, shape, start, heading_deg):
        at = fleet_of(f"{{id: 1, type: 3, speed: 1, shape: {shape}}}").vehicles[0].path.at(0.0)
        np.testing.assert_allclose(at.position, start, atol=1e-9)
        heading = math.radians(heading_deg)
        expected = [math.cos(heading), math.sin(heading)]
        np.testing.assert_allclose(at.tangent, expected, atol=1e-9)

    def test_anchors_and_merge_keys_work(self):
        text = f"""
version: 1
vehicles:
  - &car
    id: 1
    type: 3
    speed: 2
    shape: &way {CIRCLE}
  - <<: *car
    id: 2
  - {{id: 3, type: 30, speed: 1, shape: *way}}
"""

        fleet = parse_fleet(text.encode(), "f.yaml")
        expected = [
            (1, 3, 2),
            (2, 3, 2),
            (3, 30, 1),
        ]
        assert [(v.id, v.vehicle_type, v.profile.cruise) for v in fleet.vehicles] == expected

        assert len({id(v.path) for v in fleet.vehicles}) == 1


HEAD = "version: 1\nvehicles:\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "f.yaml: the file is empty", id="empty"),
        pytest.param("# nothing\n", "f.yaml: the file is empty", id="comment only"),
        pytest.param("hello", "f.yaml:1: expected the keys version and vehicles", id="a word"),
        pytest.param("version: 1\n", "f.yaml:1: the key vehicles is missing", id="no vehicles"),
        pytest.param(
            "version: 2\nvehicles: []\n",
            "f.yaml:1: version: 2, allowed: 1",
            id="version",
        ),
        pytest.param(
            "version: 1\nvehicles: []\n",
            "f.yaml:2: vehicles: 0 elements, allowed: 1 … 100000",
            id="no vehicle",
        ),
        pytest.param(
            HEAD + "  - id: 1\n    typ: 3\n",
            "f.yaml:4: vehicles[0].typ: unknown key; did you mean type? allowed: altitude, "
            "at_end, count, delay, "
            "fit_ground, formation, id, keep_limits, kind, limits, name, phase, scale, shape, "
            "spacing, speed, "
            "track, type, "
            "wheelbase",
            id="unknown key",
        ),
        pytest.param(
            HEAD + "  - type: 3\n",
            "f.yaml:3: vehicles[0]: the key id is missing",
            id="no id",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, speed: 3, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0]: the key type is missing, here and in defaults",
            id="no type",
        ),
        pytest.param(
            HEAD + f"  - id: 1\n    type: 3\n    kind: boat\n    speed: 3\n    shape: {LINE}\n",
            "f.yaml:5: vehicles[0].kind: 'boat', allowed: ground, multirotor, fixed_wing",
            id="kind",
        ),
        pytest.param(
            HEAD + "  - {id: 1, type: 3, speed: 3, shape: {type: ring}}\n",
            "f.yaml:3: vehicles[0].shape.type: 'ring', allowed: circle, dubins, ellipse, "
            "figure_eight, lawn_mower, line, polyline, spline",
            id="shape",
        ),
        pytest.param(
            HEAD + "  - id: 1\n    type: 3\n    speed: 3\n    shape:\n      type: circle\n      "
            "radius: 3\n",
            "f.yaml:6: vehicles[0].shape: the key center is missing",
            id="no centre",
        ),
        pytest.param(
            HEAD
            + "  - id: 1\n    type: 3\n    shape:\n      type: circle\n      center: [0, 0]\n     "
            " radius: -3\n",
            "f.yaml:8: vehicles[0].shape.radius: -3, allowed: 0.001 … 10000000 (m)",
            id="radius",
        ),
        pytest.param(
            HEAD
            + "  - {id: 1, type: 3, speed: 3, shape: {type: line, from: [0, 0, 0], to: [1, 1]}}\n",
            "f.yaml:3: vehicles[0].shape.from: 3 elements, allowed: 2 ([east, north], m)",
            id="point",
        ),
        pytest.param(
            HEAD
            + "  - {id: 1, type: 3, speed: fast, shape: {type: line, from: [0, 0], to: [1, 1]}}\n",
            "f.yaml:3: vehicles[0].speed: 'fast', expected a number or keys with values (cruising "
            "speed, m/s; as an "
            "object with accelerations, the vehicle starts from standstill and brakes where its "
            "way ends)",
            id="speed",
        ),
        pytest.param(
            HEAD
            + f"  - {{id: 1, type: 3, speed: {{cruise: 1, deceleration: 2}}, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].speed: deceleration needs acceleration too",
            id="deceleration alone",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, altitude: {{agl: 1, absolute: 2}}, shape: "
            f"{LINE}}}\n",
            "f.yaml:3: vehicles[0].altitude: expected exactly one of the keys absolute, agl",
            id="two altitudes",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, altitude: {{absolute: 2}}, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].altitude: absolute is for aircraft, a ground vehicle takes agl",
            id="absolute ground vehicle",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, kind: multirotor, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].kind: multirotor needs the key altitude too, or "
            "waypoints with heights",
            id="aircraft without altitude",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, at_end: repeat, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].at_end: repeat needs a closed path; an open one takes "
            "ping_pong or stop",
            id="repeat an open path",
        ),
        pytest.param(
            f"version: 1\ndefaults:\n  at_end: repeat\nvehicles:\n  - {{id: 1, type: 3, speed: 1, "
            f"shape: {LINE}}}\n",
            "f.yaml:3: defaults.at_end: repeat needs a closed path; an open one takes ping_pong "
            "or stop",
            id="the default is wrong",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, phase: 101, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].phase: 101 m is not on the path, which is 100 m long",
            id="phase",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, count: 3, spacing: 10, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].spacing: the last of 3 copies would start 20 m before the path "
            "begins; a phase of "
            "at least 20 makes room",
            id="no room behind",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, count: 3, spacing: even, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].spacing: even needs a closed path, this one is open",
            id="even on a line",
        ),
        pytest.param(
            HEAD + "  - id: 1\n    type: 3\n    speed: 1\n    shape:\n      type: polyline\n      "
            "corner_radius: 5\n"
            "      points:\n        - [0, 0]\n        - [9, 0]\n        - [9, 0]\n",
            "f.yaml:12: vehicles[0].shape.points[2]: the same point as points[1] before it",
            id="repeated point",
        ),
        pytest.param(
            HEAD
            + f"  - {{id: 1, type: 3, count: 3, speed: 1, shape: {LINE}}}\n"
            + f"  - {{id: 3, type: 3, speed: 1, shape: {LINE}}}\n",
            "f.yaml:4: vehicles[1].id: 3 belongs to the vehicle of line 3 already, each needs its "
            "own",
            id="repeated id",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, name: a, type: 3, speed: 1, shape: {LINE}}}\n"
            f"  - {{id: 2, name: a, type: 3, speed: 1, shape: {LINE}}}\n",
            "f.yaml:4: vehicles[1].name: 'a' belongs to the vehicle of line 3 already, each needs "
            "its own",
            id="repeated name",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, name: a/b, type: 3, speed: 1, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].name: 'a/b' is not allowed (letters, digits and single "
            "underscores, a letter "
            "first; for topics and frames, default vehicle_<id>; copies get _1, _2, … behind it)",
            id="name",
        ),
        pytest.param(
            HEAD + f'  - {{id: 1, name: "a\\n", type: 3, speed: 1, shape: {LINE}}}\n',
            "f.yaml:3: vehicles[0].name: 'a\\n' is not allowed (letters, digits and single "
            "underscores, a letter "
            "first; for topics and frames, default vehicle_<id>; copies get _1, _2, … behind it)",
            id="line feed after a name",
        ),
        pytest.param(
            HEAD + f'  - {{id: 1, spacing: "even\\n", type: 3, speed: 1, shape: {LINE}}}\n',
            "f.yaml:3: vehicles[0].spacing: 'even\\n' is not allowed (between one copy and the "
            "next: metres along the "
            "path behind it, or [east, north] by which its whole path is moved, or even: all "
            "round a closed path)",
            id="line feed after even",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, count: 60000, type: 3, speed: 1, shape: {LINE}}}\n"
            f"  - {{id: 70000, count: 60000, type: 3, speed: 1, shape: {LINE}}}\n",
            "f.yaml:2: vehicles: 120000 vehicles with all copies, at most 100000 are allowed",
            id="too many",
        ),
        pytest.param(
            HEAD
            + f"  - id: 2147483646\n    type: 3\n    count: 3\n    speed: 1\n    shape: {LINE}\n",
            "f.yaml:3: vehicles[0].id: 2147483648 is not within 0 … 2147483647",
            id="a copy's id is too large",
        ),
        pytest.param(
            HEAD + f"  - {{id: 1, type: 3, speed: 1, phase: -20, shape: {LINE}}}\n",
            "f.yaml:3: vehicles[0].phase: -20 m is not on the path, which is 100 m long",
            id="phase before an open path",
        ),
        pytest.param(
            HEAD + "  - {id: 1, type: 3, speed: 1, shape: {type: spline}}\n",
            "f.yaml:3: vehicles[0].shape: expected exactly one of the keys file, points",
            id="no points",
        ),
        pytest.param(
            HEAD + "  - {id: 1, type: 3, speed: 1, shape: {type: spline, points: [[0, 0], [9, 0]], "
            "geo_origin: [1, 2]}}\n",
            "f.yaml:3: vehicles[0].shape: geo_origin needs file too",
            id="an origin without a file",
        ),
        pytest.param(
            HEAD
            + "  - {id: 1, type: 3, speed: 1, shape: {type: ellipse, center: [0, 0], width: 3, "
            "height: 90}}\n",
            "f.yaml:3: vehicles[0].shape.height: 90 m and a width of 3 m; at most 12 : 1 can "
            "be driven",
            id="too slender",
        ),
        pytest.param(
            "a: 1\nb: 2\na: 3\n",
            "f.yaml:3: key 'a': it is already on line 1",
            id="repeated key",
        ),
        pytest.param("a: .nan\n", "f.yaml:1: a: .nan is not a finite number", id="nan"),
        pytest.param(
            "a: !!python/object/apply:os.getcwd []\n",
            "f.yaml:1: tag 'tag:yaml.org,2002:python/object/apply:os.getcwd' has no meaning here",
            id="python tag",
        ),
        pytest.param(
            "a: *b\n",
            "f.yaml:1: alias *b: no anchor of this name ends before it",
            id="alias",
        ),
        pytest.param(
            "a: &b [*b]\n",
            "f.yaml:1: alias *b: no anchor of this name ends before it",
            id="alias of itself",
        ),
        pytest.param(
            "a: 1\n---\nb: 2\n",
            "f.yaml:2: a second document begins; one file holds one",
            id="two documents",
        ),
        pytest.param("[" * 100_000, "f.yaml:1: nested more than 20 levels deep", id="deep"),
        pytest.param(
            "a: " + "9" * 5000,
            f"f.yaml:1: a: {'9' * 40}… is too long for a number",
            id="long number",
        ),
        pytest.param("? [1, 2]\n: 3\n", "f.yaml:1: a key must be a plain word", id="list as key"),
        pytest.param("1: 2\n", "f.yaml:1: key 1: a key must be a word", id="number as key"),
        pytest.param(
            "<<: 3\n",
            "f.yaml:1: <<: expected a mapping, or a list of them, to merge",
            id="merge",
        ),
        pytest.param(b"a: 1\nb: \xff\n", "f.yaml:2: not UTF-8 text", id="not text"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(text, message):
    assert refused(text) == message


def test_what_is_wrong_with_points_of_a_file_names_the_file(tmp_path):
    (tmp_path / "way.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    text = HEAD + "  - {id: 1, type: 3, speed: 1, shape: {type: spline, file: way.csv}}\n"
    with pytest.raises(ConfigError) as error:
        parse_fleet(text.encode(), "f.yaml", folder=tmp_path)
    assert str(error.value) == (
        "f.yaml:3: vehicles[0].shape.file: 'way.csv': points: 1 are too few, an open spline needs "
        "at least 2"
    )


def test_broken_yaml_names_the_line():
    assert refused("version: 1\nvehicles: [\n  {id: 1,\n").startswith("f.yaml:3: not valid YAML: ")


def test_aliases_that_multiply_are_stopped():
    """Nine levels of nine aliases each, 9⁹ values, are refused."""
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    assert "more than 2000000 values" in refused("\n".join(lines))


GOOD = f"""version: 1
defaults: {{kind: ground, speed: {{cruise: 3, acceleration: 1}}}}
vehicles:
  - {{name: a, id: 1, type: 3, count: 2, delay: 1, spacing: [1, 2], shape: {LINE},
     at_end: ping_pong}}
  - &b {{id: 7, type: 30, shape: {CIRCLE}, scale: [1, 2, 3], phase: 2.5,
     altitude: {{agl: 1}}, fit_ground: true}}
  - {{<<: *b, id: 8,
     shape: {{type: polyline, points: [[0, 0], [50, 0], [50, 60]], corner_radius: 9}}}}
  - {{<<: *b, id: 9,
     shape: {{type: figure_eight, center: [3, 4], width: 50, height: 20, heading_deg: 30}}}}
  - {{<<: *b, id: 10, count: 3, shape: {{type: ellipse, center: [3, 4], width: 90, height: 60}},
     formation: {{type: wedge, spacing: 2.5, angle_deg: 60}}, wheelbase: 2.5, track: 1.5,
     limits: {{turn_radius: 9}}}}
  - {{<<: *b, id: 20, count: 2,
     shape: {{type: lawn_mower, center: [3, 4], length: 50, width: 20, spacing: 9}},
     formation: {{type: custom, offsets: [[0, 0], [-4, 2]], frame: world, heading_deg: 30}}}}
  - {{<<: *b, id: 30, shape: {{type: spline, points: [[0, 0], [50, 0], [50, 60]], closed: true}}}}
"""


@pytest.mark.exhaustive
@given(data=st.data())
@settings(max_examples=400, deadline=None)
def test_a_mutated_file_is_a_fleet_or_a_config_error(data):
    """A mutated file gives a fleet that can be sampled, or a ConfigError."""
    text = bytearray(GOOD.encode())

    # a few random edits
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 8))
        new = data.draw(
            st.binary(max_size=4)
            | st.sampled_from([b"-", b"0", b"9", b"{", b"]", b": ", b"\n", b"*b", b"e9"])
        )
        text[place : place + length] = new
        if not text:
            return

    try:
        fleet = parse_fleet(bytes(text), "f.yaml")
    except ConfigError:
        return

    assert np.isfinite(fleet.sample(12.5).position).all()


def test_the_schema_is_a_schema_and_describes_the_examples():
    jsonschema.Draft7Validator.check_schema(load_schema("rfly_trajectory", "fleet"))
    json.dumps(load_schema("rfly_trajectory", "fleet"))


@pytest.mark.parametrize("name", shipped_fleets())
def test_a_check_of_a_shipped_fleet_finds_nothing(name):
    fleet = load_fleet(name).on_terrain(HeightMap.load("JacksboroFault"))
    assert check_tracks(fleet) + check_separation(fleet) == []


@pytest.mark.parametrize("name", ["demo_convoy", "mixed_fleet", "ring_convoy"])
def test_shipped_fleets_stay_on_the_demo_map_and_on_moderate_slopes(name):
    assert name in shipped_fleets()
    terrain = HeightMap.load("JacksboroFault")
    fleet = load_fleet(name).on_terrain(terrain)
    assert check_tracks(fleet) == []
    p = fleet.sample_times(np.arange(0.0, 200.0, 0.5)).position
    assert np.degrees(terrain.slope(p[..., 0], p[..., 1], smooth=True)).max() < 16.0
    ids = np.arange(len(fleet))
    a, b = np.triu_indices(len(fleet), 1)
    assert ids.size >= 5
    ground = np.array([vehicle.kind == "ground" for vehicle in fleet.vehicles])
    if name != "mixed_fleet":  # one convoy on one path: nobody drives into the one before
        assert ground.all()
        assert np.linalg.norm(p[:, a] - p[:, b], axis=-1).min() > 10.0


def test_types_are_names_or_numbers():
    """car_blue is 50 and truck 51 in the manual's table; 100050 is a further car."""
    entries = [
        f"{{id: {number}, type: {kind}, speed: 4, shape: {LINE}}}"
        for number, kind in enumerate(("car_blue", "truck", 100050, '"30"'), 1)
    ]
    assert [each.vehicle_type for each in fleet_of(*entries).vehicles] == [50, 51, 100050, 30]

    with pytest.raises(
        ConfigError, match=r"vehicles\[0\].type: no .*'car_bleu'; did you mean car_blue"
    ):
        fleet_of(f"{{id: 1, type: car_bleu, speed: 4, shape: {LINE}}}")


def test_the_demos_convoy_are_cars_and_trucks():
    for name in ("demo_convoy", "hills_convoy"):
        assert [v.vehicle_type for v in load_fleet(name).vehicles] == [50, 51, 51, 50, 50]


@pytest.mark.parametrize("name", ["demo_convoy", "ring_convoy"])
def test_shipped_convoys_touch_neither_the_ground_nor_each_other(name):
    terrain = HeightMap.load("JacksboroFault")
    fleet = load_fleet(name).on_terrain(terrain)
    world = CollisionWorld(load_shapes())
    world.set_terrain(terrain)
    found = [
        (t, c.vehicle, c.other) for t in range(0, 120, 3) if len(c := world.check(fleet.sample(t)))
    ]
    assert found == []


def test_a_file_is_found_before_a_shipped_name(tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"version: 1\nvehicles: [{{id: 1, type: 3, speed: 1, shape: {LINE}}}]",
        encoding="utf-8",
    )
    assert load_fleet(path).name == "mine"
    assert len(load_fleet(str(path))) == 1
    monkeypatch.chdir(tmp_path)
    assert load_fleet("demo_convoy").name == "demo_convoy"
    assert load_fleet("mine.yaml").vehicles[0].name == "vehicle_1"


def test_a_name_that_is_nothing_lists_the_shipped_fleets(tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"'no_such': no such file, and no shipped fleet .*demo_convoy.*ring_convoy",
    ):
        load_fleet("no_such")
    with pytest.raises(ConfigError, match="neither a file nor a name is given"):
        load_fleet("")
    with pytest.raises(ConfigError, match=r"Is a directory|Permission denied"):
        load_fleet(tmp_path)


def test_a_huge_file_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_file, "MAX_FILE_BYTES", 100)
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"#" * 101)
    with pytest.raises(ConfigError, match="larger than 100 bytes"):
        load_fleet(path)


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nvehicles: [{id: 1, type: 3, count: 100000}]\n",
        "version: 1\ndefaults: {count: 50000}\nvehicles: [{id: 1}, {id: 2}]\n",
    ],
    ids=["one entry", "defaults"],
)
def test_too_many_vehicles_are_refused_before_one_is_made(text):
    """The count alone refuses them; the rest of the file is not read, so this takes no time."""
    with pytest.raises(
        ConfigError,
        match=r"f.yaml:[23]: vehicles: 100000 vehicles .* at most 2000 are allowed",
    ):
        parse_fleet(text.encode(), "f.yaml", max_vehicles=2000)


def test_a_fleet_that_keeps_its_limits_has_no_findings():
    """Four abreast on a rounded square exceed their limits; slowed down they stay abreast.

    On legs of 50 m between bends at less than 4 m/s they gain speed to more than 6 m/s.
    """
    square = "[[0, 0], [80, 0], [80, 80], [0, 80]]"
    text = (
        "{id: 1, count: 4, type: 50, kind: ground, speed: {cruise: 20, acceleration: 3}, "
        f"shape: {{type: polyline, points: {square}, closed: true, corner_radius: 8}}, "
        "formation: {type: line, spacing: 2}, "
        "limits: {lateral_acceleration: 1.5, acceleration: 0.7, max_speed: 15}"
    )
    as_asked = check_limits(fleet_of(text + "}"))
    assert {finding.text.split(" ")[1] for finding in as_asked} == {"takes", "gains", "goes"}

    fleet = fleet_of(text + ", keep_limits: true}")
    assert check_limits(fleet) == []
    motion = fleet.sample_times(np.linspace(0.0, 200.0, 2001))
    assert np.ptp(motion.arc_length, axis=1).max() < 1e-9
    assert motion.speed.max() > 6.0


def test_keep_limits_is_true_or_false():
    with pytest.raises(ConfigError, match="keep_limits"):
        fleet_of(f"{{id: 1, type: 50, speed: 9, shape: {LINE}, keep_limits: 1}}")
