# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Textured mesh of a HeightMap: height colours, shaded by the slopes of the full map.

A browser gets mesh and picture as binary glTF.

Tiles without seams keep the ground sharp near a camera, where one pixel of its picture covers
metres.
"""

from __future__ import annotations

import functools
import io
import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rfly_common.arrays import Floats
from rfly_common.imports import require
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.point_cloud import Region

TILE_M = {"normalTexture": 9.0, "occlusionTexture": 83.0}
"""Side of the tile of each of glTF's textures on the ground, m.

They are no multiples of each other, so that the pattern does not repeat.
"""
SRGB = 2.2
"""Approximate exponent from a colour as it is shown to its light."""
_PIXELS = 512
_BUMPS = 0.55
"""Steepness of the normals' bumps."""

UNLIT = 0.62
"""Linear brightness of ground without light, about that of level ground in the sun."""


_NORMALS_WEIGHT = 1000.0
"""Weight of the mesh's normals beside those that a browser works out."""
_CLAMP_TO_EDGE = 33071
"""Number in glTF of textures that end at their edge; by default they repeat."""


def waves(seed: int, sizes: tuple[float, ...], pixels: int = _PIXELS) -> NDArray[np.float32]:
    """Return seamless noise with waves of these sizes in pixels, each equally strong.

    (pixels, pixels), mean 0, deviation 1.
    """
    noise = np.random.default_rng(seed).normal(0.0, 1.0, (pixels, pixels)).astype(np.float32)
    reach = pixels // 4
    around = cv2.copyMakeBorder(noise, reach, reach, reach, reach, cv2.BORDER_WRAP)

    total = np.zeros((pixels, pixels), np.float32)
    for size in sizes:
        soft = cv2.GaussianBlur(around, (0, 0), size)[reach:-reach, reach:-reach]
        total += soft / soft.std()
    return np.asarray((total - total.mean()) / total.std(), np.float32)


@functools.cache
def detail_tiles() -> dict[str, NDArray[np.uint8]]:
    """Return RGB pictures by glTF's names.

    They are small bumps that the sun lights, and larger spots that the skylight darkens.
    """
    heights = waves(7, (1.2, 3.0, 9.0))
    across = np.roll(heights, 1, 1) - np.roll(heights, -1, 1)
    up = np.roll(heights, 1, 0) - np.roll(heights, -1, 0)
    normal = np.dstack([_BUMPS * across, -_BUMPS * up, np.ones_like(heights)])
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)

    spots = np.clip(180 + 62 * waves(11, (1.0, 3.0, 8.0, 20.0)), 30, 255).astype(np.uint8)
    return {
        "normalTexture": np.round(127.5 * (normal + 1)).astype(np.uint8),
        "occlusionTexture": np.dstack([spots] * 3),
    }


MAX_TRIANGLES = 400_000
"""Most triangles of a mesh."""
MAX_PICTURE = 2048
"""Pixels of the longer side of the picture."""
_PIXELS_PER_SAMPLE = 16
_ROWS_AT_ONCE = 512
_GRAIN = 512
_ROCK = (148, 136, 124)
_FINEST = 3
"""Parts of a cell's side at most: a cell becomes 3 x 3 quads."""

_TINTS = np.array(
    [
        (112, 140, 92),
        (138, 162, 104),
        (172, 180, 122),
        (206, 198, 148),
        (208, 182, 142),
        (184, 156, 130),
        (172, 160, 150),
        (216, 214, 212),
        (248, 249, 250),
    ],
    np.float32,
)
"""Colours from valley to snow, sRGB."""
_LEVEL = (150, 160, 148)
"""Colour of ground without heights."""
_GRID = (122, 134, 122)
"""Colour of the grid on it."""
_SUN = (-0.55, 0.55, 0.63)
"""Direction to the sun, ENU: from the north-west, as on maps."""


@dataclass(frozen=True, eq=False)
class TerrainMesh:
    """Vertices ENU in m, triangles with their fronts up, and the picture that `uv` points into."""

    vertices: NDArray[np.float32]
    normals: NDArray[np.float32]
    uv: NDArray[np.float32]
    """Places in the picture, (v, 2); (0, 0) is its lower left corner."""
    faces: NDArray[np.uint32]
    picture: NDArray[np.uint8]
    """Picture, (height, width, 3) RGB, north up."""


def terrain_mesh(
    terrain: HeightMap, max_triangles: int = MAX_TRIANGLES, max_picture: int = MAX_PICTURE
) -> TerrainMesh:
    """Return a mesh of at most `max_triangles` (4 at least), with all vertices on the ground.

    A large map is thinned, a small one refined. Each quad is four triangles around its middle: in a
    cell, whose ground is bilinear, they are off by a 16th of its twist at most, where two triangles
    would be off by a quarter.
    """
    columns, rows = _grid(terrain.rows - 1, terrain.columns - 1, max_triangles // 4)
    picture = terrain_picture(terrain, max_picture)
    return region_mesh(terrain, terrain.bounds, rows, columns, picture)


def region_mesh(
    terrain: HeightMap, region: Region, rows: int, columns: int, picture: NDArray[np.uint8]
) -> TerrainMesh:
    """Return the ground of a region, ENU, m, in rows x columns quads; see `terrain_mesh`."""
    x_min, x_max, y_min, y_max = region
    share_x = np.linspace(0, 1, columns + 1)
    share_y = np.linspace(0, 1, rows + 1)
    corners = np.stack(np.meshgrid(share_x, share_y), axis=-1).reshape(-1, 2)
    middles = np.stack(np.meshgrid(_between(share_x), _between(share_y)), axis=-1).reshape(-1, 2)
    uv = np.concatenate([corners, middles])

    east = x_min + uv[:, 0] * (x_max - x_min)
    north = y_min + uv[:, 1] * (y_max - y_min)
    ground = terrain.query(east, north, want_normals=True, smooth=True)

    return TerrainMesh(
        np.column_stack([east, north, ground.altitude]).astype(np.float32),
        ground.normal.astype(np.float32),
        uv.astype(np.float32),
        _faces(rows, columns),
        picture,
    )


def with_skirts(mesh: TerrainMesh, rows: int, columns: int, depth: float) -> TerrainMesh:
    """Return a mesh of rows x columns quads with walls of `depth`, m, down from its rim.

    They close the cracks to a neighbour that has other points on the same rim. They share no
    vertices with the ground: a browser that works out normals anew would bend those of the rim.
    """
    corner = np.arange((rows + 1) * (columns + 1)).reshape(rows + 1, columns + 1)
    # counter-clockwise from above
    rim = np.concatenate([corner[0, :-1], corner[:-1, -1], corner[-1, :0:-1], corner[:0:-1, 0]])
    upper = np.arange(len(rim)) + len(mesh.vertices)
    lower = upper + len(rim)
    upper_next = np.roll(upper, -1)
    lower_next = np.roll(lower, -1)
    walls = [
        np.column_stack([upper, lower, lower_next]),
        np.column_stack([upper, lower_next, upper_next]),
    ]
    top = mesh.vertices[rim]
    return TerrainMesh(
        np.concatenate([mesh.vertices, top, top - np.array([0.0, 0.0, depth], np.float32)]),
        np.concatenate([mesh.normals, mesh.normals[rim], mesh.normals[rim]]),
        np.concatenate([mesh.uv, mesh.uv[rim], mesh.uv[rim]]),
        np.concatenate([mesh.faces, *walls]).astype(np.uint32),
        mesh.picture,
    )


def _between(values: Floats) -> Floats:
    return (values[:-1] + values[1:]) / 2


def _grid(cells_x: int, cells_y: int, quads: int) -> tuple[int, int]:
    """Return the number of quads along x and y.

    They are several for each cell, or one, or fewer where the budget does not allow that.
    """
    if max(cells_x, cells_y) == 1:
        return 1, 1
    for finer in range(_FINEST, 0, -1):
        if cells_x * finer * cells_y * finer <= quads:
            return cells_x * finer, cells_y * finer

    quads = max(1, quads)
    along_x = int(np.clip(cells_x * np.sqrt(quads / (cells_x * cells_y)), 1, quads))
    return along_x, int(np.clip(cells_y * along_x / cells_x, 1, max(1, quads // along_x)))


def _faces(rows: int, columns: int) -> NDArray[np.uint32]:
    """Return four triangles, counter-clockwise from above, for each quad.

    The middles follow the corners.
    """
    corner = np.arange((rows + 1) * (columns + 1), dtype=np.uint32).reshape(rows + 1, columns + 1)
    ring = [
        corner[:-1, :-1].ravel(),
        corner[:-1, 1:].ravel(),
        corner[1:, 1:].ravel(),
        corner[1:, :-1].ravel(),
    ]
    middle = np.arange(rows * columns, dtype=np.uint32) + corner.size

    sides = zip(ring, ring[1:] + ring[:1], strict=True)
    triangles = [np.column_stack([start, end, middle]) for start, end in sides]
    return np.concatenate(triangles).astype(np.uint32)


def terrain_picture(
    terrain: HeightMap,
    max_pixels: int = MAX_PICTURE,
    limits: tuple[float, float] | None = None,
    has_grain: bool = True,
) -> NDArray[np.uint8]:
    """Return a picture, (height, width, 3) RGB, north up, east right.

    It is tinted by height, rocky where it is steep, shaded, and has a grain. limits: lowest and
    highest height of the tints, m, by default those of the map.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    limits = limits or (terrain.z_min, terrain.z_max)
    if limits[1] <= limits[0]:
        picture = _level_picture()
        side = min(max_pixels, len(picture))
        return np.asarray(cv2.resize(picture, (side, side), interpolation=cv2.INTER_AREA), np.uint8)

    # size of the picture
    size = min(max_pixels, _PIXELS_PER_SAMPLE * max(terrain.rows, terrain.columns))
    longest = max(x_max - x_min, y_max - y_min)
    width = max(2, round(size * (x_max - x_min) / longest))
    height = max(2, round(size * (y_max - y_min) / longest))

    # heights of the pixels, north up
    north_step = 1 if terrain.step_y < 0 else -1
    east_step = 1 if terrain.step_x > 0 else -1
    z = terrain.heights.T[::north_step, ::east_step]
    smaller = z.shape[0] > height or z.shape[1] > width
    interpolation = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    resized = cv2.resize(np.ascontiguousarray(z), (width, height), interpolation=interpolation)
    z = np.asarray(resized, np.float32)

    # drawn in strips, to save memory
    picture = np.empty((height, width, 3), np.uint8)
    scale = ((x_max - x_min) / width, (y_max - y_min) / height)
    tile = grain() if has_grain else np.ones((_GRAIN, _GRAIN), np.float32)
    factors = np.tile(tile, (1, -(-width // _GRAIN)))[:, :width]
    for start in range(0, height, _ROWS_AT_ONCE):
        stop = min(height, start + _ROWS_AT_ONCE)
        # a row more on each side, for slopes
        first = max(0, start - 1)
        strip = _shaded(z[first : stop + 1], scale, limits)[start - first :][: stop - start]
        texture = np.roll(factors, -start, axis=0)[: len(strip)]
        picture[start:stop] = np.clip(strip * texture[..., None], 0, 255)
    return picture


def _shaded(
    z: NDArray[np.float32], scale: tuple[float, float], limits: tuple[float, float]
) -> NDArray[np.float32]:
    """Return colours (0 … 255, floats) of heights whose pixels are `scale` metres wide and high."""
    # tints by height
    low, high = limits
    levels = np.linspace(0, len(_TINTS) - 1, 256)
    table = np.column_stack(
        [np.interp(levels, np.arange(len(_TINTS)), _TINTS[:, i]) for i in range(3)]
    )
    level = np.clip((z - low) * (255 / (high - low)), 0, 255).astype(np.uint8)
    tint = cv2.LUT(cv2.merge([level] * 3), table.astype(np.uint8)[None])

    # light by slope
    slope_x = cv2.Sobel(z, cv2.CV_32F, 1, 0, ksize=1, scale=0.5 / scale[0])
    slope_y = cv2.Sobel(z, cv2.CV_32F, 0, 1, ksize=1, scale=-0.5 / scale[1])
    steep = cv2.magnitude(slope_x, slope_y)
    facing = (_SUN[2] - slope_x * _SUN[0] - slope_y * _SUN[1]) / np.sqrt(1 + steep * steep)
    light = np.clip((1.0 - 0.55 * _SUN[2]) + 0.55 * facing, 0.4, 1.3)

    # rock where it is steep
    rock = np.clip((steep - 0.45) / 0.5, 0, 0.75)
    colours: NDArray[np.float32] = tint * (light * (1 - rock))[..., None]
    for channel, value in enumerate(_ROCK):
        colours[..., channel] += (value * light) * rock
    return colours


@functools.cache
def grain() -> NDArray[np.float32]:
    """Return a tile of factors around 1, (512, 512), without seams: spots of several sizes.

    They are the same each time, and give the eye something to follow.
    """
    return np.asarray(1 + 0.08 * waves(7, (0.5, 1.5, 5.0, 16.0), _GRAIN), np.float32)


def _level_picture() -> NDArray[np.uint8]:
    """Return plain ground with a grid of 100 x 100 squares."""
    picture = np.full((2000, 2000, 3), _LEVEL, np.uint8)
    lines = slice(None, None, 20)
    picture[lines] = _GRID
    picture[:, lines] = _GRID
    return picture


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
