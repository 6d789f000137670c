# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of the labels over vehicles in a viser scene, for each browser. ENU, m."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser

from rfly_collision.shapes.vehicle_meshes import BOX_HIGH, MARKER
from rfly_common.arrays import Floats
from rfly_common.config.vehicle_models import model_text
from rfly_common.frames import ned_to_enu
from rfly_viewer.drawing.screen import Screen, labels_with_room
from rfly_viewer.scene.labels import Labels
from rfly_viewer.scene.vehicle_table import WorldPoses

MAX_IDS = 40
"""Vehicles up to which each bears its number."""
MAX_SHOWN = 200
"""Labels that are shown at a time; each takes a separate message for every picture."""
_MOVED_M = 0.01
_BASE_FONT = 30.0
"""fontSize that is drawn in the browser's usual size; the SDK's default."""

# a generous estimate of the size of a label in the browser's usual size
_CHARACTER_PX = 9.0
_LINE_PX = 22.0
_MARGIN_PX = 6.0


class LabelLayers:
    """Labels of all browsers: which of them have room depends on each browser's camera."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._layers: dict[int, LabelLayer] = {}

    def clear(self) -> None:
        """Remove all labels."""
        for layer in self._layers.values():
            layer.clear()

    def show(self, poses: WorldPoses, labels: Labels, ids: bool, enlarge: Floats) -> None:
        """Draw these labels and no others; `enlarge` (n,) as for the vehicles."""
        clients = self._server.get_clients()
        self._layers = {
            number: self._layers.get(number) or LabelLayer(client.scene)
            for number, client in clients.items()
        }
        for number, client in clients.items():
            with client.atomic():
                self._layers[number].show(poses, labels, ids, enlarge, Screen.of(client.camera))


class LabelLayer:
    """Texts of CopterMsg, the ids, and the types of plain markers, over the vehicles.

    Their RGB is not shown: viser's labels are black.
    """

    def __init__(self, scene: viser.SceneApi) -> None:
        self._scene = scene
        self._handles: dict[int, Any] = {}

    def clear(self) -> None:
        """Remove all labels."""
        while self._handles:
            self._handles.popitem()[1].remove()

    def show(
        self, poses: WorldPoses, labels: Labels, ids: bool, enlarge: Floats, screen: Screen
    ) -> None:
        """Draw these labels and no others.

        Those that would cover the label of a nearer vehicle are left out.
        """
        wanted: dict[int, tuple[str, float]] = {}
        numbered = ids and len(poses) <= MAX_IDS
        markers = poses.kind == MARKER
        if numbered or labels.by_id or markers.any():
            rows = zip(
                poses.id.tolist(), poses.vehicle_type.tolist(), markers.tolist(), strict=True
            )
            for vehicle_id, vehicle_type, is_marker in rows:
                text, size = _text_of(labels, vehicle_id, numbered)
                if is_marker:
                    text = f"{text}\n{model_text(vehicle_type)}".strip()
                if text:
                    wanted[vehicle_id] = (text, size)
                if len(wanted) == MAX_SHOWN:
                    break

        for vehicle_id in [i for i in self._handles if i not in wanted]:
            self._handles.pop(vehicle_id).remove()
        if not wanted:
            return

        # over the box of each vehicle
        row = np.searchsorted(poses.id, list(wanted))
        above = np.asarray(ned_to_enu(poses.position_ned[row]), np.float64)
        above[:, 2] += (BOX_HIGH[poses.kind[row], 2] * poses.scale[row, 2] + 0.15) * enlarge[row]
        for (vehicle_id, label), position in zip(wanted.items(), above, strict=True):
            self._place(vehicle_id, label, position)

        # labels that have room
        handles = [self._handles[vehicle_id] for vehicle_id in wanted]
        sizes = np.array([_size_px(*label) for label in wanted.values()])
        shown_before = np.array([handle.visible for handle in handles])
        room = labels_with_room(screen, above, sizes, shown_before)
        for handle, visible in zip(handles, room.tolist(), strict=True):
            if handle.visible != visible:
                handle.visible = visible

    def _place(self, vehicle_id: int, label: tuple[str, float], position: Floats) -> None:
        text = label[0]
        scale = label[1] / _BASE_FONT
        drawn = self._handles.get(vehicle_id)
        if drawn is None or (drawn.text, drawn.font_screen_scale) != (text, scale):
            self._handles[vehicle_id] = self._scene.add_label(
                f"/labels/{vehicle_id}",
                text,
                position=position,
                font_screen_scale=scale,
                anchor="bottom-center",
            )
        elif np.abs(position - drawn.position).max() > _MOVED_M:
            drawn.position = position


def _text_of(labels: Labels, vehicle_id: int, numbered: bool) -> tuple[str, float]:
    lines = labels.lines_of(vehicle_id)
    if not lines:
        return (str(vehicle_id) if numbered else ""), 24.0
    return "\n".join(line.text for line in lines), max(line.font_size for line in lines)


def _size_px(text: str, font_size: float) -> tuple[float, float]:
    lines = text.split("\n")
    scale = font_size / _BASE_FONT
    width = max(map(len, lines)) * _CHARACTER_PX * scale + _MARGIN_PX
    height = len(lines) * _LINE_PX * scale + _MARGIN_PX
    return width, height
