# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What a place on the ground has in sight, as a tint of the ground's picture.

A thread follows the lines of sight: a million of them take a second.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.threads.loop_thread import LoopThread
from rfly_terrain.files.arrays import north_up
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region
from rfly_terrain.height_map.ray_cast import RADIO_EARTH_RADIUS
from rfly_terrain.height_map.viewshed import viewshed
from rfly_viewer.drawing.terrain_levels import GroundPicture

Ground = TypeVar("Ground")
Found = TypeVar("Found")

HEIGHT_M = 2.0
"""Height of the antenna above the ground, m."""
MOST_SAMPLES = 1_000_000
"""Samples of the map that are looked at, about; of a larger map every n-th."""
SEEN = (70, 190, 90)
"""Red, green, blue of ground in sight."""
HIDDEN = (38, 30, 66)
"""Red, green, blue of ground out of sight."""
SEEN_SHARE = 0.25
"""Share of the tint in the picture."""
HIDDEN_SHARE = 0.6


@dataclass(frozen=True, eq=False)
class Sight:
    """Ground in sight of a place."""

    place: tuple[float, float]
    """x east, y north, m."""
    bounds: Region
    seen: NDArray[np.float32]
    """1 for a sample in sight, else 0, (height, width), north up, east right."""

    def over(self, picture: GroundPicture | None) -> GroundPicture:
        """Return the ground's picture, or its heights' colours, under the tint."""
        return _Tint(self, picture)

    def legend(self) -> str:
        """Return what the tints mean, as HTML."""
        x, y = self.place
        seen, hidden = (f'<span style="color:rgb{each}">&#9632;</span>' for each in (SEEN, HIDDEN))
        return (
            f"<div>{seen} in sight, {self.seen.mean():.0%}<br>{hidden} out of sight of<br>"
            f"x {x:.0f}, y {y:.0f} m, {HEIGHT_M:g} m up</div>"
        )


class _Tint:
    """Picture of the ground under the tint of a sight."""

    def __init__(self, sight: Sight, below: GroundPicture | None) -> None:
        self._sight = sight
        self._below = below
        x_min, x_max, _, _ = sight.bounds
        self.pixel = (x_max - x_min) / (sight.seen.shape[1] - 1)
        if below is not None:
            self.pixel = min(self.pixel, below.pixel)

    def texture(self, region: Region, width: int, height: int) -> NDArray[np.uint8]:
        """Return the colours of a region, RGBA, (height, width, 4), row 0 in the north."""
        x_min, x_max, y_min, y_max = self._sight.bounds
        high, wide = self._sight.seen.shape
        x = region[0] + (region[1] - region[0]) * (np.arange(width) + 0.5) / width
        y = region[3] - (region[3] - region[2]) * (np.arange(height) + 0.5) / height
        column, row = np.meshgrid(
            (x - x_min) / (x_max - x_min) * (wide - 1), (y_max - y) / (y_max - y_min) * (high - 1)
        )
        sampled = cv2.remap(
            self._sight.seen,
            column.astype(np.float32),
            row.astype(np.float32),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
        seen = np.asarray(sampled, np.float32)[..., None]

        # the tint lies over the picture, where there is one
        share = HIDDEN_SHARE + (SEEN_SHARE - HIDDEN_SHARE) * seen.astype(float)
        colour = np.array(HIDDEN) + np.subtract(SEEN, HIDDEN) * seen
        opacity = share
        if self._below is not None:
            picture = self._below.texture(region, width, height).astype(np.float32)
            below = picture[..., 3:] / 255.0 * (1.0 - share)
            opacity = share + below
            colour = (colour * share + picture[..., :3] * below) / opacity
        return np.asarray(np.dstack([colour, 255.0 * opacity]).round(), np.uint8)


class PlaceFinder(Generic[Ground, Found]):
    """Search for what is at a place, in a thread; of several requests the newest one counts."""

    def __init__(self, find: Callable[[Ground, tuple[float, float]], Found], name: str) -> None:
        """`find(terrain, place)` raises nothing; `name` is the thread's."""
        self._search = find
        self._name = name
        self._newest: tuple[Ground, tuple[float, float]] | None = None
        """Request whose answer is wanted."""
        self._waiting: tuple[Ground, tuple[float, float]] | None = None
        """The same, until the search for it begins."""
        self._found: Found | None = None
        self._changed = False
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None

    def ask(self, terrain: Ground, place: tuple[float, float] | None) -> None:
        """Search at a place, x east and y north, m; None: nowhere."""
        with self._lock:
            self._found = None
            self._changed = place is None
            self._newest = self._waiting = None if place is None else (terrain, place)
            if self._waiting is not None and self._thread is None:
                self._thread = LoopThread(self._find, self._name)
                self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """True until the newest request is answered."""
        with self._lock:
            return self._thread is not None

    def take(self) -> tuple[bool, Found | None]:
        """Return whether there is another answer since the last call, and the answer."""
        with self._lock:
            changed = self._changed
            self._changed = False
            return changed, self._found

    def _find(self) -> bool:
        """Answer the newest request; return False if there is none."""
        with self._lock:
            request = self._waiting
            self._waiting = None
            if request is None:
                self._thread = None
                return False
        found = self._search(*request)
        with self._lock:
            if request is self._newest:
                self._found = found
                self._changed = True
        return True


def sight_from(terrain: HeightMap, place: tuple[float, float]) -> Sight:
    """Return what an antenna at a place has in sight, as `rfly terrain viewshed` has it."""
    stride = math.ceil(math.sqrt(terrain.rows * terrain.columns / MOST_SAMPLES))
    eye = (*place, terrain.altitude(*place) + HEIGHT_M)
    seen = viewshed(terrain, eye, earth_radius=RADIO_EARTH_RADIUS, stride=max(stride, 1))
    return Sight(place, terrain.bounds, north_up(terrain, seen).astype(np.float32))
