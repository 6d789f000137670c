"""Triangle meshes of boxes, tubes and balls; z up, metres, faces wound so that their front is outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices (v, 3) float32 and faces (f, 3) uint32."""

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]

    def moved(self, by: ArrayLike) -> Mesh:
        """The same, shifted by (x, y, z)."""
        return Mesh((self.vertices + np.asarray(by)).astype(np.float32), self.faces)

    def turned_z(self, angle: float) -> Mesh:
        """The same, turned about z, counter-clockwise seen from above (rad)."""
        c, s = np.cos(angle), np.sin(angle)
        return Mesh((self.vertices @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])).astype(np.float32), self.faces)


def join(*meshes: Mesh) -> Mesh:
    """One mesh of several."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.uint32))


def tapered_box(length: float, width: float, height: float, top: tuple[float, float, float, float]) -> Mesh:
    """A box on z = 0, length along x; `top` is x_min, x_max, y_min, y_max of its upper face."""
    a, b = length / 2, width / 2
    corners = [
        (-a, -b, 0), (a, -b, 0), (a, b, 0), (-a, b, 0),
        (top[0], top[2], height), (top[1], top[2], height), (top[1], top[3], height), (top[0], top[3], height),
    ]  # fmt: skip
    quads = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    return Mesh(np.array(corners, np.float32), _triangles(quads))


def box(length: float, width: float, height: float) -> Mesh:
    """A box on z = 0, in the middle of x and y."""
    return tapered_box(length, width, height, (-length / 2, length / 2, -width / 2, width / 2))


def tube(radii: ArrayLike, heights: ArrayLike, sides: int = 12) -> Mesh:
    """A body of revolution about z: circles of these radii at these rising heights, closed at both ends."""
    r, h = np.asarray(radii, float), np.asarray(heights, float)
    angle = np.arange(sides) * 2 * np.pi / sides
    rings = np.stack(
        [np.outer(r, np.cos(angle)), np.outer(r, np.sin(angle)), np.repeat(h[:, None], sides, axis=1)], axis=-1
    )
    vertices = np.concatenate([rings.reshape(-1, 3), [(0, 0, h[0]), (0, 0, h[-1])]])
    ring, i = np.meshgrid(np.arange(len(r) - 1) * sides, np.arange(sides), indexing="ij")
    j = (i + 1) % sides
    quads = np.stack([ring + i, ring + j, ring + sides + j, ring + sides + i], axis=-1).reshape(-1, 4)
    bottom, top, last = len(vertices) - 2, len(vertices) - 1, (len(r) - 1) * sides
    k = np.arange(sides)
    caps = [
        np.column_stack([np.full(sides, bottom), (k + 1) % sides, k]),
        np.column_stack([np.full(sides, top), last + k, last + (k + 1) % sides]),
    ]
    return Mesh(vertices.astype(np.float32), np.concatenate([_triangles(quads), *caps]).astype(np.uint32))


def ball(radius: float, rings: int = 8, sides: int = 12) -> Mesh:
    """A sphere about the origin."""
    polar = np.linspace(0.03, np.pi - 0.03, rings)
    return tube(radius * np.sin(polar), -radius * np.cos(polar), sides)


def lying(mesh: Mesh, along: str) -> Mesh:
    """A mesh about z laid down, so that its z points along x or y."""
    x, y, z = mesh.vertices.T
    turned = {"x": (z, y, -x), "y": (x, z, -y)}[along]
    return Mesh(np.column_stack(turned).astype(np.float32), mesh.faces)


def _triangles(quads: ArrayLike) -> NDArray[np.uint32]:
    q = np.asarray(quads)
    return np.concatenate([q[:, [0, 1, 2]], q[:, [0, 2, 3]]]).astype(np.uint32)
