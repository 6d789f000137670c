# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Directions of the lidars that RflySim's requests describe (types 20 to 23).

Axes of the lidar: x forward, y left, z up. Angles of the requests are in degrees, positive to the
right and upwards, as yaw and pitch are.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_common.arrays import Floats
from rfly_sensing.scan_patterns import away_from_axis, mid360, towards
from rfly_ue_bridge.codec.sensor_requests import VisionSensor

MID360_POINTS = (4_352, 4)
"""Columns and lines of a frame of type 23: 17,408 points, as RflySim3D sends."""
FULL_TURN_DEG = 360.0

RINGS_DEFAULTS = (-45.0, 45.0, -20.0, 20.0)
"""Spans of types 20 and 21 if all are 0, deg: from and to, horizontally and vertically."""
ROSETTE_DEFAULTS = (2.956, 1.4, 1.18, 10.0, 5.0, 1.0)
"""Numbers of type 22 that are 0: petal height deg, stretch, curvature, eights, flowers, turn deg.

They are those of the manual's example.
"""
ROSETTE_FOV_DEG = 70.432
"""Length of a petal and the one opposite, deg, if CameraFOV is 0."""


def rings(sensor: VisionSensor) -> Floats:
    """Return the directions (width · height, 3) of types 20 and 21, ring by ring from below.

    A span is cut into as many equal parts as there are points; each points to the middle of one.
    """
    spans = sensor.parameters[2:6]
    left, right, low, high = spans if any(spans) else RINGS_DEFAULTS
    across = left + (right - left) * (np.arange(sensor.width) + 0.5) / sensor.width
    up = low + (high - low) * (np.arange(sensor.height) + 0.5) / sensor.height
    return towards(np.radians(-across), np.radians(up)[:, None]).reshape(-1, 3)


def rosette(sensor: VisionSensor, number: int) -> Floats:
    """Return the directions (width · height, 3) of frame `number` of type 22.

    A figure of eight has two petals, which are four half petals of `width` points from the centre
    to the tip or back. N eights, 180/N degrees apart and in random order, are a flower. Flower k of
    M is turned by k · 180 / (N · M) degrees. After M flowers all is turned by a random angle. The
    order and the angles depend on the number of the flower alone.

    RflySim's manual names these numbers, but its curve is in no source that we have. Here a half
    petal is, for u from 0 to 1: along = length · (1 - (1 - u)^stretch), across = height ·
    sin(πu)^curvature.
    """
    given = (*sensor.parameters[1:7], sensor.fov_deg)
    defaults = (*ROSETTE_DEFAULTS, ROSETTE_FOV_DEG)
    height, stretch, curvature, n, m, turn, fov = (
        value or default for value, default in zip(given, defaults, strict=True)
    )
    eights = int(n)
    flowers = int(m)

    # half petals of this frame, as quarters of eights: out and back to one side, then to the other
    halves = number * sensor.height + np.arange(sensor.height)
    quarter = halves % 4
    eight = halves // 4
    flower = eight // eights
    bearing = np.empty(sensor.height)
    for each in np.unique(flower):
        rows = flower == each
        order = np.random.default_rng((each, 0)).permutation(eights)
        pattern = each // flowers
        random_turn = turn * np.random.default_rng((pattern, 1)).random() if pattern else 0.0
        bearing[rows] = order[eight[rows] % eights] * 180.0 / eights
        bearing[rows] += (each % flowers) * 180.0 / (eights * flowers) + random_turn

    # out on one side and back on the other; the opposite petal goes on straight from the centre
    u = (np.arange(sensor.width) + 0.5) / sensor.width
    is_back = quarter % 2 == 1
    u = np.where(is_back[:, None], 1.0 - u, u)
    along = 0.5 * fov * (1.0 - (1.0 - u) ** stretch)
    across = height * np.sin(math.pi * u) ** curvature
    across[(quarter == 1) | (quarter == 2)] *= -1.0
    bearing = np.radians(bearing + np.where(quarter >= 2, 180.0, 0.0))

    angle = np.radians(np.hypot(along, across))
    return away_from_axis(angle, bearing[:, None] + np.arctan2(across, along)).reshape(-1, 3)


def livox_mid360(number: int) -> Floats:
    """Return the directions (17,408, 3) of frame `number` of type 23."""
    return mid360(number, MID360_POINTS[0], 1.0).reshape(-1, 3)
