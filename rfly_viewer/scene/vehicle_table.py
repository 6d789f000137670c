# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicle table: columns sorted by id, with world poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_collision.shapes import vehicle_meshes as models
from rfly_collision.shapes.vehicle_descriptions import NONE, VehicleDescriptions
from rfly_common.arrays import Bools, Floats, Ints, Rows
from rfly_common.frames import euler_to_quat, quat_multiply, quat_rotate, quat_to_euler
from rfly_terrain.height_map.height_map import HeightMap
from rfly_ue_bridge.codec.to_rflysim3d import ATTACH_ATTITUDE, ATTACH_NONE, ATTACH_POSITION_YAW
from rfly_viewer.scene.state_batches import StateBatch

MAX_VEHICLES = 10_000
"""Vehicles that the table holds; states of further ids are dropped and counted."""
MAX_CHAIN = 8
"""Length of a chain of attachments, a vehicle on a vehicle on a …, that is followed.

Vehicles beyond it, and in rings, are treated as not attached.
"""

_NO_VEHICLE = -(2**63)
_COLUMNS: dict[str, tuple[type, tuple[int, ...], Any]] = {
    "sent_type": (np.int64, (), 0),
    "vehicle_type": (np.int64, (), 0),
    "position_ned": (np.float64, (3,), 0.0),
    "euler": (np.float64, (3,), 0.0),
    "velocity_ned": (np.float64, (3,), 0.0),
    "scale": (np.float64, (3,), 1.0),
    "motor_speed_rpm": (np.float64, (), 0.0),
    "wheel_speed_rpm": (np.float64, (), 0.0),
    "on_ground": (np.bool_, (), False),
    "parent": (np.int64, (), _NO_VEHICLE),
    "attachment": (np.int64, (), ATTACH_NONE),
    "changed_s": (np.float64, (), 0.0),
}


def _row_of(ids: Ints, vehicle_id: int) -> int | None:
    """Return the index of an id in sorted ids; None if it is not there."""
    row = int(np.searchsorted(ids, vehicle_id))
    return row if row < len(ids) and ids[row] == vehicle_id else None


@dataclass(frozen=True, eq=False)
class WorldPoses(Rows):
    """Poses with which vehicles are drawn, sorted by id."""

    id: Ints
    vehicle_type: Ints
    kind: Ints
    """Index into models.MODELS."""
    position_ned: Floats
    quat_ned_frd: Floats
    """Rotation of FRD into NED, (n, 4), xyzw."""
    scale: Floats
    motor_speed_rpm: Floats
    wheel_speed_rpm: Floats
    on_ground: Bools
    """True if the vehicle is kept on the ground."""

    def row(self, vehicle_id: int) -> int | None:
        """Return the row of a vehicle; None if it is not in the arrays."""
        return _row_of(self.id, vehicle_id)


class VehicleTable:
    """Columns by name (`table["scale"]`), one row for each vehicle, sorted by `id`."""

    def __init__(self, descriptions: VehicleDescriptions = NONE) -> None:
        """Take the descriptions of vehicle types in vehicle XML.

        They override the shipped shapes.
        """
        self.descriptions = descriptions
        self.refused = 0
        """Number of states of ids that found no room."""
        self._held: Ints = np.empty(0, np.int64)
        self.clear()

    def clear(self) -> None:
        """Forget all vehicles."""
        self.id: Ints = np.empty(0, np.int64)
        self.newest: int | None = None
        """Id of the vehicle that came last."""
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty((0, *shape), kind) for name, (kind, shape, _) in _COLUMNS.items()
        }

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def row(self, vehicle_id: int) -> int | None:
        """Return the row of a vehicle; None if it was never seen."""
        return _row_of(self.id, vehicle_id)

    def update(self, batch: StateBatch, now_s: float) -> None:
        """Take over the states.

        A scale or velocity that a packet does not carry stays unchanged.
        """
        if len(self._held):
            batch = batch.select(~np.isin(batch.id, self._held))
        known = np.isin(batch.id, self.id)
        if not known.all():
            batch = self._add(batch, known)
        rows = np.searchsorted(self.id, batch.id)

        columns = self._columns
        moved = (columns["position_ned"][rows] != batch.position_ned).any(axis=1)
        moved |= (columns["euler"][rows] != batch.euler).any(axis=1)
        columns["changed_s"][rows[moved]] = now_s

        # a type set by command stays until the packets' type changes
        retyped = columns["sent_type"][rows] != batch.vehicle_type
        columns["vehicle_type"][rows[retyped]] = batch.vehicle_type[retyped]
        columns["sent_type"][rows] = batch.vehicle_type

        for name in ("position_ned", "euler", "motor_speed_rpm", "wheel_speed_rpm", "on_ground"):
            columns[name][rows] = getattr(batch, name)
        for name in ("velocity_ned", "scale"):
            sent = getattr(batch, name)
            columns[name][rows] = np.where(np.isfinite(sent), sent, columns[name][rows])

    def remove(self, vehicle_ids: Sequence[int]) -> list[int]:
        """Forget vehicles; return the ids that were never seen."""
        gone = np.isin(self.id, np.array(vehicle_ids, np.int64))
        unknown = [each for each in vehicle_ids if self.row(each) is None]
        self.id = self.id[~gone]
        self._columns = {name: column[~gone] for name, column in self._columns.items()}
        if self.newest is not None and self.row(self.newest) is None:
            self.newest = None
        return unknown

    def hold(self, vehicle_ids: Sequence[int], held: bool) -> None:
        """Ignore the states of these vehicles, up to MAX_VEHICLES of them, or no longer."""
        change = np.union1d if held else np.setdiff1d
        self._held = change(self._held, np.array(vehicle_ids, np.int64))[:MAX_VEHICLES]

    def attach(self, ids: Ints, parents: Ints, kinds: Ints) -> list[int]:
        """Attach vehicles; return the ids that were never seen, which are left out."""
        known = np.isin(ids, self.id)
        rows = np.searchsorted(self.id, ids[known])
        self._columns["parent"][rows] = np.where(
            kinds[known] == ATTACH_NONE, _NO_VEHICLE, parents[known]
        )
        self._columns["attachment"][rows] = kinds[known]
        return ids[~known].tolist()

    def world(self, terrain: HeightMap) -> WorldPoses:
        """Return the pose of each vehicle in the world.

        Attachments are followed, and then the vehicles that are kept on the ground are put there.
        """
        position = self["position_ned"].copy()
        quat = np.asarray(euler_to_quat(self["euler"]), np.float64)
        if (self["attachment"] != ATTACH_NONE).any():
            self._follow_attachments(position, quat)

        # kept on the ground
        kind = models.kind_of(self["vehicle_type"])
        grounded = np.flatnonzero(self["on_ground"])
        centre_height, own_scale = self._described(kind)
        if len(grounded):
            ground = terrain.altitude_ned(position[grounded, 0], position[grounded, 1])
            position[grounded, 2] = ground - centre_height[grounded] * self["scale"][grounded, 2]

        return WorldPoses(
            self.id,
            self["vehicle_type"].copy(),
            kind,
            position,
            quat,
            self["scale"] * own_scale,
            self["motor_speed_rpm"].copy(),
            self["wheel_speed_rpm"].copy(),
            self["on_ground"].copy(),
        )

    def _described(self, kind: Ints) -> tuple[Floats, Floats]:
        """Return heights of the centres above the ground, (n,) m, and scales, (n, 3), by type."""
        standing = models.CENTRE_HEIGHT[kind]
        scale = np.ones((len(kind), 3))
        height = standing

        if len(self.descriptions) and len(kind):
            row, known = self.descriptions.find(self["vehicle_type"])
            factors = self.descriptions.scale[row]
            scale = np.where(known[:, None] & np.isfinite(factors), factors, scale)
            described_height = self.descriptions.centre_height[row]
            height = np.where(
                known & np.isfinite(described_height), described_height, standing * scale[:, 2]
            )
        return height, scale

    def _add(self, batch: StateBatch, known: Bools) -> StateBatch:
        """Add rows for new ids, up to MAX_VEHICLES; return the states that have a row."""
        new = np.flatnonzero(~known)
        room = max(0, MAX_VEHICLES - len(self.id))
        if len(new) > room:
            self.refused += len(new) - room
            keep = known.copy()
            keep[new[:room]] = True
            batch = batch.select(keep)
            new = new[:room]

        added = np.setdiff1d(batch.id, self.id)
        if len(new):
            self.newest = int(batch.id[new[-1]])
        places = np.searchsorted(self.id, added)
        self.id = np.insert(self.id, places, added)
        for name, (_, _, default) in _COLUMNS.items():
            self._columns[name] = np.insert(self._columns[name], places, default, axis=0)
        return batch

    def _follow_attachments(self, position: Floats, quat: Floats) -> None:
        """Put attached vehicles at their places in the world, parents before children."""
        kinds = self["attachment"]
        parents = self["parent"]
        is_attached = np.isin(parents, self.id) & (kinds != ATTACH_NONE)
        parent_row = np.where(is_attached, np.searchsorted(self.id, parents), -1)
        placed = parent_row < 0

        for _ in range(MAX_CHAIN):
            ready = np.flatnonzero(~placed & placed[parent_row])
            if not len(ready):
                return
            above = parent_row[ready]

            turned = quat[above].copy()
            level = kinds[ready] != ATTACH_ATTITUDE
            yaw = np.where(kinds[ready] == ATTACH_POSITION_YAW, quat_to_euler(turned)[:, 2], 0.0)
            yaw_only = euler_to_quat(np.column_stack([np.zeros((len(ready), 2)), yaw]))
            turned[level] = yaw_only[level]

            position[ready] = position[above] + quat_rotate(turned, position[ready])
            quat[ready] = quat_multiply(turned, quat[ready])
            placed[ready] = True
