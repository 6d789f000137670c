# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Latitude and longitude on a map, compared with PROJ; the ground along a line."""

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.places import are_exchanged, place_of, position_of

ORIGIN = (46.5, 7.9, 1000.0)


def slope_map(geo_origin=ORIGIN):
    """Return a plane: z = 0.1 x - 0.2 y, 100 km wide."""
    x, y = np.mgrid[-50_000:50_001:500, -50_000:50_001:500].astype(float)
    return HeightMap(
        0.1 * x - 0.2 * y,
        origin_x=-50_000,
        origin_y=-50_000,
        step_x=500,
        step_y=500,
        name="slope",
        geo_origin=geo_origin,
    )


@pytest.mark.needs("pyproj")
def test_places_are_those_of_proj_to_a_centimetre():
    import pyproj

    to_plane = pyproj.Transformer.from_crs(
        "EPSG:4326", "+proj=tmerc +lat_0=46.5 +lon_0=7.9 +datum=WGS84", always_xy=True
    )
    rng = np.random.default_rng(3)
    latitudes = 46.5 + rng.uniform(-0.4, 0.4, 500)
    longitudes = 7.9 + rng.uniform(-0.6, 0.6, 500)
    x, y = to_plane.transform(longitudes, latitudes)

    terrain = slope_map()
    np.testing.assert_allclose(terrain.position_of(latitudes, longitudes), (x, y), atol=0.01)
    np.testing.assert_allclose(terrain.place_of(x, y), (latitudes, longitudes), atol=1e-7)
    altitudes = 1000.0 + 0.1 * x - 0.2 * y
    np.testing.assert_allclose(terrain.altitude_at(latitudes, longitudes), altitudes, atol=0.02)


def test_single_places_are_floats():
    terrain = slope_map()
    assert terrain.altitude_at(46.5, 7.9) == pytest.approx(1000.0)
    assert terrain.position_of(46.5, 7.9) == (0.0, pytest.approx(0.0, abs=1e-6))
    assert all(type(value) is float for value in terrain.place_of(10.0, -20.0))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((97.9, 46.5), "latitude is 97.9, expected degrees from -90 to 90"),
        ((46.5, 181.0), "longitude is 181, expected degrees from -180 to 180"),
        ((math.nan, 7.9), "latitude is nan"),
        (([46.5, 46.6], [7.9, math.inf]), "longitude is inf"),
    ],
)
def test_no_places_are_refused(place, message):
    with pytest.raises(ValueError, match=message):
        slope_map().altitude_at(*place)


def test_masked_places_are_refused():
    masked = np.ma.array([46.5, 46.6], mask=[False, True])
    with pytest.raises(ValueError, match="latitude: 1 masked"):
        position_of(masked, [7.9, 7.9], ORIGIN)
    with pytest.raises(ValueError, match="y: 1 masked"):
        place_of([0.0, 1.0], masked, ORIGIN)


def test_a_map_without_a_place_says_so():
    with pytest.raises(ConfigError, match="names no latitude and longitude"):
        slope_map(None).altitude_at(46.5, 7.9)


def test_exchanged_latitude_and_longitude_are_noticed():
    terrain = slope_map()
    assert are_exchanged(terrain, 7.9, 46.5, ORIGIN)
    assert not are_exchanged(terrain, 46.5, 7.9, ORIGIN)
    assert not are_exchanged(terrain, 12.0, 20.0, ORIGIN)
    assert not are_exchanged(terrain, 12.0, 120.0, ORIGIN)


def test_a_profile_of_a_plane():
    """The way from (0, 0) to (300, 400) is 500 m; z falls by 0.1 · 300 - 0.2 · 400 = -50 m."""
    line = slope_map().profile((0, 0), (300, 400), 11)
    np.testing.assert_allclose(line.distance, np.arange(11) * 50.0)
    np.testing.assert_allclose(line.altitude, np.arange(11) * -5.0, atol=1e-3)
    assert (line.climb, line.descent) == (pytest.approx(0.0), pytest.approx(50.0, abs=1e-3))
    assert line.steepest == pytest.approx(math.atan(0.1), abs=1e-5)
    assert line.inside.all()
    assert not slope_map().profile((0, 0), (99_000, 0), 3).inside.all()


@pytest.mark.parametrize(
    ("start", "end", "count", "message"),
    [
        ((0, 0), (0, 0), 5, "the same place"),
        ((0, 0), (1, 0), 1, "expected 2 to 1,000,000"),
        ((0, 0, 0), (1, 0, 0), 5, "two pairs"),
        ((0, math.nan), (1, 0), 5, "must be finite"),
    ],
)
def test_lines_that_are_none_are_refused(start, end, count, message):
    with pytest.raises(ValueError, match=message):
        slope_map().profile(start, end, count)
