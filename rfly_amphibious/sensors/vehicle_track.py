"""Pose history of a vehicle, interpolated in time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix

SLACK = 1e-6
"""s by which a time may lie outside of a track"""


class VehicleTrack(NamedTuple):
    """k poses of base_link in the world, at rising times."""

    time: Floats
    """(k,) s"""
    position: Floats
    """(k, 3) m"""
    orientation: Floats
    """(k, 4) quaternions x y z w, body -> world"""

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
            return np.repeat(self.position, len(times), 0), rotation_matrix(np.repeat(self.orientation, len(times), 0))
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
        return position, rotation_matrix(left * a + right * b)
