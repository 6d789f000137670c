"""Latest feedback of RflySim3D on each camera, vehicle and object."""

from __future__ import annotations

from types import SimpleNamespace

from rfly_ue_bridge.codec.from_rflysim3d import (
    CAMERA_DATA,
    CAMERA_DATA_OLD,
    COPT_REQ_DATA,
    COPT_REQ_DATA_OLD,
    COPTER_SIM_CRASH,
    OBJ_REQ_DATA,
    OBJ_REQ_DATA_OLD,
    PX4_SIL_INT_FLOAT,
    REQ_VE_CRASH_DATA,
)
from rfly_ue_bridge.codec.packets import Packet

MAX_RECORDS = 4096
"""of each kind; beyond it the record that was renewed longest ago is forgotten"""

_NO_QUATERNION = (0.0, 0.0, 0.0, 0.0)

# wire name -> (kind, field that is the key); both layouts of an answer share a kind
_KEYS = {
    COPTER_SIM_CRASH.name: ("crash", "copterID"),
    REQ_VE_CRASH_DATA.name: ("vehicle_crash", "copterID"),
    PX4_SIL_INT_FLOAT.name: ("sil", "copterID"),
    CAMERA_DATA_OLD.name: ("camera", "SeqID"),
    CAMERA_DATA.name: ("camera", "SeqID"),
    COPT_REQ_DATA_OLD.name: ("vehicle", "copterID"),
    COPT_REQ_DATA.name: ("vehicle", "copterID"),
    OBJ_REQ_DATA_OLD.name: ("object", "seqID"),
    OBJ_REQ_DATA.name: ("object", "seqID"),
}
_HAVE_QUATERNION = frozenset({"camera", "vehicle", "object"})


class Record(SimpleNamespace):
    """The fields of a packet as attributes, named as on the wire (`record.PosUE`): numbers, tuples, texts.

    A later packet of the same key renews the record in place, so that whoever holds it sees the news, as the scripts
    of RflySim's SDK expect. An old layout, which has no angQuat, leaves it as it was (four zeros at first).
    """


class FeedbackRecords:
    """Keeps one `Record` for each key: copterID, SeqID of a camera, seqID of an object. Not for several threads."""

    def __init__(self, max_records: int = MAX_RECORDS) -> None:
        self._max_records = max_records
        self._records: dict[str, dict[int, Record]] = {kind: {} for kind, _ in _KEYS.values()}

    def update(self, packet: Packet) -> Record | None:
        """Take a packet in; None for one of which no record is kept (a gimbal's)."""
        kind, key_field = _KEYS.get(packet.name, ("", ""))
        if not kind:
            return None
        records = self._records[kind]
        key = packet[key_field]
        record = records.pop(key, None)
        if record is None:
            record = Record(angQuat=_NO_QUATERNION) if kind in _HAVE_QUATERNION else Record()
            while len(records) >= self._max_records:
                del records[next(iter(records))]
        record.__dict__.update(packet.values)
        records[key] = record  # last: the first is the one renewed longest ago
        return record

    def crash(self, copter_id: int) -> Record | None:
        """The last CopterSimCrash of a vehicle; None if none was seen, as below."""
        return self._records["crash"].get(copter_id)

    def vehicle_crash(self, copter_id: int) -> Record | None:
        """The last reqVeCrashData of a vehicle: where it is, and what it ran into."""
        return self._records["vehicle_crash"].get(copter_id)

    def sil(self, copter_id: int) -> Record | None:
        """The last PX4SILIntFloat of a vehicle."""
        return self._records["sil"].get(copter_id)

    def camera(self, seq_id: int) -> Record | None:
        """The last CameraData of a camera."""
        return self._records["camera"].get(seq_id)

    def vehicle(self, copter_id: int) -> Record | None:
        """The last CoptReqData of a vehicle."""
        return self._records["vehicle"].get(copter_id)

    def object(self, name: str) -> Record | None:
        """The last ObjReqData of that name. Kept by seqID, so a name whose seqID another object took over is gone."""
        for record in reversed(self._records["object"].values()):
            if record.name == name:
                return record
        return None
