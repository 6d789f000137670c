"""Receiving half of UE4CtrlAPI: RflySim3D's answers as lists of records, as RflySim's scripts read
them.

Unlike the SDK's, one bad datagram does not end the listening, and ending it waits for nobody.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from types import SimpleNamespace

from rfly_common.errors import FeedbackError
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT
from rfly_ue_bridge.codec.from_rflysim3d import (
    COPTER_SIM_CRASH,
    FROM_RFLYSIM3D,
    REQ_VE_CRASH_DATA,
    VISION_SENSOR_REQ_NEW,
    key_of,
)
from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.sdk.records import RECORD_CLASSES, SdkRecord
from rfly_ue_bridge.sockets.feedback_receiver import FeedbackReceiver

ANY = INTERFACE = "0.0.0.0"


class SdkListener:
    """Records by the SDK's class name, renewed by the reading thread; `news` is set with every
    answer.

    Of each kind MAX_RECORDS are kept, then the one that came first goes.
    """

    def __init__(self, news: threading.Event) -> None:
        self._news = news
        self._ended = False
        self._receiver = FeedbackReceiver(
            ANY, FEEDBACK_PORT, multicast_interface=INTERFACE, wake=self._take
        )
        self._forget()

    @property
    def listening(self) -> bool:
        return self._receiver.listening

    def start(self) -> None:
        """Listen, with no records at first. FeedbackError (an OSError) if the port cannot be
        opened, or after `end`.
        """
        if self._ended:
            raise FeedbackError(
                errno.EBADF,
                f"endUE4MsgRec has closed this object's port {FEEDBACK_PORT}: make a new UE4CtrlAPI",
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
        """by class and key: how many records came before that one, those that went included"""
        self._gone = dict.fromkeys(RECORD_CLASSES, 0)
        self.vehicle_updates: list[bool] = []
        self._crashes: dict[int, int] = {}

    def _take(self) -> None:
        for packet in self._receiver.take():
            if packet.type is COPTER_SIM_CRASH:
                self._print_crash(packet)
            else:
                self._update(packet)
            self._news.set()

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
        """One line, as the SDK prints; not again while it says the same."""
        copter_id = packet["copterID"]
        target_id = packet["targetID"]
        if self._crashes.get(copter_id) == target_id:
            return
        if len(self._crashes) >= MAX_RECORDS:
            self._crashes.clear()
        self._crashes[copter_id] = target_id
        with contextlib.suppress(
            OSError, ValueError
        ):  # where nobody can read it, the listening goes on
            print("Vehicle #", copter_id, " Crashed with vehicle #", target_id)


MAX_RECORDS = 4096
"""of each kind; beyond it the record that was renewed longest ago is forgotten"""

_NO_QUATERNION = (0.0, 0.0, 0.0, 0.0)


class Record(SimpleNamespace):
    """The fields of a packet as attributes, named as on the wire (`record.PosUE`): numbers, tuples,
    texts.

    A later packet of the same key renews the record in place, so that whoever holds it sees the
    news, as the scripts of RflySim's SDK expect. An old layout, which has no angQuat, leaves it as
    it was (four zeros at first).
    """


class FeedbackRecords:
    """Keeps one `Record` for each key: copterID, SeqID of a camera, seqID of an object. Not for
    several threads.
    """

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        self._max_records = max_records
        self._records: dict[str, dict[int, Record]] = {
            packet_type.kind: {}
            for packet_type in FROM_RFLYSIM3D
            if packet_type is not VISION_SENSOR_REQ_NEW
        }

    def update(self, packet: Packet) -> Record | None:
        """Take a packet in; None for one of which no record is kept (a gimbal's)."""
        records = self._records.get(packet.type.kind)
        if records is None:
            return None
        key = key_of(packet)
        record = records.pop(key, None)
        if record is None:
            record = Record(angQuat=_NO_QUATERNION) if "PosUE" in packet.values else Record()
            while len(records) >= self._max_records:
                del records[next(iter(records))]
        record.__dict__.update(packet.values)
        records[key] = record  # last: the first is the one renewed longest ago
        return record

    def crash(self, copter_id: int) -> Record | None:
        """The last CopterSimCrash of a vehicle; None if none was seen, as below."""
        return self._records["CopterSimCrash"].get(copter_id)

    def vehicle_crash(self, copter_id: int) -> Record | None:
        """The last reqVeCrashData of a vehicle: where it is, and what it ran into."""
        return self._records["reqVeCrashData"].get(copter_id)

    def sil(self, copter_id: int) -> Record | None:
        """The last PX4SILIntFloat of a vehicle."""
        return self._records["PX4SILIntFloat"].get(copter_id)

    def camera(self, seq_id: int) -> Record | None:
        """The last CameraData of a camera."""
        return self._records["CameraData"].get(seq_id)

    def vehicle(self, copter_id: int) -> Record | None:
        """The last CoptReqData of a vehicle."""
        return self._records["CoptReqData"].get(copter_id)

    def object(self, name: str) -> Record | None:
        """The last ObjReqData of that name. Kept by seqID, so a name whose seqID another object
        took over is gone.
        """
        for record in reversed(self._records["ObjReqData"].values()):
            if record.name == name:
                return record
        return None
