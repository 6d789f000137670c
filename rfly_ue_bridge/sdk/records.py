# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records of RflySim's SDK for RflySim3D's answers: class names, attributes and flat constructor.

The SDK's names differ from those of the wire in places (`timestmp`, `BoxExtent`, `CopterID`,
`ObjName`); both can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rfly_ue_bridge.codec import from_rflysim3d
from rfly_ue_bridge.codec.packets import Packet, PacketType


class SdkRecord:
    """One answer as attributes: numbers, tuples and texts. Every answer sets `hasUpdate` to True.

    `iv` is the answer as `struct.unpack` gives it, flat; without it all is 0. A text that is not
    UTF-8 raises PacketError.
    """

    layout: ClassVar[PacketType]
    old_layout: ClassVar[PacketType | None] = None
    sdk_names: ClassVar[dict[str, str]] = {}
    """Wire name -> the SDK's name, where they differ."""

    hasUpdate: bool

    def __init__(self, iv: Sequence[Any] | None = None) -> None:
        if iv is not None:
            self.CopyData(iv)
            return
        self.update(self.layout.unpack(bytes(self.layout.size)))

    @classmethod
    def of(cls, packet: Packet) -> SdkRecord:
        """Return a record of a packet in either layout."""
        record = cls()
        record.update(packet.values)
        return record

    @property
    def key(self) -> int:
        """Number that identifies a record, as `from_rflysim3d.key_of`."""
        return getattr(self, self.layout.fields[1].name)

    def CopyData(self, iv: Sequence[Any]) -> None:
        """Take over an answer as `struct.unpack` gives it, in the present layout."""
        self._copy(self.layout, iv)

    def CopyDataOld(self, iv: Sequence[Any]) -> None:
        """Take over an answer in the old layout; angQuat stays as it was."""
        self._copy(self.old_layout or self.layout, iv)

    def update(self, values: Any) -> None:
        """Take over an answer by the names of the wire."""
        for name, value in values.items():
            setattr(self, self.sdk_names.get(name, name), value)
        self.hasUpdate = True

    def _copy(self, layout: PacketType, iv: Sequence[Any]) -> None:
        self.update(layout.unpack(layout.struct.pack(*iv)))

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__[type(self).sdk_names[name]]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({inside})"


class PX4SILIntFloat(SdkRecord):
    """Numbers of a CopterSim model."""

    layout = from_rflysim3d.PX4_SIL_INT_FLOAT
    sdk_names: ClassVar[dict[str, str]] = {"copterID": "CopterID", "inSILFloats": "inSILFLoats"}


class reqVeCrashData(SdkRecord):
    """Place of a vehicle, and what it ran into."""

    layout = from_rflysim3d.REQ_VE_CRASH_DATA


class CameraData(SdkRecord):
    """A camera's place and picture size."""

    layout = from_rflysim3d.CAMERA_DATA
    old_layout = from_rflysim3d.CAMERA_DATA_OLD
    sdk_names: ClassVar[dict[str, str]] = {"timestamp": "timestmp"}


class CoptReqData(SdkRecord):
    """A vehicle's place and size."""

    layout = from_rflysim3d.COPT_REQ_DATA
    old_layout = from_rflysim3d.COPT_REQ_DATA_OLD
    sdk_names: ClassVar[dict[str, str]] = {
        "copterID": "CopterID",
        "boxExtent": "BoxExtent",
        "timestamp": "timestmp",
    }


class ObjReqData(SdkRecord):
    """A scene object's place and size."""

    layout = from_rflysim3d.OBJ_REQ_DATA
    old_layout = from_rflysim3d.OBJ_REQ_DATA_OLD
    sdk_names: ClassVar[dict[str, str]] = {
        "boxExtent": "BoxExtent",
        "timestamp": "timestmp",
        "name": "ObjName",
    }


class VisionSensorReqNew(SdkRecord):
    """A gimbal's camera."""

    layout = from_rflysim3d.VISION_SENSOR_REQ_NEW


RECORD_CLASSES: dict[str, type[SdkRecord]] = {
    record.layout.kind: record
    for record in (
        PX4SILIntFloat,
        reqVeCrashData,
        CameraData,
        CoptReqData,
        ObjReqData,
        VisionSensorReqNew,
    )
}
"""Classes by `PacketType.kind`, which is the class's name."""
