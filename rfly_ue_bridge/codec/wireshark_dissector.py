# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wireshark dissector in Lua, generated from the packet declarations.

Every packet becomes a subtree with its fields by name; arrays have a line for each element, fleet
packets a subtree for each vehicle. Numbers can be filtered over all packets (`rflysim.copterID ==
7`, `rflysim.PosE < -100`).
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from string import Template
from struct import calcsize

from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.packets import PacketTable, PacketType
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D

_KINDS = {
    "B": "int32",
    "H": "int32",
    "i": "int32",
    "I": "uint32",
    "f": "double",
    "d": "double",
    "s": "string",
}


def dissector() -> str:
    """Return the text of the Lua plugin."""
    template_file = resources.files("rfly_ue_bridge") / "data" / "wireshark_template.lua"
    template = Template(template_file.read_text(encoding="utf-8"))
    tables = (TO_RFLYSIM3D, FROM_RFLYSIM3D)
    return template.substitute(
        fields=_fields(tables), to=_packets(TO_RFLYSIM3D), answers=_packets(FROM_RFLYSIM3D)
    )


def _fields(tables: Iterable[PacketTable]) -> str:
    """Return one declaration for each name, so that a filter holds for all packets.

    A number that is whole in one packet and a float in another (Scale) is a float.
    """
    kinds: dict[str, str] = {}
    units: dict[str, set[str]] = {}
    all_fields = (
        field for table in tables for packet_type in table for field in packet_type.fields
    )
    for field in all_fields:
        kind = _KINDS[field.code]
        known = kinds.setdefault(field.name, kind)
        if kind != known:
            if "string" in (kind, known):
                raise ValueError(f"{field.name} is a text in one packet and a number in another")
            kinds[field.name] = "double"
        units.setdefault(field.name, set()).add(field.unit)

    return "\n".join(_field(name, kind, units[name]) for name, kind in kinds.items())


def _field(name: str, kind: str, units: set[str]) -> str:
    described = ""
    if len(units) == 1 and (unit := min(units)):
        base = ", base.DEC, nil, nil, " if kind in ("int32", "uint32") else ", "
        described = base + _quoted(unit)
    return f'  {name} = ProtoField.{kind}("rflysim.{name}", "{name}"{described}),'


def _packets(table: PacketTable) -> str:
    return "\n".join(_packet(packet_type) for packet_type in table)


def _packet(packet_type: PacketType) -> str:
    """Return a packet's Lua table: name, size, checksums and fields.

    Each field has its name, offset, bytes of one element, number of elements and struct code.
    """
    offset = 0
    lines = []
    for field in packet_type.fields:
        each, count = (
            (field.count, 1) if field.is_text else (calcsize(f"<{field.code}"), field.count)
        )
        lines.append(f'    {{ "{field.name}", {offset}, {each}, {count}, "{field.code}" }},')
        offset += each * count + packet_type.padding.get(field.name, 0)

    sums = ", ".join(map(str, packet_type.checksums))
    mark = 1 + [field.name for field in packet_type.fields].index(packet_type.mark)
    head = (
        f"  {{ name = {_quoted(packet_type.name)}, size = {packet_type.size}, mark = {mark}, "
        f"checksums = {{ {sums} }}, fields = {{"
    )
    return "\n".join([head, *lines, "  } },"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
