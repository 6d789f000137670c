# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simple meshes of RflySim3D's vehicle types, drawn around their collision shapes.

RflySim3D has detailed models; these only show the kind of a vehicle, its place and its direction.
The shipped shape set (`rfly_collision.shapes.vehicle_shapes`) gives the size of each kind and its
vehicle types; the types have names in `rfly_common.config.vehicle_models`.

All meshes are in body axes FLU: x forward, y left, z up, with the origin at the packet's position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_collision.shapes.shape import Box, ConvexHull
from rfly_collision.shapes.vehicle_shapes import load_shapes, parts_of
from rfly_common.arrays import Floats, Ints
from rfly_common.config.vehicle_models import type_number

SHAPES = load_shapes()
"""Collision shapes of the kinds, in the order of MODELS."""
DARK = (38, 42, 48)
GLASS = (52, 78, 104)
WHITE = (238, 238, 232)

_GOLDEN = 0.618033988749895

TARGET_TYPE = type_number("quad_target")
"""vehicleType of a target that is put down in the viewer."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Vertices (v, 3) float32, m, and faces (f, 3) uint32, with their fronts outside."""

    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]

    def moved(self, by: ArrayLike) -> Mesh:
        """Return the mesh shifted by (x, y, z)."""
        return Mesh((self.vertices + np.asarray(by)).astype(np.float32), self.faces)

    def turned_z(self, angle: float) -> Mesh:
        """Return the mesh turned about z, counter-clockwise seen from above (rad)."""
        c = np.cos(angle)
        s = np.sin(angle)
        turned = self.vertices @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
        return Mesh(turned.astype(np.float32), self.faces)


def join(*meshes: Mesh) -> Mesh:
    """Return one mesh of several."""
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes[:-1])])
    faces = [mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)]
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.uint32)
    )


def tapered_box(
    length: float, width: float, height: float, top: tuple[float, float, float, float]
) -> Mesh:
    """Return a box on z = 0, length along x.

    `top` is x_min, x_max, y_min, y_max of its upper face.
    """
    a = length / 2
    b = width / 2
    x_min, x_max, y_min, y_max = top
    bottom_face = [(-a, -b, 0), (a, -b, 0), (a, b, 0), (-a, b, 0)]
    top_face = [
        (x_min, y_min, height),
        (x_max, y_min, height),
        (x_max, y_max, height),
        (x_min, y_max, height),
    ]
    corners = bottom_face + top_face
    quads = [(3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)]
    return Mesh(np.array(corners, np.float32), _triangles(quads))


def box(length: float, width: float, height: float) -> Mesh:
    """Return a box on z = 0, in the middle of x and y."""
    return tapered_box(length, width, height, (-length / 2, length / 2, -width / 2, width / 2))


def tube(radii: ArrayLike, heights: ArrayLike, sides: int = 12) -> Mesh:
    """Return a body of revolution about z.

    It has circles of these radii at these rising heights, and is closed at both ends.
    """
    r = np.asarray(radii, float)
    h = np.asarray(heights, float)
    angle = np.arange(sides) * 2 * np.pi / sides
    x = np.outer(r, np.cos(angle))
    y = np.outer(r, np.sin(angle))
    z = np.repeat(h[:, None], sides, axis=1)
    rings = np.stack([x, y, z], axis=-1)
    vertices = np.concatenate([rings.reshape(-1, 3), [(0, 0, h[0]), (0, 0, h[-1])]])

    # the sides
    ring, i = np.meshgrid(np.arange(len(r) - 1) * sides, np.arange(sides), indexing="ij")
    j = (i + 1) % sides
    quads = np.stack([ring + i, ring + j, ring + sides + j, ring + sides + i], axis=-1)
    side_faces = _triangles(quads.reshape(-1, 4))

    # the ends
    bottom = len(vertices) - 2
    top = len(vertices) - 1
    last = (len(r) - 1) * sides
    k = np.arange(sides)
    caps = [
        np.column_stack([np.full(sides, bottom), (k + 1) % sides, k]),
        np.column_stack([np.full(sides, top), last + k, last + (k + 1) % sides]),
    ]

    faces = np.concatenate([side_faces, *caps]).astype(np.uint32)
    return Mesh(vertices.astype(np.float32), faces)


def ball(radius: float) -> Mesh:
    """Return a sphere about the origin."""
    polar = np.linspace(0.03, np.pi - 0.03, 8)
    return tube(radius * np.sin(polar), -radius * np.cos(polar), 12)


def lying(mesh: Mesh, along: str) -> Mesh:
    """Return a mesh about z laid down, so that its z points along x or y."""
    x, y, z = mesh.vertices.T
    turned = {"x": (z, y, -x), "y": (x, z, -y)}[along]
    return Mesh(np.column_stack(turned).astype(np.float32), mesh.faces)


def _triangles(quads: ArrayLike) -> NDArray[np.uint32]:
    q = np.asarray(quads)
    return np.concatenate([q[:, [0, 1, 2]], q[:, [0, 2, 3]]]).astype(np.uint32)


@dataclass(frozen=True, eq=False)
class Part:
    """Mesh in one colour, drawn once at each of `positions`.

    A part that `turns` does so with the motors.
    """

    mesh: Mesh
    colour: tuple[int, int, int] | None = None
    """Red, green, blue; None: the vehicle's own."""
    positions: Floats | None = None
    """Positions in body axes, (k, 3), m; None: at the origin."""
    turns: str = ""
    """Body axis about which it turns, "x", "y" or "z"; empty: it does not turn."""
    wheels: bool = False
    """True if it turns with a land-air vehicle's wheel channels, not with the motors' mean."""


@dataclass(frozen=True, eq=False)
class VehicleMesh:
    """Parts that are drawn of a kind."""

    name: str
    parts: tuple[Part, ...]


def _multirotor() -> VehicleMesh:
    arm = 0.32
    radius = 0.22
    positions = np.array(
        [(arm * x, arm * y, 0.075) for x, y in ((1, -1), (-1, 1), (1, 1), (-1, -1))]
    )

    arms = [
        box(2 * math.sqrt(2) * arm, 0.05, 0.035).moved((0, 0, -0.01)).turned_z(a)
        for a in (math.pi / 4, -math.pi / 4)
    ]

    body = join(
        tube([0.10, 0.15, 0.15, 0.08], [-0.05, -0.02, 0.05, 0.09], 10),
        *arms,
        tapered_box(0.16, 0.09, 0.05, (0.0, 0.08, -0.03, 0.03)).moved((0.16, 0, -0.01)),
    )

    posts = [tube([0.045, 0.045], [-0.03, 0.07], 8).moved((x, y, 0)) for x, y, _ in positions]
    legs = [box(0.36, 0.03, 0.03).moved((0, side * 0.17, -0.2)) for side in (-1, 1)]
    legs += [
        box(0.03, 0.03, 0.18).moved((x, side * 0.15, -0.19))
        for side in (-1, 1)
        for x in (-0.1, 0.1)
    ]

    blade = join(box(2 * radius, 0.045, 0.012), tube([0.03, 0.02], [0, 0.035], 8))
    return VehicleMesh(
        "multirotor",
        (Part(body), Part(join(*posts, *legs), DARK), Part(blade, WHITE, positions, turns="z")),
    )


def _car() -> VehicleMesh:
    hull = join(
        tapered_box(4.3, 1.8, 0.48, (-2.12, 2.05, -0.88, 0.88)).moved((0, 0, 0.32)),
        tapered_box(2.3, 1.55, 0.06, (-1.1, 1.1, -0.72, 0.72)).moved((-0.25, 0, 1.36)),
    )

    cabin = tapered_box(3.0, 1.66, 0.58, (-1.15, 1.05, -0.76, 0.76)).moved((-0.25, 0, 0.79))
    lamps = [box(0.06, 0.4, 0.14).moved((2.11, side * 0.6, 0.5)) for side in (-1, 1)]

    wheel = lying(tube([0.30, 0.34, 0.34, 0.30], [-0.12, -0.08, 0.08, 0.12], 14), "y")
    hub = lying(
        join(tube([0.16, 0.16], [-0.125, 0.125], 6), box(0.28, 0.06, 0.25).moved((0, 0, -0.125))),
        "y",
    )
    positions = np.array([(x, y, 0.34) for x in (1.35, -1.35) for y in (0.86, -0.86)])

    return VehicleMesh(
        "car",
        (
            Part(hull),
            Part(cabin, GLASS),
            Part(join(*lamps), WHITE),
            Part(wheel, DARK, positions, turns="y"),
            Part(hub, (150, 152, 156), positions, turns="y"),
        ),
    )


def _person() -> VehicleMesh:
    legs = [tube([0.09, 0.11], [0.05, 0.85], 8).moved((0, side * 0.11, 0)) for side in (-1, 1)]
    shoes = [box(0.28, 0.11, 0.09).moved((0.05, side * 0.11, 0)) for side in (-1, 1)]
    arms = [tube([0.05, 0.07], [0.82, 1.42], 8).moved((0.02, side * 0.29, 0)) for side in (-1, 1)]
    return VehicleMesh(
        "person",
        (
            Part(join(tube([0.17, 0.24, 0.22, 0.1], [0.82, 1.1, 1.4, 1.5], 10), *arms)),
            Part(join(*legs, *shoes), DARK),
            Part(
                join(ball(0.13).moved((0, 0, 1.66)), box(0.06, 0.04, 0.05).moved((0.14, 0, 1.63))),
                (228, 186, 150),
            ),
        ),
    )


def _truck() -> VehicleMesh:
    bed = box(4.5, 2.2, 0.3).moved((-0.95, 0, 0.55))
    cargo = box(4.4, 2.3, 1.85).moved((-1.0, 0, 0.85))
    cab = join(
        tapered_box(1.9, 2.2, 1.2, (-0.95, 0.9, -1.1, 1.1)).moved((2.33, 0, 0.45)),
        tapered_box(1.75, 2.1, 0.12, (-0.85, 0.55, -1.0, 1.0)).moved((2.25, 0, 2.3)),
    )
    windows = tapered_box(1.85, 2.15, 0.65, (-0.9, 0.65, -1.05, 1.05)).moved((2.3, 0, 1.65))
    lamps = [box(0.05, 0.35, 0.16).moved((3.26, side * 0.8, 0.65)) for side in (-1, 1)]
    wheel = lying(tube([0.42, 0.48, 0.48, 0.42], [-0.15, -0.1, 0.1, 0.15], 14), "y")
    positions = np.array([(x, y, 0.48) for x in (2.3, -1.2, -2.3) for y in (0.98, -0.98)])
    return VehicleMesh(
        "truck",
        (
            Part(join(cab, cargo)),
            Part(bed, DARK),
            Part(windows, GLASS),
            Part(join(*lamps), WHITE),
            Part(wheel, DARK, positions, turns="y"),
        ),
    )


def _light() -> VehicleMesh:
    pole = join(tube([0.15, 0.1], [0.0, 0.12], 12), tube([0.06, 0.045], [0.1, 3.65], 10))
    head = tube([0.08, 0.15, 0.15, 0.05], [3.6, 3.68, 3.9, 4.0], 12)
    return VehicleMesh("light", (Part(pole, DARK), Part(head, (255, 236, 170))))


def _frame(name: str) -> VehicleMesh:
    """Return a target to fly through, as it is in contacts; its post is dark."""
    parts = parts_of(SHAPES[int(SHAPES.index_of(type_number(name)))].shape)
    sides = [_side(part) for part in parts if isinstance(part, ConvexHull)]
    posts = [_post(part) for part in parts if isinstance(part, Box)]
    return VehicleMesh(name, (Part(join(*sides)), Part(join(*posts), DARK)))


def _side(hull: ConvexHull) -> Mesh:
    """Return the surface of a frame's side, whose corners are in the order of `frame_on_post`."""
    vertices = np.asarray(hull.vertices, np.float32)
    faces = _triangles(
        [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    )

    # fronts outside
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    outward = corners.mean(axis=1) - vertices.mean(axis=0)
    inside_out = np.einsum("ij,ij->i", normal, outward) < 0
    faces[inside_out] = faces[inside_out, ::-1]
    return Mesh(vertices, faces)


def _post(shape: Box) -> Mesh:
    x, y, z = shape.offset
    return box(*shape.size).moved((x, y, z - shape.size[2] / 2))


def _plane() -> VehicleMesh:
    fuselage = lying(tube([0.03, 0.12, 0.14, 0.09, 0.04], [-0.9, -0.3, 0.25, 0.6, 0.75], 10), "x")

    wing = tapered_box(0.34, 2.4, 0.04, (-0.14, 0.1, -1.15, 1.15)).moved((0.1, 0, 0.05))
    tail = join(
        tapered_box(0.22, 0.8, 0.03, (-0.1, 0.06, -0.36, 0.36)).moved((-0.78, 0, 0.02)),
        tapered_box(0.26, 0.03, 0.34, (-0.16, 0.0, -0.015, 0.015)).moved((-0.76, 0, 0.02)),
    )

    propeller = lying(join(box(0.5, 0.05, 0.015), tube([0.04, 0.02], [0, 0.06], 8)), "x")

    return VehicleMesh(
        "aeroplane",
        (
            Part(join(fuselage, wing)),
            Part(tail, WHITE),
            Part(propeller, DARK, np.array([(0.76, 0.0, 0.0)]), turns="x"),
        ),
    )


def _land_air(rotors: int) -> VehicleMesh:
    """Return a chassis on four wheels below rotors in a circle.

    It has the size of the shipped 30 kg vehicle.
    """
    reach = 0.75
    radius = 0.33
    wheel_radius = 0.11
    angles = (np.arange(rotors) + 0.5) * 2 * math.pi / rotors
    hubs = np.column_stack([reach * np.cos(angles), reach * np.sin(angles), np.full(rotors, 0.2)])

    hull = join(
        tapered_box(0.85, 0.46, 0.14, (-0.40, 0.36, -0.20, 0.20)).moved((0, 0, -0.1)),
        tapered_box(0.5, 0.32, 0.1, (-0.2, 0.12, -0.12, 0.12)).moved((-0.04, 0, 0.04)),
    )

    arms = [
        box(reach, 0.035, 0.03).moved((reach / 2, 0, 0.12)).turned_z(angle)
        for angle in angles.tolist()
    ]
    posts = [tube([0.035, 0.03], [0.1, 0.19], 8).moved((x, y, 0)) for x, y, _ in hubs.tolist()]
    lamps = [box(0.02, 0.09, 0.04).moved((0.415, side * 0.13, -0.04)) for side in (-1, 1)]

    blade = join(box(2 * radius, 0.045, 0.012), tube([0.03, 0.02], [0, 0.03], 8))

    tyre = lying(
        tube([0.09, wheel_radius, wheel_radius, 0.09], [-0.04, -0.025, 0.025, 0.04], 14), "y"
    )
    hub = lying(
        join(tube([0.05, 0.05], [-0.045, 0.045], 6), box(0.13, 0.025, 0.09).moved((0, 0, -0.045))),
        "y",
    )
    wheels = np.array([(x, y, -0.116) for x in (0.32, -0.34) for y in (0.28, -0.28)])

    return VehicleMesh(
        f"land_air_{rotors}",
        (
            Part(hull),
            Part(join(*arms, *posts), DARK),
            Part(join(*lamps), WHITE),
            Part(blade, WHITE, hubs, turns="z"),
            Part(tyre, DARK, wheels, turns="y", wheels=True),
            Part(hub, (150, 152, 156), wheels, turns="y", wheels=True),
        ),
    )


def _marker() -> VehicleMesh:
    """Return the plain marker of a type without a model of its own: a cube with its front marked.

    The window writes name or number of the type over it.
    """
    ahead = join(
        box(0.02, 0.5, 0.5).moved((0.5, 0, -0.25)), box(0.4, 0.1, 0.02).moved((0.3, 0, 0.49))
    )
    return VehicleMesh("marker", (Part(box(1.0, 1.0, 1.0).moved((0, 0, -0.5))), Part(ahead, DARK)))


_DRAWN = {
    model.name: model
    for model in (
        _multirotor(),
        _car(),
        _truck(),
        _person(),
        _light(),
        _frame("ring_target"),
        _frame("quad_target"),
        _frame("sphere_target"),
        _plane(),
        _marker(),
        _land_air(4),
        _land_air(6),
        _land_air(8),
    )
}
KINDS = (*(shape.name for shape in SHAPES.shapes), "marker")
"""Names of the kinds, in the order of the shape set."""
MODELS = tuple(_DRAWN[name] for name in KINDS)
"""Models of the kinds."""

# indices into KINDS and MODELS
MULTIROTOR = KINDS.index("multirotor")
CAR = KINDS.index("car")
PERSON = KINDS.index("person")
PLANE = KINDS.index("aeroplane")
MARKER = KINDS.index("marker")

CENTRE_HEIGHT: Floats = SHAPES.column("centre_height")
"""Height of each kind's origin above the ground that it stands on, (kinds,), m.

It is CenterHeightAboveGroundCm of RflySim3D's models.
"""
BOX_LOW = SHAPES.column("low")
"""Least corner of the box around each kind, body axes, (kinds, 3), m."""
BOX_HIGH = SHAPES.column("high")
"""Greatest corner of the box around each kind, body axes, (kinds, 3), m."""


def kind_of(vehicle_type: ArrayLike) -> Ints:
    """Return the index into MODELS for each vehicleType."""
    return SHAPES.index_of(vehicle_type)


def colour_of(vehicle_id: ArrayLike) -> NDArray[np.uint8]:
    """Return a distinct colour for each id, (n, 3) RGB.

    The hues are a golden section apart, so that neighbours differ most.
    """
    hue = np.mod(np.asarray(vehicle_id, np.int64) * _GOLDEN, 1.0)
    bright = np.abs(np.mod(hue[..., None] * 6 + np.array([0.0, 4.0, 2.0]), 6) - 3) - 1
    return (255 * (0.08 + 0.87 * np.clip(bright, 0, 1))).astype(np.uint8)


_LIGHT = np.array((0.25, 0.45, 0.86)) / np.linalg.norm((0.25, 0.45, 0.86))
"""Direction to the lamp, body axes.

It shines from above, a little from ahead and the left, so that the three sides differ.
"""
_SHADE = 0.45
"""Brightness of a face that looks away from the lamp."""


class ModelTriangles(NamedTuple):
    """Triangles of a model in body axes FLU, around the vehicle's position."""

    points: Floats
    """Corners of each triangle, (t, 3, 3), m, counter-clockwise from outside."""
    colours: Floats
    """Red, green, blue of each triangle, (t, 3), 0 … 1."""


def model_triangles(vehicle_type: int, colour: ArrayLike, scale: ArrayLike = 1.0) -> ModelTriangles:
    """Return the model of a vehicleType in a vehicle's own colour (RGB 0 … 255).

    Its size is multiplied by `scale` (1 or 3 factors). It grows from the ground on which it stands,
    so that wheels touch the ground at any size.
    """
    kind = int(kind_of(vehicle_type))
    factors = np.broadcast_to(np.asarray(scale, float), 3)
    points = []
    colours = []

    for part in MODELS[kind].parts:
        corners = part.mesh.vertices[part.mesh.faces].astype(np.float64)
        places = np.zeros((1, 3)) if part.positions is None else part.positions
        points.append((corners + places[:, None, None]).reshape(-1, 3, 3))
        rgb = np.asarray(colour if part.colour is None else part.colour, float) / 255
        colours.append(np.broadcast_to(rgb, (len(points[-1]), 3)))

    grown = np.concatenate(points) * factors
    grown[..., 2] += (factors[2] - 1.0) * CENTRE_HEIGHT[kind]

    # lit by the lamp
    across = np.cross(grown[:, 1] - grown[:, 0], grown[:, 2] - grown[:, 0])
    size = np.linalg.norm(across, axis=1)
    facing = np.where(size > 0, across @ _LIGHT / np.where(size > 0, size, 1.0), 0.0)
    light = _SHADE + (1.0 - _SHADE) * np.maximum(facing, 0.0)
    return ModelTriangles(grown, np.concatenate(colours) * light[:, None])
