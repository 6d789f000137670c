# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Formations: offsets by hand, places and motion in a turn in closed form.

Derivatives are compared with differences.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.fleet_file import parse_fleet
from rfly_trajectory.motion.formation import formation_offsets
from rfly_trajectory.motion.speed_profile import SpeedProfile
from rfly_trajectory.paths.shapes import Circle, FigureEight, Line

LINE = "{type: line, from: [0, 0], to: [0, 100]}"
CIRCLE = "{type: circle, center: [0, 0], radius: 50}"


def fleet_of(*vehicles):
    return parse_fleet(
        "\n".join(["version: 1", "vehicles:", *(f"  - {each}" for each in vehicles)]).encode(),
        "f.yaml",
    )


@pytest.mark.parametrize(
    ("kind", "count", "keys", "expected"),
    [
        (
            "line",
            5,
            {"spacing": 3.0},
            [
                [0, 0],
                [0, 3],
                [0, -3],
                [0, 6],
                [0, -6],
            ],
        ),
        ("column", 3, {"spacing": 4.0}, [[0, 0], [-4, 0], [-8, 0]]),
        (
            "wedge",
            4,
            {"spacing": math.sqrt(8)},
            [
                [0, 0],
                [-2, 2],
                [-2, -2],
                [-4, 4],
            ],
        ),
        ("wedge", 3, {"spacing": 2.0, "angle_deg": 180}, [[0, 0], [0, 2], [0, -2]]),
        (
            "ring",
            4,
            {"radius": 5.0},
            [
                [5, 0],
                [0, 5],
                [-5, 0],
                [0, -5],
            ],
        ),
        (
            "grid",
            5,
            {"spacing": 2.0},
            [
                [0, 2],
                [0, 0],
                [0, -2],
                [-2, 2],
                [-2, 0],
            ],
        ),
        (
            "grid",
            4,
            {"spacing": 2.0, "columns": 2},
            [
                [0, 1],
                [0, -1],
                [-2, 1],
                [-2, -1],
            ],
        ),
        ("custom", 2, {"offsets": [[1, 2], [-3, 4]]}, [[1, 2], [-3, 4]]),
    ],
)
def test_offsets_by_hand(kind, count, keys, expected):
    np.testing.assert_allclose(formation_offsets(kind, count, **keys), expected, atol=1e-14)


@pytest.mark.parametrize("clockwise", [False, True])
def test_a_wedge_in_a_turn_in_closed_form(clockwise):
    """Members drive on circles of their own, an arc of 10 m of the leader's circle behind it."""
    direction = "clockwise" if clockwise else "counter_clockwise"
    shape = f"{{type: circle, center: [0, 0], radius: 50, direction: {direction}}}"
    formation = f"{{type: wedge, spacing: {math.sqrt(200)!r}}}"
    fleet = fleet_of(
        f"{{id: 1, type: 3, count: 3, speed: 5, shape: {shape}, formation: {formation}}}"
    )

    turn = -1.0 if clockwise else 1.0
    for t in (0.0, 7.0, 100.0):
        state = fleet.sample(t)

        # places on circles of their own
        angle = turn * (5 * t + np.array([0.0, -10.0, -10.0])) / 50
        radius = 50 - turn * np.array([0.0, 10.0, -10.0])
        expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)
        np.testing.assert_allclose(state.position[:, :2], expected, atol=1e-9)

        speed = turn * 5 * radius / 50
        expected = np.stack([-speed * np.sin(angle), speed * np.cos(angle)], -1)
        np.testing.assert_allclose(state.velocity[:, :2], expected, atol=1e-5)
        np.testing.assert_allclose(state.angular_velocity[:, 2], turn * 0.1, atol=1e-6)

    # the inner one is slower
    expected = [[5, 4, 6] if not clockwise else [5, 6, 4]]
    np.testing.assert_allclose(fleet.sample_times([3.0]).speed, expected)


def test_the_world_frame_keeps_its_direction():
    formation = "{type: column, spacing: 10, frame: world, heading_deg: 90}"
    fleet = fleet_of(
        f"{{id: 1, type: 3, count: 2, speed: 5, shape: {CIRCLE}, formation: {formation}}}"
    )
    for t in (0.0, 11.0, 30.0):
        state = fleet.sample(t)
        np.testing.assert_allclose(state.position[1] - state.position[0], [0, -10, 0], atol=1e-9)
        np.testing.assert_allclose(state.velocity[1], state.velocity[0], atol=1e-6)


def test_an_open_path_goes_on_straight_at_both_ends():
    formation = "{type: custom, offsets: [[0, 0], [-8, 2], [5, -2]]}"
    fleet = fleet_of(
        f"{{id: 1, type: 3, count: 3, speed: 10, shape: {LINE}, formation: {formation}}}"
    )
    expected = [[0, 0], [-2, -8], [2, 5]]
    np.testing.assert_allclose(fleet.sample(0.0).position[:, :2], expected, atol=1e-12)
    expected = [[0, 100], [-2, 92], [2, 105]]
    np.testing.assert_allclose(fleet.sample(20.0).position[:, :2], expected, atol=1e-12)


def test_delay_spacing_and_formation_add_up():
    """The second copy is 6 m farther east, 3 s of 2 m/s later, and 4 m behind in the column."""
    fleet = fleet_of(
        f"{{id: 1, type: 3, count: 2, delay: 3, spacing: [6, 0], speed: 2, shape: {LINE}, "
        "formation: {type: column, spacing: 4}}"
    )
    np.testing.assert_allclose(fleet.sample(13.0).position[:, :2], [[0, 26], [6, 16]], atol=1e-12)


def test_rates_are_derivatives_on_a_figure_of_eight():
    """Velocity, yaw rate and bank of members are central differences.

    The leader accelerates.
    """
    path = FigureEight((0.0, 0.0), 400.0, 160.0).path()
    vehicles = [
        Vehicle(
            f"v{i}",
            i + 1,
            3,
            path,
            SpeedProfile(30.0, 1.0),
            "repeat",
            "fixed_wing",
            height=50.0,
            absolute=True,
            offset=offset,
        )
        for i, offset in enumerate([(0.0, 0.0), (-12.0, 15.0), (7.0, -20.0)])
    ]
    fleet = Fleet(vehicles)
    h = 1e-4
    t = np.array([2.0, 9.0, 21.0, 55.0])
    before, at, after = (fleet.sample_times(t + d) for d in (-h, 0.0, h))
    velocity = (after.position - before.position) / (2 * h)
    np.testing.assert_allclose(velocity, at.velocity, atol=1e-6)
    acceleration = (after.velocity - before.velocity)[..., :2] / (2 * h)
    speed = np.linalg.norm(at.velocity[..., :2], axis=-1)
    tangent = at.velocity[..., :2] / speed[..., None]
    lateral = tangent[..., 0] * acceleration[..., 1] - tangent[..., 1] * acceleration[..., 0]
    x, y, z, w = np.moveaxis(at.orientation, -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    np.testing.assert_allclose(np.tan(roll), -lateral / 9.80665, atol=1e-5)
    # body rates: q(t)⁻¹ dq/dt = ½ (ω, 0)
    dq = (after.orientation - before.orientation) / (2 * h)
    dx, dy, dz, dw = np.moveaxis(dq, -1, 0)
    rates = 2 * np.stack(
        [
            w * dx - x * dw - y * dz + z * dy,
            w * dy - y * dw - z * dx + x * dz,
            w * dz - z * dw - x * dy + y * dx,
        ],
        -1,
    )
    np.testing.assert_allclose(rates, at.angular_velocity, atol=1e-5)


def test_a_place_beyond_the_centre_of_a_turn_is_refused_with_its_place():
    message = (
        r"f.yaml:3: vehicles\[0\].formation: 'vehicle_2' is 60 m left of the path, which turns to "
        r"that side with a radius of 50 m at x \d"
    )
    with pytest.raises(ConfigError, match=message):
        fleet_of(
            f"{{id: 1, type: 3, count: 2, speed: 1, shape: {CIRCLE}, formation: {{type: line, "
            f"spacing: 60}}}}",
        )

    # the outside of a turn and a line have no such limit
    Vehicle(
        "a",
        1,
        3,
        Circle((0, 0), 50.0).path(),
        SpeedProfile(1.0),
        "repeat",
        offset=(0.0, -60.0),
    )
    Vehicle(
        "a",
        1,
        3,
        Line((0, 0), (9, 0)).path(),
        SpeedProfile(1.0),
        "stop",
        offset=(0.0, 1e6),
    )


@pytest.mark.parametrize(
    ("formation", "message"),
    [
        (
            "{type: arrow}",
            "formation.type: 'arrow', allowed: line, column, wedge, ring, grid, custom",
        ),
        ("{type: line}", "formation: the key spacing is missing"),
        ("{type: ring, radius: 9, spacing: 3}", "formation.spacing: unknown key"),
        (
            "{type: custom, offsets: [[1, 2]]}",
            "formation.offsets: got 1, expected 2, one for each copy",
        ),
        (
            "{type: line, spacing: 3, heading_deg: 30}",
            "formation.heading_deg: only with frame: world",
        ),
    ],
)
def test_errors_name_the_key(formation, message):
    with pytest.raises(ConfigError) as error:
        fleet_of(f"{{id: 1, type: 3, count: 2, speed: 1, shape: {LINE}, formation: {formation}}}")
    assert f"f.yaml:3: vehicles[0].{message}" in str(error.value)
