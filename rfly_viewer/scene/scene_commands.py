# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands that the window can follow, typed. `console` reads them from texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rfly_common.arrays import Triple

Rgb = tuple[int, int, int]


class ConsoleCommand:
    """Base class of the commands that a text can hold."""


@dataclass(frozen=True)
class ReadCommand(ConsoleCommand):
    """Command whose words are its meaning, as `rfly_ue_bridge.codec.commands` declares them."""

    word: str
    """First word, such as RflySetPosScale."""
    values: tuple[Any, ...]
    """Values of the words that follow."""


@dataclass(frozen=True)
class ChangeMap(ConsoleCommand):
    """RflyChangeMapbyName."""

    name: str


@dataclass(frozen=True)
class MoveCamera(ConsoleCommand):
    """RflyCameraPosAng and RflyCameraPosAngAdd."""

    position_ned: Triple
    euler: Triple
    """Roll, pitch, yaw, rad."""
    relative: bool


@dataclass(frozen=True)
class CameraFov(ConsoleCommand):
    """RflyCameraFovDegrees: the horizontal angle, as for Unreal's cameras."""

    horizontal: float
    """Angle, rad."""


@dataclass(frozen=True)
class ChangeModel(ConsoleCommand):
    """RflyChange3DModel; id -1: all vehicles."""

    vehicle_id: int
    vehicle_type: int


@dataclass(frozen=True)
class MoveVehicle(ConsoleCommand):
    """RflyMoveVehiclePosAng and RflySetVehiclePosAng."""

    vehicle_id: int
    on_ground: bool
    position_ned: Triple
    euler: Triple
    """Roll, pitch, yaw, rad."""
    relative: bool


@dataclass(frozen=True)
class RequestObject(ConsoleCommand):
    """RflyReqObjData.

    kind 0: the camera of a SeqID, 1: the vehicle of a copterID, 2: the scene object of a name.
    """

    kind: int
    name: str


@dataclass(frozen=True)
class ClearAll(ConsoleCommand):
    """RflyReqObjData 24: all vehicles and all sensors."""


@dataclass(frozen=True)
class ClearSensors(ConsoleCommand):
    """RflyClearCapture, and RflyReqObjData 10 and 20."""

    seq_id: int | None
    """Sensor that is removed; None: all."""


@dataclass(frozen=True)
class ScanTerrain(ConsoleCommand):
    """RflyScanTerrainH: corners in m, x north and y east, and the distance of the samples."""

    low: tuple[float, float]
    high: tuple[float, float]
    interval: float


@dataclass(frozen=True)
class DeleteVehicles(ConsoleCommand):
    """RflyDelVehicles, and RflyReqObjData 11; None, as 21 and 23: all vehicles."""

    vehicle_ids: tuple[int, ...] | None


@dataclass(frozen=True)
class SetLabel(ConsoleCommand):
    """RflySetIDLabel (flag 0) and RflySetMsgLabel, with CopterMsg's flags and times."""

    vehicle_id: int
    text: str
    rgb: Rgb
    size: float
    seconds: float
    flag: int


@dataclass(frozen=True)
class ViewKey(ConsoleCommand):
    """RflyChangeViewKeyCmd: one of KEYS that has an effect here, as a capital, and a number."""

    key: str
    number: int | None = None


@dataclass(frozen=True)
class UnsupportedCommand(ConsoleCommand):
    """Command of RflySim3D that has no effect here; `reason` is shown."""

    text: str
    reason: str
