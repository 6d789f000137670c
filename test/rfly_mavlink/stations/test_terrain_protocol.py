# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Heights for autopilots and ground stations, against pyproj and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mavlink_station import ORIGIN, STATION, Station, of_type
from optional_parts import late_module

from rfly_mavlink.stations.terrain_protocol import PlacedTerrain
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

STEP = 30.0
AXIS = np.arange(-600.0, 601.0, STEP)
"""East and north of the map's samples, m."""
SPACING = 30
EVERY = 2**56 - 1
"""Mask of all grids of a request."""


def hills(east, north):
    """Return heights whose rise along north differs from that along east, m."""
    return 0.31 * north - 0.12 * east + 9.0 * np.sin(east / 90.0) * np.cos(north / 140.0)


@pytest.fixture
def station():
    station = Station(systems=(1, 2))
    east, north = np.meshgrid(AXIS, AXIS, indexing="ij")
    steps = {"step_x": STEP, "step_y": STEP}
    terrain = HeightMap(hills(east, north), origin_x=-600.0, origin_y=-600.0, **steps)
    placed = PlacedTerrain(terrain, ORIGIN)
    station.endpoint.terrain.terrain = placed
    for vehicle in station.endpoint.vehicles.values():
        vehicle.flight.situation.terrain = placed
    return station


def local(latitude, longitude):
    """Return east and north of places about the map's origin, m, on the tangent plane."""
    from pyproj import Transformer

    latitude_0, longitude_0, altitude_0 = ORIGIN
    pipeline = (
        "+proj=pipeline +step +proj=cart +ellps=WGS84 +step +proj=topocentric +ellps=WGS84 "
        f"+lat_0={latitude_0} +lon_0={longitude_0} +h_0={altitude_0}"
    )
    east, north, _ = Transformer.from_pipeline(pipeline).transform(
        longitude, latitude, np.full_like(latitude, altitude_0)
    )
    return east, north


def altitudes(latitude, longitude):
    """Return the map's altitudes above the sea at places, m; NaN off the map."""
    from scipy.interpolate import RegularGridInterpolator

    east, north = np.meshgrid(AXIS, AXIS, indexing="ij")
    look_up = RegularGridInterpolator((AXIS, AXIS), hills(east, north), bounds_error=False)
    return ORIGIN[2] + look_up(np.stack(local(latitude, longitude), axis=-1))


def corner():
    """Return a place 200 m south and 300 m west of the origin, 1e-7 degrees."""
    from pyproj import Geod

    longitude, latitude, _ = Geod(ellps="WGS84").fwd(
        ORIGIN[1], ORIGIN[0], math.degrees(math.atan2(-300.0, -200.0)), math.hypot(200.0, 300.0)
    )
    return round(latitude * 1e7), round(longitude * 1e7)


def grid_places(lat, lon):
    """Return latitudes and longitudes of the 28 x 32 points of a request, by the way to each.

    North along the meridian, then east along the parallel, on a sphere of 6,378,100 m.
    """
    north, east = np.meshgrid(np.arange(28) * SPACING, np.arange(32) * SPACING, indexing="ij")
    latitude = lat * 1e-7 + np.degrees(north / 6_378_100.0)
    radius = 6_378_100.0 * np.cos(np.radians(latitude))
    return latitude, lon * 1e-7 + np.degrees(east / radius)


def request(station, lat, lon, mask=EVERY, spacing=SPACING):
    """Ask as an autopilot does; return the grids that come, by number."""
    before = len(station.heard)
    station.send(common.MAVLink_terrain_request_message(lat, lon, spacing, mask))
    station.run(1.0)
    grids = of_type("TERRAIN_DATA", station.heard[before:])
    assert {(m.lat, m.lon, m.grid_spacing) for m in grids} <= {(lat, lon, spacing)}
    numbers = [m.gridbit for m in grids]
    assert len(set(numbers)) == len(numbers)
    return {m.gridbit: np.reshape(m.data, (4, 4)) for m in grids}


def test_an_autopilots_block_is_filled_with_the_maps_heights(station):
    """The block is put together as AP_Terrain::handle_terrain_data does it."""
    lat, lon = corner()
    grids = request(station, lat, lon)
    filled = np.full((28, 32), np.nan)
    for number, data in grids.items():
        row, column = divmod(number, 8)
        filled[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = data

    expected = altitudes(*grid_places(lat, lon))
    # beyond 600 m lie the last row of grids in the north and the last column in the east
    assert set(grids) == {8 * row + column for row in range(6) for column in range(7)}
    assert np.isfinite(expected[:24, :28]).all()
    # whole metres, and a rise of 0.5 on the way of some centimetres
    assert np.abs(filled - expected)[:24, :28].max() < 0.56
    assert station.endpoint.terrain.off_map == 14


def test_only_the_wanted_grids_come(station):
    lat, lon = corner()
    assert set(request(station, lat, lon, mask=1 << 9 | 1 << 33)) == {9, 33}
    assert request(station, lat, lon, mask=2**64 - 2**56) == {}


@pytest.mark.parametrize(
    "asked", [(100, 0, SPACING), (2**31 - 1, 0, SPACING), (-(2**31), 5, SPACING), (0, 0, 0)]
)
def test_what_cannot_be_answered_gets_no_answer(station, asked):
    assert request(station, *asked[:2], spacing=asked[2]) == {}


def test_a_newer_request_replaces_the_one_before(station):
    lat, lon = corner()
    first = common.MAVLink_terrain_request_message(lat, lon, SPACING, EVERY)
    station.send(first)
    second = common.MAVLink_terrain_request_message(lat, lon, 10, 1 << 20)
    station.send(second)
    station.run(1.0)
    grids = of_type("TERRAIN_DATA", station.heard)
    assert [(m.grid_spacing, m.gridbit) for m in grids] == [(10, 20)]


def test_many_requests_are_answered_a_few_grids_at_a_time(station):
    lat, lon = corner()
    message = common.MAVLink_terrain_request_message(lat, lon, SPACING, EVERY)
    data = bytes(message.pack(station.packer))
    for number in range(300):
        sender = "127.0.0.1", 20_000 + number % 30
        station.endpoint.receive(data, sender, station.now)
    station.endpoint.datagrams()
    station.endpoint.tick(station.now, station.now)

    sent = station.parser.parse_buffer(b"".join(d for _, d in station.endpoint.datagrams()))
    assert len(of_type("TERRAIN_DATA", sent)) <= 8


def test_places_are_checked_and_reported(station):
    """The two vehicles answer, 7 m above the sea level of the origin's ground."""
    lat, lon = corner()
    message = common.MAVLink_terrain_check_message(lat, lon)
    reports = of_type("TERRAIN_REPORT", station.send(message))

    (expected,) = altitudes(np.array([lat * 1e-7]), np.array([lon * 1e-7]))
    assert [m.get_srcSystem() for m in reports] == [1, 2]
    for report in reports:
        assert (report.lat, report.lon, report.spacing, report.pending) == (lat, lon, 30, 0)
        assert report.terrain_height == pytest.approx(expected, abs=0.02)
        # the vehicles stand at the origin's altitude
        assert report.current_height == pytest.approx(500.0 - expected, abs=0.02)
        assert report.loaded == 11 * 11  # 41 samples along each side

    (off, _) = of_type("TERRAIN_REPORT", station.send(common.MAVLink_terrain_check_message(0, 0)))
    assert (off.spacing, off.terrain_height, off.current_height) == (0, 0.0, 0.0)


def test_the_ground_below_the_vehicle_is_reported(station):
    station.heard.clear()
    station.run(2.1)
    reports = [m for m in of_type("TERRAIN_REPORT", station.heard) if m.get_srcSystem() == 1]
    assert len(reports) == 2
    assert (reports[0].lat, reports[0].lon) == (470000000, 80000000)
    assert reports[0].terrain_height == pytest.approx(500.0 + hills(0.0, 0.0), abs=0.02)

    version = station.send(common.MAVLink_command_long_message(1, 1, 520, 0, *[1.0] * 7))
    (version,) = of_type("AUTOPILOT_VERSION", version)
    assert version.capabilities & common.MAV_PROTOCOL_CAPABILITY_TERRAIN


def test_nothing_is_told_without_a_map():
    station = Station()
    assert request(station, *corner()) == {}
    check = common.MAVLink_terrain_check_message(470000000, 80000000)
    assert of_type("TERRAIN_REPORT", station.send(check)) == []
    assert STATION in station.endpoint.peers
