# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shapes: geometry worked out by hand.

Derivatives are compared with central differences, arc length with quadrature.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import motion_kernels as oracle
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import ellipe, ellipeinc, fresnel

from rfly_common.errors import ConfigError
from rfly_trajectory.paths.curves import fit_path
from rfly_trajectory.paths.dubins import Dubins
from rfly_trajectory.paths.path import curvature_bends, join_paths, path_points, rotation
from rfly_trajectory.paths.shapes import (
    Circle,
    Ellipse,
    FigureEight,
    LawnMower,
    Line,
    Polyline,
    Spline,
)

SHAPES = [
    pytest.param(Line((10.0, -5.0), (40.0, 35.0)), id="line"),
    pytest.param(Circle((100.0, 50.0), 30.0, 20.0), id="circle"),
    pytest.param(Circle((100.0, 50.0), 30.0, -75.0, clockwise=True), id="clockwise circle"),
    pytest.param(FigureEight((-20.0, 30.0), 300.0, 120.0, 25.0), id="figure of eight"),
    pytest.param(Ellipse((-20.0, 30.0), 300.0, 120.0, 25.0), id="ellipse"),
    pytest.param(
        Ellipse((-20.0, 30.0), 100.0, 120.0, -70.0, clockwise=True), id="clockwise ellipse"
    ),
    pytest.param(LawnMower((10.0, -5.0), 200.0, 90.0, 40.0, 30.0), id="lawn mower"),
    pytest.param(
        Spline(
            [
                (0, 0),
                (200, 0),
                (250, 150),
                (100, 60),
                (90, 200),
            ]
        ),
        id="spline",
    ),
    pytest.param(
        Spline(
            [
                (0, 0),
                (200, 0),
                (250, 150),
                (20, 130),
            ],
            closed=True,
        ),
        id="closed spline",
    ),
    pytest.param(
        Polyline(
            [
                (0, 0),
                (200, 0),
                (250, 150),
                (100, 60),
            ],
            15.0,
        ),
        id="polyline",
    ),
    pytest.param(
        Polyline(
            [
                (0, 0),
                (200, 0),
                (250, 150),
                (20, 130),
            ],
            15.0,
            closed=True,
        ),
        id="closed polyline",
    ),
]
coordinate = st.floats(-1e4, 1e4)
size = st.floats(1.0, 1e4)


def test_rotation_by_hand():
    """Looking north, ahead is north and left is west."""
    np.testing.assert_allclose(np.array([[3.0, 1.0]]) @ rotation(90.0), [[-1, 3]], atol=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_tangent_curvature_and_its_rate_are_derivatives(shape):
    """Tangent, curvature and its rate are each the derivative by arc length of the one before.

    Joints of pieces are left out only for the last one.
    """
    path = shape.path()
    h = 1e-4
    s = np.linspace(2 * h, path.length - 2 * h, 997)
    at = path.at(s)
    after = path.at(s + h)
    before = path.at(s - h)
    tangent = (after.position - before.position) / (2 * h)
    np.testing.assert_allclose(tangent, at.tangent, atol=2e-8)
    turn = (after.tangent - before.tangent) / (2 * h)
    left = np.stack([-at.tangent[:, 1], at.tangent[:, 0]], -1)
    np.testing.assert_allclose((turn * left).sum(-1), at.curvature, atol=1e-6)
    rate = (after.curvature - before.curvature) / (2 * h)
    joints = np.min(np.abs(s[:, None] - path.start), axis=1) < h
    np.testing.assert_allclose(rate[~joints], at.curvature_rate[~joints], atol=1e-7)


def test_the_bend_of_the_curvature_is_the_derivative_of_its_rate():
    """The bend is the derivative of the curvature's rate, for two paths; clothoids have none."""
    paths = [
        FigureEight((-20.0, 30.0), 300.0, 120.0, 25.0).path(),
        Polyline([(0, 0), (90, 0), (90, 80)], 15.0).path(),
    ]

    h = 1e-4
    which = np.repeat([0, 1], 400)
    s = np.concatenate([np.linspace(1.0, path.length - 1.0, 400) for path in paths])
    table = join_paths(paths)
    before, after = (path_points(table, which, s + d)[:, 5] for d in (-h, h))

    bends = curvature_bends(table, which, s)
    np.testing.assert_allclose(bends, oracle.curvature_bends(table, which, s), atol=1e-12)

    clear = np.min(np.abs(s[:400, None] - paths[0].start), axis=1) > h
    expected = ((after - before) / (2 * h))[:400][clear]
    np.testing.assert_allclose(bends[:400][clear], expected, atol=1e-8)

    assert np.abs(bends[:400]).max() > 1e-6
    assert not bends[400:].any()


@pytest.mark.parametrize("shape", SHAPES)
def test_tangent_has_unit_length(shape):
    path = shape.path()
    tangent = path.at(np.linspace(0.0, path.length, 500)).tangent
    np.testing.assert_allclose(np.hypot(*tangent.T), 1.0, atol=1e-15)


@pytest.mark.parametrize(
    "shape",
    [
        *SHAPES,
        pytest.param(
            Dubins(
                [
                    (0, 0, 20),
                    (90, 5, 200),
                    (9, 80, 0),
                ],
                9.0,
            ),
            id="dubins",
        ),
    ],
)
def test_arc_length_is_the_length_of_the_curve(shape):
    """The lengths between eleven places are the lengths of the curve.

    Chords are extrapolated from two numbers of them to infinitely many.
    """
    path = shape.path()
    edges = np.linspace(0.0, path.length, 11)
    # chords that span a joint would converge more slowly
    edges = np.unique(np.concatenate([edges, path.start[:40]]))
    lengths = []
    for count in (400, 800):
        s = edges[:-1, None] + np.diff(edges)[:, None] * np.linspace(0.0, 1.0, count + 1)
        lengths.append(
            np.hypot(*np.diff(path.at(s).position, axis=1).transpose(2, 0, 1)).sum(axis=1)
        )
    parts = (4.0 * lengths[1] - lengths[0]) / 3.0
    np.testing.assert_allclose(parts, np.diff(edges), rtol=1e-6, atol=1e-9)
    assert parts.sum() == pytest.approx(path.length, rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_position_and_heading_are_continuous_over_all_joints(shape):
    path = shape.path()
    joints = path.start[1:]
    if path.closed:
        joints = np.append(joints, path.length)
    before = path.at(joints - 1e-9)
    after = path.at(joints + 1e-9)
    np.testing.assert_allclose(before.position, after.position, atol=1e-8)
    np.testing.assert_allclose(before.tangent, after.tangent, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_curvature_is_continuous_over_all_joints(shape):
    path = shape.path()
    np.testing.assert_allclose(
        path.at(path.start[1:] - 1e-9).curvature,
        path.at(path.start[1:] + 1e-9).curvature,
        atol=1e-9,
    )


def test_line_by_hand():
    path = Line((10.0, -5.0), (40.0, 35.0)).path()
    assert path.length == pytest.approx(50.0, rel=1e-15)
    assert not path.closed
    at = path.at([0.0, 25.0, 50.0])
    expected = [[10, -5], [25, 15], [40, 35]]
    np.testing.assert_allclose(at.position, expected, atol=1e-13)
    np.testing.assert_allclose(at.tangent, [[0.6, 0.8]] * 3, atol=1e-15)
    assert not at.curvature.any()


def test_an_open_path_ends_at_its_ends():
    path = Line((0.0, 0.0), (10.0, 0.0)).path()
    np.testing.assert_allclose(path.at([-5.0, 15.0]).position, [[0, 0], [10, 0]])


def test_circle_by_hand():
    """A counter-clockwise circle from north of the centre begins westwards.

    A quarter later the path is west of the centre.
    """
    path = Circle((100.0, 50.0), 30.0, 90.0).path()
    assert path.length == pytest.approx(2 * math.pi * 30.0, rel=1e-15)

    quarter = path.length / 4
    at = path.at([0.0, quarter, 2 * quarter, 3 * quarter, 5 * quarter])
    expected = [
        [100, 80],
        [70, 50],
        [100, 20],
        [130, 50],
        [70, 50],
    ]
    np.testing.assert_allclose(at.position, expected, atol=1e-12)

    expected = [
        [-1, 0],
        [0, -1],
        [1, 0],
        [0, 1],
        [0, -1],
    ]
    np.testing.assert_allclose(at.tangent, expected, atol=1e-14)
    np.testing.assert_allclose(at.curvature, 1 / 30)


def test_clockwise_circle_by_hand():
    path = Circle((0.0, 0.0), 10.0, clockwise=True).path()
    at = path.at([0.0, path.length / 4])
    np.testing.assert_allclose(at.position, [[10, 0], [0, -10]], atol=1e-13)
    np.testing.assert_allclose(at.tangent, [[0, -1], [-1, 0]], atol=1e-15)
    np.testing.assert_allclose(at.curvature, -0.1)


@given(s=st.floats(-1e5, 1e5), angle=st.floats(-360, 360), radius=size)
def test_circle_closed_form(s, angle, radius):
    at = Circle((3.0, -4.0), radius, angle).path().at(s)
    phi = math.radians(angle) + s / radius
    expected = [3 + radius * math.cos(phi), -4 + radius * math.sin(phi)]
    np.testing.assert_allclose(at.position, expected, atol=1e-9 * (radius + abs(s)))


class TestFigureEight:
    WIDTH = 300.0
    HEIGHT = 120.0
    PATH = FigureEight((0.0, 0.0), WIDTH, HEIGHT).path()

    def speed(self, u):
        return math.hypot(self.WIDTH / 2 * math.cos(u), self.HEIGHT * math.cos(2 * u))

    def point(self, u):
        return np.array([self.WIDTH / 2 * math.sin(u), self.HEIGHT / 2 * math.sin(2 * u)])

    def arc_length(self, u):
        """Integrate the speed quarter by quarter.

        Quad then sees at most one minimum of the speed at a time.
        """
        edges = [*np.arange(0.0, u, math.pi / 4), u]
        return math.fsum(
            quad(self.speed, a, b, epsabs=1e-12, epsrel=1e-13)[0]
            for a, b in itertools.pairwise(edges)
        )

    def test_length_is_that_of_the_curve(self):
        path = FigureEight((0, 0), self.WIDTH, self.HEIGHT).path()
        assert path.closed
        assert path.length == pytest.approx(self.arc_length(2 * math.pi), rel=1e-9)

    @given(u=st.floats(0.0, 2 * math.pi))
    @settings(max_examples=60, deadline=None)
    def test_parameter_is_arc_length_everywhere(self, u):
        path = self.PATH
        np.testing.assert_allclose(
            path.at(self.arc_length(u)).position, self.point(u), atol=1e-9 * path.length
        )
        (x1, y1), (x2, y2) = (
            (self.WIDTH / 2 * math.cos(u), self.HEIGHT * math.cos(2 * u)),
            (-self.WIDTH / 2 * math.sin(u), -2 * self.HEIGHT * math.sin(2 * u)),
        )
        at = path.at(self.arc_length(u))
        np.testing.assert_allclose(at.tangent, np.array([x1, y1]) / self.speed(u), atol=1e-7)
        assert at.curvature == pytest.approx((x1 * y2 - y1 * x2) / self.speed(u) ** 3, abs=1e-7)

    def test_begins_in_the_centre_and_turns_right_at_the_first_tip(self):
        """A figure of eight begins in the centre towards +x, +y, and turns right at the first tip.

        The east loop is therefore driven clockwise; the tightest radius is 2 height²/width at the
        tips.
        """
        path = FigureEight((5.0, 7.0), self.WIDTH, self.HEIGHT).path()
        start = path.at(0.0)
        tip = path.at(path.length / 4)
        np.testing.assert_allclose(start.position, [5, 7], atol=1e-9)
        expected = np.array([150, 120]) / math.hypot(150, 120)
        np.testing.assert_allclose(start.tangent, expected, atol=1e-9)
        np.testing.assert_allclose(tip.position, [155, 7], atol=1e-7)
        np.testing.assert_allclose(tip.tangent, [0, -1], atol=1e-7)
        expected = -300.0 / (2 * 120.0**2)
        assert tip.curvature == pytest.approx(expected, rel=1e-6)
        assert start.curvature == pytest.approx(0.0, abs=1e-9)

    def test_heading_turns_it(self):
        path = FigureEight((0.0, 0.0), 100.0, 40.0, heading_deg=90.0).path()
        np.testing.assert_allclose(path.at(path.length / 4).position, [0, 50], atol=1e-7)


class TestPolyline:
    def test_right_angle_by_hand(self):
        """A right angle is rounded by two clothoids of 45° each.

        Their length is R·π/2, and Fresnel's integrals give the place where they meet.
        """
        radius = 10.0
        path = Polyline([(0, 0), (100, 0), (100, 100)], radius).path()
        spiral = radius * math.pi / 2
        scale = math.sqrt(math.pi * radius * spiral)
        sine, cosine = (scale * value for value in fresnel(spiral / scale))
        cut = cosine + sine  # x + y·tan 45°

        expected = 2 * (100 - cut) + 2 * spiral
        assert path.length == pytest.approx(expected, rel=1e-14)

        at = path.at([100 - cut, 100 - cut + spiral, 100 - cut + 2 * spiral, path.length])
        np.testing.assert_allclose(at.position[0], [100 - cut, 0], atol=1e-12)
        np.testing.assert_allclose(at.position[1], [100 - cut + cosine, sine], atol=1e-12)
        expected = [math.sqrt(0.5)] * 2
        np.testing.assert_allclose(at.tangent[1], expected, atol=1e-14)
        assert at.curvature[1] == pytest.approx(1 / radius, rel=1e-12)
        np.testing.assert_allclose(at.position[2], [100, cut], atol=1e-12)
        np.testing.assert_allclose(at.position[3], [100, 100], atol=1e-12)
        np.testing.assert_allclose(at.tangent[3], [0, 1], atol=1e-14)

    def test_right_turn_is_the_mirror_image(self):
        left = Polyline([(0, 0), (100, 0), (150, 80)], 10.0).path()
        right = Polyline([(0, 0), (100, 0), (150, -80)], 10.0).path()
        s = np.linspace(0, left.length, 50)
        np.testing.assert_allclose(right.at(s).position, left.at(s).position * [1, -1], atol=1e-12)
        np.testing.assert_allclose(right.at(s).curvature, -left.at(s).curvature, atol=1e-12)

    def test_closed_square_comes_back(self):
        path = Polyline(
            [
                (0, 0),
                (100, 0),
                (100, 100),
                (0, 100),
            ],
            10.0,
            closed=True,
        ).path()
        ends = path.at([0.0, path.length - 1e-12, path.length])
        np.testing.assert_allclose(ends.position - ends.position[0], 0.0, atol=1e-11)
        np.testing.assert_allclose(ends.tangent, [[1, 0]] * 3, atol=1e-12)

        side = path.length / 4
        np.testing.assert_allclose(path.at(side).tangent, [0, 1], atol=1e-12)

    def test_points_on_one_line_need_no_radius(self):
        path = Polyline([(0, 0), (10, 0), (30, 0)]).path()
        assert path.length == pytest.approx(30.0)
        np.testing.assert_allclose(path.at(20.0).position, [20, 0])

    @given(
        points=st.lists(
            st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=3, max_size=8, unique=True
        ),
        shift=st.tuples(st.floats(0, 40), st.floats(0, 40)),
        radius=st.floats(0.1, 6.0),
        closed=st.booleans(),
    )
    @settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
    def test_never_tighter_than_the_radius_and_never_far_from_the_legs(
        self, points, shift, radius, closed
    ):
        """A polyline is never tighter than the radius and never far from its legs.

        Waypoints are at least 40 m apart; those that turn back too sharply for the radius are
        refused.
        """
        points = [
            (80.0 * x + (shift[0] if x % 2 else 0.0), 80.0 * y + (shift[1] if x % 3 else 0.0))
            for x, y in points
        ]
        try:
            path = Polyline(points, radius, closed).path()
        except ConfigError:
            assume(False)

        s = np.linspace(0.0, path.length, 2000)
        at = path.at(s)
        assert np.max(np.abs(at.curvature)) <= (1 + 1e-9) / radius

        if not closed:
            expected = [points[0], points[-1]]
            np.testing.assert_allclose(at.position[[0, -1]], expected, atol=1e-8)

        steps = np.hypot(*np.diff(at.position, axis=0).T)
        assert np.max(steps) <= path.length / 1999 * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize(
        ("points", "radius", "text"),
        [
            ([(0, 0)], 1.0, r"points: 1 are too few, an open polyline needs at least 2"),
            ([(0, 0), (0, 0)], 1.0, r"points\[1\]: the same point as points\[0\]"),
            ([(0, 0), (10, 0), (0, 0)], 1.0, r"points\[1\]: the path turns straight back"),
            ([(0, 0), (10, 0), (10, 10)], 0.0, r"corner_radius: 0.0 m, must be finite and above 0"),
            (
                [(0, 0), (10, 0), (10, 10)],
                6.0,
                r"corner_radius: 6 m takes 11.22 m of the leg from points\[0\]",
            ),
            ([(0, 0), (math.nan, 0)], 1.0, r"points\[1\]: \[nan, 0\] is not a point"),
        ],
    )
    def test_what_makes_no_path_is_refused(self, points, radius, text):
        with pytest.raises(ConfigError, match=text):
            Polyline(points, radius).path()

    def test_the_advised_radius_is_taken(self):
        points = [
            (0, 0),
            (10, 0),
            (10, 10),
            (40, 10),
        ]
        with pytest.raises(ConfigError) as refused:
            Polyline(points, 50.0).path()
        advised = float(str(refused.value).split("at most ")[1].split(" m")[0])
        assert Polyline(points, advised).path().length > 0
        with pytest.raises(ConfigError):
            Polyline(points, advised * 1.001).path()


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Line((1, 1), (1, 1)), "to: the line ends where it begins"),
        (Circle((0, 0), 0.0), "radius: 0.0 m, expected a finite number above 0"),
        (Circle((0, math.inf), 1.0), r"center: \[0, inf\] is not a point"),
        (FigureEight((0, 0), 10.0, -1.0), "height: -1.0 m"),
    ],
)
def test_other_shapes_that_make_no_path_are_refused(shape, text):
    with pytest.raises(ConfigError, match=text):
        shape.path()


def test_arc_lengths_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        Circle((0, 0), 1.0).path().at([0.0, math.nan])


def test_a_curve_with_a_corner_is_refused():
    def corner(u):
        zero = np.zeros_like(u)
        return (
            np.stack([u, np.abs(u)], -1),
            np.stack([zero + 1, np.sign(u)], -1),
            np.stack([zero, zero], -1),
        )

    with pytest.raises(ConfigError, match="not smooth"):
        fit_path(corner, -1.0, 1.3)


class TestEllipse:
    PATH = Ellipse((0.0, 0.0), 300.0, 120.0).path()

    def test_length_and_tips_by_hand(self):
        """The length of an ellipse is 2·width·E(1 − height²/width²).

        The curvature at the tip is a/b², at the side b/a².
        """
        path = Ellipse((5.0, 7.0), 300.0, 120.0, 90.0).path()
        assert path.closed
        assert path.length == pytest.approx(2 * 300 * ellipe(1 - (120 / 300) ** 2), rel=1e-12)
        at = path.at(np.array([0.0, 0.25, 0.5]) * path.length)
        expected = [[5, 157], [-55, 7], [5, -143]]
        np.testing.assert_allclose(at.position, expected, atol=1e-7)
        expected = [[-1, 0], [0, -1], [1, 0]]
        np.testing.assert_allclose(at.tangent, expected, atol=1e-7)
        expected = [150 / 60**2, 60 / 150**2, 150 / 60**2]
        np.testing.assert_allclose(at.curvature, expected, rtol=1e-6)

    @given(u=st.floats(0.0, 2 * math.pi))
    @settings(max_examples=60, deadline=None)
    def test_everywhere_by_the_elliptic_integral(self, u):
        """Every place of an ellipse is that of the elliptic integral.

        Counted from the tip of the longer axis, x = 150 cos u, y = 60 sin u; the integral counts
        from the other axis.
        """
        path = self.PATH
        m = 1 - (120 / 300) ** 2
        at = path.at(150.0 * (ellipeinc(u + math.pi / 2, m) - ellipe(m)))
        expected = [150 * math.cos(u), 60 * math.sin(u)]
        np.testing.assert_allclose(at.position, expected, atol=1e-6)
        speed = math.hypot(150 * math.sin(u), 60 * math.cos(u))
        expected = np.array([-150 * math.sin(u), 60 * math.cos(u)]) / speed
        np.testing.assert_allclose(at.tangent, expected, atol=1e-7)
        assert at.curvature == pytest.approx(150 * 60 / speed**3, rel=1e-5)

    def test_clockwise_turns_right(self):
        path = Ellipse((0.0, 0.0), 300.0, 120.0, clockwise=True).path()
        at = path.at(path.length / 4)
        np.testing.assert_allclose(at.position, [0, -60], atol=1e-7)
        assert at.curvature == pytest.approx(-60 / 150**2, rel=1e-6)


class TestLawnMower:
    def test_lanes_by_hand(self):
        """90 m with lanes at most 40 m apart have three spaces of 30 m.

        Lanes lead north, the first one is in the south-east.
        """
        path = LawnMower((0.0, 0.0), 200.0, 90.0, 40.0, 90.0).path()
        radius = 0.5 * 30.0 / (math.pi * fresnel(1.0)[0])  # half a turn's width is π·R·S(1)
        assert radius == pytest.approx(0.363 * 30.0, rel=1e-3)

        turn = 2 * math.pi * radius
        assert not path.closed
        assert path.length == pytest.approx(4 * 200 + 3 * turn, rel=1e-14)

        # lanes begin and end
        starts = np.arange(4) * (200 + turn)
        at = path.at(starts + 1e-12)
        ends = path.at(starts + 200)
        expected = [
            [45, -100],
            [15, 100],
            [-15, -100],
            [-45, 100],
        ]
        np.testing.assert_allclose(at.position, expected, atol=1e-10)
        expected = [
            [45, 100],
            [15, -100],
            [-15, 100],
            [-45, -100],
        ]
        np.testing.assert_allclose(ends.position, expected, atol=1e-10)
        expected = [
            [0, 1],
            [0, -1],
            [0, 1],
            [0, -1],
        ]
        np.testing.assert_allclose(at.tangent, expected, atol=1e-12)

        # the turns between them
        middle = path.at(200 + turn / 2)
        np.testing.assert_allclose(
            middle.position, [30, 100 + math.pi * radius * fresnel(1.0)[1]], atol=1e-9
        )
        assert middle.curvature == pytest.approx(1 / radius, rel=1e-9)
        assert path.at(400 + 1.5 * turn).curvature == pytest.approx(-1 / radius, rel=1e-9)

    def test_too_many_lanes_are_refused(self):
        with pytest.raises(ConfigError, match=r"spacing: 0\.001 m makes 90001 lanes"):
            LawnMower((0.0, 0.0), 200.0, 90.0, 0.001).path()


class TestSpline:
    POINTS = np.array(
        [
            (0, 0),
            (120, 10),
            (160, 90),
            (60, 150),
            (10, 80),
        ],
        float,
    )

    @pytest.mark.parametrize("closed", [False, True])
    def test_goes_through_its_points_at_the_arc_length_of_the_curve(self, closed):
        """The arc length is that of quad over SciPy's spline."""
        path = Spline(self.POINTS.tolist(), closed).path()

        # the spline and its length by SciPy
        points = np.concatenate([self.POINTS, self.POINTS[:1]]) if closed else self.POINTS
        knots = np.concatenate(
            [[0], np.cumsum(np.sqrt(np.linalg.norm(np.diff(points, axis=0), axis=1)))]
        )
        curve = CubicSpline(knots, points, bc_type="periodic" if closed else "natural")
        lengths = [
            quad(lambda u: np.hypot(*curve(u, 1)), a, b, epsabs=1e-12, epsrel=1e-12)[0]
            for a, b in itertools.pairwise(knots)
        ]
        s = np.concatenate([[0], np.cumsum(lengths)])

        assert path.length == pytest.approx(s[-1], rel=1e-11)
        np.testing.assert_allclose(path.at(s).position, points, atol=1e-7)
        steps = np.linalg.norm(
            np.diff(path.at(np.linspace(0, path.length, 100001)).position, axis=0), axis=1
        )
        assert steps.sum() == pytest.approx(path.length, rel=1e-7)

        if not closed:
            np.testing.assert_allclose(path.at([0.0, path.length]).curvature, 0.0, atol=1e-9)
        for i, (a, b) in enumerate(itertools.pairwise(knots)):  # in the middle of each span
            u = 0.5 * (a + b)
            at = path.at(
                s[i] + quad(lambda u: np.hypot(*curve(u, 1)), a, u, epsabs=1e-12, epsrel=1e-12)[0]
            )
            (x1, y1), (x2, y2), speed = curve(u, 1), curve(u, 2), np.hypot(*curve(u, 1))
            np.testing.assert_allclose(at.position, curve(u), atol=1e-6)
            np.testing.assert_allclose(at.tangent, curve(u, 1) / speed, atol=1e-7)
            expected = (x1 * y2 - y1 * x2) / speed**3
            assert at.curvature == pytest.approx(expected, rel=1e-4)

    def test_points_on_a_line_make_a_line(self):
        path = Spline(
            [
                (0, 0),
                (30, 40),
                (33, 44),
                (300, 400),
            ]
        ).path()
        assert path.length == pytest.approx(500.0, rel=1e-12)
        np.testing.assert_allclose(path.at(250.0).position, [150, 200], atol=1e-7)

    def test_far_from_the_origin(self):
        here = Spline(self.POINTS.tolist()).path()
        there = Spline((self.POINTS + 9e6).tolist()).path()
        s = np.linspace(0, here.length, 50)
        np.testing.assert_allclose(there.at(s).position - 9e6, here.at(s).position, atol=1e-7)

    @pytest.mark.parametrize(
        ("points", "text"),
        [
            ([(0, 0)], "points: 1 are too few, an open spline needs at least 2"),
            ([(0, 0), (1, 1), (1, 1)], r"points\[2\]: the same point as points\[1\]"),
            ([(0, 0), (10, 0), (0, 0)], "points: the spline through them has a corner"),
            (
                [(i, i * i) for i in range(2001)],
                "points: got 2001, a spline takes at most 2000",
            ),
        ],
    )
    def test_points_without_a_smooth_curve_are_refused(self, points, text):
        with pytest.raises(ConfigError, match=text):
            Spline(points).path()
