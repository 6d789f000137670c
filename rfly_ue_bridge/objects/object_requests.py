"""Matching of RflySim3D's answers to pending requests about cameras, vehicles and objects."""

from __future__ import annotations

from rfly_common.errors import CommandError
from rfly_ue_bridge.codec.from_rflysim3d import (
    CAMERA,
    CAMERA_DATA,
    CAMERA_DATA_OLD,
    COPT_REQ_DATA,
    COPT_REQ_DATA_OLD,
    OBJ_REQ_DATA,
    OBJ_REQ_DATA_OLD,
    OBJECT,
    VEHICLE,
)
from rfly_ue_bridge.codec.packets import Packet

Question = tuple[int, int | str]
"""Kind (CAMERA, VEHICLE, OBJECT), and the SeqID, copterID or name."""

_NAME_BYTES = 32
ANSWERS = {
    CAMERA_DATA_OLD.name: (CAMERA, "SeqID"),
    CAMERA_DATA.name: (CAMERA, "SeqID"),
    COPT_REQ_DATA_OLD.name: (VEHICLE, "copterID"),
    COPT_REQ_DATA.name: (VEHICLE, "copterID"),
    OBJ_REQ_DATA_OLD.name: (OBJECT, "name"),
    OBJ_REQ_DATA.name: (OBJECT, "name"),
}
"""Wire name of an answer -> its subject, and the field that identifies it."""


def question(kind: int, number: int, name: str) -> Question:
    """Raises CommandError for a kind that there is not, or a name that RflySim3D would not read as one word."""
    if kind in (CAMERA, VEHICLE):
        return kind, number
    if kind != OBJECT:
        raise CommandError(f"kind: {kind}, expected {CAMERA} (camera), {VEHICLE} (vehicle) or {OBJECT} (object)")
    if not name or len(name.split()) != 1 or name.strip() != name:
        raise CommandError(f"name: {name!r}, expected the object's name in one word")
    return kind, name


def request_command(asked: Question) -> str:
    """The console command that asks RflySim3D."""
    kind, key = asked
    return f"RflyReqObjData {kind} {key} 0"


def is_answer(packet: Packet, asked: Question) -> bool:
    """Whether a packet answers the question. A name of more than 31 bytes comes back cut to its field."""
    kind, field = ANSWERS.get(packet.name, (-1, ""))
    if kind != asked[0]:
        return False
    key, wanted = packet[field], asked[1]
    if key == wanted:
        return True
    if not isinstance(wanted, str):
        return False
    cut = key.encode()
    return len(cut) >= _NAME_BYTES - 4 and len(wanted.encode()) >= _NAME_BYTES and wanted.encode().startswith(cut)
