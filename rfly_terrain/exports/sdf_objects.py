"""Objects of a world as a static SDF 1.9 model: boxes, cylinders, and binary STL meshes of all other convex parts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET  # only writes here

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.world.models import SIDES, Color, Model, part_triangles
from rfly_terrain.world.world import World

MESHES = "meshes"
"""folder beside the SDF file"""
_ROUND = 1e-3
"""m by which corners of a prism may be off the circle, for what is a cylinder still; files have 0.1 mm"""
_STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])


class _Shape(NamedTuple):
    """A part in its model's axes, m."""

    kind: str
    """box, cylinder or mesh"""
    size: tuple[float, ...]
    """length, width, height; radius, height; nothing"""
    middle: tuple[float, float, float]
    uri: str = ""


def write_objects(world: World, name: str, folder: Path) -> ET.Element:
    """The <model> of all objects, a link each; its meshes are written below the folder, one for each part of a model.

    Gazebo's cylinder is the round one inside the prism of SIDES that such a part counts as here.
    """
    element = ET.Element("model", name=name)
    _text(element, "static", "true")
    shapes: dict[int, list[_Shape]] = {}
    for number, (each, place) in enumerate(zip(world.objects, world.positions.tolist(), strict=True)):
        if id(each.model) not in shapes:
            shapes[id(each.model)] = _shapes(each.model, folder, len(shapes))
        link = ET.SubElement(element, "link", name=f"{each.model.name}_{number}")
        _text(link, "pose", _numbers(*place, 0.0, 0.0, each.yaw))
        for part, shape in enumerate(shapes[id(each.model)]):
            for kind in ("collision", "visual"):
                inner = ET.SubElement(link, kind, name=f"{kind}_{part}")
                if shape.kind != "mesh":
                    _text(inner, "pose", _numbers(*(each.scale * v for v in shape.middle), 0.0, 0.0, 0.0))
                _geometry(ET.SubElement(inner, "geometry"), shape, each.scale)
                if kind == "visual":
                    _material(inner, each.model.color)
    return element


def _shapes(model: Model, folder: Path, number: int) -> list[_Shape]:
    found = []
    for index, part in enumerate(model.parts):
        shape = _box(part) or _cylinder(part)
        if shape is None:
            uri = f"{MESHES}/model_{number}_part_{index}.stl"
            (folder / MESHES).mkdir(exist_ok=True)
            (folder / uri).write_bytes(_stl(part))
            shape = _Shape("mesh", (), (0.0, 0.0, 0.0), uri)
        found.append(shape)
    return found


def _box(part: Floats) -> _Shape | None:
    """Of a part that is one along its model's axes."""
    if not Model("", (part,)).is_box:
        return None
    low, high = part.min(axis=0), part.max(axis=0)
    x, y, z = (0.5 * (low + high)).tolist()
    return _Shape("box", tuple((high - low).tolist()), (x, y, z))


def _cylinder(part: Floats) -> _Shape | None:
    """Of a part that is the prism of `cylinder_part`."""
    low, high = part[:, 2].min(), part[:, 2].max()
    upper = part[:, 2] > 0.5 * (low + high)
    if len(part) != 2 * SIDES or int(upper.sum()) != SIDES:
        return None
    x, y = part[:, :2].mean(axis=0).tolist()
    corner = np.hypot(part[:, 0] - x, part[:, 1] - y)
    level = np.where(upper, high, low)
    angle = np.sort(np.arctan2(part[:, 1] - y, part[:, 0] - x)).reshape(-1, 2)
    even = np.abs(np.diff(angle.mean(axis=1)) - 2.0 * math.pi / SIDES) * corner.max()
    off = max(np.ptp(corner), np.abs(part[:, 2] - level).max(), even.max(), np.ptp(angle, axis=1).max() * corner.max())
    radius = float(corner.mean()) * math.cos(math.pi / SIDES)
    return _Shape("cylinder", (radius, float(high - low)), (x, y, float(low + high) / 2)) if off < _ROUND else None


def _stl(part: Floats) -> bytes:
    triangles = part_triangles(part)
    records = np.zeros(len(triangles), _STL_TRIANGLE)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    records["normal"] = normals / np.linalg.norm(normals, axis=1)[:, None]
    records["corners"] = triangles
    return bytes(80) + np.uint32(len(records)).astype("<u4").tobytes() + records.tobytes()


def _geometry(parent: ET.Element, shape: _Shape, scale: float) -> None:
    element = ET.SubElement(parent, shape.kind)
    size = [scale * value for value in shape.size]
    if shape.kind == "box":
        _text(element, "size", _numbers(*size))
    elif shape.kind == "cylinder":
        _text(element, "radius", _numbers(size[0]))
        _text(element, "length", _numbers(size[1]))
    else:
        _text(element, "uri", shape.uri)
        _text(element, "scale", _numbers(scale, scale, scale))


def _material(visual: ET.Element, color: Color) -> None:
    material = ET.SubElement(visual, "material")
    for light in ("ambient", "diffuse"):
        _text(material, light, _numbers(*(value / 255 for value in color), 1.0))


def _text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text


def _numbers(*values: float) -> str:
    return " ".join(f"{value:.9g}" for value in values)
