# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Frames that follow from estimates: `odom`, which has no jumps, and `base_footprint`."""

from __future__ import annotations

import math

import numpy as np

from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.arrays import Floats
from rfly_common.frames import quat_conjugate, quat_multiply, rotation_matrix
from rfly_common.transform_buffer import Transform


class OdometryFrame:
    """The frame `odom`, which sums up the motion between estimates. It drifts, and it never jumps.

    Velocities are integrated to positions, rates to headings. Roll and pitch are the estimate's,
    which gravity keeps right. Hence z of `odom` stays up, and `odom` differs from `map` by a
    heading and a position.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew with the next estimate, with `odom` equal to `map`."""
        self._last: Estimate | None = None
        self._position: Floats = np.zeros(3)
        self._yaw = 0.0  # of map in odom

    def update(self, estimate: Estimate) -> None:
        """Go on to an estimate that is not older than the last."""
        last = self._last
        if last is None:
            self._position = np.array(estimate.position, float)
        else:
            dt = estimate.time - last.time

            # heading without the correction
            expected = quat_multiply(
                last.orientation, _turn(0.5 * dt * (last.rates + estimate.rates))
            )
            correction = quat_multiply(estimate.orientation, quat_conjugate(expected))
            before = self._yaw
            self._yaw -= math.remainder(
                2.0 * math.atan2(float(correction[2]), float(correction[3])), 2.0 * math.pi
            )

            # position without the correction
            velocities = _turned(last.velocity, before) + _turned(estimate.velocity, self._yaw)
            self._position = self._position + 0.5 * dt * velocities
        self._last = estimate

    def transforms(self) -> tuple[Transform, Transform]:
        """Return (base_link in odom, odom in map) at the last estimate."""
        estimate = self._last
        assert estimate is not None
        in_map = Transform(
            np.asarray(estimate.position, float), np.asarray(estimate.orientation, float)
        )
        in_odom = Transform(
            self._position, quat_multiply(_turn_about_up(self._yaw), estimate.orientation)
        )
        return in_odom, in_map @ in_odom.inverse()

    def local(self) -> Estimate:
        """Return the last estimate in `odom`.

        Its covariance is relative to the origin of `odom`: the estimate's own, and the square of
        the corrections that `odom` leaves out.
        """
        estimate = self._last
        position = self._position
        yaw = self._yaw
        assert estimate is not None
        turn = _turn_about_up(yaw)
        covariance = estimate.covariance
        if covariance is not None:
            turned = np.kron(np.eye(3), rotation_matrix(turn))
            left_out = position - estimate.position
            covariance = turned @ covariance @ turned.T
            covariance[:3, :3] += np.outer(left_out, left_out)
            covariance[8, 8] += yaw * yaw
        orientation = np.asarray(quat_multiply(turn, estimate.orientation), float)
        velocity = _turned(estimate.velocity, yaw)
        return Estimate(estimate.time, position, orientation, velocity, estimate.rates, covariance)


def _turn(vector: Floats) -> Floats:
    """Return the quaternion x y z w of a rotation vector (3,), rad."""
    angle = float(np.linalg.norm(vector))
    half = 0.5 * angle
    share = math.sin(half) / angle if angle > 1e-12 else 0.5
    return np.array((*(share * vector), math.cos(half)))


def _turn_about_up(yaw: float) -> Floats:
    """Return the quaternion x y z w of a yaw, rad."""
    return np.array((0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw)))


def _turned(vector: Floats, yaw: float) -> Floats:
    """Return a vector (3,) turned about the vertical."""
    c = math.cos(yaw)
    s = math.sin(yaw)
    x, y, z = vector.tolist()
    return np.array((c * x - s * y, s * x + c * y, z))
