# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packets from RflySim3D and CopterSim on UDP 20006, and the table that recognises them.

`FROM_RFLYSIM3D.decode` reads them. `PacketType.make(...).encode()` and `PacketType.pack` write
them, for programs that play RflySim3D's part. The ten lengths are all different; a datagram must
bear the checksum of its length all the same.

In the answers to a request (cameras, vehicles, objects) PosUE is the pivot of the model as it was
modelled, which need not be its middle; boxOrigin is the geometric middle, boxExtent half the
length, width and height. RflySim states neither axes nor unit of these. Every other position on the
wire is NED in metres, so these are read as NED metres too; not confirmed. Angles are in rad, as
public scripts read them, and quaternions w x y z, as in all of RflySim's packets.
"""

from __future__ import annotations

from rfly_ue_bridge.codec.packets import Field, Packet, PacketTable, PacketType
from rfly_ue_bridge.codec.to_rflysim3d import VISION_SENSOR_REQ_NEW

CHECKSUM_CRASH = 1234567890
CHECKSUM_ANSWER = 1234567891
CHECKSUM_REPORT = 1234567897

# values of CrashType; 1 and above is the id of the vehicle that was hit
CRASH_GROUND = -2
CRASH_STATIC = -1
CRASH_NONE = 0

# subjects of RflyReqObjData
CAMERA = 0
"""Camera of a SeqID."""
VEHICLE = 1
"""Vehicle of a copterID."""
OBJECT = 2
"""Scene object of a name."""

_CHECKSUM = Field("checksum", "i")
_ID = Field("copterID", "i")
_POSITION = Field("PosUE", "3f", "m, NED (not confirmed)")
_EULER = Field("angEuler", "3f", "rad: roll, pitch, yaw")
_QUATERNION = Field("angQuat", "4f", "w x y z")
_BOX = (
    Field("boxOrigin", "3f", "m, NED (not confirmed)"),
    Field("boxExtent", "3f", "m, half the size"),
)
_TIME = Field("timestamp", "d", "s")

COPTER_SIM_CRASH = PacketType(
    "CopterSimCrash",
    12,
    (CHECKSUM_CRASH,),
    (_CHECKSUM, _ID, Field("targetID", "i", "vehicle or object that it ran into; below 0: none")),
)
"""Contact of two vehicles, sent while RflySim3D's collision mode is on (key P)."""

PX4_SIL_INT_FLOAT = PacketType(
    "PX4SILIntFloat", 120, (CHECKSUM_REPORT,),
    (_CHECKSUM, _ID, Field("inSILInts", "8i"), Field("inSILFloats", "20f")),
)  # fmt: skip

REQ_VE_CRASH_DATA = PacketType(
    "reqVeCrashData", 160, (CHECKSUM_REPORT,),
    (
        _CHECKSUM, _ID,
        Field("vehicleType", "i"),
        Field(
            "CrashType", "i", "-2 ground, -1 static object, 0 none, 1 and above that vehicle's id"
        ),
        Field("runnedTime", "d", "s"),
        Field("VelE", "3f", "m/s, NED"),
        Field("PosE", "3f", "m, NED"),
        Field("CrashPos", "3f", "m, NED"),
        Field("targetPos", "3f", "m, NED"),
        Field("AngEuler", "3f", "rad: roll, pitch, yaw of FRD in NED"),
        Field("MotorRPMS", "8f", "rpm"),
        Field("ray", "6f", "front, back, left, right, up, down"),
        Field("CrashedName", "20s"),
    ),
)  # fmt: skip
"""State of a vehicle that has changed, sent after `RflyReqVehicleData 1`."""

_CAMERA = (
    _CHECKSUM,
    Field("SeqID", "i"),
    Field("TypeID", "i"),
    Field("DataHeight", "i", "pixels"),
    Field("DataWidth", "i", "pixels"),
    Field("CameraFOV", "f", "deg"),
    _POSITION,
    _EULER,
)
CAMERA_DATA_OLD = PacketType("CameraData (old)", 56, (CHECKSUM_ANSWER,), (*_CAMERA, _TIME))
CAMERA_DATA = PacketType("CameraData", 72, (CHECKSUM_ANSWER,), (*_CAMERA, _QUATERNION, _TIME))

_VEHICLE = (_CHECKSUM, _ID, _POSITION, _EULER)
COPT_REQ_DATA_OLD = PacketType(
    "CoptReqData (old)", 64, (CHECKSUM_ANSWER,), (*_VEHICLE, *_BOX, _TIME)
)
COPT_REQ_DATA = PacketType(
    "CoptReqData", 80, (CHECKSUM_ANSWER,), (*_VEHICLE, _QUATERNION, *_BOX, _TIME)
)

_OBJECT = (_CHECKSUM, Field("seqID", "i"), _POSITION, _EULER)
_NAME = Field("name", "32s")
OBJ_REQ_DATA_OLD = PacketType(
    "ObjReqData (old)", 96, (CHECKSUM_ANSWER,), (*_OBJECT, *_BOX, _TIME, _NAME)
)
OBJ_REQ_DATA = PacketType(
    "ObjReqData", 112, (CHECKSUM_ANSWER,), (*_OBJECT, _QUATERNION, *_BOX, _TIME, _NAME)
)

FROM_RFLYSIM3D = PacketTable(
    (
        COPTER_SIM_CRASH,
        PX4_SIL_INT_FLOAT,
        REQ_VE_CRASH_DATA,
        CAMERA_DATA_OLD,
        CAMERA_DATA,
        COPT_REQ_DATA_OLD,
        COPT_REQ_DATA,
        OBJ_REQ_DATA_OLD,
        OBJ_REQ_DATA,
        VISION_SENSOR_REQ_NEW,
    )
)
"""Packets that RflySim3D and CopterSim send to a host: UDP 20006, and multicast 224.0.0.10."""


def key_of(packet: Packet) -> int:
    """Return the number that identifies a packet's sender, the second field.

    It is the copterID, or the SeqID or seqID.
    """
    return packet[packet.type.fields[1].name]


Question = tuple[int, int | str]
"""Kind (CAMERA, VEHICLE, OBJECT), and the SeqID, copterID or name, as `commands.request_object`."""

ANSWERS = {
    CAMERA_DATA_OLD.name: (CAMERA, "SeqID"),
    CAMERA_DATA.name: (CAMERA, "SeqID"),
    COPT_REQ_DATA_OLD.name: (VEHICLE, "copterID"),
    COPT_REQ_DATA.name: (VEHICLE, "copterID"),
    OBJ_REQ_DATA_OLD.name: (OBJECT, "name"),
    OBJ_REQ_DATA.name: (OBJECT, "name"),
}
"""Wire name of an answer -> its subject, and the field that identifies it."""


def is_answer(packet: Packet, question: Question) -> bool:
    """Return whether a packet answers the question.

    A name of more than 31 bytes comes back cut to its field.
    """
    kind, field = ANSWERS.get(packet.name, (-1, ""))
    if kind != question[0]:
        return False

    key = packet[field]
    wanted = question[1]
    if key == wanted or not isinstance(wanted, str):
        return bool(key == wanted)

    # a name that was cut
    cut = key.encode()
    whole = wanted.encode()
    return len(cut) >= _NAME.count - 4 and len(whole) >= _NAME.count and whole.startswith(cut)
