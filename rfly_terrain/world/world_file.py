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
from rfly_common.config.marked_yaml import Document, Key
from rfly_common.errors import ConfigError, ShapeError
from rfly_common.files import StrPath
from rfly_terrain.world.models import (
    CLASSES,
    GREY,
    Color,
    Model,
    box_part,
    cylinder_part,
    hull_part,
    mesh_parts,
    part_faces,
    placed_part,
)
from rfly_terrain.world.moving import MovingObject, MovingPath
from rfly_terrain.world.world import World, WorldObject

MAX_FILE_BYTES = 4_000_000
MAX_OBJECTS = 20_000
MAX_CORNERS = 2_000_000
"""of all convex parts, and of the surfaces of meshes in each size; of models with meshes, whether
used or not, too
"""
_SHAPES = ("box", "cylinder", "hull", "mesh")


def shipped_worlds() -> list[str]:
    """Names of the worlds that come with the package."""
    return shipped_names("rfly_terrain", "worlds")


def load_world(name_or_path: StrPath) -> World:
    """The world of a file, or the shipped one of that name; its terrain is not loaded: `World.on`
    takes one.

    Raises ConfigError that names file, line, key and what is allowed.
    """
    data, file, name = read_config(
        "world", "rfly_terrain", "worlds", name_or_path, MAX_FILE_BYTES, noun="world"
    )
    folder = str(Path(file).resolve().parent) if os.path.isfile(file) else ""
    return parse_world(data, file, name, folder)


def parse_world(data: bytes, file: str, name: str = "", folder: str = "") -> World:
    """The world of a file's content; `file` is what errors call it, `folder` where its meshes are."""
    document = parse_mapping(data, file, "version and objects")
    given = document.value.get("models")
    models = given.values() if isinstance(given, dict) else ()
    count = sum(
        len(model["parts"])
        for model in models
        if isinstance(model, dict) and isinstance(model.get("parts"), list)
    )
    if (
        count > MAX_OBJECTS
    ):  # to check each takes the schema a third of a millisecond, and aliases multiply them
        raise document.error(("models",), f"{count:,} parts, allowed: at most {MAX_OBJECTS:,}")
    check_schema(document, load_schema("rfly_terrain", "worlds"))
    reader = _Reader(document, folder)
    return World(
        name, reader.objects(), document.value.get("map", ""), folder, moving=reader.moving()
    )


class _Reader:
    """Makes objects of a document that fits the schema."""

    def __init__(self, document: Document, folder: str) -> None:
        self._document = document
        self._folder = folder
        self._meshes: dict[str, tuple[list[Floats], Floats]] = {}
        self._corners = self._made = 0
        self._sizes: set[tuple[int, float]] = set()
        """models and scales, whose surfaces are kept"""
        self._models = {
            name: self._model(name, entry, entry["parts"], ("models", name))
            for name, entry in document.value.get("models", {}).items()
        }

    def objects(self) -> tuple[WorldObject, ...]:
        entries = self._document.value["objects"]
        return tuple(
            _object(entry, self._model_of(entry, ("objects", row)))
            for row, entry in enumerate(entries)
        )

    def moving(self) -> tuple[MovingObject, ...]:
        found = []
        for row, entry in enumerate(self._document.value.get("moving", [])):
            model = self._model_of(entry, ("moving", row))
            corners = np.array([(*corner, 0.0) for corner in entry["path"]], float)
            loop = entry.get("loop", False)
            start = float(entry.get("start", 0.0))
            try:
                path = MovingPath(corners, float(entry["speed"]), loop, start)
            except ValueError as error:
                raise self._document.error(("moving", row, "path"), str(error)) from None
            found.append(MovingObject(model, path, float(entry.get("scale", 1.0))))
        return tuple(found)

    def _model_of(self, entry: Mapping[str, Any], path: tuple[Key, ...]) -> Model:
        """The model of an object, whose corners count."""
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
        corners: list[Floats] = []
        faces: list[Floats] = []
        has_mesh = any("mesh" in part for part in parts)
        for index, part in enumerate(parts):
            inner = path if part is entry else (*path, "parts", index)
            placed = part is not entry  # x, y, z of an object are where the whole of it stands
            offset = [float(part.get(axis, 0.0)) if placed else 0.0 for axis in "xyz"]
            yaw = math.radians(part.get("yaw_deg", 0.0)) if placed else 0.0
            shapes = self._shapes(part, inner)
            if has_mesh and placed and "color" in part:
                raise self._document.error(
                    (*inner, "color"), "a model with a mesh has one color: give it to the model"
                )
            corners += [placed_part(each, offset, yaw) for each in shapes]
            self._made += sum(map(len, shapes))
            if has_mesh:
                seen = (
                    [self._meshes[part["mesh"]][1]]
                    if "mesh" in part
                    else list(map(part_faces, shapes))
                )
                self._made += 3 * sum(map(len, seen))
                if self._made > MAX_CORNERS:
                    raise self._document.error(
                        inner, f"the models have more than {MAX_CORNERS:,} corners"
                    )
                faces += [placed_part(each, offset, yaw) for each in seen]
        color = _color(entry, GREY)
        colors = (
            tuple(_color(part, color) for part in parts)
            if any("color" in part for part in parts)
            else ()
        )
        return Model(
            name,
            tuple(corners),
            CLASSES.index(entry.get("class", "unknown")),
            color,
            int(entry.get("type", 0)),
            np.concatenate(faces) if faces else None,
            colors if set(colors) - {color} else (),
        )

    def _shapes(self, part: Mapping[str, Any], path: tuple[Key, ...]) -> list[Floats]:
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
    red, green, blue = entry.get("color", otherwise)
    return red, green, blue


def _object(entry: Mapping[str, Any], model: Model) -> WorldObject:
    return WorldObject(
        model,
        float(entry["x"]),
        float(entry["y"]),
        math.radians(entry.get("yaw_deg", 0.0)),
        float(entry["z"]) if "z" in entry else None,
        float(entry.get("scale", 1.0)),
    )


def write_world(world: World, path: StrPath) -> None:
    """Writes the world, each model once. Meshes and cylinders are written as the hulls that they
    collide as.

    Positions are rounded to centimetres, yaws to hundredths of a degree. Raises ConfigError where
    the file would be too large to be read again.
    """
    data = world_to_yaml(world).encode()
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{path}: {len(data):,} bytes, a world file has at most {MAX_FILE_BYTES:,}: take fewer objects"
        )
    Path(path).write_bytes(data)


def world_to_yaml(world: World) -> str:
    """The content of a world file."""
    models: dict[str, Model] = {}
    names: dict[int, str] = {}
    bodies: list[WorldObject | MovingObject] = [*world.objects, *world.moving]
    for each in bodies:
        if id(each.model) not in names:
            name = re.sub("[^A-Za-z0-9_-]", "_", each.model.name)[:50] or "model"
            name = name if name not in models else f"{name}_{len(models)}"
            names[id(each.model)] = name
            models[name] = each.model
    lines = [
        "version: 1",
        *([f"map: {json.dumps(world.map, ensure_ascii=False)}"] if world.map else []),
    ]
    lines += ["models:"] if models else []
    for name, model in models.items():
        lines.append(f"  {name}:")
        lines.append(f"    class: {CLASSES[model.class_id]}")
        lines.append(f"    color: [{', '.join(map(str, model.color))}]")
        lines += [f"    type: {model.vehicle_type}"] if model.vehicle_type else []
        lines.append("    parts:")
        for part, color in zip(model.parts, model.colors, strict=True):
            own = "" if color == model.color else f", color: [{', '.join(map(str, color))}]"
            lines.append(f"      - {{{_part_text(part)}{own}}}")
    lines.append("objects:" if world.objects else "objects: []")
    for placed in world.objects:
        keys = [
            f"model: {names[id(placed.model)]}",
            f"x: {_text(placed.x)}",
            f"y: {_text(placed.y)}",
        ]
        keys += [] if placed.z is None else [f"z: {_text(placed.z)}"]
        keys += [f"yaw_deg: {_text(math.degrees(placed.yaw) % 360.0)}"] if placed.yaw else []
        keys += [f"scale: {placed.scale:.6g}"] if placed.scale != 1.0 else []
        lines.append(f"  - {{{', '.join(keys)}}}")
    lines += ["moving:"] if world.moving else []
    for one in world.moving:
        corners = ", ".join(f"[{_text(x)}, {_text(y)}]" for x, y, _ in one.path.corners.tolist())
        keys = [f"model: {names[id(one.model)]}", f"speed: {_text(one.path.speed)}"]
        keys += [f"start: {_text(one.path.start)}"] if one.path.start else []
        keys += ["loop: true"] if one.path.loop else []
        keys += [f"scale: {one.scale:.6g}"] if one.scale != 1.0 else []
        lines.append(f"  - {{{', '.join(keys)}, path: [{corners}]}}")
    return "\n".join(lines) + "\n"


def _part_text(part: Floats) -> str:
    low = part.min(axis=0)
    high = part.max(axis=0)
    if (
        len(part) == 8
        and ((part == low) | (part == high)).all()
        and len({tuple(row) for row in part.tolist()}) == 8
    ):
        size = high - low
        middle = 0.5 * (low + high)
        keys = [f"box: [{', '.join(_text(v, 4) for v in size.tolist())}]"]
        offset = (*middle[:2].tolist(), float(low[2]))
        keys += [f"{axis}: {_text(v, 4)}" for axis, v in zip("xyz", offset, strict=True) if v]
        return ", ".join(keys)
    return f"hull: [{', '.join('[' + ', '.join(_text(v, 4) for v in row) + ']' for row in part.tolist())}]"


def _text(value: float, digits: int = 2) -> str:
    text = f"{value:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
