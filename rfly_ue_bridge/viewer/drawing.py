"""Drawing of terrain and vehicles in a viser scene. ENU, metres."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np
import trimesh
import viser
from numpy.typing import NDArray
from PIL import Image

from rfly_collision.models.vehicle_models import MODELS, Part, colour_of
from rfly_common.arrays import Floats, Ints
from rfly_common.frames import ned_to_enu, quat_multiply, quat_ned_frd_to_enu_flu, quat_rotate
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.viewer.terrain_mesh import TerrainMesh, terrain_mesh
from rfly_ue_bridge.viewer.vehicle_table import WorldPoses

MAX_TURNS_HZ = 2.6
"""Rotors and wheels are drawn turning no faster: at 30 frames a second more would seem to stand still or run back."""
_SKY_TOP, _SKY_LOW = (112, 160, 212), (222, 233, 241)
_HAZE = (206, 220, 230)
_UNLIT = 0.62
"""linear brightness of ground without light, about that of level ground in the sun"""
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def draw_sky(server: viser.ViserServer, shadows: bool) -> None:
    """Background, sun and skylight."""
    share = np.linspace(0, 1, 256)[:, None, None] ** 0.42
    sky = np.broadcast_to((1 - share) * np.array(_SKY_TOP) + share * np.array(_SKY_LOW), (256, 4, 3))
    server.scene.set_background_image(sky.astype(np.uint8), format="png")
    server.scene.configure_environment_map(None)
    server.scene.configure_default_lights(enabled=False)
    server.scene.add_light_hemisphere(
        "/light/sky", sky_color=(225, 235, 250), ground_color=(120, 112, 98), intensity=1.1
    )
    # a directional light shines from its position towards the origin
    server.scene.add_light_directional(
        "/light/sun", color=(255, 246, 228), intensity=2.2, cast_shadow=shadows, position=(-0.55, 0.55, 0.63)
    )


def terrain_glb(mesh: TerrainMesh, lit: bool = True) -> bytes:
    """The mesh with its picture as binary glTF. Not `lit`: drawn as the picture is, which a processor does sooner."""
    picture = io.BytesIO()
    Image.fromarray(mesh.picture).save(picture, "JPEG", quality=92)
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=Image.open(picture), metallicFactor=0.0, roughnessFactor=1.0
    )
    surface = trimesh.Trimesh(
        mesh.vertices,
        mesh.faces,
        vertex_normals=mesh.normals,
        visual=trimesh.visual.TextureVisuals(uv=mesh.uv, material=material),
        process=False,
    )
    # glTF's y is up; viser turns it back, as it does for every trimesh object
    data: bytes = trimesh.Scene(surface).export(file_type="glb", include_normals=True)
    return data if lit else _without_light(data)


def _without_light(glb: bytes) -> bytes:
    """The same file with KHR_materials_unlit. Header, chunk of JSON, other chunks: glTF 2.0, section 4.4."""
    size = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + size])
    document["extensionsUsed"] = [*document.get("extensionsUsed", []), "KHR_materials_unlit"]
    for material in document["materials"]:
        material["extensions"] = {**material.get("extensions", {}), "KHR_materials_unlit": {}}
        material["pbrMetallicRoughness"]["baseColorFactor"] = [_UNLIT, _UNLIT, _UNLIT, 1.0]
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    rest = glb[20 + size :]
    header = struct.pack("<4s4I", glb[:4], 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
    return header + text + rest


class TerrainLayer:
    """The ground."""

    def __init__(self, server: viser.ViserServer, max_triangles: int, lit: bool) -> None:
        self._server, self._max_triangles, self._lit = server, max_triangles, lit
        self._shown: HeightMap | None = None

    def show(self, terrain: HeightMap) -> None:
        """Draw this map instead of the one before."""
        if terrain is self._shown:
            return
        self._shown = terrain
        mesh = terrain_mesh(terrain, self._max_triangles)
        x_min, x_max, y_min, y_max = terrain.bounds
        across = float(np.hypot(x_max - x_min, y_max - y_min))
        self._server.scene.configure_fog(0.1 * across, 1.6 * across, color=_HAZE)
        self._server.scene.add_glb("/terrain", terrain_glb(mesh, self._lit), cast_shadow=False, receive_shadow=True)


class VehicleLayer:
    """All vehicles: one batch of instances for each part of each shape, so that 1,000 cost little more than one."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._handles: dict[tuple[int, int], Any] = {}
        self._drawn: dict[tuple[int, int], list[NDArray[Any]]] = {}
        self._turned: dict[int, float] = {}
        self._phases: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty((0, 2)))

    def show(self, poses: WorldPoses, enlarge: Floats, elapsed_s: float) -> None:
        """Draw these vehicles and no others, `enlarge` (n,) times their size; motors have turned for `elapsed_s`."""
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
                    self._show_part(key, part, position[rows], quat[rows], scale[rows], colour[rows], turned)
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
            quat, scale, colour, phase = (np.repeat(a, k, axis=0) for a in (quat, scale, colour, phase))
        if part.turns:
            half = phase / 2
            spin = np.column_stack([np.outer(np.sin(half), _AXES[part.turns]), np.cos(half)])
            quat = quat_multiply(quat, spin)
        wxyz = np.roll(quat, 1, axis=1).astype(np.float32)
        position, scale = position.astype(np.float32), scale.astype(np.float32)
        colours = colour if part.colour is None else np.broadcast_to(np.array(part.colour, np.uint8), colour.shape)
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
