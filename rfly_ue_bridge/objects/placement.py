# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Placement of objects on a terrain, and a registry of them by id.

An object is a vehicle of RflySim3D that nothing moves: the first packet with its id creates it, and
it stays as it is. It stands upright, whatever the slope. RflySim3D puts a model's origin where the
packet says, so the origin's height above the ground, the model's offset (`ModelOffset`), is added
to the terrain's altitude.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Bools, Floats, Triple
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.errors import PlacementError
from rfly_common.frames import enu_to_ned, up_to_down, yaw_ned_to_enu
from rfly_common.transform_buffer import FrameToWorld
from rfly_terrain.world.models import Model, placed_part
from rfly_terrain.world.world import World, WorldObject
from rfly_ue_bridge.codec.ned_states import NedStates

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.moving import MovingPath

FIRST_CHOSEN_ID = 1001
"""Smallest id that is chosen for an object, out of the way of vehicles.

RflySim's own examples begin their targets there.
"""
MAX_DISTANCE = 1e7
"""Distance from the origin beyond which a position is a mistake, m."""


@dataclass(frozen=True)
class PlacedObject:
    """One object as it was requested.

    ENU: x east, y north, z up, m; yaw in rad counter-clockwise from east. Raises PlacementError
    that names the field.
    """

    vehicle_type: int
    """ClassID of RflySim3D, which chooses the model that is shown."""
    x: float
    y: float
    yaw: float = 0.0
    id: int = 0
    """CopterID; 0: to be chosen."""
    offset: float = 0.0
    """Height of the model's origin above the ground, m."""
    z: float | None = None
    """Height of the origin, m; None: the terrain's altitude + offset."""
    use_ground_packet: bool = False
    """True if RflySim3D finds the ground beneath the object itself, and ignores z."""
    size: Triple = (0.0, 0.0, 0.0)
    """Size along its own x, y, z, as it stands in the scene, m; 0 0 0: not known."""
    scale: Triple = (1.0, 1.0, 1.0)
    model: Model | None = None
    """Model with its origin and size; None: its box."""
    path: MovingPath | None = None
    """Path on the ground along which it moves, with a model; None: it stands."""

    def __post_init__(self) -> None:
        for name, value in (("id", self.id), ("vehicle_type", self.vehicle_type)):
            if not 0 <= value < 2**31:
                raise PlacementError(f"{name}: {value}, allowed are 0 … {2**31 - 1}")

        numbers = {"x": self.x, "y": self.y, "z": self.z or 0.0, "offset": self.offset}
        for name, number in numbers.items():
            if not abs(number) <= MAX_DISTANCE:  # false for NaN too
                raise PlacementError(
                    f"{name}: {number}, "
                    f"expected metres between -{MAX_DISTANCE:.0f} and {MAX_DISTANCE:.0f}"
                )

        finite_number("yaw", self.yaw, "rad", error=PlacementError)
        if not all(0.0 <= part <= MAX_DISTANCE for part in self.size):
            raise PlacementError(f"size: {_words(self.size)}, expected metres of at least 0")
        if not all(0.0 < part <= 1000.0 for part in self.scale):
            raise PlacementError(
                f"scale: {_words(self.scale)}, expected factors above 0 and up to 1000"
            )

        if self.z is not None and self.offset:
            raise PlacementError(
                f"offset: {self.offset}, but z is the origin's own height: give one of them"
            )

    @property
    def needs_terrain(self) -> bool:
        """True if its height is that of a terrain."""
        return self.z is None and not self.use_ground_packet

    def moved(self, x: float, y: float, yaw: float) -> PlacedObject:
        """Return the object at another place, standing.

        It stands on the terrain, even if it had a fixed height, or moved.
        """
        return dataclasses.replace(self, x=x, y=y, yaw=yaw, z=None, path=None)


@dataclass(frozen=True, eq=False)
class Placement:
    """Objects on a terrain, n in order; ENU, m."""

    objects: tuple[PlacedObject, ...]
    position: Floats
    """Positions of the models' origins, (n, 3), m."""
    inside: Bools
    """False where the object stands off the map, at the altitude of its edge, (n,)."""
    paths: tuple[MovingPath | None, ...] = ()
    """Paths over the ground of the models' origins that move, n of them; empty: all stand."""
    velocity: Floats | None = None
    """Velocities, (n, 3), m/s; None: all stand."""

    def __len__(self) -> int:
        return len(self.objects)

    def select(self, chosen: Bools) -> Placement:
        """Return those that a mask (n,) chooses."""
        rows = np.flatnonzero(chosen).tolist()
        paths = tuple(self.paths[row] for row in rows) if self.paths else ()
        return Placement(
            tuple(self.objects[row] for row in rows), self.position[rows], self.inside[rows], paths
        )

    def at(self, time: float) -> Placement:
        """Return all objects at a time, s of the node's clock.

        Those that move are where they are then.
        """
        objects = list(self.objects)
        position = self.position.copy()
        velocity = np.zeros_like(self.position)
        for row, path in enumerate(self.paths):
            if path is not None:
                position[row], yaw, velocity[row] = path.at(time)
                objects[row] = dataclasses.replace(
                    objects[row], x=position[row, 0], y=position[row, 1], yaw=yaw
                )

        moved = tuple(objects)
        return dataclasses.replace(self, objects=moved, position=position, velocity=velocity)

    @property
    def moves(self) -> Bools:
        """Mask of those that go along a path, (n,)."""
        return np.array([path is not None for path in self.paths] or [False] * len(self), np.bool_)

    @property
    def yaw(self) -> Floats:
        """Yaw counter-clockwise from east, (n,), rad."""
        return np.array([o.yaw for o in self.objects], float)

    @property
    def box_half_extent(self) -> Floats:
        """Half sizes along each object's own axes, (n, 3), m; 0 where they are not known."""
        sizes = [
            o.size if o.model is None else o.model.bounds[1] - o.model.bounds[0]
            for o in self.objects
        ]
        return np.array(sizes, float).reshape(-1, 3) / 2

    @property
    def box_origin(self) -> Floats:
        """Middle of each object's box, (n, 3), m.

        The box stands on the ground: `offset` below the model's origin. The box of an object with a
        model is the one around the model.
        """
        offset = np.array([o.offset for o in self.objects], float)
        middle = self.position.copy()
        middle[:, 2] += self.box_half_extent[:, 2] - offset

        for row, placed in enumerate(self.objects):
            if placed.model is not None:
                x, y, z = 0.5 * (placed.model.bounds[0] + placed.model.bounds[1])
                c = math.cos(placed.yaw)
                s = math.sin(placed.yaw)
                middle[row] = self.position[row] + (c * x - s * y, s * x + c * y, z)

        return np.where(self.box_half_extent.any(axis=1, keepdims=True), middle, self.position)

    def to_ned_states(self) -> NedStates:
        """Return what `encode_states` packs.

        The datagrams are those of `sendUE4Pos`, `sendUE4Pos2Ground` or `sendUE4PosScale(2Ground)`.
        """
        n = len(self)
        euler = np.zeros((n, 3))
        euler[:, 2] = yaw_ned_to_enu(self.yaw)
        velocity_ned = np.zeros((n, 3), np.float32)
        if self.velocity is not None:
            velocity_ned = np.asarray(enu_to_ned(self.velocity), np.float32)

        return NedStates(
            id=np.array([o.id for o in self.objects], np.int32),
            vehicle_type=np.array([o.vehicle_type for o in self.objects], np.int32),
            position_ned=np.asarray(enu_to_ned(self.position)) + 0.0,
            euler=euler + 0.0,
            velocity_ned=velocity_ned,
            motor_speed_rpm=np.zeros((n, 8), np.float32),
            motor_speed_mean_rpm=np.zeros(n, np.float32),
            scale=np.array([o.scale for o in self.objects], np.float32).reshape(-1, 3),
            fit_ground=np.array([o.use_ground_packet for o in self.objects], np.bool_),
        )


def place(objects: Sequence[PlacedObject], terrain: HeightMap | None) -> Placement:
    """Return the objects on a terrain.

    Without a terrain, an object that RflySim3D puts on its own ground has z = 0. Raises
    PlacementError for an object that needs a terrain where there is none.
    """
    places = [(o.x, o.y, 0.0 if o.z is None else o.z) for o in objects]
    position = np.array(places, float).reshape(-1, 3)
    inside = np.ones(len(objects), np.bool_)

    if terrain is not None:
        has_own_z = np.array([o.z is not None for o in objects], np.bool_)
        altitude, inside, _ = terrain.query(position[:, 0], position[:, 1], want_normals=False)
        offset = np.array([o.offset for o in objects], float)
        position[:, 2] = np.where(has_own_z, position[:, 2], np.asarray(altitude) + offset)
    else:
        without_ground = next((o for o in objects if o.needs_terrain), None)
        if without_ground is not None:
            raise PlacementError(
                f"object {without_ground.id}: its height is the terrain's, and no terrain is known"
            )

    paths = tuple(o.path and o.path.on(terrain, (o.z or 0.0) + o.offset) for o in objects)
    return Placement(tuple(objects), position, np.asarray(inside), paths if any(paths) else ())


def from_ned(
    x_north: float, y_east: float, yaw: float, z_down: float | None = None
) -> dict[str, Any]:
    """Return x, y, yaw (and z) of a PlacedObject from NED: yaw in rad clockwise from north."""
    east, north, up = np.asarray(enu_to_ned((x_north, y_east, z_down or 0.0)), float).tolist()
    place_in_enu = {"x": east, "y": north, "yaw": float(yaw_ned_to_enu(yaw))}
    return place_in_enu if z_down is None else {**place_in_enu, "z": up}


def _words(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def place_in_enu(x: float, y: float, yaw: float, frame: FrameToWorld, name: str) -> dict[str, Any]:
    """Return x, y (m) and yaw (rad about the frame's z, from its x) of a frame as those in ENU.

    They are x east, y north, yaw counter-clockwise from east. Raises FrameError for a frame whose z
    axis is not vertical: there x and y alone give no point of the ground.
    """
    if frame.is_world:
        return from_ned(x, y, yaw) if frame.axes == "ned" else {"x": x, "y": y, "yaw": yaw}

    frame.check_vertical(name)
    point = frame.points_to_enu((x, y, 0.0))
    ahead = frame.vectors_to_enu((math.cos(yaw), math.sin(yaw), 0.0))
    return {
        "x": float(point[0]),
        "y": float(point[1]),
        "yaw": math.atan2(float(ahead[1]), float(ahead[0])),
    }


def poses_in_frame(
    position_enu: ArrayLike, yaw: ArrayLike, frame: FrameToWorld
) -> tuple[Floats, Floats]:
    """Return (n, 3) positions and (n,) yaws in ENU as positions and orientations in the frame.

    The orientations (n, 4) xyzw rotate base_link (FLU) into the frame.
    """
    half = np.asarray(yaw, float) / 2
    zero = np.zeros_like(half)
    orientation = np.stack([zero, zero, np.sin(half), np.cos(half)], axis=-1)
    return frame.poses_from_enu(position_enu, orientation)


SCALES = (1e-3, 1e3)
"""Smallest and largest scale of a box that is shown; a larger object is drawn too small."""


def world_to_placed(world: World, level: bool = False) -> list[PlacedObject]:
    """Return the objects of a world, their ids to be chosen.

    `level`: there is no terrain, and the ground lies at z = 0. An object whose model RflySim3D does
    not have is drawn as a box: its origin is the middle of its height, and its scale the box's
    size.
    """
    placed = [_placed(each, level) for each in world.objects]
    for moving in world.moving:
        x, y = moving.path.corners[0, :2].tolist()
        standing = WorldObject(moving.model, x, y, 0.0, None, moving.scale)
        placed.append(dataclasses.replace(_placed(standing, level), path=moving.path))
    return placed


def _placed(each: WorldObject, level: bool) -> PlacedObject:
    model = each.scaled_model
    z = 0.0 if each.z is None and level else each.z
    if model.vehicle_type:
        shown = model
        offset = 0.0
        scale = (each.scale,) * 3
    else:
        shown, offset = _about_middle(model)
        length, width, height = np.clip(2.0 * np.maximum(*np.abs(shown.bounds)), *SCALES).tolist()
        scale = (length, width, height)

    placed = PlacedObject(model.vehicle_type, each.x, each.y, each.yaw, scale=scale, model=shown)
    if z is None:
        return dataclasses.replace(placed, offset=offset)
    return dataclasses.replace(placed, z=z + offset)


@functools.lru_cache(maxsize=4096)
def _about_middle(model: Model) -> tuple[Model, float]:
    """Return the model around the middle of its height, and that height above its own z = 0.

    x and y stay.
    """
    low, high = model.bounds
    offset = 0.5 * float(low[2] + high[2])
    parts = tuple(placed_part(part, (0.0, 0.0, -offset), 0.0) for part in model.parts)
    surface = (
        None if model.surface is None else placed_part(model.surface, (0.0, 0.0, -offset), 0.0)
    )
    return dataclasses.replace(model, parts=parts, surface=surface), offset


@dataclass(frozen=True)
class ModelOffset:
    """Vector from the click point (on the ground) to the object position (the model's origin).

    A double click in RflySim3D shows two points, in metres NED: *click point*, where the ray hit
    (the ground, if one clicks next to the model's foot), and *object pos*, the model's origin. z
    points down, so a model that stands on the ground with its origin in its middle has an object z
    that is *less* than the click z:

        height of the origin above the ground = z_click − z_object      (m, positive: above it)
        <CenterHeightAboveGroundCm>           = 100 · (z_click − z_object)
        z to send for the model               = z_ground − height       (experiment 2's targets)

    A target whose object pos is (43.943, 1.620, −11.465) where the ground beneath has z = −10.465
    has an offset of +1 m: the XML wants 100, and on ground of z = −176.181 (experiment 3's
    mountain) it is sent with z = −177.181.
    """

    vector_ned: tuple[float, float, float]
    """Object position minus click point, m; z is negative for an origin above the ground."""

    @property
    def height(self) -> float:
        """Height of the origin above the ground, m.

        `PlaceObject` and `rfly objects place` call it offset.
        """
        return float(up_to_down(self.vector_ned[2])) + 0.0

    @property
    def height_cm(self) -> float:
        """Value of <CenterHeightAboveGroundCm>, cm."""
        return self.height * 100.0

    @property
    def distance(self) -> float:
        """Horizontal distance of the two points, m.

        On a slope, a click point far from the model says little about the ground beneath it.
        """
        return math.hypot(self.vector_ned[0], self.vector_ned[1])


def measure_offset(
    click_point_ned: Sequence[float], object_position_ned: Sequence[float]
) -> ModelOffset:
    """Return the offset of a model from the two points of a double click, each x, y, z in m NED.

    Raises ValueError for a point that is not three finite numbers.
    """
    click = finite_array("click_point_ned", click_point_ned, (3,), error=ValueError)
    origin = finite_array("object_position_ned", object_position_ned, (3,), error=ValueError)
    x, y, z = (origin - click).tolist()
    return ModelOffset((x, y, z))


MAX_OBJECTS = 100_000
"""Largest number of placed objects."""


class ObjectRegistry:
    """Registry that keeps placed objects, with ids that are unique among them and the vehicles.

    `owner_of` returns the other owner of an id, None if it has none.
    """

    def __init__(self, owner_of: Callable[[int], str | None] = lambda _id: None) -> None:
        self._owner_of = owner_of
        self._objects: dict[int, PlacedObject] = {}
        self._maybe_free = FIRST_CHOSEN_ID
        """Lower bound of the free ids, where a search begins.

        No object below it has been removed since the last id was chosen.
        """

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def objects(self) -> tuple[PlacedObject, ...]:
        """Objects, by id."""
        return tuple(self._objects[key] for key in sorted(self._objects))

    def checked(self, placed: PlacedObject) -> PlacedObject:
        """Return the object with the id that it would get, without keeping it.

        Raises PlacementError where that id is in use.
        """
        if len(self._objects) >= MAX_OBJECTS:
            raise PlacementError(f"{MAX_OBJECTS} objects are placed already, which is the limit")
        if placed.id == 0:
            free = (
                i
                for i in itertools.count(self._maybe_free)
                if i not in self._objects and not self._owner_of(i)
            )
            self._maybe_free = next(free)
            return dataclasses.replace(placed, id=self._maybe_free)

        if placed.id in self._objects:
            raise PlacementError(
                f"id {placed.id} is a placed object already: move or remove it, or give id 0"
            )

        owner = self._owner_of(placed.id)
        if owner:
            raise PlacementError(
                f"id {placed.id} is a vehicle of {owner}: give another id, or 0 to have one chosen"
            )
        return placed

    def keep(self, placed: PlacedObject) -> None:
        """Keep the object, instead of the one with its id."""
        self._objects[placed.id] = placed

    def get(self, object_id: int) -> PlacedObject:
        """Return the object of that id. Raises PlacementError that lists the ids there are."""
        if object_id not in self._objects:
            raise PlacementError(
                f"id {object_id}: no such object is placed; there are {self._ids()}"
            )
        return self._objects[object_id]

    def remove(self, object_id: int) -> PlacedObject:
        """Forget the object of that id and return it. Raises PlacementError."""
        gone = self.get(object_id)
        del self._objects[object_id]
        if object_id >= FIRST_CHOSEN_ID:
            self._maybe_free = min(self._maybe_free, object_id)
        return gone

    def _ids(self) -> str:
        ids = sorted(self._objects)
        shown = ", ".join(map(str, ids[:10]))
        return (shown + (f" … ({len(ids)} in all)" if len(ids) > 10 else "")) or "none"
