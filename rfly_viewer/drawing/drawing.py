"""Drawing of sky, vehicles and a world's objects in a viser scene. ENU, metres."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray

from rfly_common.arrays import Floats, Ints
from rfly_common.frames import ned_to_enu, quat_multiply, quat_ned_frd_to_enu_flu, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.weather import CLEAR, Weather
from rfly_terrain.world.world import World
from rfly_viewer.drawing.world_meshes import SameObjects, world_meshes
from rfly_viewer.models.vehicle_models import MODELS, Part, colour_of
from rfly_viewer.scene.vehicle_table import WorldPoses

MAX_TURNS_HZ = 2.6
"""Rotors and wheels are drawn turning no faster: at 30 frames a second more would seem to stand
still or run back.
"""
_SKY_TOP = (112, 160, 212)
_SKY_LOW = (222, 233, 241)
_SKY_GREY = (190, 194, 198)
SRGB = 2.2
"""exponent from a colour as it is shown to its light, nearly"""
SKYLIGHT = 1.1
SUNLIGHT = 2.2
"""intensities in clear air by day"""
HORIZON_M = 5000.0
"""where fog is thick within this way, no blue is seen above it"""
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


class Sky:
    """Background, sun, skylight and fog."""

    def __init__(self, server: viser.ViserServer, shadows: bool) -> None:
        self._server = server
        server.scene.configure_environment_map(None)
        server.scene.configure_default_lights(enabled=False)
        self._skylight = server.scene.add_light_hemisphere(
            "/light/sky", sky_color=(225, 235, 250), ground_color=(120, 112, 98)
        )
        # a directional light shines from its position towards the origin
        self._sun = server.scene.add_light_directional(
            "/light/sun", color=(255, 246, 228), cast_shadow=shadows, position=(-0.55, 0.55, 0.63)
        )
        self.show(CLEAR)

    def show(self, weather: Weather) -> None:
        """Lights in the proportion of Eq. 11.9; fog of Eq. 11.8 as a browser has it: even from here
        to there.
        """
        self._skylight.intensity = SKYLIGHT * weather.skylight / CLEAR.skylight
        self._sun.intensity = SUNLIGHT * weather.sunlight / CLEAR.sunlight
        grey = max(weather.cloud_cover**2, float(weather.extinction * HORIZON_M > 1.0))
        day = (weather.skylight + weather.sunlight) / (CLEAR.skylight + CLEAR.sunlight)
        clear, cloudy = (np.array(colours) / 255.0 for colours in ([_SKY_TOP, _SKY_LOW], _SKY_GREY))
        top, low = day * ((1 - grey) * clear**SRGB + grey * cloudy**SRGB)
        share = np.linspace(0, 1, 256)[:, None, None] ** 0.42
        sky = np.broadcast_to(
            (1 - share) * top ** (1 / SRGB) + share * low ** (1 / SRGB), (256, 4, 3)
        )
        self._server.scene.set_background_image((255 * sky).astype(np.uint8), format="png")
        foggy = weather.extinction > 0.0
        # the straight line from 1 to 0 at 2/α has the area under exp(-α r)
        far = 2.0 / weather.extinction if foggy else HORIZON_M
        red, green, blue = (
            (255 * low).astype(int).tolist()
        )  # three.js takes a fog's colour as light
        self._server.scene.configure_fog(0.0, far, color=(red, green, blue), enabled=foggy)


class WorldLayer:
    """The objects of a world file, on the ground of the map that is shown."""

    def __init__(self, server: viser.ViserServer, world: World) -> None:
        self._server = server
        self._world = world
        self._handles: list[Any] = []
        self._same = SameObjects(World())

    def show(self, terrain: HeightMap) -> None:
        """Draw them on this ground instead of the one before."""
        for handle in self._handles:
            handle.remove()
        placed = self._world.on(terrain)
        self._same = SameObjects(placed)
        self._handles = [
            self._server.scene.add_batched_meshes_simple(
                f"/world/{number}",
                mesh.vertices,
                mesh.faces,
                np.column_stack(
                    [np.cos(mesh.yaw / 2), np.zeros((len(mesh.yaw), 2)), np.sin(mesh.yaw / 2)]
                ),
                mesh.positions.astype(np.float32),
                batched_scales=mesh.scale.astype(np.float32),
                batched_colors=mesh.color,
                flat_shading=True,
                lod="off",
            )
            for number, mesh in enumerate(world_meshes(placed))
        ]

    def without_its_boxes(self, poses: WorldPoses, vehicle_type: NDArray[Any]) -> WorldPoses:
        """The vehicles but those by which a bridge shows what is drawn here already."""
        drawn = self._same.of(poses.position_ned, vehicle_type)
        return poses.select(~drawn) if drawn.any() else poses


class VehicleLayer:
    """All vehicles: one batch of instances for each part of each shape, so that 1,000 cost little
    more than one.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handles: dict[tuple[int, int], Any] = {}
        self._drawn: dict[tuple[int, int], list[NDArray[Any]]] = {}
        self._turned: dict[int, float] = {}
        self._phases: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty((0, 2)))

    def show(self, poses: WorldPoses, enlarge: Floats, elapsed_s: float) -> None:
        """Draw these vehicles and no others, `enlarge` (n,) times their size; motors have turned
        for `elapsed_s`.
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
        """(n, 2) the angles (rad) of each vehicle's motors, and of a land-air vehicle's wheels."""
        ids, angles = self._phases
        before = np.zeros((len(poses), 2))
        if len(ids):
            at = np.minimum(np.searchsorted(ids, poses.id), len(ids) - 1)
            before = np.where((ids[at] == poses.id)[:, None], angles[at], 0.0)
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
            quat, scale, colour, phase = (
                np.repeat(a, k, axis=0) for a in (quat, scale, colour, phase)
            )
        if part.turns:
            half = phase / 2
            spin = np.column_stack([np.outer(np.sin(half), _AXES[part.turns]), np.cos(half)])
            quat = quat_multiply(quat, spin)
        wxyz = np.roll(quat, 1, axis=1).astype(np.float32)
        position = position.astype(np.float32)
        scale = scale.astype(np.float32)
        colours = (
            colour
            if part.colour is None
            else np.broadcast_to(np.array(part.colour, np.uint8), colour.shape)
        )
        now = [position, wxyz, scale, colours]
        handle = self._handles.get(key)
        if handle is None:
            handle = self._server.scene.add_batched_meshes_simple(
                f"/vehicles/{MODELS[key[0]].name}/{key[1]}",
                part.mesh.vertices,
                part.mesh.faces,
                wxyz,
                position,
                batched_scales=scale,
                batched_colors=colours,
                flat_shading=True,
                lod="off",
            )
            self._handles[key] = handle
        else:
            names = ("batched_positions", "batched_wxyzs", "batched_scales", "batched_colors")
            for name, new, old in zip(names, now, self._drawn[key], strict=True):
                if not np.array_equal(new, old):
                    setattr(handle, name, new)
        self._drawn[key] = now
