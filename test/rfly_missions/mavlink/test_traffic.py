# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Other vehicles as ADSB_VEHICLE."""

from __future__ import annotations

import numpy as np
import pytest
from optional_parts import late_module

from rfly_missions.mavlink.traffic import FleetTraffic, VehicleMotion

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")

ORIGIN = (47.0, 8.0, 500.0)
HERE = (0.0, 0.0, 0.0)


def motion(*vehicles):
    """Return the motion of vehicles, each an id, a place, a velocity (NED) and a yaw."""
    ids, places, velocities, yaws = zip(*vehicles, strict=True)
    return VehicleMotion(np.array(ids), np.array(places), np.array(velocities), np.array(yaws))


def test_units_of_a_report():
    """1.5 km to the north-east, 120 m up, along the diagonal at 10 m/s, climbing at 2 m/s."""
    from pyproj import Geod

    diagonal = 10.0 * np.sqrt(0.5)
    traffic = FleetTraffic()
    traffic.names = {7: "kingfisher"}
    flight = (7, (1500.0, 1500.0, -120.0), (diagonal, -diagonal, -2.0), 1.0)
    traffic.take(motion(flight), 50.0)
    (report,) = traffic.reports(HERE, [1], ORIGIN, 52.2)

    course, _, away = Geod(ellps="WGS84").inv(8.0, 47.0, report.lon * 1e-7, report.lat * 1e-7)
    # the map is a plane: 14 cm at this distance
    assert course == pytest.approx(45.0, abs=0.02)
    assert away == pytest.approx(1500.0 * np.sqrt(2.0), abs=0.2)
    assert report.altitude == 620_000
    assert report.altitude_type == common.ADSB_ALTITUDE_TYPE_GEOMETRIC
    assert (report.heading, report.hor_velocity, report.ver_velocity) == (31_500, 1000, 200)
    assert (report.ICAO_address, report.callsign, report.tslc) == (7, "kingfish", 2)
    assert report.flags & common.ADSB_FLAGS_SIMULATED
    assert report.flags & common.ADSB_FLAGS_VALID_COORDS
    report.pack(common.MAVLink(None))  # all of it fits


def test_a_vehicle_at_rest_shows_where_its_nose_points():
    traffic = FleetTraffic()
    traffic.take(motion((501, (5.0, 0.0, 0.0), (0.1, 0.0, 0.0), -0.5)), 0.0)
    (report,) = traffic.reports(HERE, [], ORIGIN, 0.0)
    assert report.heading == round((360.0 - np.degrees(0.5)) * 100.0)
    assert report.callsign == "V501"


def test_newer_states_count_and_silent_vehicles_are_dropped():
    still = (0.0, 0.0, 0.0)
    traffic = FleetTraffic()
    traffic.take(motion((1, (10.0, 0.0, 0.0), still, 0.0), (2, (20.0, 0.0, 0.0), still, 0.0)), 0.0)
    traffic.take(motion((2, (5.0, 0.0, 0.0), still, 0.0)), 4.0)
    assert [m.ICAO_address for m in traffic.reports(HERE, [], ORIGIN, 4.0)] == [2, 1]
    assert [m.ICAO_address for m in traffic.reports(HERE, [], ORIGIN, 6.0)] == [2]
    assert traffic.reports(HERE, [2], ORIGIN, 6.0) == []


def test_only_the_nearest_of_a_large_fleet_and_none_beyond_the_earth():
    places = [(1000.0 - 10.0 * k, 0.0, 0.0) for k in range(100)]
    far = (3e8, 0.0, 0.0)
    fleet = [(100 + k, place, HERE, 0.0) for k, place in enumerate([*places, far])]
    traffic = FleetTraffic()
    traffic.take(motion(*fleet), 0.0)
    reports = traffic.reports(HERE, [], ORIGIN, 0.0)
    assert [m.ICAO_address for m in reports] == list(range(199, 179, -1))
