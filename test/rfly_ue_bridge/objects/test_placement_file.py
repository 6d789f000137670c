# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lists of objects from YAML and CSV; errors name file, line and key."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rfly_common.errors import ConfigError
from rfly_ue_bridge.objects.placement import PlacedObject, place
from rfly_ue_bridge.objects.placement_file import (
    load_placements,
    parse_placements,
    shipped_placements,
)


def test_the_shipped_list_is_that_of_experiment_2():
    assert shipped_placements() == ["grasslands_targets"]
    objects = load_placements("grasslands_targets")
    ned = place(objects, None).to_ned_states()
    assert ned.id.tolist() == [1001, 1002, 1003]
    assert ned.vehicle_type.tolist() == [200150, 100150, 151]
    expected = [
        [43.943, 1.620, -11.465],
        [72.946, -4.388, -11.465],
        [115.915, 5.510, -10.448],
    ]
    assert ned.position_ned.tolist() == expected
    assert ned.euler.tolist() == [[0.0, 0.0, 0.0]] * 3


OBJECTS = b"version: 1\nobjects:\n"
YAML = b"""\
version: 1
defaults: {type: 30, offset: 0.5}
objects:
  - {x: 1, y: 2, yaw_deg: 90}
  - {id: 5, type: 151, x: 3.5, y: -4, offset: 0, ground_packet: true, scale: 2, size: [1, 2, 3]}
"""
CSV = b"""\
# people and a target
id, type, x, y, yaw_deg, offset, ground_packet, scale, size
, 30, 1, 2, 90, 0.5
5,151,3.5,-4,,0,true,2,1 2 3

"""
EXPECTED = [
    PlacedObject(30, x=1.0, y=2.0, yaw=math.pi / 2, offset=0.5),
    PlacedObject(
        151,
        id=5,
        x=3.5,
        y=-4.0,
        use_ground_packet=True,
        scale=(2.0, 2.0, 2.0),
        size=(1.0, 2.0, 3.0),
    ),
]


@pytest.mark.parametrize(
    ("data", "file"), [(YAML, "a.yaml"), (CSV, "a.csv"), (b"\xef\xbb\xbf" + CSV, "a.CSV")]
)
def test_yaml_and_csv_say_the_same(data, file):
    assert parse_placements(data, file) == EXPECTED


def test_the_list_of_the_page_is_one():
    page = Path(__file__).parents[3] / "docs" / "howto" / "place-objects.md"
    text = page.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0]
    person, target, walker = parse_placements(text.encode(), "page.yaml")
    assert (person.vehicle_type, person.x, person.y, person.z) == (30, 12.5, -4.0, None)
    assert (target.id, target.offset, target.scale) == (1010, 1.2, (1.5, 1.5, 1.5))
    assert walker.use_ground_packet


def test_ned_numbers_of_a_csv():
    (found,) = parse_placements(b"type,x,y,z,yaw_deg\n30,10,20,-5,0\n", "a.csv", "map_ned")
    expected = (20.0, 10.0, 5.0, math.pi / 2)
    assert (found.x, found.y, found.z, found.yaw) == expected


@pytest.mark.parametrize(
    ("data", "file", "named"),
    [
        (
            b"version: 1\nobjects:\n  - {type: 3, x: 1}\n",
            "t.yaml",
            "t.yaml:3: objects[0]: the key y is missing",
        ),
        (
            b"version: 1\nobjects:\n  - {x: 1, y: 1}\n",
            "t.yaml",
            "t.yaml:3: objects[0]: the key type is missing",
        ),
        (
            OBJECTS + b"- {type: 3, x: 1, y: far}\n",
            "t.yaml",
            "t.yaml:3: objects[0].y: 'far', expected a number",
        ),
        (
            b"version: 1\nobjects:\n  - {type: 3, x: 1, y: 1, yaw: 3}\n",
            "t.yaml",
            "unknown key; did you mean yaw_deg?",
        ),
        (
            b"version: 2\nobjects: [{type: 3, x: 1, y: 1}]\n",
            "t.yaml",
            "t.yaml:1: version: 2, allowed: 1",
        ),
        (
            b"version: 1\nobjects: [{type: 3, x: .nan, y: 1}]\n",
            "t.yaml",
            "t.yaml:2: objects[0].x: .nan is not",
        ),
        (
            OBJECTS + 2 * b"- {id: 4, type: 3, x: 1, y: 1}\n",
            "t.yml",
            "t.yml:4: objects[1].id: 4 is that of line 3",
        ),
        (
            OBJECTS + b"- {type: 3, x: 1, y: 1, z: 1, offset: 2}\n",
            "t.yaml",
            "t.yaml:3: objects[0]: offset: 2.0, but z",
        ),
        (b"- 1\n", "t.yaml", "t.yaml:1: expected the keys version and objects"),
        (b"", "t.yaml", "t.yaml: the file is empty"),
        (b"version: 1\nobjects: [\xff]\n", "t.yaml", "t.yaml:2: not UTF-8 text"),
        (b"type,x,y\n3,1,far\n", "t.csv", "t.csv:2: objects[0].y: 'far', expected a number"),
        (
            b"type,x,y\n3,1,1\n\n3,1,nan\n",
            "t.csv",
            "t.csv:4: objects[1].y: 'nan', expected a number",
        ),
        (
            b"type,x,y\nring_targte,1,1\n",
            "t.csv",
            "t.csv:2: objects[0].type: no model is named 'ring_targte'; did you mean ring_target",
        ),
        (b"type,x,y\n3,1\n", "t.csv", "t.csv:2: objects[0]: the key y is missing"),
        (b"type,x,y\n3,1,2,3\n", "t.csv", "t.csv:2: 4 cells, the heading has 3"),
        (b"type,x,x\n3,1,2\n", "t.csv", "t.csv:1: heading: x is in it twice"),
        (b"type,x,north\n3,1,2\n", "t.csv", "t.csv:1: heading: 'north' is no key"),
        (b"type,x\n3,1\n", "t.csv", "t.csv:1: heading: y is missing"),
        (b"type,x,y\n", "t.csv", "t.csv:1: no object"),
        (
            b"type,x,y,size\n3,1,2,4 5\n",
            "t.csv",
            "t.csv:2: objects[0].size: 2 elements, allowed: 3",
        ),
        (b"x", "t.txt", "t.txt: expected a file that ends in .yaml, .yml, .csv"),
    ],
)
def test_errors_name_file_line_and_key(data, file, named):
    with pytest.raises(ConfigError) as caught:
        parse_placements(data, file)
    assert named in str(caught.value)


def test_a_frame_that_contradicts_the_file():
    with pytest.raises(
        ConfigError, match=r"t.yaml:2: frame: the file says map_ned, asked for is map"
    ):
        parse_placements(
            b"version: 1\nframe: map_ned\nobjects: [{type: 3, x: 1, y: 1}]\n", "t.yaml", "map"
        )


def test_a_missing_file_names_the_shipped_lists(tmp_path):
    with pytest.raises(ConfigError, match=r"no such file, .*grasslands_targets"):
        load_placements(tmp_path / "none.yaml")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100) | st.text('0123456789.,-e\n "xytype', max_size=80).map(str.encode))
def test_any_bytes_of_a_csv_give_objects_or_its_own_error(data):
    with contextlib.suppress(ConfigError):
        assert parse_placements(b"type,x,y,scale\n" + data, "t.csv")


def test_types_are_names_too():
    found = parse_placements(b"type,x,y\nring_target,10,20\n152,1,2\n", "a.csv")
    assert [each.vehicle_type for each in found] == [150, 152]
