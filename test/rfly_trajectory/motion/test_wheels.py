# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wheel contact.

Planes and twisted ground are worked out by hand; on a rough map each wheel is computed from the
pose alone, without the fit.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from oracles import in_place_of
from oracles import motion_kernels as oracle
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.fleet_file import parse_fleet
from rfly_trajectory.fleet.limit_check import wheel_gaps
from rfly_trajectory.kernels import motion_kernels
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, FigureEight, Line

BASE = 2.8
TRACK = 1.6


def grid(function, cells=20, step=10.0):
    axis = (np.arange(cells + 1) - cells / 2) * step
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(
        function(x, y),
        origin_x=axis[0],
        origin_y=axis[0],
        step_x=step,
        step_y=step,
    )


def car(path, speed=8.0, **keys):
    at_end = "repeat" if path.closed else "stop"
    return Vehicle(
        "car",
        1,
        3,
        path,
        SpeedProfile(speed),
        at_end,
        wheelbase=BASE,
        track=TRACK,
        **keys,
    )


def wheels(position, orientation):
    """Return (…, 4, 3) wheels: half the wheelbase along x_body, half the track along y_body."""
    corners = np.array([[s * BASE / 2, t * TRACK / 2, 0.0] for s in (1, -1) for t in (1, -1)])
    turned = np.stack(
        [Rotation.from_quat(orientation.reshape(-1, 4)).apply(corner) for corner in corners],
        axis=1,
    )
    return position.reshape(-1, 1, 3) + turned


def gaps(terrain, motion):
    at = wheels(motion.position, motion.orientation)
    return at[..., 2] - terrain.altitude(at[..., 0].ravel(), at[..., 1].ravel()).reshape(
        at.shape[:2]
    )


@pytest.mark.parametrize("heading_deg", [0.0, 37.0, 90.0, 200.0])
def test_on_a_plane_the_body_lies_in_it(heading_deg):
    """The body's z is the plane's normal, the origin is in the plane, and all four wheels touch."""
    terrain = grid(lambda x, y: 0.1 * x - 0.25 * y + 3.0)
    c = math.cos(math.radians(heading_deg))
    s = math.sin(math.radians(heading_deg))
    motion = Fleet([car(Line((-40 * c, -40 * s), (40 * c, 40 * s)).path())], terrain).sample_times(
        [0.0, 3.0]
    )
    np.testing.assert_allclose(gaps(terrain, motion), 0.0, atol=2e-6)

    up = Rotation.from_quat(motion.orientation[:, 0]).apply([0.0, 0.0, 1.0])
    expected = [np.array([-0.1, 0.25, 1.0]) / math.sqrt(1.0725)] * 2
    np.testing.assert_allclose(up, expected, atol=1e-6)

    x, y, z = motion.position[:, 0].T
    np.testing.assert_allclose(z, 0.1 * x - 0.25 * y + 3.0, atol=1e-5)

    climb = 8.0 * (0.1 * c - 0.25 * s)
    expected = [[8 * c, 8 * s, climb]] * 2
    np.testing.assert_allclose(motion.velocity[:, 0], expected, atol=1e-5)


def test_twisted_ground_by_hand():
    """Two wheels touch on twisted ground z = 0.01·x·y, two are 22.4 mm in the air.

    The way leads eastwards through the origin: the wheels' heights are ±0.01·1.4·0.8 = ±11.2 mm,
    and the plane is level and raised by 11.2 mm.
    """
    terrain = grid(lambda x, y: 0.01 * x * y, cells=2, step=50.0)
    fleet = Fleet([car(Line((-40.0, 0.0), (40.0, 0.0)).path())], terrain)
    t = np.array([5.0])  # in the middle of the map
    motion = fleet.sample_times(t)
    np.testing.assert_allclose(motion.position[0, 0], [0.0, 0.0, 0.0112], atol=1e-6)
    np.testing.assert_allclose(np.sort(gaps(terrain, motion)[0]), [0, 0, 0.0224, 0.0224], atol=1e-5)
    assert fleet.max_wheel_gap(0, 8.0 * t)[0] == pytest.approx(0.0224, abs=1e-5)


def least_gap(h, middle):
    """Return (k,) the least possible gap of the highest wheel if no wheel is below ground.

    Heights h (k, 4) under the wheels differ from their best plane by ±c, alternating. A plane
    through no wheel's ground lifts two of them by at least 2c; one that is raised by r at the
    origin, to clear `middle` (k,), lifts all by r ± c.
    """
    twist = np.abs(h @ [1, -1, -1, 1]) / 4
    return np.maximum(2 * twist, middle - h.mean(axis=1) + twist)


def test_the_least_gap_is_that_of_linear_programming():
    """The least gap is that of linear programming.

    It finds the plane z = a + b x + c y, nowhere below the ground, with the lowest highest wheel.
    """
    rng = np.random.default_rng(3)
    x = BASE / 2 * np.array([1, 1, -1, -1])
    y = TRACK / 2 * np.array([1, -1, 1, -1])
    for _ in range(20):
        h = rng.uniform(-0.1, 0.1, 4)
        middle = rng.uniform(-0.1, 0.1)
        plane = np.column_stack([np.ones(4), x, y])
        above = np.column_stack([np.vstack([-plane, [-1, 0, 0]]), np.zeros(5)])
        below = np.column_stack([plane, -np.ones(4)])
        limits = np.concatenate([-h, [-middle], h])
        best = linprog(
            [0, 0, 0, 1], np.vstack([above, below]), limits, bounds=[(None, None)] * 4
        ).fun
        assert least_gap(h[None], np.array([middle]))[0] == pytest.approx(best, abs=1e-9)


def rough(cells, step, amplitude, seed=5):
    """Return a map of independent heights, rougher than any terrain."""
    rng = np.random.default_rng(seed)
    return grid(
        lambda x, y: rng.uniform(-amplitude, amplitude, x.shape) + 0.1 * x,
        cells=cells,
        step=step,
    )


@pytest.mark.parametrize(
    ("step", "amplitude", "height"),
    [
        (5.0, 0.25, 0.3),
        (5.0, 1.0, 0.5),
        (1.0, 0.05, 0.2),
        (1.0, 0.2, 0.5),
        (30.0, 5.0, 0.4),
        (10.0, 1.0, 0.0),
    ],
)
def test_on_a_rough_map_all_wheels_touch_where_they_can(step, amplitude, height):
    """No wheel is below ground, and none more than a millimetre higher than the best plane allows.

    Places are a tenth of a cell apart; wheels follow from the poses alone. So all are within 2 cm
    where the ground allows it; elsewhere the rest is reported.
    """
    terrain = rough(60, step, amplitude)
    fleet = Fleet(
        [car(FigureEight((0.0, 0.0), 40 * step, 20 * step).path(), height=height)],
        terrain,
    )

    times = np.arange(0.0, fleet.vehicles[0].path.length, step / 10) / 8.0
    motion = fleet.sample_times(times)

    # the origin is `height` above the wheels' plane, and these points are, too
    gap = gaps(terrain, motion) - height
    assert gap.min() >= -1e-9

    # the best plane that the ground allows
    at = wheels(motion.position, motion.orientation)
    h = terrain.altitude(at[..., 0].ravel(), at[..., 1].ravel()).reshape(-1, 4)
    middle = terrain.altitude(*motion.position[:, 0, :2].T.copy())
    best = least_gap(h, middle - height)
    assert (gap.max(axis=1) - best).max() < 1e-3

    allowed = best <= 0.019
    assert 0.1 < allowed.mean() < 0.95
    assert gap[allowed].max() <= 0.02

    np.testing.assert_allclose(fleet.max_wheel_gap(0, 8.0 * times), gap.max(axis=1), atol=1e-5)
    assert (motion.position[:, 0, 2] - middle).min() >= -1e-9


def test_what_can_not_touch_is_told_by_vehicle_and_place():
    """Wheels that cannot touch are reported with vehicle and place.

    A car crosses a ridge at x = 0, falling by 0.2 to both sides, that would be above its origin:
    0.28 m there.
    """
    terrain = grid(lambda x, y: -0.2 * np.abs(x) + 0.0 * y)
    over = Line((-40.0, 7.0), (40.0, 7.0)).path()
    plain = Vehicle("plain", 2, 3, over, SpeedProfile(8.0), "stop")
    beside = dataclasses.replace(car(Line((-40.0, 0.0), (-20.0, 0.0)).path()), name="beside", id=3)
    crossing, none, touching = wheel_gaps(Fleet([car(over), plain, beside], terrain))
    assert none is None
    assert crossing.gap == pytest.approx(0.28, abs=0.01)
    assert (crossing.x, crossing.y) == (pytest.approx(0.0, abs=0.5), 7.0)
    assert crossing.share == pytest.approx(2 * 1.4 / 80, abs=0.02)
    assert touching.gap == pytest.approx(0.0, abs=1e-6)


def test_the_origin_is_never_below_a_crest():
    """The origin is never below a crest.

    A ridge with slopes of 0.2 on both sides is crossed at right angles: the axles 1.4 m before and
    behind it would stand lower than the crest between them.
    """
    terrain = grid(lambda x, y: -0.2 * np.abs(x) + 0.0 * y)
    fleet = Fleet([car(Line((-40.0, 0.0), (40.0, 0.0)).path())], terrain)
    motion = fleet.sample_times([5.0])
    np.testing.assert_allclose(motion.position[0, 0], [0, 0, 0], atol=1e-6)
    assert fleet.max_wheel_gap(0, np.array([40.0]))[0] == pytest.approx(0.28, abs=1e-5)


@pytest.mark.parametrize(
    "path", [Circle((3.0, 4.0), 30.0).path(), Line((-40.0, -30.0), (40.0, 35.0)).path()]
)
def test_rates_are_derivatives(path):
    """Rates inside of one cell of twisted and sloping ground are central differences."""
    terrain = grid(lambda x, y: 0.004 * (x + 60) * (y + 80) - 0.2 * x, cells=1, step=200.0)
    fleet = Fleet([car(path, height=0.5)], terrain)
    h = 1e-3
    t = np.array([1.0, 3.3, 7.9])
    before, at, after = (fleet.sample_times(t + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.position - before.position) / (2 * h), at.velocity, atol=2e-3)
    turn = [Rotation.from_quat(each.orientation[:, 0]) for each in (before, after)]
    rates = (turn[0].inv() * turn[1]).as_rotvec() / (2 * h)
    np.testing.assert_allclose(rates, at.angular_velocity[:, 0], atol=2e-3)


def test_vehicles_without_wheels_are_as_before():
    terrain = grid(lambda x, y: 0.5 * np.sin(x / 9) * np.cos(y / 7), cells=60, step=5.0)
    plain = Vehicle("b", 2, 3, Circle((0.0, 0.0), 50.0).path(), SpeedProfile(8.0), "repeat")
    both = Fleet([car(Circle((0.0, 0.0), 50.0).path()), plain], terrain).sample(3.0)
    alone = Fleet([plain], terrain).sample(3.0)
    np.testing.assert_array_equal(both.position[1], alone.position[0])
    np.testing.assert_array_equal(both.orientation[1], alone.orientation[0])
    assert np.abs(both.orientation[0] - alone.orientation[0]).max() > 1e-4


VEHICLE = (
    "version: 1\nvehicles:\n  - id: 1\n    type: 3\n    speed: 1\n"
    "    shape: {type: line, from: [0, 0], to: [9, 0]}\n"
)


def test_a_fleet_file_gives_wheels():
    (vehicle,) = parse_fleet(
        (VEHICLE + "    wheelbase: 2.8\n    track: 1.6\n").encode(), "f.yaml"
    ).vehicles
    assert (vehicle.wheelbase, vehicle.track) == (2.8, 1.6)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "    wheelbase: 2.8\n",
            r"f.yaml:7: vehicles\[0\].wheelbase: needs the key track too",
        ),
        (
            "    track: 2.8\n",
            r"f.yaml:7: vehicles\[0\].track: needs the key wheelbase too",
        ),
        ("    track: 0\n", r"f.yaml:7: vehicles\[0\].track: 0, allowed: 0.001 … 1000"),
        (
            "    wheelbase: 2\n    track: 1\n    kind: multirotor\n    altitude: {agl: 3}\n",
            r"f.yaml:7: vehicles\[0\].wheelbase: is for ground vehicles, not for a multirotor",
        ),
    ],
)
def test_errors_name_the_key(keys, message):
    with pytest.raises(ConfigError, match=message):
        parse_fleet((VEHICLE + keys).encode(), "f.yaml")


def test_the_oracle_gives_the_same_as_the_kernels():
    rng = np.random.default_rng(8)
    terrain = grid(lambda x, y: rng.uniform(-1.0, 1.0, x.shape), cells=60, step=5.0)
    path = FigureEight((0.0, 0.0), 220.0, 110.0).path()

    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            3,
            path,
            SpeedProfile(8.0),
            "repeat",
            phase=9.0 * i,
            wheelbase=base,
            track=track,
        )
        for i, (base, track) in enumerate(rng.uniform(0.5, 6.0, (40, 2)).tolist())
    ]

    compiled = Fleet(vehicles, terrain).sample_times(np.arange(20.0))
    with in_place_of(motion_kernels, oracle):
        expected = Fleet(vehicles, terrain).sample_times(np.arange(20.0))

    for name in expected._fields:
        np.testing.assert_allclose(
            getattr(compiled, name), getattr(expected, name), rtol=1e-9, atol=1e-9
        )
