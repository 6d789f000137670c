# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Triangles of a world's objects, and their layer in a viser scene. ENU, m.

Meshes that many objects share are drawn as instances, the rest in one mesh for each colour.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.frames import enu_to_ned
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.models import Color, Model, part_triangles
from rfly_terrain.world.world import World
from rfly_viewer.scene.vehicle_table import WorldPoses

if TYPE_CHECKING:
    import viser

SHARED = 4
"""Number of objects of one model from which on the browser gets its triangles once."""
SAME_M = 0.5
"""Distance between a box of the bridge and the middle of the object that it shows, m."""


class WorldMeshes(NamedTuple):
    """Triangles in one colour, drawn once at each place. ENU, m."""

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    """Corners of each triangle, counter-clockwise from outside."""
    color: Color
    positions: Floats
    """Places, (n, 3), m."""
    yaw: Floats
    """Yaw, (n,), rad, counter-clockwise from east."""
    scale: Floats
    """Scale, (n,)."""


def world_meshes(world: World) -> list[WorldMeshes]:
    """Return what is drawn of a world.

    These are all objects that do not show a model of RflySim3D's; those come by datagram alone.
    """
    rows_by_model: dict[int, list[int]] = defaultdict(list)
    for row, each in enumerate(world.objects):
        if not each.model.vehicle_type:
            rows_by_model[id(each.model)].append(row)

    shared: list[WorldMeshes] = []
    single: dict[Color, list[Floats]] = defaultdict(list)
    for rows in rows_by_model.values():
        model = world.objects[rows[0]].model
        position = world.positions[rows]
        yaw = np.array([world.objects[row].yaw for row in rows])
        scale = np.array([world.objects[row].scale for row in rows])
        for color in dict.fromkeys(model.colors):
            of_color = [
                part for part, own in zip(model.parts, model.colors, strict=True) if own == color
            ]
            triangles = np.concatenate([part_triangles(part) for part in of_color])
            if len(rows) >= SHARED:
                shared.append(_meshes(triangles, color, position, yaw, scale))
                continue
            for place, angle, factor in zip(position, yaw.tolist(), scale.tolist(), strict=True):
                c = np.cos(angle)
                s = np.sin(angle)
                turned = factor * triangles @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
                single[color].append(turned + place)

    in_place = (np.zeros((1, 3)), np.zeros(1), np.ones(1))
    return shared + [
        _meshes(np.concatenate(parts), color, *in_place) for color, parts in single.items()
    ]


def _meshes(
    triangles: Floats, color: Color, positions: Floats, yaw: Floats, scale: Floats
) -> WorldMeshes:
    faces = np.arange(3 * len(triangles), dtype=np.uint32).reshape(-1, 3)
    return WorldMeshes(
        triangles.reshape(-1, 3).astype(np.float32), faces, color, positions, yaw, scale
    )


class SameObjects:
    """Look-up of boxes among the window's vehicles that a bridge sends for objects of the world."""

    def __init__(self, world: World) -> None:
        rows = [row for row, each in enumerate(world.objects) if not each.model.vehicle_type]
        heights = np.array([_middle(world.objects[row].scaled_model) for row in rows])
        middles = world.positions[rows]
        middles[:, 2] += heights
        self._tree = cKDTree(np.asarray(enu_to_ned(middles))) if rows else None

    def of(self, position_ned: Floats, vehicle_type: Ints) -> Bools:
        """(n,) True for those that are drawn already."""
        is_same = np.zeros(len(vehicle_type), bool)
        rows = np.flatnonzero(vehicle_type == 0)
        if self._tree is not None and len(rows):
            distance, _ = self._tree.query(position_ned[rows], distance_upper_bound=SAME_M)
            is_same[rows] = np.isfinite(distance)
        return is_same


def _middle(model: Model) -> float:
    low, high = model.bounds
    return 0.5 * float(low[2] + high[2])


class WorldLayer:
    """Layer of a world file's objects, on the ground of the map that is shown."""

    def __init__(self, server: viser.ViserServer, world: World) -> None:
        self._server = server
        self._world = world
        self._handles: list[Any] = []
        self._same = SameObjects(World())

    def show(self, terrain: HeightMap) -> None:
        """Draw the objects on this ground instead of the one before."""
        for handle in self._handles:
            handle.remove()

        placed = self._world.on(terrain)
        self._same = SameObjects(placed)
        self._handles = [
            self._draw(number, mesh) for number, mesh in enumerate(world_meshes(placed))
        ]

    def _draw(self, number: int, mesh: WorldMeshes) -> Any:
        half = mesh.yaw / 2
        wxyz = np.column_stack([np.cos(half), np.zeros((len(half), 2)), np.sin(half)])
        return self._server.scene.add_batched_meshes_simple(
            f"/world/{number}",
            mesh.vertices,
            mesh.faces,
            wxyz,
            mesh.positions.astype(np.float32),
            batched_scales=mesh.scale.astype(np.float32),
            batched_colors=mesh.color,
            flat_shading=True,
            lod="off",
        )

    def without_its_boxes(self, poses: WorldPoses, vehicle_type: NDArray[Any]) -> WorldPoses:
        """Return the vehicles without those that a bridge sends for objects drawn here already."""
        drawn = self._same.of(poses.position_ned, vehicle_type)
        return poses.select(~drawn) if drawn.any() else poses
