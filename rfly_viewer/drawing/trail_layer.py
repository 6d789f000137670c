# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of the vehicles' trails in a viser scene. ENU, m."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from rfly_collision.shapes.vehicle_meshes import colour_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import ned_to_enu
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.scene_commands import Rgb
from rfly_viewer.scene.vehicle_table import WorldPoses

TRAIL_POINTS = 240
"""Samples of a trail."""
TRAIL_EVERY_S = 0.25
"""Time between two samples, s."""
MAX_TRAILS = 200
"""Vehicles with a trail; those with the lowest ids."""
THICKNESS_PX = 3.0
"""Usual width of a trail, pixels."""
MAX_THICKNESS_PX = 30.0
_MOVED_M = 0.01
_OVER_GROUND_M = 0.15
"""Height of lines over the ground, m, whose triangles are flatter than it is."""
_FLOWN_M = 1.0
"""Height above which a trail has a line on the ground below it, m."""
_SHADE = 0.55
"""Brightness of a line on the ground, relative to the trail above it."""


class TrailLayer:
    """Layer of trails: the last minute of each vehicle's way."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handle: Any = None
        self._samples: deque[tuple[Ints, Floats]] = deque(maxlen=TRAIL_POINTS)
        self._next_s = 0.0
        self._colours: dict[int, Rgb] = {}
        self.thickness = THICKNESS_PX

    def set_colour(self, vehicle_id: int, rgb: Rgb) -> None:
        """Draw a vehicle's trail in this colour from now on."""
        if vehicle_id in self._colours or len(self._colours) < MAX_TRAILS:
            self._colours[vehicle_id] = rgb

    def clear(self) -> None:
        """Forget all trails."""
        self._samples.clear()
        self._remove()

    def forget(self, vehicle_ids: Sequence[int]) -> None:
        """Forget the trails of these vehicles: what follows begins anew."""
        gone = np.array(vehicle_ids, np.int64)
        for number, (ids, positions) in enumerate(self._samples):
            stays = ~np.isin(ids, gone)
            if not stays.all():
                self._samples[number] = (ids[stays], positions[stays])

    def _remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def show(self, poses: WorldPoses, wanted: bool, below: HeightMap | None, now_s: float) -> None:
        """Sample the vehicles' positions, and draw the trails if `wanted`.

        With `below`, lines on that ground are drawn too.
        """
        if now_s < self._next_s:
            return
        self._next_s = now_s + TRAIL_EVERY_S
        positions = np.asarray(ned_to_enu(poses.position_ned[:MAX_TRAILS]), np.float64)
        self._samples.append((poses.id[:MAX_TRAILS].copy(), positions))
        if not wanted:
            self._remove()
            return
        points, ids = self._segments()
        if not len(points):
            self._remove()
            return

        points[..., 2] += _OVER_GROUND_M
        own = np.array(colour_of(ids))
        for vehicle_id, rgb in self._colours.items():
            own[ids == vehicle_id] = rgb
        colours = np.repeat(own[:, None], 2, axis=1)
        if below is not None:
            points, colours = with_ground_lines(points, colours, below)

        self._remove()
        self._handle = self._server.scene.add_line_segments(
            "/trails",
            points.astype(np.float32),
            colors=colours,
            thickness=self.thickness,
            thickness_units="screen",
        )

    def _segments(self) -> tuple[Floats, Ints]:
        """Return the segments (n, 2, 3) ENU and their ids.

        There is one from each sample to the next, for vehicles that are in both and moved between
        them.
        """
        points = [np.empty((0, 2, 3))]
        owners = [np.empty(0, np.int64)]
        for (ids_0, positions_0), (ids_1, positions_1) in itertools.pairwise(self._samples):
            both, rows_0, rows_1 = np.intersect1d(
                ids_0, ids_1, assume_unique=True, return_indices=True
            )
            pair = np.stack([positions_0[rows_0], positions_1[rows_1]], axis=1)
            moved = (np.abs(pair[:, 0] - pair[:, 1]) > _MOVED_M).any(axis=1)
            points.append(pair[moved])
            owners.append(both[moved])
        return np.concatenate(points), np.concatenate(owners)


def with_ground_lines(
    points: Floats, colours: NDArray[np.uint8], terrain: HeightMap
) -> tuple[Floats, NDArray[np.uint8]]:
    """Return the segments (n, 2, 3) ENU and their colours, and after them lines on the ground.

    The lines are darker, and below the segments that are flown.
    """
    ground = points.copy()
    ground[..., 2] = terrain.altitude(points[..., 0], points[..., 1]) + _OVER_GROUND_M
    flown = (points[..., 2] - ground[..., 2]).max(axis=1) > _FLOWN_M
    dark = (_SHADE * colours[flown]).astype(np.uint8)
    return np.concatenate([points, ground[flown]]), np.concatenate([colours, dark])
