# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receiving half of UE4CtrlAPI: RflySim3D's answers as lists of records for RflySim's scripts.

Unlike the SDK's, one bad datagram does not end the listening, and ending it does not wait for a
datagram.

The records have the SDK's class names, attributes and flat constructors. Its names differ from
those of the wire in places (`timestmp`, `BoxExtent`, `CopterID`, `ObjName`); both can be read.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from rfly_common.errors import FeedbackError
from rfly_ue_bridge.codec import from_rflysim3d
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT
from rfly_ue_bridge.codec.from_rflysim3d import (
    COPTER_SIM_CRASH,
    REQ_VE_CRASH_DATA,
    key_of,
)
from rfly_ue_bridge.codec.packets import Packet, PacketType
from rfly_ue_bridge.sockets.feedback_receiver import FeedbackReceiver

ANY = INTERFACE = "0.0.0.0"


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


class SdkListener:
    """Records by the SDK's class name, renewed by the reading thread.

    `answered` is called after every answer: with the ids of a vehicle and its target after a crash,
    else with None. MAX_RECORDS of each kind are kept; then the first one is dropped.
    """

    def __init__(self, answered: Callable[[tuple[int, int] | None], None]) -> None:
        self._answered = answered
        self._ended = False
        self._receiver = FeedbackReceiver(
            ANY, FEEDBACK_PORT, multicast_interface=INTERFACE, wake=self._take
        )

        self._forget()

    @property
    def listening(self) -> bool:
        return self._receiver.listening

    def start(self) -> None:
        """Listen, with no records at first.

        FeedbackError (an OSError) if the port cannot be opened, or after `end`.
        """
        if self._ended:
            raise FeedbackError(
                errno.EBADF,
                f"endUE4MsgRec has closed this object's port {FEEDBACK_PORT}: "
                "make a new UE4CtrlAPI",
            )
        if self._receiver.listening:
            return
        self._forget()
        self._receiver.start()
        if self._receiver.multicast_error:
            print(f"Multicast is not received, unicast is: {self._receiver.multicast_error}")

    def end(self) -> None:
        """Stop listening, at once and for good."""
        self._ended = True
        self._receiver.close()

    def _forget(self) -> None:
        self.records: dict[str, list[SdkRecord]] = {kind: [] for kind in RECORD_CLASSES}
        self._numbers: dict[str, dict[int, int]] = {kind: {} for kind in RECORD_CLASSES}
        """Number of records that came before a record, by class and key; dropped ones included."""
        self._gone = dict.fromkeys(RECORD_CLASSES, 0)
        self.vehicle_updates: list[bool] = []
        self._crashes: dict[int, int] = {}

    def _take(self) -> None:
        for packet in self._receiver.take():
            if packet.type is COPTER_SIM_CRASH:
                self._print_crash(packet)
                self._answered((packet["copterID"], packet["targetID"]))
            else:
                self._update(packet)
                self._answered(None)

    def _update(self, packet: Packet) -> None:
        kind = packet.type.kind
        is_vehicle = packet.type is REQ_VE_CRASH_DATA
        records = self.records[kind]
        numbers = self._numbers[kind]

        number = numbers.get(key_of(packet))
        if number is not None:
            place = number - self._gone[kind]
            records[place].update(packet.values)
            if is_vehicle:
                self.vehicle_updates[place] = True
            return

        record = RECORD_CLASSES[kind].of(packet)
        if len(records) >= MAX_RECORDS:
            del numbers[records.pop(0).key]
            self._gone[kind] += 1
            if is_vehicle:
                self.vehicle_updates.pop(0)

        numbers[record.key] = self._gone[kind] + len(records)
        if is_vehicle:
            self.vehicle_updates.append(True)
        records.append(record)

    def _print_crash(self, packet: Packet) -> None:
        """Print a crash in one line, as the SDK does, unless it is the same as before."""
        copter_id = packet["copterID"]
        target_id = packet["targetID"]
        if self._crashes.get(copter_id) == target_id:
            return

        if len(self._crashes) >= MAX_RECORDS:
            self._crashes.clear()
        self._crashes[copter_id] = target_id
        # listening continues after the output is closed
        with contextlib.suppress(OSError, ValueError):
            print("Vehicle #", copter_id, " Crashed with vehicle #", target_id)


MAX_RECORDS = 4096
"""Records of each kind that are kept; beyond it the one renewed longest ago is dropped."""
