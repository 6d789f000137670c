# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lidar odometry's error as the KITTI benchmark measures it, on motions worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.lidar_odometry import segment_error


def _poses(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    poses = np.tile(np.eye(4), (len(x), 1, 1))
    poses[:, 0, 3] = x
    poses[:, 1, 3] = y
    return poses


def test_a_scale_that_is_off_by_one_percent() -> None:
    x = np.arange(0.0, 251.0)
    assert segment_error(_poses(x, 0 * x), _poses(1.01 * x, 0 * x)) == pytest.approx(
        0.01, rel=1e-12
    )


def test_a_turn_of_the_whole_estimate_counts_for_nothing() -> None:
    x = np.arange(0.0, 151.0)
    turned = _poses(x * math.cos(0.3), x * math.sin(0.3))
    turned[:, :2, :2] = [[math.cos(0.3), -math.sin(0.3)], [math.sin(0.3), math.cos(0.3)]]

    assert segment_error(_poses(x, 0 * x), turned) == pytest.approx(0.0, abs=1e-12)


def test_a_jump_counts_in_each_segment_that_holds_it() -> None:
    """A jump of 5 m at 50 m lies in 5 of 11 segments of 100 m, those that begin at 0 to 40 m."""
    x = np.arange(0.0, 201.0)
    jumped = np.where(x > 49.5, 5.0, 0.0)

    assert segment_error(_poses(x, 0 * x), _poses(x, jumped)) == pytest.approx(
        5 / 11 * 0.05, rel=1e-12
    )


def test_a_way_that_is_too_short_has_none() -> None:
    x = np.arange(0.0, 100.0)
    assert math.isnan(segment_error(_poses(x, 0 * x), _poses(x, 0 * x)))
