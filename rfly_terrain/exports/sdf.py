# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Gazebo export of a height map (gz-sim; SDF 1.9): height image, texture, model and world file.

Gazebo's conventions, from the code of gz-common's ImageHeightmap, gz-rendering's (Ogre2)Heightmap,
gz-physics and gz-sim: the image is square with 2ⁿ + 1 pixels on a side, row 0 in the north (+y),
column 0 in the west (-x). Pixel centres are the samples; the outermost ones lie on the edge of
<size>, whose middle is <pos>. z = pos.z + size.z · pixel / 65535, as long as the image holds the
value 65535.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET  # only writes here

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, encoded_picture, write_whole
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import relief_pixels
from rfly_terrain.world.models import Color, Model, cylinder_part, part_triangles, placed_part
from rfly_terrain.world.world import World

MESHES = "meshes"
"""Folder of meshes, in the folder of the SDF file."""
_ROUND = 1e-3
"""Deviation from a circle, m, up to which the corners of a prism count as a cylinder; files have a
precision of 0.1 mm.
"""
_STL_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
"""Record of a triangle in a binary STL file."""

SIDES = tuple(2**n + 1 for n in range(7, 14))
"""Numbers of pixels on a side that the image may have: at least 129 for Ogre 2's terrain."""
_DEFAULT_LARGEST_SIDE = 4097
_COUNTS = 65_535
"""Largest value of a pixel."""
_ROWS_AT_ONCE = 128
_TEXTURE_PIXELS = 2048
"""Side of the relief, pixels."""
_TEXTURES = "materials/textures"
_GUI_PLUGINS = (
    "GzSceneManager",
    "InteractiveViewControl",
    "CameraTracking",
    "EntityContextMenuPlugin",
)
"""Plugins of the 3D view that show nothing outside of it."""


class _Shape(NamedTuple):
    """A part in its model's axes, m."""

    kind: str
    """Kind: box, cylinder or mesh."""
    size: tuple[float, ...]
    """Length, width, height of a box; radius, height of a cylinder; empty for a mesh."""
    middle: tuple[float, float, float]
    """Centre."""
    uri: str = ""
    """File of a mesh."""


def write_objects(world: World, name: str, folder: Path) -> ET.Element:
    """Return the <model> of all objects, with a link for each, and write its meshes.

    The meshes go below the folder, one for each part of a model. Gazebo's cylinder is the round one
    inside the prism that such a part is here.
    """
    element = ET.Element("model", name=name)
    text_element(element, "static", "true")
    shapes: dict[int, list[_Shape]] = {}
    for number, (placed, place) in enumerate(
        zip(world.objects, world.positions.tolist(), strict=True)
    ):
        if id(placed.model) not in shapes:
            shapes[id(placed.model)] = _shapes(placed.model, folder, len(shapes))
        link = ET.SubElement(element, "link", name=f"{placed.model.name}_{number}")
        text_element(link, "pose", in_words(*place, 0.0, 0.0, placed.yaw))
        parts = zip(shapes[id(placed.model)], placed.model.colors, strict=True)
        for part, (shape, color) in enumerate(parts):
            for kind in ("collision", "visual"):
                inner = ET.SubElement(link, kind, name=f"{kind}_{part}")
                if shape.kind != "mesh":
                    middle = (placed.scale * value for value in shape.middle)
                    text_element(inner, "pose", in_words(*middle, 0.0, 0.0, 0.0))
                _geometry(ET.SubElement(inner, "geometry"), shape, placed.scale)
                if kind == "visual":
                    _material(inner, color)

    return element


def _shapes(model: Model, folder: Path, number: int) -> list[_Shape]:
    """Return the shapes of a model's parts; write the meshes of model `number`."""
    shapes = []
    for index, part in enumerate(model.parts):
        shape = _box_or_cylinder(part)
        if shape is None:
            uri = f"{MESHES}/model_{number}_part_{index}.stl"
            (folder / MESHES).mkdir(exist_ok=True)
            write_whole(folder / uri, _stl(part))
            shape = _Shape("mesh", (), (0.0, 0.0, 0.0), uri)
        shapes.append(shape)
    return shapes


def _box_or_cylinder(part: Floats) -> _Shape | None:
    """Return a part as a box along its model's axes or a cylinder as `cylinder_part` makes it.

    Returns None if it is neither.
    """
    low = part.min(axis=0)
    high = part.max(axis=0)
    length, width, height = (high - low).tolist()
    x, y, z = (0.5 * (low + high)).tolist()

    if Model("", (part,)).is_box:
        return _Shape("box", (length, width, height), (x, y, z))
    prism = placed_part(cylinder_part(0.5 * length, height), (x, y, low[2]), 0.0)
    if part.shape == prism.shape and np.abs(part - prism).max() < _ROUND:
        return _Shape("cylinder", (0.5 * length, height), (x, y, z))
    return None


def _stl(part: Floats) -> bytes:
    """Return a part as a binary STL file."""
    triangles = part_triangles(part)
    records = np.zeros(len(triangles), _STL_TRIANGLE)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    records["normal"] = normals / np.linalg.norm(normals, axis=1)[:, None]
    records["corners"] = triangles
    return bytes(80) + np.uint32(len(records)).astype("<u4").tobytes() + records.tobytes()


def _geometry(parent: ET.Element, shape: _Shape, scale: float) -> None:
    """Add the shape, scaled."""
    element = ET.SubElement(parent, shape.kind)
    size = [scale * value for value in shape.size]
    if shape.kind == "box":
        text_element(element, "size", in_words(*size))
    elif shape.kind == "cylinder":
        text_elements(element, radius=in_words(size[0]), length=in_words(size[1]))
    else:
        text_elements(element, uri=shape.uri, scale=in_words(scale, scale, scale))


def _material(visual: ET.Element, color: Color) -> None:
    """Add the colour to a visual."""
    rgba = in_words(*(value / 255 for value in color), 1.0)
    text_elements(ET.SubElement(visual, "material"), ambient=rgba, diffuse=rgba)


def text_element(parent: ET.Element, tag: str, text: str) -> ET.Element:
    """Add a child with a text and return it."""
    element = ET.SubElement(parent, tag)
    element.text = text
    return element


def text_elements(parent: ET.Element, /, **texts: str) -> None:
    """Add a child for each text, by its tag."""
    for tag, text in texts.items():
        text_element(parent, tag, text)


def in_words(*values: float) -> str:
    """Return numbers in SDF's notation."""
    return " ".join(f"{value:.12g}" for value in values)


class GazeboHeights(NamedTuple):
    """Height image with its place in Gazebo."""

    pixels: NDArray[np.uint16]
    """Pixels, (n, n); row 0 is the northern edge, column 0 the western one."""
    size: tuple[float, float, float]
    """Size east and north, m, from the first to the last sample, and up, m, from pixel 0 to pixel
    65535.
    """
    position: tuple[float, float, float]
    """Middle of the map, and height of pixel 0, ENU, m."""


class GazeboFiles(NamedTuple):
    """Result of `write_gazebo_world`."""

    world: Path
    """World file."""
    side: int
    """Side of the height image, pixels."""
    error: float
    """Largest difference between Gazebo's surface and the samples of the map, m."""


def gazebo_heights(height_map: HeightMap, side: int | None = None) -> GazeboHeights:
    """Return the bilinear surface, sampled at `side` x `side` places from edge to edge.

    side: one of SIDES; by default the smallest that has at least as many samples as the map, up to
    4097. Raises ConfigError for another one.
    """
    n = _default_side(height_map) if side is None else side
    if n not in SIDES:
        raise ConfigError(
            f"{n} samples on a side: Gazebo takes 2ⁿ + 1, one of {', '.join(map(str, SIDES))}"
        )

    # heights from edge to edge
    x_min, x_max, y_min, y_max = height_map.bounds
    x = np.linspace(x_min, x_max, n)
    y = np.linspace(y_max, y_min, n)
    z = np.empty((n, n), np.float32)
    for start in range(0, n, _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        z[rows] = height_map.altitude(x, y[rows, None])

    # lowest to highest as 0 … 65535
    low = float(z.min())
    high = float(z.max())
    pixels = np.zeros((n, n), np.uint16)
    if high > low:
        for start in range(0, n, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            pixels[rows] = np.rint((z[rows].astype(np.float64) - low) * (_COUNTS / (high - low)))
    # level ground: all pixels are 0, and a size of 0 is not allowed
    size = (x_max - x_min, y_max - y_min, high - low if high > low else 1.0)
    return GazeboHeights(pixels, size, ((x_min + x_max) / 2, (y_min + y_max) / 2, low))


def gazebo_surface(heights: GazeboHeights) -> HeightMap:
    """Return Gazebo's surface of the image.

    It is bilinear between its samples (Gazebo: two triangles each).
    """
    east, north, up = heights.size
    x, y, z = heights.position
    n = heights.pixels.shape[0]
    return HeightMap(
        heights.pixels[::-1].T * (up / _COUNTS) + z,
        origin_x=x - east / 2,
        origin_y=y - north / 2,
        step_x=east / (n - 1),
        step_y=north / (n - 1),
    )


def write_gazebo_world(
    height_map: HeightMap,
    folder: StrPath,
    *,
    side: int | None = None,
    world: World | None = None,
    overwrite: bool = False,
) -> GazeboFiles:
    """Write world.sdf, model.sdf with model.config, and their images.

    world.sdf is complete in itself; model.sdf is for inclusion elsewhere. The folder is created if
    it is missing. Gazebo's world frame is the map's: ENU, x = y = z = 0 at the map's geodetic
    origin, which becomes <spherical_coordinates>; without an origin there are none. `side`: see
    `gazebo_heights`. `world`: the objects on the map, in world.sdf only (model.sdf is the ground).

    Raises ConfigError for an impossible folder, FileExistsError unless `overwrite`.
    """
    folder = Path(folder).expanduser()
    if not folder.absolute().parent.is_dir() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder}: expected a folder, or a name for one in a folder that exists")

    # existing files
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", height_map.name or folder.absolute().name)
    images = {key: f"{_TEXTURES}/{name}_{key}.png" for key in ("height", "relief", "normal")}
    files = [folder / file for file in ("world.sdf", "model.sdf", "model.config", *images.values())]
    for file in files:
        if file.exists() and not overwrite:
            raise FileExistsError(
                f"{file} exists; choose another folder or add --overwrite (in Python: "
                "overwrite=True)"
            )

    # images
    heights = gazebo_heights(height_map, side)
    (folder / _TEXTURES).mkdir(parents=True, exist_ok=True)
    for key, pixels in (
        ("height", heights.pixels),
        ("relief", _square_texture(height_map)[..., ::-1]),
        ("normal", np.full((16, 16, 3), (255, 128, 128), np.uint8)),  # straight up
    ):
        write_whole(folder / images[key], encoded_picture("png", pixels))

    # world and model
    gazebo_world = _world(height_map, name, heights, images)
    if world is not None:
        gazebo_world[0].append(write_objects(world.on(height_map), f"{name}_objects", folder))
    for xml, root in (
        ("world.sdf", gazebo_world),
        ("model.sdf", _sdf(_model(name, heights, images))),
        ("model.config", _config(name, height_map)),
    ):
        ET.indent(root)
        write_whole(folder / xml, ET.tostring(root, "utf-8", xml_declaration=True) + b"\n")

    error = _largest_error(height_map, gazebo_surface(heights))
    return GazeboFiles(folder / "world.sdf", len(heights.pixels), error)


def _default_side(height_map: HeightMap) -> int:
    """Return the smallest side with at least as many samples as the map, up to the limit."""
    longest_side = min(max(height_map.rows, height_map.columns), _DEFAULT_LARGEST_SIDE)
    return next(side for side in SIDES if side >= longest_side)


def _largest_error(height_map: HeightMap, surface: HeightMap) -> float:
    """Return the largest difference of a surface from the samples of the map, m."""
    y = height_map.origin_y + np.arange(height_map.columns) * height_map.step_y
    largest = 0.0
    for start in range(0, height_map.rows, _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, height_map.rows))
        x = height_map.origin_x + rows * height_map.step_x
        off = surface.altitude(x[:, None], y) - height_map.heights[rows]
        largest = max(largest, float(np.abs(off).max()))
    return largest


def _square_texture(height_map: HeightMap) -> NDArray[np.uint8]:
    """Return the relief, RGB, row 0 north, in the north-west of a square.

    Gazebo's textures are square.
    """
    x_min, x_max, y_min, y_max = height_map.bounds
    longest = max(x_max - x_min, y_max - y_min)
    width = max(1, round(_TEXTURE_PIXELS * (x_max - x_min) / longest))
    height = max(1, round(_TEXTURE_PIXELS * (y_max - y_min) / longest))
    picture = relief_pixels(height_map, width, height)
    missing = ((0, _TEXTURE_PIXELS - height), (0, _TEXTURE_PIXELS - width), (0, 0))
    return np.pad(picture, missing, mode="edge")


def _world(
    height_map: HeightMap, name: str, heights: GazeboHeights, images: dict[str, str]
) -> ET.Element:
    """Return a complete world with the ground, a light, physics and a window."""
    world = ET.Element("world", name=name)
    physics = ET.SubElement(world, "physics", name="1ms", type="ignored")
    text_elements(physics, max_step_size="0.001", real_time_factor="1")

    # with DART's default detector, ODE, bodies fall through height maps
    text_element(ET.SubElement(physics, "dart"), "collision_detector", "bullet")

    if height_map.geo_origin is not None:
        coordinates = ET.SubElement(world, "spherical_coordinates")
        text_elements(coordinates, surface_model="EARTH_WGS84", world_frame_orientation="ENU")
        for key, value in zip(
            ("latitude_deg", "longitude_deg", "elevation"), height_map.geo_origin, strict=True
        ):
            text_element(coordinates, key, repr(float(value)))
        text_element(coordinates, "heading_deg", "0")

    # view and light
    text_elements(
        ET.SubElement(world, "scene"), ambient="0.6 0.6 0.6 1", background="0.7 0.8 0.9 1"
    )
    world.append(_gui(heights))
    sun = ET.SubElement(world, "light", type="directional", name="sun")
    text_elements(sun, cast_shadows="false", diffuse="0.7 0.7 0.7 1", specular="0.1 0.1 0.1 1")
    text_element(sun, "direction", "0.5 -0.5 -0.7")  # from the north-west, as the relief is lit

    world.append(_model(name, heights, images))
    return _sdf(world)


def _gui(heights: GazeboHeights) -> ET.Element:
    """Return Gazebo's usual window, with a camera that sees the whole map from the south.

    The default camera sees no farther than 1 km.
    """
    east, north, up = heights.size
    x, y, z = heights.position
    diagonal = math.hypot(east, north, up)

    # the 3D view
    gui = ET.Element("gui")
    view = ET.SubElement(gui, "plugin", filename="MinimalScene", name="3D View")
    _window(view, showTitleBar=False, state="docked")
    text_elements(
        view,
        engine="ogre2",
        scene="scene",
        ambient_light="0.6 0.6 0.6",
        background_color="0.7 0.8 0.9",
    )
    camera = in_words(x, y - 0.6 * diagonal, z + up + 0.4 * diagonal, 0.0, 0.6, math.pi / 2)
    text_element(view, "camera_pose", camera)
    farthest = in_words(max(5.0 * diagonal, 1000.0))
    text_elements(ET.SubElement(view, "camera_clip"), near="0.1", far=farthest)
    for plugin in _GUI_PLUGINS:
        element = ET.SubElement(gui, "plugin", filename=plugin, name=plugin)
        _window(element, resizable=False, width=5, height=5, state="floating", showTitleBar=False)

    # controls
    for plugin, switches in (
        ("WorldControl", ("play_pause", "step", "use_event")),
        ("WorldStats", ("sim_time", "real_time", "real_time_factor")),
        ("EntityTree", ()),
    ):
        element = ET.SubElement(gui, "plugin", filename=plugin, name=plugin)
        _window(element, state="docked")
        text_elements(element, **dict.fromkeys(switches, "true"))

    return gui


def _model(name: str, heights: GazeboHeights, images: dict[str, str]) -> ET.Element:
    """Return the ground as a model."""
    model = ET.Element("model", name=name)
    text_element(model, "static", "true")
    link = ET.SubElement(model, "link", name="ground")
    east, north, up = heights.size
    n = len(heights.pixels)

    # gz-rendering puts the surface at <pos> of the world, gz-sim's physics at the <pose> of the
    # collision (gz-sim issue 1295): each place is given where it counts
    visual = ET.SubElement(link, "visual", name="visual")
    shape = ET.SubElement(ET.SubElement(visual, "geometry"), "heightmap")
    text_elements(
        shape, uri=images["height"], size=in_words(*heights.size), pos=in_words(*heights.position)
    )
    texture = ET.SubElement(shape, "texture")
    text_elements(
        texture, size=in_words(max(east, north)), diffuse=images["relief"], normal=images["normal"]
    )

    collision = ET.SubElement(link, "collision", name="collision")
    text_element(collision, "pose", in_words(*heights.position, 0.0, 0.0, 0.0))
    shape = ET.SubElement(ET.SubElement(collision, "geometry"), "heightmap")
    text_element(shape, "uri", images["height"])

    # gz-physics sets the samples <size>/n apart, not <size>/(n - 1): n/(n - 1) brings them under
    # the drawn ones
    wider = n / (n - 1)
    text_element(shape, "size", in_words(east * wider, north * wider, up))
    return model


def _config(name: str, height_map: HeightMap) -> ET.Element:
    """Return the content of model.config."""
    root = ET.Element("model")
    text_elements(root, name=name, version="1.0")
    text_element(root, "sdf", "model.sdf").set("version", "1.9")
    text_elements(ET.SubElement(root, "author"), name="rfly_suite", email="")
    x_min, x_max, y_min, y_max = height_map.bounds
    text_element(
        root,
        "description",
        f"Terrain {height_map.name or name}: "
        f"x east {x_min:g} … {x_max:g}, y north {y_min:g} … {y_max:g}, "
        f"z up {height_map.z_min:g} … {height_map.z_max:g} m; include it without a pose.",
    )
    return root


def _sdf(content: ET.Element) -> ET.Element:
    """Return an SDF document with one element."""
    root = ET.Element("sdf", version="1.9")
    root.append(content)
    return root


def _window(plugin: ET.Element, **properties: bool | int | str) -> None:
    """Add the properties of a plugin's window."""
    window = ET.SubElement(plugin, "gz-gui")
    kinds = {bool: "bool", int: "double", str: "string"}
    for key, value in properties.items():
        element = text_element(window, "property", str(value).lower())
        element.attrib.update(type=kinds[type(value)], key=key)
