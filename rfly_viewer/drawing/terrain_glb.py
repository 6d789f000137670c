# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground's mesh and picture as binary glTF, for a browser."""

from __future__ import annotations

import io
import math
from typing import Any

import cv2
import numpy as np
from PIL import Image

from rfly_common.imports import require
from rfly_viewer.drawing.terrain_mesh import SRGB, TILE_M, TerrainMesh, detail_tiles

UNLIT = 0.62
"""Linear brightness of ground without light, about that of level ground in the sun."""


_NORMALS_WEIGHT = 1000.0
"""Weight of the mesh's normals beside those that a browser works out."""
_CLAMP_TO_EDGE = 33071
"""Number in glTF of textures that end at their edge; by default they repeat."""


def terrain_glb(mesh: TerrainMesh, lit: bool = True, is_photo: bool = False) -> bytes:
    """Return the mesh with its picture as binary glTF.

    Not `lit`: it is drawn as in the picture, which a processor does faster. `is_photo`: its colours
    are those of the ground, without small bumps and spots, and patches of it fit together.
    """
    trimesh = require("trimesh", "the ground of the window")
    tiles = detail_tiles() if lit and not is_photo else {}
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

    east, north, _ = np.ptp(mesh.vertices, axis=0).tolist()

    def add(document: dict[str, Any]) -> None:
        """Add what trimesh does not write."""
        [material] = document["materials"]
        for name in tiles:
            scale = [east / TILE_M[name], north / TILE_M[name]]
            material[name]["extensions"] = {"KHR_texture_transform": {"scale": scale}}
            document["extensionsUsed"] = ["KHR_texture_transform"]
        if is_photo:
            document["samplers"] = [{"wrapS": _CLAMP_TO_EDGE, "wrapT": _CLAMP_TO_EDGE}]
            document["textures"][0]["sampler"] = 0
        if lit:
            _keep_normals(document)
        else:
            _draw_without_light(document, material, 1.0 if is_photo else UNLIT)

    # glTF's y is up; viser turns it back, as it does for every trimesh object
    return bytes(surface.export(file_type="glb", include_normals=True, tree_postprocessor=add))


def coloured_glb(mesh: TerrainMesh, brightness: float) -> bytes:
    """Return the mesh with a colour at each vertex, drawn without light, as binary glTF.

    A browser draws it with its first messages: it waits for no picture, and its shader is short.
    `brightness`: 1 as in the picture, UNLIT as level ground in the sun.
    """
    trimesh = require("trimesh", "the ground of the window")

    # as many pixels as vertices
    side = math.isqrt(len(mesh.vertices))
    small = cv2.resize(mesh.picture, (side, side), interpolation=cv2.INTER_AREA)
    column = side * mesh.uv[:, 0] - 0.5
    row = side * (1.0 - mesh.uv[:, 1]) - 0.5
    shown = cv2.remap(small, column, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    light = (shown.reshape(-1, 3) / 255.0) ** SRGB

    surface = trimesh.Trimesh(
        mesh.vertices,
        mesh.faces,
        vertex_colors=np.round(255.0 * light).astype(np.uint8),
        process=False,
    )

    def add(document: dict[str, Any]) -> None:
        """Add what trimesh does not write."""
        document["materials"] = [{"pbrMetallicRoughness": {}}]
        document["meshes"][0]["primitives"][0]["material"] = 0
        _draw_without_light(document, document["materials"][0], brightness)

    return bytes(surface.export(file_type="glb", include_normals=False, tree_postprocessor=add))


def _draw_without_light(document: dict[str, Any], material: Any, brightness: float) -> None:
    """Make a material as bright as its colours, times `brightness`."""
    material["extensions"] = {"KHR_materials_unlit": {}}
    material["pbrMetallicRoughness"]["baseColorFactor"] = [*[brightness] * 3, 1.0]
    document["extensionsUsed"] = ["KHR_materials_unlit"]


def _keep_normals(document: dict[str, Any]) -> None:
    """Add the normals as a morph target of large weight.

    viser's page works out normals anew from the faces. They would be those of one side at the rim
    of a patch, and level on its walls. What a morph target adds to them, stays.
    """
    accessors = document["accessors"]
    [mesh] = document["meshes"]
    [primitive] = mesh["primitives"]
    normals = dict(accessors[primitive["attributes"]["NORMAL"]])

    # a view of the same bytes, because the page writes into those of the first
    document["bufferViews"].append(document["bufferViews"][normals["bufferView"]])
    normals["bufferView"] = len(document["bufferViews"]) - 1
    still = {key: normals[key] for key in ("componentType", "count", "type")}  # zeros
    still |= {"min": [0.0] * 3, "max": [0.0] * 3}
    primitive["targets"] = [{"POSITION": len(accessors), "NORMAL": len(accessors) + 1}]
    accessors += [still, normals]
    mesh["weights"] = [_NORMALS_WEIGHT]


def _jpeg(picture: Any) -> Image.Image:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=90)
    return Image.open(file)
