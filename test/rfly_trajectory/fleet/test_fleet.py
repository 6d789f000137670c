# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets: one call for all vehicles gives the same as a call for each alone.

Compiled kernels and NumPy agree.
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
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.limit_check import check_limits, check_tracks
from rfly_trajectory.kernels import motion_kernels
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, FigureEight, Line, Polyline

PATHS = [
    Line((-100.0, -50.0), (120.0, 60.0)).path(),
    Circle((10.0, 5.0), 80.0, 40.0).path(),
    Circle((-10.0, 5.0), 50.0, 10.0, clockwise=True).path(),
    FigureEight((0.0, 0.0), 300.0, 150.0, 30.0).path(),
    Polyline([(-100, -100), (100, -100), (120, 100)], 20.0).path(),
    Polyline(
        [
            (-100, -100),
            (100, -100),
            (120, 100),
            (-80, 90),
        ],
        20.0,
        closed=True,
    ).path(),
]
KINDS = ["ground", "multirotor", "fixed_wing"]


def ground(cells=40, step=10.0, name="waves"):
    axis = (np.arange(cells + 1) - cells / 2) * step
    x, y = np.meshgrid(axis, axis, indexing="ij")
    heights = 8 * np.sin(x / 31) * np.cos(y / 23) + 0.05 * x
    return HeightMap(
        heights, origin_x=axis[0], origin_y=axis[0], step_x=step, step_y=step, name=name
    )


def mixed_vehicles(count, seed=3):
    rng = np.random.default_rng(seed)
    vehicles = []

    # any path, kind and end that fit each other
    for i in range(count):
        path = PATHS[rng.integers(len(PATHS))]
        kind = KINDS[rng.integers(3)]
        ends = ["stop"] + ["repeat"] * path.closed + ["ping_pong"] * (kind != "fixed_wing")
        vehicles.append(
            Vehicle(
                f"v{i}",
                1000 - i,
                int(rng.integers(1, 200)),
                path,
                SpeedProfile(rng.uniform(0, 20), *rng.uniform(0.5, 3, rng.integers(0, 4)).tolist()),
                ends[rng.integers(len(ends))],
                kind,
                delay=rng.uniform(0, 20),
                phase=rng.uniform(0, path.length),
                shift=tuple(rng.uniform(-20, 20, 2)),
                height=0.0 if kind == "ground" else rng.uniform(1, 50),
                absolute=bool(kind != "ground" and rng.integers(2)),
                scale=(1.0, 1.0, float(rng.uniform(0.5, 2))),
            )
        )

    return vehicles


VEHICLES = mixed_vehicles(120)


def same_states(a, b, tolerance=1e-9):
    for name in ("id", "vehicle_type", "fit_ground"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("position", "orientation", "velocity", "angular_velocity", "scale"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), atol=tolerance, rtol=1e-6, err_msg=name
        )


@pytest.mark.parametrize("t", [-3.0, 0.0, 7.3, 31.0, 1234.5])
def test_a_fleet_is_its_vehicles_one_by_one(t):
    fleet = Fleet(VEHICLES, ground())
    together = fleet.sample(t)
    for i in range(0, len(VEHICLES), 7):
        same_states(together.select(np.array([i])), Fleet([VEHICLES[i]], ground()).sample(t))


def test_many_times_are_single_times():
    fleet = Fleet(VEHICLES, ground())
    times = np.array([0.0, 5.0, 77.7])
    moved = fleet.sample_times(times)
    assert moved.position.shape == (3, len(VEHICLES), 3)
    for row, t in enumerate(times):
        state = fleet.sample(t)
        np.testing.assert_allclose(moved.position[row], state.position, atol=1e-12)
        np.testing.assert_allclose(moved.orientation[row], state.orientation, atol=1e-12)
        np.testing.assert_allclose(moved.velocity[row], state.velocity, atol=1e-5)
        np.testing.assert_allclose(moved.angular_velocity[row], state.angular_velocity, atol=1e-5)


@pytest.mark.parametrize("terrain", [None, ground()], ids=["level", "waves"])
def test_the_oracle_gives_the_same_as_the_kernels(terrain):
    fleet = Fleet(VEHICLES, terrain)
    times = np.random.default_rng(0).uniform(-5.0, 2000.0, 200)
    compiled = fleet.sample_times(times)
    with in_place_of(motion_kernels, oracle):
        expected = fleet.sample_times(times)
    for name in expected._fields:
        np.testing.assert_allclose(
            getattr(compiled, name), getattr(expected, name), rtol=1e-9, atol=1e-9, err_msg=name
        )


@given(
    t=st.floats(0.0, 500.0),
    radius=st.floats(5.0, 200.0),
    speed=st.floats(0.0, 30.0),
    delay=st.floats(0.0, 100.0),
)
@settings(deadline=None)
def test_a_circle_in_closed_form(t, radius, speed, delay):
    path = Circle((5.0, -3.0), radius).path()
    state = Fleet(
        [Vehicle("c", 1, 3, path, SpeedProfile(speed), "repeat", delay=delay, shift=(1.0, 2.0))]
    ).sample(t)
    angle = speed * max(t - delay, 0.0) / radius
    moving = speed if t >= delay else 0.0
    c = math.cos(angle)
    s = math.sin(angle)
    expected = [[6 + radius * c, -1 + radius * s, 0]]
    np.testing.assert_allclose(state.position, expected, atol=1e-8)
    expected = [[-moving * s, moving * c, 0]]
    np.testing.assert_allclose(state.velocity, expected, atol=1e-5)
    expected = [[0, 0, moving / radius]]
    np.testing.assert_allclose(state.angular_velocity, expected, atol=1e-6)


def test_every_state_is_finite_and_every_quaternion_of_unit_norm():
    fleet = Fleet(VEHICLES, ground())
    moved = fleet.sample_times(np.linspace(-1.0, 400.0, 300))
    for name in moved._fields:
        assert np.isfinite(getattr(moved, name)).all(), name
    np.testing.assert_allclose(np.linalg.norm(moved.orientation, axis=-1), 1.0, atol=1e-14)


def test_no_vehicle_jumps():
    """No vehicle goes farther between two instants than its speed allows.

    Ground steps of the cells are included.
    """
    fleet = Fleet(VEHICLES, ground())
    dt = 0.02
    p = fleet.sample_times(np.arange(0.0, 60.0, dt)).position
    step = np.linalg.norm(np.diff(p[..., :2], axis=0), axis=-1)
    limit = np.array([vehicle.profile.cruise for vehicle in VEHICLES]) * dt
    assert np.all(step <= limit * (1 + 1e-9) + 1e-9)


def test_identity_and_order_are_those_of_the_vehicles():
    state = Fleet(VEHICLES, ground()).sample(1.0)
    np.testing.assert_array_equal(state.id, [vehicle.id for vehicle in VEHICLES])
    np.testing.assert_array_equal(
        state.vehicle_type, [vehicle.vehicle_type for vehicle in VEHICLES]
    )
    np.testing.assert_allclose(state.scale, [vehicle.scale for vehicle in VEHICLES], rtol=1e-6)
    assert state.frame_id == "map"


def test_a_new_terrain_leaves_the_old_fleet_alone():
    fleet = Fleet(VEHICLES, ground())
    before = fleet.sample(3.0)
    level = fleet.on_terrain(None)
    assert level.sample(3.0).position[0, 2] != before.position[0, 2]
    same_states(fleet.sample(3.0), before, 0.0)
    np.testing.assert_array_equal(level.sample(3.0).position[:, :2], before.position[:, :2])


def test_a_track_leads_where_the_vehicle_goes():
    terrain = ground()
    fleet = Fleet(VEHICLES, terrain)

    for i in (0, 5, 9):
        track = fleet.track(i)
        path = VEHICLES[i].path
        shift = VEHICLES[i].shift

        # it begins and ends where the vehicle does
        np.testing.assert_allclose(track.position[0, :2], path.at(0.0).position + shift, atol=1e-9)
        np.testing.assert_allclose(
            track.position[-1, :2], path.at(path.length).position + shift, atol=1e-9
        )

        steps = np.linalg.norm(np.diff(track.position[:, :2], axis=0), axis=-1)
        assert steps.max() <= 2.0 + 1e-9
        assert track.orientation.shape == (len(track.position), 4)

        if VEHICLES[i].kind == "ground":
            np.testing.assert_allclose(
                track.position[:, 2], terrain.altitude(*track.position[:, :2].T), atol=1e-12
            )


def test_an_empty_fleet_has_no_states():
    assert len(Fleet([]).sample(1.0)) == 0
    assert Fleet([]).sample_times([0.0, 1.0]).position.shape == (2, 0, 3)


@pytest.mark.parametrize("t", [math.nan, math.inf])
def test_times_that_are_not_finite_are_refused(t):
    with pytest.raises(ValueError, match="finite"):
        Fleet(VEHICLES).sample(t)
    with pytest.raises(ValueError, match="finite"):
        Fleet(VEHICLES).sample_times([0.0, t])


def test_ids_and_names_are_each_vehicles_own():
    path = PATHS[0]
    a, b, c = (
        Vehicle(n, i, 3, path, SpeedProfile(1.0), "stop") for n, i in (("a", 1), ("b", 1), ("a", 2))
    )
    with pytest.raises(ConfigError, match="id: 1 belongs to two vehicles"):
        Fleet([a, b])
    with pytest.raises(ConfigError, match="name: 'a' belongs to two vehicles"):
        Fleet([a, c])


class TestCheckTracks:
    """Tracks on a map that reaches from -200 to 200 m."""

    def test_a_track_on_the_map_gives_no_finding(self):
        vehicle = Vehicle("a", 1, 3, Circle((0, 0), 200.0).path(), SpeedProfile(1.0), "repeat")
        assert check_tracks(Fleet([vehicle], ground())) == []

    def test_a_track_off_the_map_is_named_with_its_place(self):
        """A track of 400 m leaves the map at x = 200 for 100 m."""
        vehicle = Vehicle("far", 1, 3, Line((-100, 0), (300, 0)).path(), SpeedProfile(1.0), "stop")
        (finding,) = check_tracks(Fleet([vehicle], ground()))
        assert finding.vehicle == "far"
        assert float(finding.text.split()[1]) == pytest.approx(100.0, abs=2.5)
        assert "400 m long track are off the map, first at x 20" in finding.text

    def test_a_shift_can_push_a_copy_off(self):
        path = Circle((0, 0), 190.0).path()
        vehicles = [
            Vehicle(f"c{i}", i + 1, 3, path, SpeedProfile(1.0), "repeat", shift=(0.0, 15.0 * i))
            for i in range(2)
        ]
        assert [finding.vehicle for finding in check_tracks(Fleet(vehicles, ground()))] == ["c1"]

    def test_copies_on_one_track_are_reported_once(self):
        path = Circle((0, 0), 250.0).path()
        vehicles = [
            Vehicle(f"c{i}", i + 1, 3, path, SpeedProfile(1.0), "repeat", phase=9.0 * i)
            for i in range(5)
        ]
        assert len(check_tracks(Fleet(vehicles, ground()))) == 1

    def test_an_altitude_below_the_ground_is_named(self):
        terrain = ground()
        vehicle = Vehicle(
            "low",
            1,
            3,
            Circle((0, 0), 100.0).path(),
            SpeedProfile(20.0),
            "repeat",
            "fixed_wing",
            0,
            0,
            (0, 0),
            -2.0,
            True,
        )

        (finding,) = check_tracks(Fleet([vehicle], terrain))
        angle = np.linspace(0, 2 * np.pi, 20000)
        deepest = terrain.altitude(100 * np.cos(angle), 100 * np.sin(angle)).max() + 2

        found = float(finding.text.split("up to ")[1].split(" m below the ground")[0])
        assert found == pytest.approx(deepest, abs=0.05)

    def test_without_a_terrain_only_limits_are_checked(self):
        """Slow vehicles keep every limit, and no ground is there to be below."""
        slow = [dataclasses.replace(vehicle, profile=SpeedProfile(1.0)) for vehicle in VEHICLES]
        assert check_tracks(Fleet(slow)) == []
        assert check_tracks(Fleet(VEHICLES)) == check_limits(Fleet(VEHICLES))


def test_a_fleet_of_its_own_vehicles_is_itself():
    fleet = Fleet(mixed_vehicles(4), ground())
    assert fleet.of(list(fleet.vehicles)) is fleet
    assert [vehicle.name for vehicle in fleet.of(fleet.vehicles[:3]).vehicles] == [
        vehicle.name for vehicle in fleet.vehicles[:3]
    ]
