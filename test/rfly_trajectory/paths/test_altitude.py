# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Heights of waypoints and of fleet files.

Profiles are worked out by hand, climb and attitude compared with differences.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import in_place_of
from oracles import motion_kernels as oracle

from rfly_common.errors import ConfigError
from rfly_common.frames import quat_conjugate, quat_multiply, quat_to_euler
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Limits, Vehicle
from rfly_trajectory.fleet.fleet_file import load_fleet, parse_fleet
from rfly_trajectory.fleet.limit_check import check_limits, check_tracks
from rfly_trajectory.kernels import motion_kernels
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.dubins import Dubins
from rfly_trajectory.paths.path import altitude_profile, altitudes, join_profiles
from rfly_trajectory.paths.shapes import Line, Polyline, Spline, with_heights

HILLY = [
    (0, 0, 40),
    (200, 0, 80),
    (250, 150, 80),
    (100, 160, 20),
    (-30, 90, 55),
]


def one(path, terrain=None, kind="fixed_wing", speed=10.0, **keys):
    profile = speed if isinstance(speed, SpeedProfile) else SpeedProfile(speed)

    return Fleet(
        [
            Vehicle(
                "v",
                7,
                3,
                path,
                profile,
                "repeat" if path.closed else "stop",
                kind,
                **keys,
            )
        ],
        terrain,
    )


def heights(path, s):
    """Return (k, 3) z, slope and rate of slope of one path."""
    s = np.asarray(s, float)
    return altitudes(join_profiles([path]), np.zeros(s.size, np.int64), s)


def test_an_even_climb_by_hand():
    """20 m up on 100 m at 10 m/s climb 2 m/s, with the nose atan 0.2 up.

    A multirotor's nose stays level.
    """
    path = Polyline([(0, 0, 10), (0, 100, 30)]).path()
    for kind, pitch in (("fixed_wing", -math.atan(0.2)), ("multirotor", 0.0)):
        state = one(path, kind=kind).sample(2.5)
        np.testing.assert_allclose(state.position, [[0, 25, 15]], atol=1e-12)
        np.testing.assert_allclose(state.velocity, [[0, 10, 2]], atol=1e-6)
        expected = [[0, pitch, math.pi / 2]]
        np.testing.assert_allclose(quat_to_euler(state.orientation), expected, atol=1e-12)
    assert one(path).sample_vehicles(np.zeros(1, int), np.array([2.5])).slope[0] == pytest.approx(
        0.2
    )


def test_level_between_equal_heights_and_without_overshoot_before():
    """Heights 0, 10, 10 each 100 m apart do not overshoot.

    The slope at the second is 0, at the first by PCHIP's rule for ends (2·0.1·100 + 0.1·100 -
    0)/200 = 0.15; Hermite's cubic is at 5 + 100/8·0.15 halfway up.
    """
    path = Polyline(
        [
            (0, 0, 0),
            (100, 0, 10),
            (200, 0, 10),
        ]
    ).path()
    z = heights(path, [0.0, 50.0, 100.0, 130.0, 200.0])
    np.testing.assert_allclose(z[:, 0], [0, 6.875, 10, 10, 10], atol=1e-12)
    expected = [0.15, 0.15 * (0.75 - 1) + 1.5 * 0.1, 0, 0, 0]
    np.testing.assert_allclose(z[:, 1], expected, atol=1e-12)


def test_an_open_path_goes_on_as_steep_before_and_behind():
    z = heights(Polyline([(0, 0, 10), (0, 100, 30)]).path(), [-20.0, 0.0, 100.0, 120.0])
    np.testing.assert_allclose(z[:, 0], [6, 10, 30, 34], atol=1e-12)
    np.testing.assert_allclose(z[:, 1:], [[0.2, 0]] * 4, atol=1e-12)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(Spline(HILLY).path(), id="spline"),
        pytest.param(Spline(HILLY, closed=True).path(), id="closed spline"),
        pytest.param(Polyline(HILLY, 8.0).path(), id="polyline"),
        pytest.param(Polyline(HILLY, 8.0, closed=True).path(), id="closed polyline"),
        pytest.param(
            Dubins([(*p, 40.0 * i) for i, p in enumerate(HILLY)], 12.0).path(),
            id="dubins",
        ),
        pytest.param(
            Dubins([(*p, 40.0 * i) for i, p in enumerate(HILLY)], 12.0, True).path(),
            id="closed dubins",
        ),
    ],
)
def test_each_way_point_has_its_height(path):
    """The nearest place of the path to a waypoint has its height.

    The tolerance is what the slope makes of the 2 cm between samples.
    """
    s = np.arange(0.0, path.length, 0.02)
    place = path.at(s).position
    z = heights(path, s)
    assert (z[:, 0].min(), z[:, 0].max()) == (pytest.approx(20.0), pytest.approx(80.0))
    for x, y, height in HILLY:
        away = np.hypot(*(place - [x, y]).T)
        near = away < away.min() + 1e-3
        assert np.abs(z[near, 0] - height).min() < 0.02 * 1.5 * np.abs(z[:, 1]).max()


@given(
    z=st.lists(st.floats(-50, 50), min_size=2, max_size=8),
    gaps=st.lists(st.floats(1.0, 90.0), min_size=8, max_size=8),
    closed=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_no_profile_overshoots_or_jumps(z, gaps, closed):
    s = np.concatenate([[0.0], np.cumsum(gaps[: len(z) - 1])])
    length = float(s[-1]) + (gaps[-1] if closed else 0.0)
    path = Line((0, 0), (length, 0)).path()
    path = dataclasses.replace(path, closed=closed, altitude=altitude_profile(s, z, length, closed))
    np.testing.assert_allclose(heights(path, s)[:, 0], z, atol=1e-9)
    fine = np.linspace(-length if closed else 0.0, length, 1001)
    at = heights(path, fine)
    assert at[:, 0].min() >= min(z) - 1e-9
    assert at[:, 0].max() <= max(z) + 1e-9
    steepest = 3.0 * np.abs(np.diff([*z, z[0]] if closed else z)).max()
    assert np.abs(np.diff(at[:, 0])).max() <= (steepest + 1e-9) * (fine[1] - fine[0])
    assert np.abs(at[:, 1]).max() <= steepest + 1e-9


@pytest.mark.parametrize("closed", [False, True])
def test_climb_and_body_rates_are_derivatives(closed):
    """Climb and body rates are derivatives along the path and next to it, under an S-curve."""
    path = Polyline(HILLY, 20.0, closed).path()
    speed = SpeedProfile(12.0, 1.0, jerk=0.4)
    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            3,
            path,
            speed,
            "repeat" if closed else "stop",
            kind,
            offset=offset,
        )
        for i, (kind, offset) in enumerate(
            [
                ("fixed_wing", (0.0, 0.0)),
                ("multirotor", (0.0, 9.0)),
                ("fixed_wing", (-8.0, -10.0)),
            ]
        )
    ]
    fleet = Fleet(vehicles)
    h = 1e-5
    t = np.linspace(1.003, 30.0, 300)
    before, at, after = (fleet.sample_times(t + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.position - before.position) / (2 * h), at.velocity, atol=2e-6)
    assert np.abs(at.velocity[..., 2]).max() > 2.0
    turn = quat_multiply(quat_conjugate(before.orientation), after.orientation)
    rates = 2.0 * np.where(turn[..., 3:] < 0, -turn[..., :3], turn[..., :3]) / (2 * h)
    away = np.abs(rates - at.angular_velocity).max(axis=-1)
    # Where two pieces of path, speed or height meet, a rate may have a step: those few samples are
    # left out.
    assert np.sort(away, axis=0)[:-3].max() < 2e-6


def hill():
    """Return a hill 60 m high in the middle of 400 m."""
    axis = np.linspace(-200.0, 200.0, 41)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(
        60.0 * np.exp(-(x**2 + y**2) / 5000.0),
        origin_x=-200,
        origin_y=-200,
        step_x=10,
        step_y=10,
    )


def test_no_way_point_leads_below_the_ground():
    terrain = hill()
    fleet = one(Polyline([(-190, 5, 20), (190, 5, 30)]).path(), terrain)
    moved = fleet.sample_times(np.linspace(0.0, 37.9, 800))
    x, y, z = moved.position[:, 0].T
    ground = terrain.altitude(x.copy(), y.copy())
    wanted = 20.0 + 10.0 * (x + 190.0) / 380.0
    np.testing.assert_allclose(z, np.maximum(wanted, ground), atol=1e-9)
    np.testing.assert_allclose(
        moved.velocity[z > ground + 1e-3, 0, 2], 10.0 * 10.0 / 380.0, atol=1e-9
    )
    assert (ground > wanted).any()


def test_a_check_names_the_place_where_the_ground_is_higher():
    fleet = one(Polyline([(-190, 0, 20), (190, 0, 20)]).path(), hill())
    finding, climb = check_tracks(fleet)
    assert climb.text.startswith(("it climbs", "it takes slopes")), "raised by the ground"
    told = float(finding.text.split("up to ")[1].split(" m below the ground")[0])
    assert finding.text.startswith("the altitude of its waypoints is up to ")
    assert told == pytest.approx(40.0, abs=0.1)
    high = one(Polyline([(-190, 0, 70), (190, 0, 70)]).path(), hill())
    assert check_tracks(high) == []


def test_the_limit_of_slope_counts_climbs():
    """An even climb by 0.2 counts as a slope of 11.31°."""
    path = Polyline([(0, 0, 10), (0, 100, 30)]).path()
    limits = Limits(max_slope_deg=11.0)
    (finding,) = check_limits(one(path, limits=limits))
    assert finding.text.startswith("it takes slopes up to 11.0°, but has 11.31°")


def test_the_oracle_gives_the_same_as_the_kernels():
    paths = [
        Spline(HILLY, closed=True).path(),
        Line((0, 0), (300, 200)).path(),
        Polyline(HILLY, 8.0).path(),
    ]

    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            3,
            paths[i % 3],
            SpeedProfile(9.0),
            "repeat" if i % 3 == 0 else "stop",
            kind,
            3.0 * i,
        )
        for i, kind in enumerate(
            [
                "fixed_wing",
                "multirotor",
                "multirotor",
                "multirotor",
                "ground",
                "fixed_wing",
            ]
        )
    ]

    times = np.arange(0.0, 90.0, 0.7)
    for terrain in (None, hill()):
        compiled = Fleet(vehicles, terrain).sample_times(times)
        with in_place_of(motion_kernels, oracle):
            expected = Fleet(vehicles, terrain).sample_times(times)
        for name in expected._fields:
            np.testing.assert_allclose(
                getattr(compiled, name), getattr(expected, name), rtol=1e-9, atol=1e-9
            )


def test_vehicles_without_heights_are_as_before():
    """Another vehicle that climbs, or a path of the same course, changes nothing."""
    flat = Line((0, 0), (300, 200)).path()
    plain = Vehicle("b", 2, 3, flat, SpeedProfile(8.0), "stop")
    climbing = Vehicle(
        "a",
        1,
        3,
        with_heights(flat, [0.0, flat.length], np.array([9.0, 99.0])),
        SpeedProfile(8.0),
        "stop",
        "multirotor",
    )

    both = Fleet([climbing, plain], hill()).sample(9.0)
    alone = Fleet([plain], hill()).sample(9.0)

    np.testing.assert_array_equal(both.position[1], alone.position[0])
    np.testing.assert_array_equal(both.velocity[1], alone.velocity[0])
    np.testing.assert_array_equal(both.position[0, :2], alone.position[0, :2])


HEAD = "version: 1\nvehicles:\n"
WAY = "{type: polyline, points: [[0, 0, 5], [90, 0, 8]]}"


def fleet_of(vehicle, head=HEAD):
    return parse_fleet(f"{head}  - {vehicle}\n".encode(), "f.yaml")


@pytest.mark.parametrize(
    "shape",
    [
        WAY,
        "{type: spline, points: [[0, 0, 5], [90, 0, 8]]}",
        "{type: dubins, turning_radius: 9, poses: [[0, 0, 5, 0], [90, 0, 8, 0]]}",
    ],
)
def test_a_fleet_file_gives_heights(shape):
    fleet = fleet_of(f"{{id: 1, type: 3, kind: fixed_wing, speed: 9, shape: {shape}}}")
    np.testing.assert_allclose(fleet.sample(10.0).position, [[90, 0, 8]], atol=1e-9)
    np.testing.assert_allclose(fleet.sample(5.0).position, [[45, 0, 6.5]], atol=1e-9)


def test_heights_win_over_an_altitude_in_defaults():
    head = "version: 1\ndefaults: {altitude: {absolute: 70}}\nvehicles:\n"
    fleet = fleet_of(f"{{id: 1, type: 3, kind: fixed_wing, speed: 9, shape: {WAY}}}", head)
    assert fleet.sample(0.0).position[0, 2] == 5.0


def test_a_file_gives_heights_to_aircraft_that_have_no_altitude(tmp_path):
    (tmp_path / "way.csv").write_text("x,y,z\n0,0,5\n90,0,8\n", encoding="utf-8")
    keys = "type: 3, speed: 9, shape: {type: polyline, file: way.csv}"
    (tmp_path / "f.yaml").write_text(
        HEAD + f"  - {{id: 1, kind: multirotor, {keys}}}\n  - {{id: 2, kind: multirotor, altitude: "
        f"{{agl: 3}}, {keys}}}\n"
        f"  - {{id: 3, {keys}}}\n",
        encoding="utf-8",
    )
    np.testing.assert_allclose(
        load_fleet(tmp_path / "f.yaml").sample(10.0).position[:, 2], [8, 3, 0]
    )


@pytest.mark.parametrize(
    ("vehicle", "message"),
    [
        (
            f"{{id: 1, type: 3, speed: 9, shape: {WAY}}}",
            "f.yaml:3: vehicles[0].shape: its waypoints have heights, which are for aircraft; a "
            "ground vehicle takes "
            "none",
        ),
        (
            f"{{id: 1, type: 3, kind: multirotor, altitude: {{agl: 5}}, speed: 9, shape: {WAY}}}",
            "f.yaml:3: vehicles[0].altitude: the waypoints of its shape have heights already",
        ),
        (
            "{id: 1, type: 3, kind: multirotor, speed: 9, shape: {type: spline, points: [[0, 0, "
            "5], [90, 0]]}}",
            "f.yaml:3: vehicles[0].shape.points[1]: [90, 0] has 2 numbers, points[0] has 3",
        ),
    ],
)
def test_errors_name_the_key(vehicle, message):
    with pytest.raises(ConfigError) as error:
        fleet_of(vehicle)
    assert str(error.value) == message
