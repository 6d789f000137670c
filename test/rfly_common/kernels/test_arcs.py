# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Arc tangent, sine and tangent of `arcs` against those of the mathematics library."""

from __future__ import annotations

import math

import numpy as np

from rfly_common.kernels.arcs import atan, sin, tan
from rfly_common.kernels.jit import kernel


@kernel
def _both(x, out):
    for n in range(x.size):
        out[n, 0] = atan(x[n])
        out[n, 1] = sin(min(x[n], math.pi))


def _of(x):
    out = np.empty((len(x), 2))
    _both(x, out)
    return out.T


def test_the_arc_tangent_is_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            [0.0],
            np.geomspace(1e-300, 1e300, 5001),
            rng.uniform(0.0, 4.0, 5000),
        ]
    )
    exact = np.arctan(x)
    assert (np.abs(_of(x)[0] - exact) <= 2.0 * np.spacing(exact)).all()


def test_the_sine_is_right_to_3e_16():
    x = np.concatenate([np.linspace(0.0, math.pi, 10001), np.geomspace(1e-12, 1.0, 1001)])
    assert np.abs(_of(x)[1] - np.sin(x)).max() <= 3e-16


def test_both_rise_where_their_parts_meet():
    for meeting in (0.66, 1.0 + math.sqrt(2.0)):
        x = np.array([np.nextafter(meeting, 0.0), meeting, np.nextafter(meeting, 9.0)])
        assert (np.diff(_of(x)[0]) >= 0.0).all()
    assert _of(np.array([math.pi / 2, math.pi]))[1].tolist() == [1.0, 0.0]
    assert _of(np.array([math.inf]))[0].tolist() == [math.pi / 2]


@kernel
def _tangents(x, out):
    for n in range(x.size):
        out[n] = tan(x[n])


def test_the_tangent_is_right_to_eight_units_in_the_last_place():
    x = np.concatenate([np.linspace(-1.4, 1.4, 20_001), np.geomspace(1e-300, 1.0, 2001)])
    out = np.empty_like(x)
    _tangents(x, out)
    exact = np.tan(x)
    assert (np.abs(out - exact) <= 8.0 * np.spacing(np.abs(exact))).all()
