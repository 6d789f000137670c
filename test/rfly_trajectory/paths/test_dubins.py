# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dubins paths: lengths by hand and ends by integration in the complex plane.

A slow search over all first turns finds the same lengths.
"""

from __future__ import annotations

import cmath
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet_file import parse_fleet
from rfly_trajectory.paths.dubins import Dubins, dubins_path

R = 5.0
QUARTER = R * math.pi / 2
TURN = {"L": 1.0, "S": 0.0, "R": -1.0}


def driven(start, word, segments, radius):
    """Return the end of a word, with complex numbers.

    Each letter is a turn by φ about the centre i·r at the vehicle's side, or straight on.
    """
    z = complex(*start[:2])
    heading = start[2]
    for letter, way in zip(word, segments, strict=True):
        ahead = cmath.exp(1j * heading)
        if letter == "S":
            z += way * ahead
        else:
            center = z + 1j * TURN[letter] * radius * ahead
            turned = TURN[letter] * way / radius
            z = center + (z - center) * cmath.exp(1j * turned)
            heading += turned
    return z.real, z.imag, heading


@pytest.mark.parametrize(
    ("end", "name", "segments"),
    [
        pytest.param((10, 0, 0), "LSL", (0, 10, 0), id="straight"),
        pytest.param((0, 22, math.pi), "LSL", (QUARTER, 12, QUARTER), id="left and left"),
        pytest.param((0, -22, math.pi), "RSR", (QUARTER, 12, QUARTER), id="right and right"),
        pytest.param((10, 17, 0), "LSR", (QUARTER, 7, QUARTER), id="left and right"),
        pytest.param((10, -17, 0), "RSL", (QUARTER, 7, QUARTER), id="right and left"),
        pytest.param((5, 5, math.pi / 2), "LSL", (QUARTER, 0, 0), id="one quarter"),
        pytest.param(
            (0, 0, math.pi),
            "LRL",
            (
                R * math.pi / 3,
                R * 5 * math.pi / 3,
                R * math.pi / 3,
            ),
            id="about face",
        ),
        pytest.param((0, 0, 4 * math.pi), "LSL", (0, 0, 0), id="nowhere"),
    ],
)
def test_ways_by_hand(end, name, segments):
    way = dubins_path((0.0, 0.0, 0.0), end, R)
    assert way.name == name
    np.testing.assert_allclose(way.segments, segments, atol=1e-9)
    assert way.length == pytest.approx(sum(segments), abs=1e-9)


@pytest.mark.parametrize(("word", "angles"), [("LRL", (30, 290, 40)), ("RLR", (40, 290, 30))])
def test_three_turns_that_were_driven_are_found(word, angles):
    """The end of a word of three turns gives the same word again."""
    segments = np.radians(angles) * R
    way = dubins_path((3.0, -2.0, 0.7), driven((3.0, -2.0, 0.7), word, segments, R), R)
    assert way.name == word
    np.testing.assert_allclose(way.segments, segments, rtol=1e-12)


def slow_length(start, end, r, steps=400):
    """Return the shortest length of all ways turn – straight or counter-turn – turn.

    The angle of the first turn is searched.
    """
    goal = complex(*end[:2])
    best = math.inf
    angles = np.linspace(0.0, 2 * math.pi, steps)
    for first, last in itertools.product((1.0, -1.0), repeat=2):
        center = goal + 1j * last * r * cmath.exp(1j * end[2])

        def after(t, first=first):
            x, y, heading = driven(start, "L" if first > 0 else "R", [t * r], r)
            return complex(x, y), cmath.exp(1j * heading)

        def off_straight(t, center=center, last=last, after=after):
            """Return the distance between the line ahead and the last circle."""
            z, ahead = after(t)
            return ((center - z) / ahead).imag - last * r

        def off_circle(t, center=center, first=first, after=after):
            """Return the gap between a circle to the other side and the last one."""
            z, ahead = after(t)
            return abs(z - 1j * first * r * ahead - center) - 2 * r

        for off in (off_straight, *([off_circle] if first == last else [])):
            values = [off(t) for t in angles]
            for i in range(steps - 1):
                if values[i] * values[i + 1] > 0.0:
                    continue
                t = brentq(off, angles[i], angles[i + 1], xtol=1e-14)
                z, ahead = after(t)
                if off is off_straight:
                    p = ((center - z) / ahead).real
                    heading = cmath.phase(ahead)
                    if p < -1e-9:
                        continue
                else:
                    middle = z - 1j * first * r * ahead
                    touch = (center - middle) / abs(center - middle) * r
                    turned = (-first * cmath.phase(touch / (z - middle))) % (2 * math.pi)
                    p = turned * r
                    heading = cmath.phase(ahead) - first * turned
                q = (last * (end[2] - heading)) % (2 * math.pi)
                q = 0.0 if q > 2 * math.pi - 1e-7 else q
                best = min(best, t * r + p + q * r)
    return best


def test_no_way_is_shorter():
    """A search over all first turns, without a closed form, finds no shorter way."""
    rng = np.random.default_rng(2)
    starts, ends = (
        np.column_stack([rng.uniform(-9, 9, (25, 2)), rng.uniform(-4, 4, 25)]) for _ in range(2)
    )
    ways = dubins_path(starts, ends, 2.5)
    slow = [slow_length(a, b, 2.5) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    np.testing.assert_allclose(ways.length, slow, rtol=1e-6)
    assert len(set(ways.word.tolist())) >= 5


def test_ends_on_one_circle_or_line_need_no_turn_more():
    """An end on the start's own circle, or straight ahead, needs no further turn.

    It is as far away as that arc or line is long.
    """
    rng = np.random.default_rng(6)
    starts = np.column_stack([rng.uniform(-20, 20, (200, 2)), rng.uniform(-4, 4, 200)])
    ways = rng.uniform(0.01, 0.99, 200) * 2 * math.pi * R
    for letter in "LSR":
        ends = [
            driven(start, letter, [way], R)
            for start, way in zip(starts.tolist(), ways.tolist(), strict=True)
        ]
        slack = 1e-6 * R  # a rounded end is off the circle by so little
        assert (dubins_path(starts, ends, R).length <= ways + slack).all()


pose = st.tuples(
    st.floats(-100, 100),
    st.floats(-100, 100),
    st.floats(-10, 10),
)


@given(start=pose, end=pose, radius=st.floats(0.5, 60.0))
@settings(deadline=None)
def test_the_way_ends_at_the_pose(start, end, radius):
    way = dubins_path(start, end, radius)
    assert (way.segments >= 0.0).all()
    x, y, heading = driven(start, way.name, way.segments, radius)
    assert math.hypot(x - end[0], y - end[1]) < 1e-6
    assert abs(math.remainder(heading - end[2], 2 * math.pi)) < 1e-7


def test_many_ends_at_once_and_places_along_the_ways():
    rng = np.random.default_rng(4)
    ends = np.column_stack(
        [rng.uniform(-30, 30, (2, 40, 2)).reshape(-1, 2), rng.uniform(-4, 4, 80)]
    ).reshape(2, 40, 3)

    # all at once, and one alone
    ways = dubins_path((1.0, 2.0, 3.0), ends, R)
    assert ways.length.shape == (2, 40)
    one = dubins_path((1.0, 2.0, 3.0), ends[1, 7], R)
    assert one.length == ways.length[1, 7]

    # places before, along and behind the ways
    at = ways.at(ways.length[..., None] * [-1.0, 0.0, 0.3, 1.0, 2.0])
    assert at.shape == (2, 40, 5, 3)
    expected = np.broadcast_to([1.0, 2.0, 3.0], (2, 40, 2, 3))
    np.testing.assert_allclose(at[..., :2, :], expected)
    expected = np.stack([ends, ends], 2)[..., :2]
    np.testing.assert_allclose(at[..., 3:, :2], expected, atol=1e-9)

    part = 0.3 * one.length
    segments = []
    for way in one.segments:
        segments.append(min(way, part))
        part -= segments[-1]

    np.testing.assert_allclose(
        at[1, 7, 2], driven((1.0, 2.0, 3.0), one.name, segments, R), atol=1e-9
    )


class TestShape:
    POSES = (
        (0.0, 0.0, 0.0),
        (100.0, 20.0, 90.0),
        (60.0, 80.0, 180.0),
        (60.0, 80.0, 0.0),
    )

    @pytest.mark.parametrize("closed", [False, True])
    def test_it_goes_through_all_poses_and_turns_no_tighter(self, closed):
        path = Dubins(self.POSES, 12.0, closed).path()
        ends = [*self.POSES[1:], self.POSES[0]][: 4 if closed else 3]
        radians = [(x, y, math.radians(deg)) for x, y, deg in (*self.POSES, self.POSES[0])]
        lengths = [float(dubins_path(a, b, 12.0).length) for a, b in itertools.pairwise(radians)][
            : len(ends)
        ]

        assert path.closed == closed
        assert path.length == pytest.approx(sum(lengths), rel=1e-12)

        # it passes each pose
        s = np.cumsum(lengths) - 1e-9
        at = path.at(np.append(0.0, s))
        np.testing.assert_allclose(
            at.position, [self.POSES[0][:2], *(end[:2] for end in ends)], atol=1e-7
        )
        headings = np.radians([self.POSES[0][2], *(end[2] for end in ends)])
        expected = np.stack([np.cos(headings), np.sin(headings)], -1)
        np.testing.assert_allclose(at.tangent, expected, atol=1e-7)

        curvature = path.at(np.linspace(0.0, path.length, 500)).curvature
        assert set(np.round(curvature * 12.0, 12)) == {-1.0, 0.0, 1.0}

    def test_nothing_jumps_and_tangents_are_derivatives(self):
        path = Dubins(self.POSES, 12.0, True).path()
        joints = np.append(path.start[1:], path.length)
        before = path.at(joints - 1e-9)
        after = path.at(joints + 1e-9)
        np.testing.assert_allclose(before.position, after.position, atol=1e-8)
        np.testing.assert_allclose(before.tangent, after.tangent, atol=1e-8)
        s = np.linspace(0.1, path.length - 0.1, 300)
        h = 1e-4
        slope = (path.at(s + h).position - path.at(s - h).position) / (2 * h)
        np.testing.assert_allclose(slope, path.at(s).tangent, atol=h / 12.0)

    def test_a_fleet_file_names_it(self):
        shape = "{type: dubins, poses: [[0, 0, 0], [10, 17, 0]], turning_radius: 5}"
        text = f"version: 1\nvehicles:\n  - {{id: 1, type: 3, speed: 2, shape: {shape}}}\n"
        path = parse_fleet(text.encode(), "f.yaml").vehicles[0].path
        assert path.length == pytest.approx(2 * QUARTER + 7)
        assert not path.closed

    @pytest.mark.parametrize(
        ("poses", "radius", "text"),
        [
            ([(0, 0, 0)], 1.0, "poses: 1 are too few"),
            ([(0, 0, 0), (5, 5)], 1.0, r"poses\[1\]: \[5, 5\] has 2 numbers, poses\[0\] has 3"),
            (
                [(0, 0, 0), (5, 5, math.nan)],
                1.0,
                r"poses\[1\]: \[5, 5, nan\], expected 3 finite numbers or, with a h",
            ),
            (
                [
                    (0, 0, 0),
                    (5, 5, 10),
                    (5, 5, 370),
                ],
                1.0,
                r"poses\[2\]: the same pose as poses\[1\]",
            ),
            (
                [(0, 0, 0), (5, 5, 0)],
                0.0,
                r"turning_radius: 0.0 m, expected a finite number above 0",
            ),
            ([(i, 0, 0) for i in range(2001)], 1.0, "poses: got 2001, at most 2000 are allowed"),
        ],
    )
    def test_what_makes_no_path_is_refused(self, poses, radius, text):
        with pytest.raises(ConfigError, match=text):
            Dubins(poses, radius).path()

    def test_poses_that_are_not_finite_are_refused(self):
        with pytest.raises(ConfigError, match="end: expected finite poses"):
            dubins_path((0, 0, 0), (0, math.inf, 0), 1.0)
