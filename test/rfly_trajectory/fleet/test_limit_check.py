# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Limits and closest approach, compared with values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Limits, Vehicle
from rfly_trajectory.fleet.fleet_file import parse_fleet
from rfly_trajectory.fleet.limit_check import (
    check_limits,
    check_separation,
    check_tracks,
    drive,
    duration,
)
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, Line

EAST = Line((-100.0, 0.0), (100.0, 0.0)).path()
NORTH = Line((0.0, -100.0), (0.0, 100.0)).path()


def vehicle(number, path, speed, **keys):
    profile = speed if isinstance(speed, SpeedProfile) else SpeedProfile(speed)
    return Vehicle(
        f"v{number}",
        number,
        3,
        path,
        profile,
        "repeat" if path.closed else "stop",
        **keys,
    )


def slope(rise_x, rise_y=0.0):
    """Return a plane from -200 to 200 m."""
    axis = np.linspace(-200.0, 200.0, 41)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(rise_x * x + rise_y * y, origin_x=-200, origin_y=-200, step_x=10, step_y=10)


class TestLimits:
    """A circle of 50 m at 10 m/s takes 2 m/s² sideways.

    On the parallel circle of 40 m it is 8 m/s and 1.6 m/s².
    """

    CIRCLE = Circle((0.0, 0.0), 50.0).path()

    @pytest.mark.parametrize(
        ("limits", "texts"),
        [
            (Limits(turn_radius=50.0, lateral_acceleration=2.0, max_speed=10.0), []),
            (
                Limits(turn_radius=50.1),
                ["it can't turn tighter than 50.1 m, but its radius is 50 m"],
            ),
            (
                Limits(lateral_acceleration=1.99),
                ["it takes up to 1.99 m/s² sideways, but gets 2 m/s²"],
            ),
            (Limits(max_speed=9.9), ["it goes up to 9.9 m/s, but has 10 m/s"]),
        ],
    )
    def test_circle(self, limits, texts):
        findings = check_limits(Fleet([vehicle(1, self.CIRCLE, 10.0, limits=limits)]))
        assert [finding.text.partition(" at x ")[0] for finding in findings] == texts

    @pytest.mark.parametrize(
        ("kind", "speed", "text"),
        [
            # 50 m at 19.9 and 20.1 m/s: 7.92 and 8.08 m/s²
            ("ground", 19.9, None),
            ("ground", 20.1, "it takes up to 8.0 m/s² sideways, but gets 8.08 m/s² at x "),
            # 29.1 and 29.2 m/s: 16.94 and 17.05 m/s²
            ("multirotor", 29.1, None),
            ("multirotor", 29.2, "it takes up to 17.0 m/s² sideways, but gets 17.05 m/s² at x "),
            ("fixed_wing", 29.2, "it takes up to 17.0 m/s² sideways, but gets 17.05 m/s² at x "),
        ],
    )
    def test_without_limits_of_its_own_those_of_its_kind_count(self, kind, speed, text):
        fleet = Fleet([vehicle(1, self.CIRCLE, speed, kind=kind)])
        findings = check_limits(fleet)
        assert len(findings) == (text is not None)
        for finding in findings:
            assert finding.text.startswith(text)
            assert finding.text.endswith(
                f" (the typical limit of kind {kind.replace('_', ' ')}; "
                "limits.lateral_acceleration sets another)"
            )

    @pytest.mark.parametrize(
        ("profile", "text"),
        [
            (SpeedProfile(10.0), None),  # at once: the file asks for no acceleration
            (SpeedProfile(10.0, 8.0), None),
            (SpeedProfile(10.0, 8.1), "it gains or loses up to 8.0 m/s in a second, but has 8.1 "),
            (
                SpeedProfile(10.0, 3.0, 9.0),
                "it gains or loses up to 8.0 m/s in a second, but has 9 ",
            ),
            # an S-curve to 4 m/s gets to √(4 · 10) = 6.3 m/s², one to 10 m/s to 10 m/s²
            (SpeedProfile(4.0, 20.0, jerk=10.0), None),
            (
                SpeedProfile(10.0, 20.0, jerk=10.0),
                "it gains or loses up to 8.0 m/s in a second, but has 10 ",
            ),
        ],
    )
    def test_the_acceleration_along_the_way(self, profile, text):
        findings = check_limits(Fleet([vehicle(1, EAST, profile)]))
        assert len(findings) == (text is not None)
        for finding in findings:
            assert finding.text.startswith(text)

    def test_climbs_of_aircraft(self):
        """Over a slope of 1, 15.1 m/s over ground are 15.1 m/s upwards, at 45°."""
        fleet = Fleet(
            [
                vehicle(1, EAST, 15.1, kind="multirotor", height=9.0),
                vehicle(2, EAST, 15.1, kind="fixed_wing", height=9.0),
                vehicle(3, EAST, 14.9, kind="multirotor", height=9.0),
            ],
            slope(1.0),
        )
        texts = [finding.text.partition(" at x ")[0] for finding in check_limits(fleet)]
        assert texts == [
            "it climbs or sinks at up to 15.0 m/s, but has 15.1 m/s",
            "it takes slopes up to 30.0°, but has 45°",
        ]

    def test_a_limit_of_its_own_may_be_wider_than_the_typical_one(self):
        limits = Limits(lateral_acceleration=9.0)
        assert check_limits(Fleet([vehicle(1, self.CIRCLE, 20.1, limits=limits)])) == []

    def test_in_a_formation_it_is_the_members_own_way(self):
        limits = Limits(turn_radius=40.1, lateral_acceleration=1.59, max_speed=7.9)
        findings = check_limits(
            Fleet([vehicle(1, self.CIRCLE, 10.0, offset=(0.0, 10.0), limits=limits)])
        )
        values = [finding.text.split(" at x ")[0].rsplit(" ", 2)[-2:] for finding in findings]
        assert values == [["40", "m"], ["8", "m/s"], ["1.6", "m/s²"]]

    def test_slope_is_that_along_the_way_and_its_place_is_told(self):
        """Slope counts along the way, and its place is reported.

        The plane rises by 0.2 eastwards; a circle meets its full slope where it leads east or west:
        atan 0.2 is 11.31°. A line to the north is level.
        """
        terrain = slope(0.2)
        fleet = Fleet([vehicle(1, self.CIRCLE, 10.0, limits=Limits(max_slope_deg=11.3))], terrain)
        (finding,) = check_limits(fleet)
        assert finding.text.startswith("it takes slopes up to 11.3°, but has 11.31° at x ")
        assert abs(float(finding.text.split("y ")[1])) == pytest.approx(50.0, abs=0.1)
        assert (
            check_limits(
                Fleet([vehicle(1, NORTH, 10.0, limits=Limits(max_slope_deg=0.1))], terrain)
            )
            == []
        )

    def test_an_aircraft_at_one_altitude_has_no_slope(self):
        aircraft = vehicle(
            1,
            self.CIRCLE,
            10.0,
            kind="multirotor",
            height=90.0,
            absolute=True,
            limits=Limits(max_slope_deg=1.0),
        )
        assert check_limits(Fleet([aircraft], slope(0.2))) == []

    def test_copies_on_one_track_are_told_once_and_nodes_are_told_too(self):
        copies = [
            vehicle(i, self.CIRCLE, 10.0, delay=float(i), limits=Limits(max_speed=1.0))
            for i in range(1, 5)
        ]
        assert [finding.vehicle for finding in check_tracks(Fleet(copies))] == ["v1"]

    def test_a_file_tells_line_and_key(self):
        text = """version: 1
defaults:
  limits:
    max_speed: 3
vehicles:
  - {id: 1, type: 3, speed: 4, shape: {type: line, from: [0, 0], to: [9, 0]}}
  - id: 2
    type: 3
    speed: 2
    shape: {type: circle, center: [0, 0], radius: 2}
    limits: {turn_radius: 3}
"""

        findings = check_limits(parse_fleet(text.encode(), "f.yaml"))
        assert [(finding.vehicle, finding.location) for finding in findings] == [
            ("vehicle_1", "f.yaml:4: defaults.limits.max_speed"),
            ("vehicle_2", "f.yaml:11: vehicles[1].limits.turn_radius"),
        ]


class TestDrive:
    def test_trapezoid_on_a_slope_by_hand(self):
        """200 m at 10 m/s with 2 m/s²: 5 s and 25 m each to start and brake, 15 s at speed."""
        fleet = Fleet([vehicle(1, EAST, SpeedProfile(10.0, 2.0), delay=7.0)], slope(0.1))
        assert duration(fleet.vehicles[0]) == pytest.approx(25.0)
        run = drive(fleet, 0)
        assert run.time[-1] == pytest.approx(25.0)
        assert run.distance[-1] == pytest.approx(200.0)
        np.testing.assert_allclose(
            np.interp([2.5, 12.5, 22.5], run.time, run.speed), [5, 10, 5], atol=1e-9
        )
        np.testing.assert_allclose(run.slope, 0.1, atol=1e-6)
        expected = 0.1 * run.position[:, 0]
        np.testing.assert_allclose(run.position[:, 2], expected, atol=1e-5)

    def test_ping_pong_is_there_and_back_and_a_stop_is_an_end(self):
        there = Vehicle("a", 1, 3, EAST, SpeedProfile(10.0), "ping_pong")
        assert duration(there) == pytest.approx(60.0)  # the way out, and then the part that repeats
        assert duration(vehicle(1, EAST, 0.0)) == 0.0


class TestSeparation:
    def test_crossing_ways_by_hand(self):
        """Two vehicles at 10 m/s pass at 20/√2 m, 1 s before the late one reaches the crossing.

        The late one is 20 m behind.
        """
        early = vehicle(1, EAST, 10.0)
        late = vehicle(2, NORTH, 10.0, delay=2.0)
        (finding,) = check_separation(Fleet([early, late], min_separation=15.0))
        assert finding.vehicle == "v1"
        assert (
            "comes within 14.1 m of 'v2' after 11.0 s at x 10.0, y 0.0; min_separation is 15 m"
            in finding.text
        )
        assert check_separation(Fleet([early, late], min_separation=14.1)) == []
        assert check_separation(Fleet([early, late])) == []

    def test_bodies_that_meet_are_found_without_a_min_separation(self):
        """Six lines cross in one point at one time: each of the 15 pairs meets there.

        Bodies of radius 0.9 m on parallel lines 2 m apart pass each other.
        """
        star = []
        for number in range(6):
            angle = math.pi * number / 6.0
            end = np.array([math.cos(angle), math.sin(angle)]) * 100.0
            star.append(vehicle(number, Line(tuple(-end), tuple(end)).path(), 10.0))
        where = {"min_separation": "f.yaml:1: min_separation"}
        findings = check_separation(Fleet(star, locations=where), radii=0.9)
        assert len(findings) == 15
        assert {finding.location for finding in findings} == {""}  # the file says nothing of it
        for finding in findings:
            assert finding.text.startswith("meets 'v")
            assert finding.text.endswith("; their bodies meet below 1.8 m")
            assert np.hypot(*finding.position) < 1.8

        back = Line((100.0, 2.0), (-100.0, 2.0)).path()
        passing = Fleet([vehicle(1, EAST, 10.0), vehicle(2, back, 10.0)])
        assert check_separation(passing, radii=[0.9, 1.05]) == []
        assert len(check_separation(passing, radii=[0.9, 1.15])) == 1

    def test_a_fast_pass_between_samples_is_found(self):
        """A head-on pass on ways 0.5 m apart, at 100 m/s each, is found."""
        back = Line((100.0, 0.5), (-100.0, 0.5)).path()
        (finding,) = check_separation(
            Fleet([vehicle(1, EAST, 100.0), vehicle(2, back, 100.0)], min_separation=0.6)
        )
        assert "comes within 0.5 m" in finding.text

    def test_height_counts(self):
        above = vehicle(2, NORTH, 10.0, kind="multirotor", height=20.0)
        assert check_separation(Fleet([vehicle(1, EAST, 10.0), above], min_separation=19.9)) == []
        assert (
            len(check_separation(Fleet([vehicle(1, EAST, 10.0), above], min_separation=20.1))) == 1
        )

    def test_who_waits_at_a_common_start_is_no_finding(self):
        """Vehicles at 10 m/s with 2 s between departures are 20 m apart."""
        ring = Circle((0.0, 0.0), 500.0).path()
        copies = [vehicle(i, ring, 10.0, delay=2.0 * i) for i in range(1, 4)]
        chord = 2 * 500 * math.sin(20 / 1000)
        assert check_separation(Fleet(copies, min_separation=chord - 0.001)) == []
        assert len(check_separation(Fleet(copies, min_separation=chord + 0.001))) == 2

    def test_who_waits_is_in_the_way_of_the_others(self):
        """A vehicle passes the start of four that wait, after 10 s."""
        ways = [Line((-100.0, 0.0), (100.0, 50.0 * i)).path() for i in range(1, 5)]
        stack = [vehicle(i, way, 10.0, delay=20.0 + i) for i, way in enumerate(ways, 1)]
        passing = Line((-100.0, -100.0), (-100.0, 100.0)).path()
        findings = check_separation(Fleet([*stack, vehicle(9, passing, 10.0)]), radii=0.9)
        assert sorted(finding.vehicle for finding in findings) == ["v1", "v2", "v3", "v4"]
        for finding in findings:
            assert finding.text.startswith("meets 'v9' after 10.0 s at x -100.0, y ")

    def test_a_copy_that_comes_back_meets_one_that_still_waits(self):
        """A lap of 100 m takes 10 s: the first passes the one that waits for 12 s, and no other."""
        ring = Circle((0.0, 0.0), 100.0 / (2.0 * math.pi)).path()
        copies = [vehicle(i, ring, 10.0, delay=4.0 * i) for i in range(4)]
        (finding,) = check_separation(Fleet(copies), radii=0.9)
        assert finding.vehicle == "v0"
        assert finding.text.startswith("meets 'v3' after 10.0 s at ")

    def test_two_that_wait_within_one_another_are_found_unless_they_start_alike(self):
        beside = vehicle(2, EAST, 10.0, delay=9.0, shift=(0.0, 1.0))
        waiting = Fleet([vehicle(1, EAST, 10.0, delay=5.0), beside])
        (finding,) = check_separation(waiting, radii=0.9)
        assert "comes within 1 m of 'v2' after 0.0 s" in finding.text

    def test_every_close_pair_is_named_nearest_first(self):
        rows = [vehicle(i, EAST, 10.0, shift=(0.0, y)) for i, y in enumerate([0.0, 3.0, 5.0, 50.0])]
        text = (
            "version: 1\nmin_separation: 4\n"
            "vehicles: [{id: 1, type: 3, speed: 1, shape: {type: line, "
        )
        where = parse_fleet((text + "from: [0, 0], to: [9, 0]}}]").encode(), "f.yaml").locations
        findings = check_separation(Fleet(rows, min_separation=4.0, locations=where))
        assert [(finding.vehicle, finding.text[:29]) for finding in findings] == [
            ("v1", "comes within 2 m of 'v2' afte"),
            ("v0", "comes within 3 m of 'v1' afte"),
        ]
        assert findings[0].location == "f.yaml:2: min_separation"


def test_a_value_just_beyond_its_limit_is_distinct_digits_from_it():
    from rfly_trajectory.fleet.limit_check import _distinct_digits

    assert _distinct_digits(15.0003, 15.0) == "15.0003"
    assert _distinct_digits(17.2518, 15.0) == "17.25"


@pytest.mark.parametrize("delay", [0.5, 0.7, 0.9, 1.5])
def test_steep_climbs_are_not_missed_between_two_instants(delay):
    """The two go 0.6 m/s ahead and 15 m/s up or down: the later one is 0.6 delay behind.

    The instants were as far apart as the speed over ground alone allows.
    """
    text = f"""
version: 1
min_separation: 2.0
defaults: {{type: multirotor, kind: multirotor, speed: 1.0, keep_limits: true}}
vehicles:
  - {{id: 1, shape: {{type: polyline, points: [[0, 0, 0], [4, 0, 100]]}}, delay: {delay}}}
  - {{id: 2, shape: {{type: polyline, points: [[0, 0.1, 100], [4, 0.1, 0]]}}}}
"""
    (found,) = check_separation(parse_fleet(text.encode(), "f.yaml"))
    distance = float(found.text.split()[2])
    assert distance == pytest.approx(math.hypot(0.6 * delay, 0.1), rel=0.01)
