# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layer of the ground in a viser scene.

Each browser gets a coarse ground at once and the fine one after its first picture.
"""

from __future__ import annotations

import io
import json
import struct
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import trimesh
import viser
from PIL import Image

from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.drawing.terrain_mesh import TILE_M, TerrainMesh, detail_tiles, terrain_mesh

COARSE_TRIANGLES = 20_000
"""Most triangles of the coarse ground."""
COARSE_PICTURE = 512
"""Pixels of the longer side of the coarse ground's picture."""
FINE_HIDDEN_S = 3.0
"""Time in which the fine ground is there unseen, s.

The browser has then read it when it replaces the coarse one.
"""
_HAZE = (206, 220, 230)
_UNLIT = 0.62
"""Linear brightness of ground without light, about that of level ground in the sun."""


def terrain_glb(mesh: TerrainMesh, lit: bool = True) -> bytes:
    """Return the mesh with its picture as binary glTF.

    Not `lit`: it is drawn as in the picture, which a processor does faster.
    """
    tiles = detail_tiles() if lit else {}
    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=_jpeg(mesh.picture),
        metallicFactor=0.0,
        roughnessFactor=1.0,
        **{name: _jpeg(tile) for name, tile in tiles.items()},
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
    east, north, _ = np.ptp(mesh.vertices, axis=0).tolist()
    repeats = {name: [east / TILE_M[name], north / TILE_M[name]] for name in tiles}
    return _with_extensions(data, repeats)


def _jpeg(picture: Any) -> Image.Image:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=90)
    return Image.open(file)


def _with_extensions(glb: bytes, repeats: dict[str, list[float]]) -> bytes:
    """Return the same file with textures that repeat along and across the mesh.

    Without such a texture it gets KHR_materials_unlit. Header, chunk of JSON, other chunks: glTF
    2.0, section 4.4. trimesh writes neither extension.
    """
    size = int.from_bytes(glb[12:16], "little")
    document = json.loads(glb[20 : 20 + size])

    used = "KHR_texture_transform" if repeats else "KHR_materials_unlit"
    document["extensionsUsed"] = [*document.get("extensionsUsed", []), used]
    [material] = document["materials"]
    for name, scale in repeats.items():
        material[name]["extensions"] = {used: {"scale": scale}}
    if not repeats:
        material["extensions"] = {**material.get("extensions", {}), used: {}}
        material["pbrMetallicRoughness"]["baseColorFactor"] = [_UNLIT, _UNLIT, _UNLIT, 1.0]

    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    rest = glb[20 + size :]
    header = struct.pack("<4s4I", glb[:4], 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A)
    return header + text + rest


@dataclass
class _Ground:
    """Ground that one browser shows."""

    coarse: Any
    fine: Any = None
    shown_at_s: float = 0.0
    """Time at which the fine ground replaces the coarse one."""


class TerrainLayer:
    """Ground of all browsers."""

    def __init__(self, server: viser.ViserServer, max_triangles: int, lit: bool) -> None:
        self._server = server
        self._max_triangles = max_triangles
        self._lit = lit
        self._terrain: HeightMap | None = None
        self._coarse = b""
        self._fine = b""
        """Fine ground; empty until a thread has made it."""
        self._refining: threading.Thread | None = None
        self._refined: HeightMap | None = None
        """Terrain that the thread was given last."""
        self._grounds: dict[int, _Ground] = {}

    def show(self, terrain: HeightMap) -> None:
        """Draw this map instead of the one before."""
        if terrain is self._terrain:
            return
        self._terrain = terrain
        self._fine = b""

        coarse = terrain_mesh(terrain, min(COARSE_TRIANGLES, self._max_triangles), COARSE_PICTURE)
        self._coarse = terrain_glb(coarse, self._lit)

        for ground in self._grounds.values():
            ground.coarse.remove()
            if ground.fine is not None:
                ground.fine.remove()
        self._grounds.clear()

        x_min, x_max, y_min, y_max = terrain.bounds
        across = float(np.hypot(x_max - x_min, y_max - y_min))
        self._server.scene.configure_fog(0.1 * across, 1.6 * across, color=_HAZE)

    @property
    def is_settled(self) -> bool:
        """True if there are browsers, and all of them show the fine ground."""
        grounds = self._grounds.values()
        return bool(grounds) and not any(ground.coarse.visible for ground in grounds)

    def update(self, now_s: float) -> None:
        """Give each browser the ground that it lacks."""
        self._start_refining()

        clients = self._server.get_clients()
        self._grounds = {
            number: ground for number, ground in self._grounds.items() if number in clients
        }

        for number, client in clients.items():
            ground = self._grounds.get(number)
            if ground is None:
                self._grounds[number] = _Ground(
                    _add(client.scene, "/terrain/coarse", self._coarse, visible=True)
                )
            elif ground.fine is None and self._fine:
                ground.fine = _add(client.scene, "/terrain/fine", self._fine, visible=False)
                ground.shown_at_s = now_s + FINE_HIDDEN_S
            elif ground.fine is not None and ground.coarse.visible and now_s >= ground.shown_at_s:
                with client.atomic():
                    ground.fine.visible = True
                    ground.coarse.visible = False

    def _start_refining(self) -> None:
        """Start a thread that makes the fine ground, one at a time, however often the map changes.

        It takes seconds for a large map.
        """
        at_work = self._refining is not None and self._refining.is_alive()
        if self._terrain is self._refined or self._terrain is None or at_work:
            return
        self._refined = self._terrain
        self._refining = threading.Thread(
            target=self._refine, args=(self._terrain,), name="rfly view: ground", daemon=True
        )
        self._refining.start()

    def _refine(self, terrain: HeightMap) -> None:
        glb = terrain_glb(terrain_mesh(terrain, self._max_triangles), self._lit)
        if terrain is self._terrain:
            self._fine = glb


def _add(scene: viser.SceneApi, name: str, glb: bytes, visible: bool) -> Any:
    return scene.add_glb(name, glb, visible=visible, cast_shadow=False, receive_shadow=True)
