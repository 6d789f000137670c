"""Pose history of a vehicle, interpolated in time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLACK = 1e-6
"""s by which a time may lie outside of a track"""


class VehicleTrack(NamedTuple):
    """k poses of base_link in the world, at rising times."""

    time: Floats
    """(k,) s"""
    position: Floats
    """(k, 3) m"""
    orientation: Floats
    """(k, 4) w x y z"""

    def at(self, times: Floats) -> tuple[Floats, Floats]:
        """(positions (n, 3), rotations (n, 3, 3) body -> world) at times within the track.

        On the straight line between two places and on the shortest turn between two attitudes.
        """
        if times.min() < self.time[0] - SLACK or times.max() > self.time[-1] + SLACK:
            raise ValueError(
                f"times {times.min():.6g} … {times.max():.6g} s lie outside of a track of "
                f"{self.time[0]:.6g} … {self.time[-1]:.6g} s"
            )
        if len(self.time) == 1:
            return np.repeat(self.position, len(times), 0), _matrices(np.repeat(self.orientation, len(times), 0))
        after = np.clip(np.searchsorted(self.time, times), 1, len(self.time) - 1)
        before = after - 1
        share = np.clip((times - self.time[before]) / (self.time[after] - self.time[before]), 0.0, 1.0)[:, None]
        position = self.position[before] + share * (self.position[after] - self.position[before])
        a, b = self.orientation[before], self.orientation[after]
        cosine = np.einsum("ij,ij->i", a, b)[:, None]
        b, cosine = np.where(cosine < 0.0, -b, b), np.minimum(np.abs(cosine), 1.0)
        angle = np.arccos(cosine)
        small = angle < 1e-4
        sine = np.where(small, 1.0, np.sin(angle))
        left = np.where(small, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
        right = np.where(small, share, np.sin(share * angle) / sine)
        return position, _matrices(left * a + right * b)


def _matrices(quaternions: Floats) -> Floats:
    """(n, 3, 3) of (n, 4) w x y z of any length but 0."""
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)).T
    out = np.empty((len(quaternions), 3, 3))
    out[:, 0, 0], out[:, 1, 1], out[:, 2, 2] = 1 - 2 * (y * y + z * z), 1 - 2 * (x * x + z * z), 1 - 2 * (x * x + y * y)
    out[:, 0, 1], out[:, 1, 0] = 2 * (x * y - w * z), 2 * (x * y + w * z)
    out[:, 0, 2], out[:, 2, 0] = 2 * (x * z + w * y), 2 * (x * z - w * y)
    out[:, 1, 2], out[:, 2, 1] = 2 * (y * z - w * x), 2 * (y * z + w * x)
    return out
