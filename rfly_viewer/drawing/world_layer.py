# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of a world's objects in a viser scene. ENU, m."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.world import World
from rfly_viewer.drawing.world_meshes import SameObjects, WorldMeshes, world_meshes
from rfly_viewer.scene.vehicle_table import WorldPoses


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
