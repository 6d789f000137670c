"""Objects of a world as a static SDF 1.9 model: boxes, cylinders, and binary STL meshes of all other convex parts."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET  # only writes here

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.world.models import Color, Model, cylinder_part, part_triangles, placed_part
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

    Gazebo's cylinder is the round one inside the prism that such a part counts as here.
    """
    element = ET.Element("model", name=name)
    text_element(element, "static", "true")
    shapes: dict[int, list[_Shape]] = {}
    for number, (each, place) in enumerate(zip(world.objects, world.positions.tolist(), strict=True)):
        if id(each.model) not in shapes:
            shapes[id(each.model)] = _shapes(each.model, folder, len(shapes))
        link = ET.SubElement(element, "link", name=f"{each.model.name}_{number}")
        text_element(link, "pose", in_words(*place, 0.0, 0.0, each.yaw))
        for part, shape in enumerate(shapes[id(each.model)]):
            for kind in ("collision", "visual"):
                inner = ET.SubElement(link, kind, name=f"{kind}_{part}")
                if shape.kind != "mesh":
                    text_element(inner, "pose", in_words(*(each.scale * v for v in shape.middle), 0.0, 0.0, 0.0))
                _geometry(ET.SubElement(inner, "geometry"), shape, each.scale)
                if kind == "visual":
                    _material(inner, each.model.color)
    return element


def _shapes(model: Model, folder: Path, number: int) -> list[_Shape]:
    found = []
    for index, part in enumerate(model.parts):
        shape = _box_or_cylinder(part)
        if shape is None:
            uri = f"{MESHES}/model_{number}_part_{index}.stl"
            (folder / MESHES).mkdir(exist_ok=True)
            (folder / uri).write_bytes(_stl(part))
            shape = _Shape("mesh", (), (0.0, 0.0, 0.0), uri)
        found.append(shape)
    return found


def _box_or_cylinder(part: Floats) -> _Shape | None:
    """Of a part that is a box along its model's axes, or as `cylinder_part` makes it; None of any other."""
    low, high = part.min(axis=0), part.max(axis=0)
    length, width, height = (high - low).tolist()
    x, y, z = (0.5 * (low + high)).tolist()
    if Model("", (part,)).is_box:
        return _Shape("box", (length, width, height), (x, y, z))
    prism = placed_part(cylinder_part(0.5 * length, height), (x, y, low[2]), 0.0)
    if part.shape == prism.shape and np.abs(part - prism).max() < _ROUND:
        return _Shape("cylinder", (0.5 * length, height), (x, y, z))
    return None


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
        text_element(element, "size", in_words(*size))
    elif shape.kind == "cylinder":
        text_element(element, "radius", in_words(size[0]))
        text_element(element, "length", in_words(size[1]))
    else:
        text_element(element, "uri", shape.uri)
        text_element(element, "scale", in_words(scale, scale, scale))


def _material(visual: ET.Element, color: Color) -> None:
    material = ET.SubElement(visual, "material")
    for light in ("ambient", "diffuse"):
        text_element(material, light, in_words(*(value / 255 for value in color), 1.0))


def text_element(parent: ET.Element, tag: str, text: str) -> ET.Element:
    """A new child that holds a text."""
    element = ET.SubElement(parent, tag)
    element.text = text
    return element


def in_words(*values: float) -> str:
    """Numbers as SDF has them."""
    return " ".join(f"{value:.12g}" for value in values)
