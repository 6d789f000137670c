# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Conversion of degrees to metres, compared with PROJ, and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.geodesy import geodetic_to_ned, ned_about, ned_to_geodetic

HOME = (47.0, 8.0, 500.0)


def test_worked_numbers():
    """A thousandth of a degree at 47° north.

    North is 0.001° of the meridian, 111.1709 m, and the way by which a parallel of that radius
    bends within 76 m: 76.055² / 2 · tan 47° / 6,389 km = 0.5 mm. East is 0.001° of the parallel at
    47.001°.
    """
    north, east, down = geodetic_to_ned((47.001, 8.001, 530.0), HOME)
    assert north == pytest.approx(111.1708 + 0.0005, abs=1e-4)
    assert east == pytest.approx(76.0546, abs=1e-4)
    assert down == -30.0


PLACES = [HOME, (-35.363, 149.165, 584.0), (0.0, 0.0, 0.0), (69.5, -120.0, 10.0), (85, 179.9, 0)]


@pytest.mark.needs("pyproj")
@pytest.mark.parametrize("home", PLACES)
def test_fifty_kilometres_around_as_proj(home):
    """PROJ's transverse Mercator projection about the same origin, both ways."""
    import pyproj

    to_plane = pyproj.Transformer.from_crs(
        "EPSG:4326",
        f"+proj=tmerc +lat_0={home[0]} +lon_0={home[1]} +k=1 +datum=WGS84 +units=m",
        always_xy=True,
    )
    ned = np.random.default_rng(1).uniform(-50_000, 50_000, (1000, 3))
    places = ned_to_geodetic(ned, home)
    east, north = to_plane.transform(places[:, 1], places[:, 0])

    np.testing.assert_allclose(np.column_stack([north, east]), ned[:, :2], atol=1e-6)
    np.testing.assert_allclose(geodetic_to_ned(places, home), ned, atol=1e-6)


@pytest.mark.needs("pyproj")
@pytest.mark.parametrize("home", PLACES)
def test_ten_kilometres_around_within_a_centimetre_of_the_geodesic(home):
    """The distance and azimuth of PROJ's geodesic in all directions; the scale allows 4 mm."""
    import pyproj

    geod = pyproj.Geod(ellps="WGS84")
    for azimuth in range(0, 360, 15):
        lon, lat, _ = geod.fwd(home[1], home[0], azimuth, 10_000.0)
        north, east, _ = geodetic_to_ned((lat, lon, home[2]), home)
        turn = math.radians(azimuth)
        assert north == pytest.approx(10_000.0 * math.cos(turn), abs=0.01)
        assert east == pytest.approx(10_000.0 * math.sin(turn), abs=0.01)


def test_across_the_date_line():
    assert geodetic_to_ned((0.0, -179.999, 0.0), (0.0, 179.999, 0.0))[1] == pytest.approx(
        222.64, abs=0.01
    )
    assert ned_to_geodetic((0.0, 222.64, 0.0), (0.0, 179.999, 0.0))[1] == pytest.approx(
        -179.999, abs=1e-6
    )


@given(
    st.floats(-85, 85),
    st.floats(-180, 180),
    st.lists(st.floats(-20_000, 20_000), min_size=3, max_size=3),
)
def test_there_and_back(latitude, longitude, ned):
    origin = (latitude, longitude, 100.0)
    again = geodetic_to_ned(ned_to_geodetic(ned, origin), origin)
    np.testing.assert_allclose(again, ned, atol=1e-6)


def test_beyond_a_pole_is_no_latitude():
    """The pole is 4,778 km north of 47°; a plane that wraps would lead down on the other side."""
    latitudes = ned_to_geodetic([[4.7e6, 0, 0], [4.9e6, 0, 0], [-2e7, 0, 0], [1e12, 0, 0]], HOME)
    assert (latitudes[:, 0] > 90.0).tolist() == [False, True, False, True]
    assert latitudes[2, 0] < -90.0


def test_arrays_and_missing_altitudes():
    points = np.array([[47.001, 8.0, math.nan], [47.0, 8.0, 510.0]])
    ned = geodetic_to_ned(points, HOME)
    np.testing.assert_allclose(ned[0, :2], [111.1708, 0.0], atol=1e-4)
    assert math.isnan(ned[0, 2])
    assert ned[1].tolist() == [0.0, 0.0, -10.0]


def test_places_keep_their_degrees_about_another_origin():
    """North of an origin a degree west differs by 1° · sin 47° = 0.731°."""
    west = (47.0, 7.0, 480.0)
    ned = np.array([(0.0, 0.0, 0.0), (3000.0, 0.0, -40.0)])
    about_west = ned_about(ned, HOME, west)

    np.testing.assert_allclose(ned_to_geodetic(about_west, west), ned_to_geodetic(ned, HOME))
    north, east, down = about_west[1] - about_west[0]
    assert math.degrees(math.atan2(east, north)) == pytest.approx(-0.7313, abs=2e-3)
    assert down == pytest.approx(-40.0)
    assert ned_about(ned, HOME, HOME) is ned


def test_what_is_beyond_a_pole_is_only_moved():
    near_pole = (89.999, 8.0, 0.0)
    moved = ned_about((5000.0, 3.0, 0.0), near_pole, (89.998, 8.0, 0.0))
    np.testing.assert_allclose(moved, (5111.69, 3.0, 0.0), atol=0.01)
