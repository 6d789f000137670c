"""The camera's place beside the vehicle that it follows, as the mouse leaves it. No viser."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FROM_BEHIND_M = (-12.0, -12.0, 7.0)
_SAME_M = 0.01
_REMEMBERED = 200
"""places of the vehicle: some seconds, longer than a browser's report is on its way"""


class FollowingCamera:
    """One browser's. What it reports is late, and its two points may be of two moments: one read while the other was
    replaced. Only a report that belongs to a place of the vehicle, and to one alone, is the mouse's doing.
    """

    def __init__(self) -> None:
        self._back: NDArray[Any] = np.array(_FROM_BEHIND_M)
        """m, ENU, from the vehicle to the camera"""
        self._targets: deque[NDArray[Any]] = deque(maxlen=_REMEMBERED)

    def place(self, target: NDArray[Any], position: NDArray[Any], look_at: NDArray[Any]) -> NDArray[Any]:
        """Where the camera goes, (3,) m; the vehicle is at `target` now, the browser reports the other two."""
        if self._targets:
            sent = np.array(self._targets)
            of_report = np.flatnonzero(np.linalg.norm(sent - look_at, axis=1) < _SAME_M)
            if of_report.size:
                ways = sent - sent[of_report[-1]]
                ways = ways[np.linalg.norm(ways, axis=1) >= _SAME_M]
                turned = position - look_at - self._back
                if not (np.linalg.norm(ways - turned, axis=1) < _SAME_M).any():
                    self._back = position - look_at
        self._targets.append(np.array(target))
        return np.asarray(target + self._back)
