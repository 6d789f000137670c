"""What RflySim3D's vehicle XML says of vehicle types: height of the centre above the ground, scale, name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import VehicleXmlError
from rfly_common.files import StrPath
from rfly_ue_bridge.objects.vehicle_xml import VehicleXml, read_vehicle_xml

MAX_FILES = 1000


@dataclass(frozen=True, eq=False)
class VehicleDescriptions:
    """n vehicle types, sorted; what a file leaves open is NaN or ""."""

    vehicle_type: Ints
    centre_height: Floats
    """(n,) m of the model's centre above the ground it stands on"""
    scale: Floats
    """(n, 3) factors of the model's size"""
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.vehicle_type)

    def find(self, vehicle_type: NDArray[np.integer]) -> tuple[Ints, Bools]:
        """(row of each type, which of them is described)."""
        row = np.minimum(np.searchsorted(self.vehicle_type, vehicle_type), max(0, len(self) - 1))
        known = self.vehicle_type[row] == vehicle_type if len(self) else np.zeros(np.shape(vehicle_type), bool)
        return row.astype(np.int64), np.asarray(known)

    def name(self, vehicle_type: int) -> str:
        """What a type is called, "" where no file says so."""
        row, known = self.find(np.array([vehicle_type]))
        return self.names[int(row[0])] if known[0] else ""


NONE = VehicleDescriptions(np.empty(0, np.int64), np.empty(0), np.empty((0, 3)), ())


def read_vehicle_descriptions(path: StrPath) -> VehicleDescriptions:
    """The vehicles of an XML file, or of all .xml files of a folder (not below it).

    Raises VehicleXmlError that names the file: not well-formed, without a ClassID, with one that another has. OSError.
    """
    place = Path(path)
    files = sorted(file for file in place.iterdir() if file.suffix.lower() == ".xml") if place.is_dir() else [place]
    if not files or len(files) > MAX_FILES:
        raise VehicleXmlError(f"{os.fspath(path)}: {len(files)} .xml files, expected 1 to {MAX_FILES}")
    return described(read_vehicle_xml(file) for file in files)


def described(vehicles: Iterable[VehicleXml]) -> VehicleDescriptions:
    """The table of descriptions. Raises VehicleXmlError as `read_vehicle_descriptions`."""
    by_type: dict[int, VehicleXml] = {}
    for vehicle in vehicles:
        if vehicle.class_id is None:
            raise VehicleXmlError(f"{vehicle.file}: ClassID: missing, expected the vehicle type that it describes")
        if vehicle.class_id in by_type:
            raise VehicleXmlError(
                f"{vehicle.file}: ClassID {vehicle.class_id} is that of {by_type[vehicle.class_id].file} already"
            )
        by_type[vehicle.class_id] = vehicle
    ordered = [by_type[number] for number in sorted(by_type)]
    heights = [np.nan if v.center_height_cm is None else v.center_height_cm / 100.0 for v in ordered]
    scales = np.array([v.scale or (np.nan,) * 3 for v in ordered], float).reshape(-1, 3)
    types = np.array(sorted(by_type), np.int64)
    return VehicleDescriptions(types, np.array(heights, float), scales, tuple(v.name for v in ordered))
