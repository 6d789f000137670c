# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Descriptions of vehicle types in RflySim3D's vehicle XML.

They give the height of the centre above the ground, the scale and the name.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rfly_collision.shapes.vehicle_shapes import CLASSES, Range, VehicleShapes, scaled
from rfly_collision.shapes.vehicle_xml import VehicleXml, read_vehicle_xml
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import VehicleXmlError
from rfly_common.files import StrPath

MAX_FILES = 1000


@dataclass(frozen=True, eq=False)
class VehicleDescriptions:
    """n vehicle types, sorted; what a file leaves open is NaN or ""."""

    vehicle_type: Ints
    centre_height: Floats
    """Heights of the models' centres above the ground they stand on, (n,), m."""
    scale: Floats
    """Factors of the models' sizes, (n, 3)."""
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.vehicle_type)

    def find(self, vehicle_type: NDArray[np.integer]) -> tuple[Ints, Bools]:
        """(row of each type, or of its class, which of them is described)."""
        types = np.asarray(vehicle_type, np.int64)
        if not len(self):
            return np.zeros(types.shape, np.int64), np.zeros(types.shape, bool)
        exact, of_class = (
            np.minimum(np.searchsorted(self.vehicle_type, each), len(self) - 1)
            for each in (types, types % CLASSES)
        )
        row = np.where(self.vehicle_type[exact] == types, exact, of_class)
        known = (self.vehicle_type[row] == types) | (self.vehicle_type[row] == types % CLASSES)
        return row, np.asarray(known)

    def name(self, vehicle_type: int) -> str:
        """Return the name of a type, or "" if no file gives one."""
        row, known = self.find(np.array([vehicle_type]))
        return self.names[int(row[0])] if known[0] else ""


NONE = VehicleDescriptions(np.empty(0, np.int64), np.empty(0), np.empty((0, 3)), ())


def read_vehicle_descriptions(path: StrPath) -> VehicleDescriptions:
    """Return the vehicles of an XML file, or of all .xml files of a folder (not below it).

    Raises VehicleXmlError with the file's name for a file that is not well-formed, has no ClassID
    or one that another file has, or can't be read.
    """
    place = Path(path)
    try:
        files = (
            sorted(file for file in place.iterdir() if file.suffix.lower() == ".xml")
            if place.is_dir()
            else [place]
        )
        if not files or len(files) > MAX_FILES:
            raise VehicleXmlError(
                f"{os.fspath(path)}: {len(files)} .xml files, expected 1 to {MAX_FILES}"
            )
        return described(read_vehicle_xml(file) for file in files)
    except OSError as error:
        raise VehicleXmlError(f"{error.filename or os.fspath(path)}: {error.strerror}") from error


def with_descriptions(shapes: VehicleShapes, descriptions: VehicleDescriptions) -> VehicleShapes:
    """Return the shapes with the heights and sizes of the described types.

    All other types are unchanged. The shape keeps its place relative to the vehicle's origin; the
    origin is kept as high above the ground as the file says.
    """
    all_shapes = list(shapes.shapes)
    types = list(shapes.types)
    for row, number in enumerate(descriptions.vehicle_type.tolist()):
        base = shapes[int(shapes.index_of(number))]
        given_scale = descriptions.scale[row]
        factors = np.where(np.isfinite(given_scale), given_scale, 1.0)
        height = float(descriptions.centre_height[row])

        described_shape = dataclasses.replace(
            base,
            name=descriptions.names[row] or base.name,
            shape=scaled(base.shape, factors),
            centre_height=base.centre_height * float(factors[2]) if np.isnan(height) else height,
            ground_clearance=base.ground_clearance * float(factors[2]),
        )

        # the type leaves its range and gets its own shape
        types = [piece for each in types for piece in _without(each, number)] + [
            ((number, number), len(all_shapes))
        ]
        all_shapes.append(described_shape)
    return dataclasses.replace(shapes, shapes=tuple(all_shapes), types=tuple(types))


def _without(entry: tuple[Range, int], number: int) -> list[tuple[Range, int]]:
    """Return the rest of a range of types."""
    (first, last), shape = entry
    if not first <= number <= last:
        return [entry]
    pieces = ((first, number - 1), (number + 1, last))
    return [(piece, shape) for piece in pieces if piece[0] <= piece[1]]


def described(vehicles: Iterable[VehicleXml]) -> VehicleDescriptions:
    """Return the table of descriptions. Raises VehicleXmlError as `read_vehicle_descriptions`."""
    by_type: dict[int, VehicleXml] = {}
    for vehicle in vehicles:
        if vehicle.class_id is None:
            raise VehicleXmlError(
                f"{vehicle.file}: ClassID: missing, expected the vehicle type that it describes"
            )
        if vehicle.class_id in by_type:
            raise VehicleXmlError(
                f"{vehicle.file}: ClassID {vehicle.class_id} is that of "
                f"{by_type[vehicle.class_id].file} already"
            )
        by_type[vehicle.class_id] = vehicle

    # arrays in the order of types
    ordered = [by_type[number] for number in sorted(by_type)]
    heights = [
        np.nan if v.center_height_cm is None else v.center_height_cm / 100.0 for v in ordered
    ]
    scales = np.array([v.scale or (np.nan,) * 3 for v in ordered], float).reshape(-1, 3)
    types = np.array(sorted(by_type), np.int64)
    return VehicleDescriptions(
        types, np.array(heights, float), scales, tuple(v.name for v in ordered)
    )
