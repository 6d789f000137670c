"""Labels over vehicles, and their trails, in a viser scene."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.frames import ned_to_enu
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.drawing.screen import Screen, labels_with_room
from rfly_viewer.models.vehicle_models import BOX_HIGH, colour_of
from rfly_viewer.scene.labels import Labels
from rfly_viewer.scene.vehicle_table import WorldPoses

MAX_IDS = 40
"""vehicles up to which each bears its number"""
MAX_SHOWN = 200
"""labels at a time; each is a message of its own for every picture"""
TRAIL_POINTS = 240
TRAIL_EVERY_S = 0.25
MAX_TRAILS = 200
"""vehicles with a trail; those with the lowest ids"""
_MOVED_M = 0.01
_BASE_FONT = 30.0
"""fontSize that is drawn in the browser's usual size; the SDK's default"""


_OVER_GROUND_M = 0.15
"""lines lie so far over the ground, whose triangles are flatter than it is"""
_FLOWN_M = 1.0
"""What is nearer to the ground draws no line of its own on it."""
_SHADE = 0.55
"""brightness of a line on the ground against that of the way above it"""
_CHARACTER_PX = 9.0
_LINE_PX = 22.0
_MARGIN_PX = 6.0
"""what a label in the browser's usual size takes, rather more than less"""


class LabelLayers:
    """The labels of each browser: which ones have room depends on its camera."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._layers: dict[int, LabelLayer] = {}

    def show(self, poses: WorldPoses, labels: Labels, ids: bool, enlarge: Floats) -> None:
        """Draw these labels and no others; `enlarge` (n,) as the vehicles are."""
        clients = self._server.get_clients()
        self._layers = {
            number: self._layers.get(number) or LabelLayer(c.scene) for number, c in clients.items()
        }
        for number, client in clients.items():
            with client.atomic():
                self._layers[number].show(poses, labels, ids, enlarge, Screen.of(client.camera))


class LabelLayer:
    """The texts of CopterMsg, and the ids, over the vehicles. Their RGB is not shown: viser's
    labels are black.
    """

    def __init__(self, scene: viser.SceneApi) -> None:
        self._scene = scene
        self._handles: dict[int, Any] = {}

    def show(
        self, poses: WorldPoses, labels: Labels, ids: bool, enlarge: Floats, screen: Screen
    ) -> None:
        """Draw these labels and no others, without those that would cover one of a nearer vehicle."""
        wanted: dict[int, tuple[str, float]] = {}
        numbered = ids and len(poses) <= MAX_IDS
        if numbered or labels.by_id:
            for vehicle_id in poses.id.tolist():
                text, size = _text_of(labels, vehicle_id, numbered)
                if text:
                    wanted[vehicle_id] = (text, size)
                if len(wanted) == MAX_SHOWN:
                    break
        for vehicle_id in [i for i in self._handles if i not in wanted]:
            self._handles.pop(vehicle_id).remove()
        if not wanted:
            return
        rows = np.searchsorted(poses.id, list(wanted))
        above = np.asarray(ned_to_enu(poses.position_ned[rows]), np.float64)
        above[:, 2] += (BOX_HIGH[poses.kind[rows], 2] * poses.scale[rows, 2] + 0.15) * enlarge[rows]
        for (vehicle_id, label), at in zip(wanted.items(), above, strict=True):
            self._place(vehicle_id, label, at)
        handles = [self._handles[vehicle_id] for vehicle_id in wanted]
        sizes = np.array([_size_px(*label) for label in wanted.values()])
        room = labels_with_room(
            screen, above, sizes, np.array([handle.visible for handle in handles])
        )
        for handle, visible in zip(handles, room.tolist(), strict=True):
            if handle.visible != visible:
                handle.visible = visible

    def _place(self, vehicle_id: int, label: tuple[str, float], at: Floats) -> None:
        text = label[0]
        scale = label[1] / _BASE_FONT
        drawn = self._handles.get(vehicle_id)
        if drawn is None or (drawn.text, drawn.font_screen_scale) != (text, scale):
            self._handles[vehicle_id] = self._scene.add_label(
                f"/labels/{vehicle_id}",
                text,
                position=at,
                font_screen_scale=scale,
                anchor="bottom-center",
            )
        elif np.abs(at - drawn.position).max() > _MOVED_M:
            drawn.position = at


def _text_of(labels: Labels, vehicle_id: int, numbered: bool) -> tuple[str, float]:
    lines = labels.lines_of(vehicle_id)
    if not lines:
        return (str(vehicle_id) if numbered else ""), 24.0
    return "\n".join(line.text for line in lines), max(line.font_size for line in lines)


def _size_px(text: str, font_size: float) -> tuple[float, float]:
    lines = text.split("\n")
    scale = font_size / _BASE_FONT
    return max(map(len, lines)) * _CHARACTER_PX * scale + _MARGIN_PX, len(
        lines
    ) * _LINE_PX * scale + _MARGIN_PX


class TrailLayer:
    """The last minute of each vehicle's way."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handle: Any = None
        self._samples: list[tuple[Ints, Floats]] = []
        self._next_s = 0.0

    def clear(self) -> None:
        """Forget all ways."""
        self._samples.clear()
        self._remove()

    def _remove(self) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def show(self, poses: WorldPoses, wanted: bool, below: HeightMap | None, now_s: float) -> None:
        """Remember where the vehicles are, and draw the ways if wanted; on the ground `below` them
        too if given.
        """
        if now_s < self._next_s:
            return
        self._next_s = now_s + TRAIL_EVERY_S
        at = np.asarray(ned_to_enu(poses.position_ned[:MAX_TRAILS]), np.float64)
        self._samples.append((poses.id[:MAX_TRAILS].copy(), at))
        del self._samples[:-TRAIL_POINTS]
        points, ids = self._segments() if wanted else (np.empty((0, 2, 3)), np.empty(0, np.int64))
        if not len(points):
            self._remove()
            return
        points[..., 2] += _OVER_GROUND_M
        colours = np.repeat(colour_of(ids)[:, None], 2, axis=1)
        if below is not None:
            points, colours = with_ground_lines(points, colours, below)
        self._remove()
        self._handle = self._server.scene.add_line_segments(
            "/trails",
            points.astype(np.float32),
            colors=colours,
            thickness=3.0,
            thickness_units="screen",
        )

    def _segments(self) -> tuple[Floats, Ints]:
        """((n, 2, 3) ENU, ids): from each sample to the next, for vehicles that are in both and
        moved between them.
        """
        points = []
        owners = []
        for (ids_0, at_0), (ids_1, at_1) in zip(self._samples[:-1], self._samples[1:], strict=True):
            both, rows_0, rows_1 = np.intersect1d(
                ids_0, ids_1, assume_unique=True, return_indices=True
            )
            pair = np.stack([at_0[rows_0], at_1[rows_1]], axis=1)
            moved = (
                np.abs(pair[:, 0] - pair[:, 1]).max(axis=1) > _MOVED_M
                if len(pair)
                else np.empty(0, bool)
            )
            points.append(pair[moved])
            owners.append(both[moved])
        if not points:
            return np.empty((0, 2, 3)), np.empty(0, np.int64)
        return np.concatenate(points), np.concatenate(owners)


def with_ground_lines(
    points: Floats, colours: NDArray[np.uint8], terrain: HeightMap
) -> tuple[Floats, NDArray[np.uint8]]:
    """The segments (n, 2, 3) ENU and their colours, and after them, darker, those of the flown ones
    on the ground.
    """
    ground = points.copy()
    ground[..., 2] = terrain.altitude(points[..., 0], points[..., 1]) + _OVER_GROUND_M
    flown = (points[..., 2] - ground[..., 2]).max(axis=1) > _FLOWN_M
    dark = (_SHADE * colours[flown]).astype(np.uint8)
    return np.concatenate([points, ground[flown]]), np.concatenate([colours, dark])
