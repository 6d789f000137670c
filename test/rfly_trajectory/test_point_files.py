"""Way-points from files: what is read, and that damaged and hostile files are told in one line."""

from __future__ import annotations

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_trajectory import point_files
from rfly_trajectory.fleet_file import load_fleet
from rfly_trajectory.point_files import read_points

GPX = """<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="2"/>
<trk><trkseg><trkpt lat="47.0" lon="8.0"><ele>5</ele></trkpt><trkpt lat="47.001" lon="8.0"/></trkseg>
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
    np.testing.assert_array_equal(read_points(path), [[0, 1], [10, 2], [30, 4]])


def test_npy(tmp_path):
    np.save(tmp_path / "way.npy", np.array([[0, 1, 9], [10, 2, 9]], np.float32))
    np.testing.assert_array_equal(read_points(tmp_path / "way.npy"), [[0, 1], [10, 2]])


def test_gpx_and_latitudes_in_metres_of_the_ellipsoid(tmp_path):
    """At 47° a degree is 111 170 m of meridian and 76 056 m of parallel on WGS 84 (series of the NGA's calculator)."""
    (tmp_path / "way.gpx").write_text(GPX, encoding="utf-8")
    (tmp_path / "way.csv").write_text("lat,lon\n47.0,8.0\n47.001,8.0\n47.001,8.002\n", encoding="utf-8")
    for name in ("way.gpx", "way.csv"):
        points = read_points(tmp_path / name, (47.0, 8.0))
        np.testing.assert_allclose(points, [[0, 0], [0, 111.17], [152.11, 111.17]], atol=0.02)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.kml", b"", "is not a .csv, .npy or .gpx file"),
        ("a.csv", b"a,b\n1,2\n", r"a.csv:1: expected the columns x and y, or lat and lon, not 'a, b'"),
        ("a.csv", b"1,2\n3,nan\n", r"a.csv:2: '3,nan' holds no two numbers"),
        ("a.csv", b"1,2\n3\n", r"a.csv:2: '3' holds no two numbers"),
        ("a.csv", b"1,2\n\xff,3\n", r"a.csv:2: not UTF-8 text"),
        ("a.csv", b"lat,lon\n1,2\n", "need the key geo_origin beside it"),
        ("a.csv", b"1e9,2\n1,2\n", "not within 1e.07 m of the origin"),
        ("a.npy", b"hello", "is not a NumPy array"),
        ("a.npy", b"", "is not a NumPy array"),
        ("a.gpx", b"<gpx>", r"a.gpx:1: not valid XML"),
        ("a.gpx", b"<gpx/>", "holds no track, no route and no way-point"),
        ("a.gpx", b'<gpx><wpt lat="1"/></gpx>', "wpt 1 has no latitude and longitude"),
        ("a.gpx", b'<!DOCTYPE g [<!ENTITY a "b">]><gpx>&a;</gpx>', "document types and entities are not taken"),
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
    with pytest.raises(ConfigError, match="10001 points, at most 10000 are taken"):
        read_points(tmp_path / "a.csv")
    monkeypatch.setattr(point_files, "MAX_FILE_BYTES", 10)
    with pytest.raises(ConfigError, match="larger than 10 bytes"):
        read_points(tmp_path / "a.csv")


FLEET = "version: 1\nvehicles:\n  - id: 1\n    type: 3\n    speed: 1\n    shape:\n      type: {}\n      {}\n"


def test_a_fleet_file_names_a_file_beside_it(tmp_path):
    """A closed loop may end where it began."""
    (tmp_path / "way.csv").write_text("0,0\n100,0\n100,80\n0,0\n", encoding="utf-8")
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET.format("spline", "{}\n      closed: true").replace("{}", "file: way.csv"), encoding="utf-8")
    path = load_fleet(fleet).vehicles[0].path
    assert path.closed
    assert path.length > 100 + 80 + np.hypot(100, 80)
    fleet.write_text(FLEET.format("polyline", "file: way.csv\n      corner_radius: 5"), encoding="utf-8")
    assert not load_fleet(fleet).vehicles[0].path.closed


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("file: no.csv", r"fleet.yaml:8: vehicles\[0\].shape.file: '.*no.csv': No such file"),
        ("closed: true", r"fleet.yaml:6: vehicles\[0\].shape.points: expected exactly one of the keys file, points"),
    ],
)
def test_a_fleet_file_tells_line_and_key(tmp_path, keys, message):
    (tmp_path / "fleet.yaml").write_text(FLEET.format("spline", keys), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_fleet(tmp_path / "fleet.yaml")
