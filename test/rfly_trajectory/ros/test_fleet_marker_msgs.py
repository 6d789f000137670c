# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Markers of a fleet, worked out by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from rfly_common.vehicle_states import VehicleStates
from rfly_terrain import HeightMap
from rfly_trajectory import load_fleet

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.ros


def made(vehicles, paths=(), enlargement=1.0):
    from rfly_trajectory.ros.fleet_marker_topics import ShownPath, ShownVehicle, fleet_markers

    message = fleet_markers(
        [ShownVehicle(*each) for each in vehicles],
        [ShownPath(*each) for each in paths],
        enlargement,
        3_000_000_007,
    )
    return {(marker.ns, marker.id): marker for marker in message.markers}


def heights(marker):
    return [point.z for point in marker.points]


@pytest.mark.parametrize(
    ("namespace", "frame"),
    [
        ("/", "lead/base_link"),
        ("/alpha", "alpha/lead/base_link"),
        ("/site/alpha", "site/alpha/lead/base_link"),
    ],
)
def test_frames_carry_the_namespace(namespace, frame):
    """/tf is one for all namespaces: markers and transforms have the frame of the own fleet."""
    from rfly_common.ros.frame_lookup import frame_prefix
    from rfly_trajectory.ros.fleet_marker_topics import ShownVehicle, fleet_markers
    from rfly_trajectory.ros.vehicle_topics import states_to_transforms

    prefix = frame_prefix(SimpleNamespace(get_namespace=lambda: namespace))
    markers = fleet_markers([ShownVehicle("lead", 7, 3)], [], 1.0, 0, prefix).markers
    assert {marker.header.frame_id for marker in markers} == {frame}

    states = VehicleStates(
        id=np.array([7]),
        vehicle_type=np.array([3]),
        position=np.array([[1.0, 2.0, 3.0]]),
        orientation=np.array([[0.0, 0.0, 0.0, 1.0]]),
    )
    (transform,) = states_to_transforms(states, ["lead"], prefix).transforms
    assert (transform.header.frame_id, transform.child_frame_id) == ("map", frame)


def test_a_vehicle_is_locked_to_its_frame():
    """The cube of an unknown type, with a name, is sent once; RViz moves it with /tf."""
    from visualization_msgs.msg import Marker

    markers = made([("crate", 7, 90_000)])
    kinds = {
        "vehicles": Marker.TRIANGLE_LIST,
        "pins": Marker.LINE_LIST,
        "names": Marker.TEXT_VIEW_FACING,
    }
    assert {(ns, number): marker.type for (ns, number), marker in markers.items()} == {
        (ns, 7): kind for ns, kind in kinds.items()
    }
    for marker in markers.values():
        assert (marker.header.frame_id, marker.frame_locked, marker.action) == (
            "crate/base_link",
            True,
            Marker.ADD,
        )
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (3, 7)
        assert marker.pose.orientation.w == 1.0
        assert marker.color.a == 1.0
    body = markers["vehicles", 7]
    assert len(body.points) == 3 * len(body.colors), "a colour for each triangle"
    assert (body.scale.x, body.scale.y, body.scale.z) == (1.0, 1.0, 1.0)
    top = max(heights(body))
    assert (min(heights(body)), top) == (-0.5, pytest.approx(0.51, abs=0.01))
    assert markers["names", 7].text == "crate"
    assert markers["names", 7].pose.position.z > top
    low, high = heights(markers["pins", 7])
    assert (low, top < high < markers["names", 7].pose.position.z) == (top, True)


def test_names_of_neighbours_do_not_overlap():
    """Names of four vehicles of a kind in one place stand one above the other.

    They are farther apart than they are high.
    """
    names = [
        marker
        for (ns, _), marker in made([(f"n{i}", i, 3) for i in range(1, 6)]).items()
        if ns == "names"
    ]
    z = [name.pose.position.z for name in names]
    assert all(b - a > 1.1 * names[0].scale.z for a, b in itertools.pairwise(z[:4]))
    assert z[4] == z[0]


def test_names_of_the_demo_are_apart_in_the_first_view():
    """The shipped view shows the demo's convoy on its lap; no two names touch in 9 of 10 moments.

    Places in the picture are those of RViz's orbiting camera. A letter is half as wide as high.
    """
    view = yaml.safe_load((ROOT / "rviz" / "rfly.rviz").read_text(encoding="utf-8"))
    view = view["Visualization Manager"]["Views"]["Current"]
    yaw, pitch = view["Yaw"], view["Pitch"]
    back = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    eye = np.array([view["Focal Point"][axis] for axis in "XYZ"]) + view["Distance"] * back

    fleet = load_fleet("demo_convoy").on_terrain(HeightMap.load("JacksboroFault"))
    shown = [(vehicle.name, vehicle.id, vehicle.vehicle_type) for vehicle in fleet.vehicles]
    markers = made(shown, enlargement=4.0)
    names = [markers["names", vehicle.id] for vehicle in fleet.vehicles]
    raised = [(0.0, 0.0, name.pose.position.z) for name in names]
    seen = fleet.sample_times(np.arange(0.0, 105.0, 0.5)).position + raised - eye
    depth = -(seen @ back)
    size = np.array([(0.5 * len(name.text), 1.0) for name in names]) * names[0].scale.z
    places = np.stack([seen @ right, seen @ np.cross(back, right)], -1) / depth[..., None]
    halves = size / depth[..., None] / 2

    touching = np.zeros(len(seen), bool)
    for a, b in itertools.combinations(range(len(names)), 2):
        near = np.abs(places[:, a] - places[:, b]) < halves[:, a] + halves[:, b]
        touching |= near.all(axis=1)
    assert np.mean(touching) < 0.1


def test_all_grows_with_the_enlargement():
    vehicles = [("car", 5, 50)]
    paths = [(np.array([(0.0, 0.0, 2.0), (9.0, 0.0, 3.0)]), [5])]
    one = made(vehicles, paths)
    four = made(vehicles, paths, 4.0)
    length = {n: np.ptp([p.x for p in m["vehicles", 5].points]) for n, m in ((1, one), (4, four))}
    assert length[1] == pytest.approx(4.3, abs=0.2)
    assert length[4] == pytest.approx(4 * length[1])
    assert min(heights(four["vehicles", 5])) == pytest.approx(0.0, abs=0.05), (
        "wheels of 14 corners on the ground"
    )
    expected = 4 * one["names", 5].scale.z
    assert four["names", 5].scale.z == expected
    expected = 4 * one["paths", 5].scale.x
    assert four["paths", 5].scale.x == expected


def test_a_path_lies_above_its_points_in_map():
    """A path is raised by more than half its width and does not cut into level ground."""
    from visualization_msgs.msg import Marker

    points = np.array(
        [
            (1.0, 2.0, 3.0),
            (4.0, 5.0, 6.0),
            (7.0, 8.0, 8.0),
        ]
    )
    path = made([], [(points, [9])], 4.0)["paths", 9]
    assert (path.type, path.header.frame_id, path.frame_locked) == (Marker.LINE_STRIP, "map", False)
    expected = [(1, 2), (4, 5), (7, 8)]
    assert [(p.x, p.y) for p in path.points] == expected
    lifts = {round(p.z - z, 9) for p, z in zip(path.points, (3, 6, 8), strict=True)}
    assert lifts == {1.6}
    assert path.scale.x / 2 < 1.6


def test_a_shared_path_is_drawn_once_and_in_nobodys_colour():
    line = np.array([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    markers = made([("a", 4, 3), ("b", 2, 3), ("c", 3, 3)], [(line, [4, 2]), (line, [3])])
    shared = markers["paths", 2]
    own = markers["paths", 3]
    pin = markers["pins", 3]
    assert ("paths", 4) not in markers
    assert min(shared.color.r, shared.color.g, shared.color.b) > 0.9
    assert own.color == pin.color
    assert markers["pins", 2].color != pin.color
