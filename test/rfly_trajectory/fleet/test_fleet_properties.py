# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Properties of every fleet.

No vehicle is below the ground, no state jumps, headings follow velocities, and rates are
derivatives.
"""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rfly_common.frames import quat_conjugate, quat_multiply, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.dubins import Dubins
from rfly_trajectory.paths.shapes import (
    Circle,
    Ellipse,
    FigureEight,
    LawnMower,
    Line,
    Polyline,
    Spline,
)

HALF = 300.0
"""Half the side of the maps, m."""
WAY = [
    (-150, -100),
    (120, -140),
    (180, 60),
    (-20, 150),
    (-170, 40),
]
CLIMB = [(x, y, 12.0 * abs(i - 2)) for i, (x, y) in enumerate(WAY)]
SMOOTH = [
    Line((-200, -100), (180, 90)).path(),
    Circle((10, -20), 90.0, 30.0).path(),
    Circle((10, -20), 70.0, 0.0, clockwise=True).path(),
    Ellipse((0, 0), 300.0, 160.0, 20.0).path(),
    FigureEight((0, 0), 380.0, 190.0, 10.0).path(),
    LawnMower((0, 0), 200.0, 150.0, 75.0, 40.0).path(),
    Spline(WAY).path(),
    Spline(WAY, closed=True).path(),
    Polyline(WAY, 25.0).path(),
    Polyline(WAY, 25.0, closed=True).path(),
]
CLIMBING = [Spline(CLIMB).path(), Polyline(CLIMB, 25.0, closed=True).path()]
STEPPED = [
    Dubins([(*p, 80.0 * i) for i, p in enumerate(WAY)], 25.0, closed).path()
    for closed in (False, True)
]
"""Paths whose curvature has steps, and with it yaw rates and banks."""

rate = st.floats(0.3, 4.0)
profiles = st.one_of(
    st.builds(SpeedProfile, st.floats(0.5, 20.0)),
    st.builds(SpeedProfile, st.floats(0.5, 20.0), rate, rate),
    st.builds(SpeedProfile, st.floats(0.5, 20.0), rate, rate, rate),
)
s_curves = st.builds(SpeedProfile, st.floats(0.5, 20.0), rate, rate, rate)


@st.composite
def vehicles(draw, paths=(*SMOOTH, *CLIMBING, *STEPPED), profile=profiles, wheels=True):
    path = draw(st.sampled_from(list(paths)))
    climbs = path.altitude is not None
    kind = draw(st.sampled_from(["multirotor", "fixed_wing"] + ["ground"] * (not climbs)))
    ends = ["stop"] + ["repeat"] * path.closed + ["ping_pong"] * (kind != "fixed_wing")
    absolute = kind != "ground" and not climbs and draw(st.booleans())
    on_wheels = wheels and kind == "ground" and draw(st.booleans())

    return Vehicle(
        "v",
        1,
        3,
        path,
        draw(profile),
        draw(st.sampled_from(ends)),
        kind,
        delay=draw(st.floats(0.0, 5.0)),
        phase=draw(st.floats(0.0, 1.0)) * path.length,
        shift=draw(st.tuples(st.floats(-40, 40), st.floats(-40, 40))),
        height=0.0 if climbs else draw(st.floats(0.0, 30.0)),
        absolute=absolute,
        offset=draw(st.sampled_from([(0.0, 0.0), (-8.0, 5.0), (6.0, -9.0)])),
        wheelbase=2.7 if on_wheels else None,
        track=1.6 if on_wheels else None,
    )


def rough(seed, amplitude, step=10.0):
    """Return a map of independent heights on a slope."""
    cells = round(2 * HALF / step)
    rows = np.random.default_rng(seed).uniform(-amplitude, amplitude, (cells + 1, cells + 1))
    slope = np.linspace(-0.1, 0.1, cells + 1)[:, None] * HALF
    return HeightMap(rows + slope, origin_x=-HALF, origin_y=-HALF, step_x=step, step_y=step)


def plane(a, b):
    axis = np.array([-HALF, HALF])
    x, y = np.meshgrid(axis, axis, indexing="ij")
    return HeightMap(
        a * x + b * y, origin_x=-HALF, origin_y=-HALF, step_x=2 * HALF, step_y=2 * HALF
    )


common = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@common
@given(
    vehicle=vehicles(),
    seed=st.integers(0, 99),
    amplitude=st.floats(0.0, 4.0),
    begin=st.floats(-2.0, 200.0),
)
def test_nobody_is_below_the_ground_and_all_is_finite(vehicle, seed, amplitude, begin):
    terrain = rough(seed, amplitude)
    moved = Fleet([vehicle], terrain).sample_times(begin + np.linspace(0.0, 40.0, 400))
    x, y, z = moved.position[:, 0].T
    assert np.all(z >= terrain.altitude(x.copy(), y.copy()) - 1e-9)
    assert all(np.isfinite(field).all() for field in moved)
    np.testing.assert_allclose(np.linalg.norm(moved.orientation, axis=-1), 1.0, atol=1e-12)


@common
@given(vehicle=vehicles(), seed=st.integers(0, 99), begin=st.floats(-2.0, 200.0))
def test_no_position_jumps(vehicle, seed, begin):
    """No step over ground is longer than the speed allows.

    The steepest cell bounds the steps up and down.
    """
    terrain = rough(seed, 2.0)
    dt = 0.01
    moved = Fleet([vehicle], terrain).sample_times(begin + np.arange(0.0, 15.0, dt))
    step = np.abs(np.diff(moved.position[:, 0], axis=0))
    speed = np.abs(moved.speed[:, 0])
    # Where a speed is there at once, or a bend begins, the higher one of two neighbours counts.
    allowed = np.maximum(speed[1:], speed[:-1]) * dt * 1.02 + 5.0 * dt * dt + 1e-9
    assert np.all(np.hypot(step[:, 0], step[:, 1]) <= allowed)
    steepest = 2.0 * np.hypot(0.4 + 0.1, 0.4) + (1.0 if vehicle.path.altitude is not None else 0.0)
    # wheels that come around while the body stands raise it too
    turning = 3.0 * dt if vehicle.wheelbase else 0.0
    assert np.all(step[:, 2] <= steepest * (allowed + turning) + 1e-9)


@common
@given(vehicle=vehicles(SMOOTH + CLIMBING, s_curves), begin=st.floats(-2.0, 100.0))
def test_velocities_and_attitudes_do_not_jump(vehicle, begin):
    """Velocities and attitudes do not jump on level ground.

    Paths have continuous curvature, profiles are S-curves. The change of velocity is an
    acceleration, bounded along and across, times the time; the attitude changes by its rate times
    the time.
    """
    dt = 1e-3
    moved = Fleet([vehicle]).sample_times(begin + np.arange(0.0, 4.0, dt))
    velocity = moved.velocity[:, 0]
    q = moved.orientation[:, 0]

    # the accelerations that paths and profile allow
    bend = max(abs(each.curvature) for each in vehicle.path.curvature_range)
    bend /= 1.0 - min(0.6, bend * 9.0)  # in a formation the way inside of a turn is tighter
    fastest = np.abs(moved.speed).max()
    along = max(vehicle.profile.acceleration, vehicle.profile.deceleration) * 1.6
    sideways = fastest**2 * bend
    shear = 9.0 * fastest**2 * 0.05  # a member's speed changes with the path's curvature
    climb = 1.5 * (along + fastest**2 * 0.1) if vehicle.path.altitude is not None else 0.0

    assert (
        np.linalg.norm(np.diff(velocity, axis=0), axis=1).max()
        <= (along + sideways + shear + climb) * dt + 1e-9
    )

    # the attitude turns at its rate
    turned = 2.0 * np.linalg.norm(quat_multiply(quat_conjugate(q[:-1]), q[1:])[:, :3], axis=1)
    fast = np.linalg.norm(moved.angular_velocity[:, 0], axis=1)
    # multirotors in formation lean at once where a clothoid begins
    if not (vehicle.kind == "multirotor" and any(vehicle.offset)):
        assert np.all(turned <= np.maximum(fast[1:], fast[:-1]) * dt * 1.1 + 1e-4)


@common
@given(
    vehicle=vehicles(),
    a=st.floats(-0.4, 0.4),
    b=st.floats(-0.4, 0.4),
    times=st.lists(st.floats(0, 300), min_size=1),
)
def test_heading_follows_velocity(vehicle, a, b, times):
    """The nose points where the vehicle goes, seen from above.

    On the way back of a ping-pong it points where the vehicle comes from.
    """
    moved = Fleet([vehicle], plane(a, b)).sample_times(times)
    nose = quat_rotate(moved.orientation[:, 0], np.array([1.0, 0.0, 0.0]))[:, :2]
    velocity = moved.velocity[:, 0, :2]
    speed = moved.speed[:, 0]
    if vehicle.at_end != "ping_pong":
        assert (speed >= 0.0).all()
    np.testing.assert_allclose(np.hypot(*velocity.T), np.abs(speed), atol=1e-9)
    cross = nose[:, 0] * velocity[:, 1] - nose[:, 1] * velocity[:, 0]
    assert np.abs(cross).max() <= 1e-7 * (1.0 + np.abs(speed).max())
    assert np.all((nose * velocity).sum(1) * speed >= 0.0)


@common
@given(
    vehicle=vehicles([*SMOOTH, *CLIMBING, *STEPPED], wheels=False),
    a=st.floats(-0.3, 0.3),
    b=st.floats(-0.3, 0.3),
    begin=st.floats(0.0, 150.0),
)
def test_rates_are_central_differences(vehicle, a, b, begin):
    """Rates are central differences on an even slope.

    Two times may differ: rates have steps where pieces of path, speed or altitude meet, or where a
    climbing way meets the ground.
    """
    h = 1e-5
    fleet = Fleet([vehicle], plane(a, b))
    t = begin + np.linspace(0.0, 20.0, 60)
    before, at, after = (fleet.sample_times(t + d) for d in (-h, 0.0, h))
    velocity = (after.position - before.position)[:, 0] / (2 * h)
    turn = quat_multiply(quat_conjugate(before.orientation), after.orientation)[:, 0]
    rates = 2.0 * np.where(turn[:, 3:] < 0, -turn[:, :3], turn[:, :3]) / (2 * h)
    wrong = np.abs(velocity - at.velocity[:, 0]).max(1) > 1e-5
    wrong |= np.abs(rates - at.angular_velocity[:, 0]).max(1) > 2e-4
    assert np.count_nonzero(wrong) <= 2
