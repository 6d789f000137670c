# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""World files: YAML checked against `data/schemas/worlds.schema.json`, to a World and back."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.config.documents import (
    check_schema,
    load_schema,
    parse_mapping,
    read_config,
    shipped_names,
)
from rfly_common.config.marked_yaml import Document, core_kind
from rfly_common.config.vehicle_models import type_number
from rfly_common.errors import ConfigError, Key, ShapeError
from rfly_common.files import StrPath, write_whole
from rfly_terrain.world.ground_friction import FrictionArea, GroundFriction, friction_layer
from rfly_terrain.world.mesh_files import mesh_parts
from rfly_terrain.world.models import (
    CLASSES,
    GREY,
    Color,
    Model,
    box_part,
    cylinder_part,
    hull_part,
    part_faces,
    placed_part,
)
from rfly_terrain.world.moving import MovingObject, MovingPath
from rfly_terrain.world.world import World, WorldObject

MAX_FILE_BYTES = 4_000_000
MAX_OBJECTS = 20_000
MAX_CORNERS = 2_000_000
"""Corners of all convex parts, and of the surfaces of meshes in each size, at most; of unused
models with meshes too.
"""
_SHAPES = ("box", "cylinder", "hull", "mesh")


def shipped_worlds() -> list[str]:
    """Return the names of the worlds of this package."""
    return shipped_names("rfly_terrain", "worlds")


def load_world(name_or_path: StrPath) -> World:
    """Return the world of a file, or the shipped one of that name.

    Its terrain is not loaded, see `World.on`. Raises ConfigError with file, line, key and what is
    allowed.
    """
    data, file, name = read_config(
        "world", "rfly_terrain", "worlds", name_or_path, MAX_FILE_BYTES, noun="world"
    )
    folder = str(Path(file).resolve().parent) if os.path.isfile(file) else ""
    return parse_world(data, file, name, folder)


def parse_world(data: bytes, file: str, name: str = "", folder: str = "") -> World:
    """Return the world of a file's content; errors call it `file`, its meshes are in `folder`."""
    document = parse_mapping(data, file, "version and objects")
    entries = document.value.get("models")
    models = entries.values() if isinstance(entries, dict) else ()
    count = sum(
        len(model["parts"])
        for model in models
        if isinstance(model, dict) and isinstance(model.get("parts"), list)
    )
    # the schema takes a third of a millisecond for each, and aliases multiply them
    if count > MAX_OBJECTS:
        raise document.error(("models",), f"{count:,} parts, allowed: at most {MAX_OBJECTS:,}")
    check_schema(document, load_schema("rfly_terrain", "worlds"))
    reader = _WorldReader(document, folder)
    return World(
        name,
        reader.objects(),
        document.value.get("map", ""),
        folder,
        moving=reader.moving(),
        fleet=document.value.get("fleet", ""),
        friction=reader.friction(),
    )


class _WorldReader:
    """Reader of a document that fits the schema."""

    def __init__(self, document: Document, folder: str) -> None:
        self._document = document
        self._folder = folder
        self._meshes: dict[str, tuple[list[Floats], Floats]] = {}
        self._corners = 0
        self._model_corners = 0
        self._sizes: set[tuple[int, float]] = set()
        """Models and scales, whose surfaces are kept."""
        self._models = {
            name: self._model(name, entry, entry["parts"], ("models", name))
            for name, entry in document.value.get("models", {}).items()
        }

    def objects(self) -> tuple[WorldObject, ...]:
        """Return the objects that stand still."""
        entries = self._document.value["objects"]
        return tuple(
            _object(entry, self._model_of(entry, ("objects", row)))
            for row, entry in enumerate(entries)
        )

    def moving(self) -> tuple[MovingObject, ...]:
        """Return the objects that move."""
        bodies = []
        for row, entry in enumerate(self._document.value.get("moving", [])):
            model = self._model_of(entry, ("moving", row))
            corners = np.array([(*corner, 0.0) for corner in entry["path"]], float)
            loop = entry.get("loop", False)
            start = float(entry.get("start", 0.0))
            try:
                path = MovingPath(corners, float(entry["speed"]), loop, start)
            except ValueError as error:
                raise self._document.error(("moving", row, "path"), str(error)) from None
            bodies.append(MovingObject(model, path, float(entry.get("scale", 1.0))))
        return tuple(bodies)

    def friction(self) -> GroundFriction:
        """Return the friction of the ground."""
        entry = self._document.value.get("ground", {})
        areas = []
        for row, area in enumerate(entry.get("areas", [])):
            try:
                areas.append(
                    FrictionArea(np.array(area["corners"], float), float(area["friction"]))
                )
            except ConfigError as error:
                raise self._document.error(("ground", "areas", row), str(error)) from None

        layer = None
        name = entry.get("layer", "")
        try:
            if name:
                layer = friction_layer(name, self._folder)
        except ConfigError as error:
            raise self._document.error(("ground", "layer"), str(error)) from None
        try:
            return GroundFriction(float(entry.get("friction", 1.0)), tuple(areas), layer, name)
        except ConfigError as error:
            raise self._document.error(("ground", "areas"), str(error)) from None

    def _model_of(self, entry: Mapping[str, Any], path: tuple[Key, ...]) -> Model:
        """Return the model of an object, and count its corners."""
        if "model" not in entry:
            model = self._model(f"{str(path[0]).removesuffix('s')} {path[1]}", entry, [entry], path)
        elif entry["model"] in self._models:
            model = self._models[entry["model"]]
            unfit = next((key for key in ("class", "color", "type") if key in entry), None)
            if unfit:
                raise self._document.error(
                    (*path, unfit), "is the model's, and an object that has one has no such key"
                )
        else:
            known = ", ".join(self._models) or "no models"
            raise self._document.error(
                (*path, "model"), f"{entry['model'][:60]!r}: there are {known}"
            )

        self._corners += sum(map(len, model.parts))
        size = id(model), float(entry.get("scale", 1.0))
        if model.surface is not None and size not in self._sizes:
            self._corners += 3 * len(model.surface)
        self._sizes.add(size)
        if self._corners > MAX_CORNERS:
            raise self._document.error(path, f"the objects have more than {MAX_CORNERS:,} corners")
        return model

    def _model(
        self,
        name: str,
        entry: Mapping[str, Any],
        parts: Sequence[Mapping[str, Any]],
        path: tuple[Key, ...],
    ) -> Model:
        """Return a model of parts."""
        corners: list[Floats] = []
        faces: list[Floats] = []
        has_mesh = any("mesh" in part for part in parts)
        for index, part in enumerate(parts):
            inner = path if part is entry else (*path, "parts", index)
            placed = part is not entry  # x, y, z of an object are its own position
            offset = [float(part.get(axis, 0.0)) if placed else 0.0 for axis in "xyz"]
            yaw = math.radians(part.get("yaw_deg", 0.0)) if placed else 0.0

            shapes = self._shapes(part, inner)
            if has_mesh and placed and "color" in part:
                raise self._document.error(
                    (*inner, "color"), "a model with a mesh has one color: give it to the model"
                )
            corners += [placed_part(shape, offset, yaw) for shape in shapes]
            self._model_corners += sum(map(len, shapes))
            if has_mesh:
                if "mesh" in part:
                    surfaces = [self._meshes[part["mesh"]][1]]
                else:
                    surfaces = list(map(part_faces, shapes))
                self._model_corners += 3 * sum(map(len, surfaces))
                if self._model_corners > MAX_CORNERS:
                    raise self._document.error(
                        inner, f"the models have more than {MAX_CORNERS:,} corners"
                    )
                faces += [placed_part(surface, offset, yaw) for surface in surfaces]

        try:
            vehicle_type = type_number(entry.get("type", 0))
        except ConfigError as error:
            raise self._document.error((*path, "type"), str(error)) from None
        color = _color(entry, GREY)
        colors = tuple(_color(part, color) for part in parts)
        return Model(
            name,
            tuple(corners),
            CLASSES.index(entry.get("class", "unknown")),
            color,
            vehicle_type,
            np.concatenate(faces) if faces else None,
            colors if set(colors) - {color} else (),
        )

    def _shapes(self, part: Mapping[str, Any], path: tuple[Key, ...]) -> list[Floats]:
        """Return the convex shapes of a part, or the parts of a mesh."""
        kind = next(key for key in _SHAPES if key in part)
        value = part[kind]
        if kind == "box":
            return [box_part(*map(float, value))]
        if kind == "cylinder":
            return [cylinder_part(**{key: float(number) for key, number in value.items()})]
        try:
            if kind == "hull":
                return [hull_part(value)]
            if value not in self._meshes:
                self._meshes[value] = mesh_parts(value, self._folder)
            return self._meshes[value][0]
        except (ShapeError, ConfigError) as error:
            raise self._document.error((*path, kind), str(error)) from None


def _color(entry: Mapping[str, Any], otherwise: Color) -> Color:
    """Return the colour of an entry, or another one if it has none."""
    red, green, blue = entry.get("color", otherwise)
    return red, green, blue


def _object(entry: Mapping[str, Any], model: Model) -> WorldObject:
    """Return the object of an entry."""
    return WorldObject(
        model,
        float(entry["x"]),
        float(entry["y"]),
        math.radians(entry.get("yaw_deg", 0.0)),
        float(entry["z"]) if "z" in entry else None,
        float(entry.get("scale", 1.0)),
    )


def write_world(world: World, path: StrPath) -> None:
    """Write the world, each model once.

    Meshes and cylinders are written as the hulls with which they collide.

    Positions are rounded to centimetres, yaws to hundredths of a degree. Raises ConfigError if the
    file would be too large to be read again.
    """
    data = world_to_yaml(world).encode()
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{path}: {len(data):,} bytes, a world file has at most {MAX_FILE_BYTES:,}: "
            "take fewer objects"
        )
    write_whole(path, data)


def world_to_yaml(world: World) -> str:
    """Return the content of a world file."""
    models: dict[str, Model] = {}
    names: dict[int, str] = {}
    bodies: list[WorldObject | MovingObject] = [*world.objects, *world.moving]
    for body in bodies:
        if id(body.model) not in names:
            name = re.sub("[^A-Za-z0-9_-]", "_", body.model.name)[:50]
            name = name if core_kind(name) == "str" else f"model{name}"
            name = name if name not in models else f"{name}_{len(models)}"
            names[id(body.model)] = name
            models[name] = body.model

    lines = ["version: 1"]
    if world.map:
        lines.append(f"map: {json.dumps(world.map, ensure_ascii=False)}")
    if world.fleet:
        lines.append(f"fleet: {json.dumps(world.fleet, ensure_ascii=False)}")
    lines += _ground_lines(world.friction)
    if models:
        lines.append("models:")
    for name, model in models.items():
        lines += _model_lines(name, model)

    lines.append("objects:" if world.objects else "objects: []")
    for placed in world.objects:
        lines.append(f"  - {{{', '.join(_object_keys(placed, names[id(placed.model)]))}}}")

    if world.moving:
        lines.append("moving:")
    for moving in world.moving:
        lines.append(f"  - {{{', '.join(_moving_keys(moving, names[id(moving.model)]))}}}")
    return "\n".join(lines) + "\n"


def _ground_lines(friction: GroundFriction) -> list[str]:
    """Return the lines of the ground's friction; none where it is the tyres' own."""
    lines = []
    if friction.elsewhere != 1.0:
        lines.append(f"  friction: {_text(friction.elsewhere, 4)}")
    if friction.layer_file:
        lines.append(f"  layer: {json.dumps(friction.layer_file, ensure_ascii=False)}")
    if friction.areas:
        lines.append("  areas:")
    for area in friction.areas:
        corners = ", ".join(f"[{_text(x)}, {_text(y)}]" for x, y in area.corners.tolist())
        lines.append(f"    - {{friction: {_text(area.friction, 4)}, corners: [{corners}]}}")
    return ["ground:", *lines] if lines else []


def _model_lines(name: str, model: Model) -> list[str]:
    """Return the lines of a model."""
    lines = [
        f"  {name}:",
        f"    class: {CLASSES[model.class_id]}",
        f"    color: {_color_text(model.color)}",
    ]
    if model.vehicle_type:
        lines.append(f"    type: {model.vehicle_type}")
    lines.append("    parts:")
    for part, color in zip(model.parts, model.colors, strict=True):
        own = "" if color == model.color else f", color: {_color_text(color)}"
        lines.append(f"      - {{{_part_text(part)}{own}}}")
    return lines


def _object_keys(placed: WorldObject, model_name: str) -> list[str]:
    """Return the keys of an object that stands still, with their values."""
    keys = [f"model: {model_name}", f"x: {_text(placed.x)}", f"y: {_text(placed.y)}"]
    if placed.z is not None:
        keys.append(f"z: {_text(placed.z)}")
    if placed.yaw:
        keys.append(f"yaw_deg: {_text(math.degrees(placed.yaw) % 360.0)}")
    if placed.scale != 1.0:
        keys.append(f"scale: {placed.scale:.6g}")
    return keys


def _moving_keys(moving: MovingObject, model_name: str) -> list[str]:
    """Return the keys of a moving object, with their values."""
    path = moving.path
    keys = [f"model: {model_name}", f"speed: {_text(path.speed)}"]
    if path.start:
        keys.append(f"start: {_text(path.start)}")
    if path.loop:
        keys.append("loop: true")
    if moving.scale != 1.0:
        keys.append(f"scale: {moving.scale:.6g}")
    corners = ", ".join(f"[{_text(x)}, {_text(y)}]" for x, y, _ in path.corners.tolist())
    keys.append(f"path: [{corners}]")
    return keys


def _color_text(color: Color) -> str:
    """Return a colour in YAML."""
    return f"[{', '.join(map(str, color))}]"


def _part_text(part: Floats) -> str:
    """Return the keys of a part's shape, with their values: a box, or a hull."""
    low = part.min(axis=0)
    high = part.max(axis=0)
    on_bounds = ((part == low) | (part == high)).all()
    if len(part) == 8 and on_bounds and len({tuple(row) for row in part.tolist()}) == 8:
        middle = 0.5 * (low + high)
        sizes = (_text(value, 4) for value in (high - low).tolist())
        keys = [f"box: [{', '.join(sizes)}]"]
        offset = (*middle[:2].tolist(), float(low[2]))
        for axis, value in zip("xyz", offset, strict=True):
            if value:
                keys.append(f"{axis}: {_text(value, 4)}")
        return ", ".join(keys)
    corners = [f"[{', '.join(_text(value, 4) for value in row)}]" for row in part.tolist()]
    return f"hull: [{', '.join(corners)}]"


def _text(value: float, digits: int = 2) -> str:
    """Return a number without needless digits."""
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
