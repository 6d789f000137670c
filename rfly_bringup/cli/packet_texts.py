# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Texts of RflySim3D's packets for a terminal: positions in m NED, angles in degrees."""

from __future__ import annotations

import math
from typing import Any

from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.codec.to_rflysim3d import (
    ATTACH_ATTITUDE,
    ATTACH_NONE,
    ATTACH_POSITION,
    ATTACH_POSITION_YAW,
    COPTER_MSG,
    UE4_EXT_MSG,
    VEHICLE_ATTATCH_25,
)

_HEX_BYTES = 24
_FLEET_SHOWN = 3

_ATTACHED = {
    ATTACH_NONE: "on its own",
    ATTACH_POSITION: "position",
    ATTACH_POSITION_YAW: "position and yaw",
    ATTACH_ATTITUDE: "attitude",
}


def packet_text(packet: Packet) -> str:
    """Return a packet as one line; positions in m NED, angles in degrees."""
    values = packet.values

    if packet.type is COPTER_MSG:
        return f"{packet.name}  {_label_text(values)}"
    if packet.type is VEHICLE_ATTATCH_25:
        return f"{packet.name}  {_attachments_text(values)}"
    if packet.type is UE4_EXT_MSG:
        numbers = " ".join(f"{number:g}" for number in values["ExtToUE4"])
        return f"{packet.name}  id {values['copterID']} at {values['runnedTime']:.3f} s: {numbers}"
    if "text" in values:
        return f"{packet.name}  {values['text']!r}"

    if "PosE" not in values:  # a declared packet without a text of its own
        return f"{packet.name}  " + "  ".join(
            f"{name} {json_value(values[name])}" for name in list(values) if name != "checksum"
        )

    # vehicles
    ground = " on the ground" if packet.keep_on_ground else ""
    ids = values["copterID"]
    if isinstance(ids, int):
        return f"{packet.name}{ground}  {_vehicle_text(values)}"
    used = [slot for slot, vehicle_id in enumerate(ids) if vehicle_id]
    shown = "; ".join(_vehicle_text(_slot(values, slot)) for slot in used[:_FLEET_SHOWN])
    more = f"; and {len(used) - _FLEET_SHOWN} more" if len(used) > _FLEET_SHOWN else ""
    return f"{packet.name}{ground}  {len(used)} vehicles: {shown}{more}"


def _label_text(values: Any) -> str:
    """Return the text of a label packet."""
    who = f"id {values['copterID']}" if values["copterID"] > 0 else "all ids"
    line = values["dispFlag"]
    seconds = values["dispTime"]
    if seconds < 0:
        return f"{who}: all lines gone" if line < 0 else f"{who}: line {line} gone"

    where = "a further line" if line < 0 else "the id line"
    if line > 0:
        where = f"line {line}"
    how_long = f"for {seconds:g} s" if seconds else "for ever"
    red, green, blue = values["RGB"]
    style = f"size {values['fontSize']:g} RGB {red} {green} {blue}"
    return f"{who}, {where} {how_long}: {values['text']!r}  {style}"


def _attachments_text(values: Any) -> str:
    """Return the text of a packet that attaches vehicles to others."""
    rows = zip(values["CopterIDs"], values["AttatchIDs"], values["AttatchTypes"], strict=True)
    used = [f"{who} to {whom} ({_ATTACHED.get(how, how)})" for who, whom, how in rows if who]
    return ", ".join(used) or "none"


def vehicles_of(packet: Packet) -> list[dict[str, Any]]:
    """Return the vehicles of a packet, each with the fields of a single one."""
    values = packet.values
    ids = values.get("copterID", ())
    if isinstance(ids, int):
        return [dict(values)]
    return [_slot(values, slot) for slot, vehicle_id in enumerate(ids) if vehicle_id]


def _slot(values: Any, slot: int) -> dict[str, Any]:
    """Return one vehicle of a fleet packet, with the fields of a single one."""
    return {
        "copterID": values["copterID"][slot],
        "vehicleType": values["vehicleType"][slot],
        "PosE": values["PosE"][3 * slot : 3 * slot + 3],
        "AngEuler": values["AngEuler"][3 * slot : 3 * slot + 3],
        "Scale": [hundredths / 100 for hundredths in values["Scale"][3 * slot : 3 * slot + 3]],
    }


def _vehicle_text(values: Any) -> str:
    """Return the pose of a vehicle as text, and its speed and scale where they say something."""
    x, y, z = values["PosE"]
    roll, pitch, yaw = (math.degrees(angle) for angle in values["AngEuler"])
    text = (
        f"id {values['copterID']} type {values['vehicleType']}  N {x:.3f} E {y:.3f} D {z:.3f} m  "
        f"roll {roll:.2f} pitch {pitch:.2f} yaw {yaw:.2f}°"
    )
    if "VelE" in values:
        text += f"  {math.hypot(*values['VelE']):.2f} m/s"
    scale = tuple(values.get("Scale", (1.0, 1.0, 1.0)))
    if scale != (1.0, 1.0, 1.0):
        text += f"  scale {scale[0]:g} {scale[1]:g} {scale[2]:g}"
    return text


def bad_text(datagram: bytes, reason: str) -> str:
    """Return the text of a datagram that could not be decoded."""
    dots = " …" if len(datagram) > _HEX_BYTES else ""
    return f"unknown ({reason})  {len(datagram)} bytes: {datagram[:_HEX_BYTES].hex(' ')}{dots}"


def json_value(value: Any) -> Any:
    """Return a field's value for JSON; NaN and infinities, which it lacks, become text."""
    if isinstance(value, tuple):
        return [json_value(number) for number in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
