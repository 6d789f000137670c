# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pose buffer: poses of the last seconds, interpolated in time. No ROS."""

from __future__ import annotations

import bisect

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import FrameError
from rfly_common.frames import quat_slerp

KEEP_NS = 10_000_000_000
"""Time for which poses are kept, ns."""
MOST_POSES = 20_000
"""Most poses that are kept."""


class PoseTrack:
    """Poses by their times in ns, kept for ten seconds behind the newest."""

    def __init__(self, max_gap: float = 0.5) -> None:
        """`max_gap`: longest time between two poses to interpolate in, s."""
        self._gap_ns = round(max_gap * 1e9)
        self.clear()

    def __len__(self) -> int:
        return len(self._times)

    def clear(self) -> None:
        """Forget all poses."""
        self._times: list[int] = []
        self._poses: list[tuple[float, ...]] = []

    @property
    def newest_ns(self) -> int | None:
        """Time of the newest pose, ns; None without poses."""
        return self._times[-1] if self._times else None

    def add(self, time_ns: int, position: ArrayLike, quat_xyzw: ArrayLike) -> None:
        """Add a pose, (3,) m and (4,) x y z w, always of the same frames.

        A pose of the same time is replaced.
        """
        pose = (*np.asarray(position, float).tolist(), *np.asarray(quat_xyzw, float).tolist())
        place = bisect.bisect_left(self._times, time_ns)
        if place < len(self._times) and self._times[place] == time_ns:
            self._poses[place] = pose
            return
        self._times.insert(place, time_ns)
        self._poses.insert(place, pose)

        first = max(
            bisect.bisect_left(self._times, self._times[-1] - KEEP_NS),
            len(self._times) - MOST_POSES,
        )
        del self._times[:first], self._poses[:first]

    def at(self, times_ns: Ints) -> tuple[Floats, Floats]:
        """Return positions (n, 3) m and attitudes (n, 4) x y z w at some times.

        Positions are on straight lines, attitudes on the shortest turns at constant rate. Raises
        FrameError for a time before the oldest pose, after the newest, or within a gap.
        """
        if not len(times_ns):
            return np.empty((0, 3)), np.empty((0, 4))
        if not self._times:
            raise FrameError("no pose is known yet")

        known = np.array(self._times)
        poses = np.array(self._poses)
        early = int(known[0] - times_ns.min())
        late = int(times_ns.max() - known[-1])
        if early > 0 or late > 0:
            where = f"{late / 1e9:.3f} s after the newest"
            if early > 0:
                where = f"{early / 1e9:.3f} s before the oldest"
            raise FrameError(f"a time {where} pose that is known")

        after = np.searchsorted(known, times_ns, side="left").clip(1 if len(known) > 1 else 0)
        before = np.maximum(after - 1, 0)
        span = known[after] - known[before]
        exact = (times_ns == known[after]) | (times_ns == known[before])
        if (span[~exact] > self._gap_ns).any():
            gap = float(span[~exact].max()) / 1e9
            raise FrameError(
                f"a time between two poses that are {gap:.3f} s apart, "
                f"more than {self._gap_ns / 1e9:g} s"
            )

        share = ((times_ns - known[before]) / np.maximum(span, 1))[:, None]
        position = poses[before, :3] + share * (poses[after, :3] - poses[before, :3])
        turn = quat_slerp(poses[before, 3:], poses[after, 3:], share)
        return position, turn / np.linalg.norm(turn, axis=-1, keepdims=True)
