# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Conversion of degrees to metres, compared with PROJ, and back."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.geodesy import geodetic_to_ned, ned_to_geodetic

HOME = (47.0, 8.0, 500.0)


def test_worked_numbers():
    """A thousandth of a degree at 47° north, with the series of the arc of the meridian."""
    north, east, down = geodetic_to_ned((47.001, 8.001, 530.0), HOME)
    assert north == pytest.approx(111.1708, abs=1e-4)
    assert east == pytest.approx(76.0560, abs=1e-4)
    assert down == -30.0


@pytest.mark.needs("pyproj")
@pytest.mark.parametrize(
    "home",
    [
        HOME,
        (-35.363, 149.165, 584.0),
        (0.0, 0.0, 0.0),
        (69.5, -120.0, 10.0),
    ],
)
def test_ten_kilometres_around_within_a_metre_of_proj(home):
    """The distance and azimuth of PROJ's geodesic to 10 km, in all directions."""
    import pyproj

    geod = pyproj.Geod(ellps="WGS84")
    for azimuth in range(0, 360, 15):
        lon, lat, _ = geod.fwd(home[1], home[0], azimuth, 10_000.0)
        expected = (
            10_000.0 * math.cos(math.radians(azimuth)),
            10_000.0 * math.sin(math.radians(azimuth)),
        )
        north, east, _ = geodetic_to_ned((lat, lon, home[2]), home)
        # east-west lines bend away from the parallel: at 69° this is what the plane cannot follow
        bend = 10_000.0**2 / 2 / 6_378_137.0 * math.tan(math.radians(abs(home[0])))
        assert math.hypot(north - expected[0], east - expected[1]) <= max(1.0, 2.5 * bend)


@pytest.mark.needs("pyproj")
def test_the_length_to_ten_kilometres_within_a_metre_of_proj():
    """Along the meridian and across it, where the mission files' formula promises a metre."""
    import pyproj

    geod = pyproj.Geod(ellps="WGS84")
    north = geodetic_to_ned((47.09, 8.0, 0), HOME)[0]
    east = geodetic_to_ned((47.0, 8.13, 0), HOME)[1]
    assert abs(geod.inv(8.0, 47.0, 8.0, 47.09)[2] - north) < 1.0
    assert abs(geod.inv(8.0, 47.0, 8.13, 47.0)[2] - east) < 1.0


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


def test_arrays_and_missing_altitudes():
    points = np.array([[47.001, 8.0, math.nan], [47.0, 8.0, 510.0]])
    ned = geodetic_to_ned(points, HOME)
    np.testing.assert_allclose(ned[0, :2], [111.1708, 0.0], atol=1e-4)
    assert math.isnan(ned[0, 2])
    assert ned[1].tolist() == [0.0, 0.0, -10.0]
