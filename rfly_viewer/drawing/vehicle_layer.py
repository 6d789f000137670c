# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of all vehicles in a viser scene. ENU, m."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from rfly_collision.shapes.vehicle_meshes import MODELS, Part, colour_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import ned_to_enu, quat_multiply, quat_ned_frd_to_enu_flu, quat_rotate
from rfly_viewer.scene.vehicle_table import WorldPoses

MAX_TURNS_HZ = 2.6
"""Fastest turning of rotors and wheels as drawn, Hz.

At 30 frames a second, faster ones would seem to stand still or turn back.
"""
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class VehicleLayer:
    """Layer of all vehicles.

    There is one batch of instances for each part of each shape, so that 1,000 vehicles cost little
    more than one.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handles: dict[tuple[int, int], Any] = {}
        self._drawn: dict[tuple[int, int], list[NDArray[Any]]] = {}
        self._phases: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty((0, 2)))

    def show(self, poses: WorldPoses, enlarge: Floats, elapsed_s: float) -> None:
        """Draw these vehicles and no others, `enlarge` (n,) times their size.

        Their motors have turned for `elapsed_s`.
        """
        phase = self._turn(poses, elapsed_s)
        position = ned_to_enu(poses.position_ned)
        quat = quat_ned_frd_to_enu_flu(poses.quat_ned_frd)
        scale = poses.scale * enlarge[:, None]
        colour = colour_of(poses.id)

        for kind, model in enumerate(MODELS):
            rows = np.flatnonzero(poses.kind == kind)
            for number, part in enumerate(model.parts):
                key = (kind, number)
                if len(rows):
                    turned = phase[rows, int(part.wheels)]
                    self._show_part(
                        key, part, position[rows], quat[rows], scale[rows], colour[rows], turned
                    )
                elif key in self._handles:
                    self._handles.pop(key).remove()
                    del self._drawn[key]

    def _turn(self, poses: WorldPoses, elapsed_s: float) -> Floats:
        """Return the angles of each vehicle's motors and wheels, (n, 2), rad."""
        ids, angles = self._phases
        before = np.zeros((len(poses), 2))
        if len(ids):
            rows = np.minimum(np.searchsorted(ids, poses.id), len(ids) - 1)
            before = np.where((ids[rows] == poses.id)[:, None], angles[rows], 0.0)

        speeds = np.column_stack([poses.motor_speed_rpm, poses.wheel_speed_rpm])
        turns = np.clip(speeds / 60.0, -MAX_TURNS_HZ, MAX_TURNS_HZ)
        phase = np.mod(before + 2 * np.pi * turns * elapsed_s, 2 * np.pi)

        self._phases = (poses.id, phase)
        return phase

    def _show_part(
        self,
        key: tuple[int, int],
        part: Part,
        position: NDArray[Any],
        quat: NDArray[Any],
        scale: NDArray[Any],
        colour: NDArray[np.uint8],
        phase: Floats,
    ) -> None:
        if part.positions is not None:
            k = len(part.positions)
            offset = quat_rotate(quat[:, None], part.positions[None] * scale[:, None])
            position = (position[:, None] + offset).reshape(-1, 3)
            quat = np.repeat(quat, k, axis=0)
            scale = np.repeat(scale, k, axis=0)
            colour = np.repeat(colour, k, axis=0)
            phase = np.repeat(phase, k, axis=0)
        if part.turns:
            half = phase / 2
            spin = np.column_stack([np.outer(np.sin(half), _AXES[part.turns]), np.cos(half)])
            quat = quat_multiply(quat, spin)

        wxyz = np.roll(quat, 1, axis=1).astype(np.float32)
        position = position.astype(np.float32)
        scale = scale.astype(np.float32)
        if part.colour is not None:
            colour = np.broadcast_to(np.array(part.colour, np.uint8), colour.shape)
        arrays = [position, wxyz, scale, colour]

        handle = self._handles.get(key)
        if handle is None:
            handle = self._server.scene.add_batched_meshes_simple(
                f"/vehicles/{MODELS[key[0]].name}/{key[1]}",
                part.mesh.vertices,
                part.mesh.faces,
                wxyz,
                position,
                batched_scales=scale,
                batched_colors=colour,
                flat_shading=True,
                lod="off",
            )
            self._handles[key] = handle
            self._drawn[key] = arrays
            return

        # only what has changed is sent
        names = ("batched_positions", "batched_wxyzs", "batched_scales", "batched_colors")
        for name, new, old in zip(names, arrays, self._drawn[key], strict=True):
            if not np.array_equal(new, old):
                setattr(handle, name, new)
        self._drawn[key] = arrays
