"""How much of the current item is carried out, so that progress moves between two items too."""

from __future__ import annotations

import math

from rfly_trajectory.missions.items import MissionItem, MissionMode


class ItemProgress:
    """A share, 0 … 1, that never goes back while the item stays the same, whatever interrupts it."""

    def __init__(self) -> None:
        self.share = 0.0
        self._item: tuple[int, int] | None = None
        self._longest = 0.0

    def update(self, item: tuple[int, int], flown: MissionItem, distance: float, turned: float) -> float:
        """The share after a step.

        `item`: repetition and index, which tell items apart; `distance` (m) to the target of what is flown; `turned`
        (rad) along an orbit. An orbit counts by its turns, a CUSTOM and an endless orbit not at all, the rest by the
        distance that is left of the longest there was.
        """
        if item != self._item:
            self._item, self.share, self._longest = item, 0.0, 0.0
        if flown.mode is MissionMode.ORBIT:
            turns = float(flown.params[2])
            share = turned / (2 * math.pi * turns) if turns > 0.0 else 0.0
        elif flown.mode in (MissionMode.CUSTOM, MissionMode.HOLD) or not math.isfinite(distance):
            share = 0.0
        else:
            self._longest = max(self._longest, distance)
            share = 1.0 - distance / self._longest if self._longest else 0.0
        self.share = min(1.0, max(self.share, share))
        return self.share
