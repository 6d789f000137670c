# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Waypoints from files: their points, and one line of error for damaged and hostile files."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet_file import load_fleet
from rfly_trajectory.paths import point_files
from rfly_trajectory.paths.nav_path import waypoints
from rfly_trajectory.paths.point_files import read_points

GPX = """<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="2"/>
<trk><trkseg><trkpt lat="47.0" lon="8.0"><ele>5</ele></trkpt>
<trkpt lat="47.001" lon="8.0"/></trkseg>
<trkseg><trkpt lat="47.001" lon="8.002"/></trkseg></trk></gpx>"""


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n10,2\n10,2\n30,4\n",
        "# a comment\nx,y,z\n0,1,7\n10,2,7\n30,4,7\n",
        "North;time;East\n1;0;0\n2;1;10\n\n4;2;30\n",
    ],
)
def test_csv(tmp_path, text):
    path = tmp_path / "way.csv"
    path.write_text(text, encoding="utf-8")
    expected = [[0, 1], [10, 2], [30, 4]]
    np.testing.assert_array_equal(read_points(path), expected)


def test_npy(tmp_path):
    np.save(tmp_path / "way.npy", np.array([[0, 1, 9], [10, 2, 9]], np.float32))
    np.testing.assert_array_equal(read_points(tmp_path / "way.npy"), [[0, 1], [10, 2]])


def test_gpx_and_latitudes_in_metres_of_the_ellipsoid(tmp_path):
    """A degree at 47° is 111 170 m of meridian and 76 056 m of parallel on WGS 84.

    The numbers are those of the series of the NGA's calculator.
    """
    (tmp_path / "way.gpx").write_text(GPX, encoding="utf-8")
    (tmp_path / "way.csv").write_text(
        "lat,lon\n47.0,8.0\n47.001,8.0\n47.001,8.002\n", encoding="utf-8"
    )
    for name in ("way.gpx", "way.csv"):
        points = read_points(tmp_path / name, (47.0, 8.0))
        expected = [[0, 0], [0, 111.17], [152.11, 111.17]]
        np.testing.assert_allclose(points, expected, atol=0.02)


def test_heights_are_read_where_they_are_asked_for(tmp_path):
    (tmp_path / "way.csv").write_text("x,y,z\n0,1,7\n10,2,8\n", encoding="utf-8")
    np.save(tmp_path / "way.npy", np.array([[0, 1, 7], [10, 2, 8]]))
    np.save(tmp_path / "speeds.npy", np.array([[0, 1, 7, 9], [10, 2, 8, 9]]))
    (tmp_path / "bare.csv").write_text("0,1,7\n10,2,8\n", encoding="utf-8")

    for name, expected in (
        ("way.csv", 3),
        ("way.npy", 3),
        ("speeds.npy", 2),
        ("bare.csv", 2),
    ):
        np.testing.assert_array_equal(
            read_points(tmp_path / name, heights=True),
            np.array([[0, 1, 7], [10, 2, 8]])[:, :expected],
        )
        np.testing.assert_array_equal(read_points(tmp_path / name), [[0, 1], [10, 2]])


def test_heights_of_latitudes_are_above_the_origin(tmp_path):
    """The map's origin lies 480 m high; without its altitude the file's heights say nothing."""
    (tmp_path / "a.csv").write_text("lat,lon,alt\n47.0,8.0,500\n47.001,8.0,510\n", encoding="utf-8")
    gpx = (
        '<gpx><wpt lat="47" lon="8"><ele>500</ele></wpt>'
        '<wpt lat="47.001" lon="8"><ele>510</ele></wpt></gpx>'
    )
    (tmp_path / "a.gpx").write_text(gpx, encoding="utf-8")
    for name in ("a.csv", "a.gpx"):
        points = read_points(tmp_path / name, (47.0, 8.0, 480.0), heights=True)
        np.testing.assert_allclose(points, [[0, 0, 20], [0, 111.18, 30]], atol=0.02)
        assert read_points(tmp_path / name, (47.0, 8.0), heights=True).shape == (2, 2)
    (tmp_path / "a.gpx").write_text(gpx.replace("<ele>510</ele>", ""), encoding="utf-8")
    with pytest.raises(ConfigError, match="wpt 2 has no height but others have"):
        read_points(tmp_path / "a.gpx", (47.0, 8.0, 480.0), heights=True)


ECHOED = """header:
  stamp:
    sec: 12
    nanosec: 0
  frame_id: {frame}
poses:
- header:
    stamp:
      sec: 0
      nanosec: 0
    frame_id: {frame}
  pose:
    position:
      x: 1.0
      y: 2.0
      z: -3.0
    orientation:
      x: 0.0
      y: 0.0
      z: 0.0
      w: 1.0
- header:
    stamp:
      sec: 0
      nanosec: 0
    frame_id: ''
  pose:
    position:
      x: 10.0
      y: 2.5e+00
      z: -4
    orientation:
      x: 0.0
      y: 0.0
      z: 0.0
      w: 1.0
---
"""


class TestNavPath:
    @pytest.mark.parametrize(
        ("frame", "expected"),
        [
            ("map", [[1, 2, -3], [10, 2.5, -4]]),
            ("''", [[1, 2, -3], [10, 2.5, -4]]),
            ("map_ned", [[2, 1, 3], [2.5, 10, 4]]),
        ],
    )
    def test_what_ros2_topic_echo_prints(self, tmp_path, frame, expected):
        (tmp_path / "path.yaml").write_text(ECHOED.format(frame=frame), encoding="utf-8")
        np.testing.assert_allclose(read_points(tmp_path / "path.yaml", heights=True), expected)
        np.testing.assert_allclose(read_points(tmp_path / "path.yaml"), np.array(expected)[:, :2])

    def test_the_last_message_counts(self, tmp_path):
        text = ECHOED.format(frame="map")
        (tmp_path / "path.yaml").write_text(
            text + text.replace("x: 1.0", "x: 5.0"), encoding="utf-8"
        )
        assert read_points(tmp_path / "path.yaml")[0].tolist() == [5.0, 2.0]

    def test_straight_up_keeps_the_higher_point(self):
        """Only the upper end of a vertical climb is kept.

        A way by arc length has no place for the climb; its end is safer than its start.
        """
        points = waypoints(
            [
                [0, 0, 0],
                [0, 0, 30],
                [50, 0, 30],
                [50, 0, 0],
                [50, 0, 0],
            ]
        )
        np.testing.assert_array_equal(points, [[0, 0, 30], [50, 0, 30]])

    def test_frames_other_than_the_worlds_are_refused(self):
        with pytest.raises(ConfigError, match="frame_id: 'odom' is neither map nor map_ned"):
            waypoints([[0, 0, 0], [1, 1, 1]], "odom")

    def test_an_aircraft_of_a_fleet_file_flies_it(self, tmp_path):
        (tmp_path / "path.yaml").write_text(ECHOED.format(frame="map_ned"), encoding="utf-8")
        keys = "file: path.yaml\n    kind: multirotor"
        (tmp_path / "fleet.yaml").write_text(FLEET.format("polyline", keys), encoding="utf-8")
        position = load_fleet(tmp_path / "fleet.yaml").sample(99.0).position
        np.testing.assert_allclose(position, [[2.5, 10, 4]], atol=1e-12)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                ("frame_id: map", "frame_id: odom"),
                r"a.yaml:5: header.frame_id: 'odom' is neither map nor map_ned",
            ),
            (
                ("''", "base"),
                r"a.yaml:26: poses\[1\].header.frame_id: 'base' is not the path's frame 'map'",
            ),
            (
                ("y: 2.0\n", "y: two\n"),
                r"a.yaml:15: poses\[0\].pose.position.y: expected a number",
            ),
            (
                ("      z: -4\n", ""),
                r"a.yaml:28: poses\[1\].pose.position.z: expected a number",
            ),
            (
                ("z: -3.0", "z: .nan"),
                r"a.yaml:16: poses\[0\].pose.position.z: .nan is not a finite number",
            ),
            (
                ("z: -3.0", "z: 1.0e+9"),
                r"a.yaml:6: poses: a point is not within 1e\+07 m",
            ),
            (
                ("---", "- '...'"),
                r"a.yaml:37: poses\[2\]: the message was cut short .* --full-length",
            ),
            (("poses:", "points:"), r"a.yaml:1: poses: expected a nav_msgs/Path"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line(self, tmp_path, change, message):
        (tmp_path / "a.yaml").write_text(
            ECHOED.format(frame="map").replace(*change), encoding="utf-8"
        )
        with pytest.raises(ConfigError, match=message) as error:
            read_points(tmp_path / "a.yaml")
        assert str(error.value).startswith("file: ")

    @pytest.mark.parametrize(
        "text", ["", "---\n---\n", "- 1\n", "a: !!python/object:os.system {}\n"]
    )
    def test_what_is_no_message_is_refused(self, tmp_path, text):
        (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"file: .*a.yaml"):
            read_points(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.kml", b"", "is not a .csv, .npy, .gpx or .yaml file"),
        (
            "a.csv",
            b"a,b\n1,2\n",
            r"a.csv:1: expected the columns x and y, or lat and lon, not 'a, b'",
        ),
        ("a.csv", b"1,2\n3,nan\n", r"a.csv:2: '3,nan' holds no two finite numbers"),
        ("a.csv", b"1,2\n3\n", r"a.csv:2: '3' holds no two finite numbers"),
        ("a.csv", b"1,2\n\xff,3\n", r"a.csv:2: not UTF-8 text"),
        ("a.yaml", b"poses: []\n\xff\n", r"^file: /[^:]*a.yaml:2: not UTF-8 text"),
        ("a.csv", b"lat,lon\n1,2\n", "need the key geo_origin too"),
        ("a.csv", b"1e9,2\n1,2\n", "not within 1e.07 m of the origin"),
        ("a.npy", b"hello", "is not a NumPy array"),
        ("a.npy", b"", "is not a NumPy array"),
        ("a.gpx", b"<gpx>", r"a.gpx:1: not valid XML"),
        ("a.gpx", b"<gpx/>", "holds no track, no route and no waypoint"),
        ("a.gpx", b'<gpx><wpt lat="1"/></gpx>', "wpt 1 has no latitude and longitude"),
        (
            "a.gpx",
            b'<!DOCTYPE g [<!ENTITY a "b">]><gpx>&a;</gpx>',
            "document types and entities are not taken",
        ),
    ],
)
def test_what_is_wrong_is_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message) as error:
        read_points(tmp_path / name)
    assert str(error.value).startswith("file: ")


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[print, 1]], object), allow_pickle=True)
    with pytest.raises(ConfigError, match="is not a NumPy array"):
        read_points(tmp_path / "a.npy")


def test_sizes_have_limits(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("\n".join(f"{i},0" for i in range(10_001)), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.csv: more than 10,000 points"):
        read_points(tmp_path / "a.csv")
    monkeypatch.setattr(point_files, "MAX_FILE_BYTES", 10)
    with pytest.raises(ConfigError, match="larger than 10 bytes"):
        read_points(tmp_path / "a.csv")


FLEET = (
    "version: 1\nvehicles:\n  - id: 1\n    type: 3\n    speed: 1\n"
    "    shape:\n      type: {}\n      {}\n"
)


def test_a_fleet_file_names_a_file_beside_it(tmp_path):
    """A closed loop may end where it began."""
    way = tmp_path / "way.csv"
    way.write_text("t,x,y\n0,0,0\n1,100,0\n2,100,80\n3,0,0\n", encoding="utf-8")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        FLEET.format("spline", "{}\n      closed: true").replace("{}", "file: way.csv"),
        encoding="utf-8",
    )
    loaded = load_fleet(fleet)
    path = loaded.vehicles[0].path
    assert loaded.on_terrain(None).notes == (f"{way}: the column t is not used",)
    assert path.closed
    assert path.length > 100 + 80 + np.hypot(100, 80)

    fleet.write_text(
        FLEET.format("polyline", "file: way.csv\n      corner_radius: 5"),
        encoding="utf-8",
    )
    assert not load_fleet(fleet).vehicles[0].path.closed


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "file: no.csv",
            r"fleet.yaml:8: vehicles\[0\].shape.file: '.*no.csv': No such file",
        ),
        (
            "closed: true",
            r"fleet.yaml:6: vehicles\[0\].shape: expected exactly one of the keys file, points",
        ),
    ],
)
def test_a_fleet_file_tells_line_and_key(tmp_path, keys, message):
    (tmp_path / "fleet.yaml").write_text(FLEET.format("spline", keys), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_fleet(tmp_path / "fleet.yaml")
