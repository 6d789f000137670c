"""RflySim3D packets, sockets and the bridge node.

Everything but `ue_bridge_node` works without ROS; the names below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Field": "codec.packets",
    "Packet": "codec.packets",
    "PacketTable": "codec.packets",
    "PacketType": "codec.packets",
    "TO_RFLYSIM3D": "codec.to_rflysim3d",
    "decode": "codec.to_rflysim3d",
    "FROM_RFLYSIM3D": "codec.from_rflysim3d",
    "FeedbackReceiver": "sockets.feedback_receiver",
    "FeedbackRecords": "sdk.feedback_records",
    "encode_command": "codec.commands",
    "encode_command_lan": "codec.commands",
    "encode_fleet": "codec.fleet_datagrams",
    "encode_fleet_with_motors": "codec.fleet_datagrams",
    "RflySim3D": "rflysim3d",
    "UE4CtrlAPI": "sdk.ue4_ctrl_api",
    "RflyCameraPosAng": "sdk.matlab_calls",
    "RflySendUE4CMD": "sdk.matlab_calls",
    "PlacedObject": "objects.placement",
    "place": "objects.placement",
    "load_placements": "objects.placement_file",
    "ModelOffset": "objects.model_offset",
    "measure_offset": "objects.model_offset",
    "correct_center_height": "objects.vehicle_xml",
    "read_vehicle_xml": "objects.vehicle_xml",
    "NedStates": "codec.ned_states",
    "states_to_ned": "codec.ned_states",
    "DatagramRun": "codec.state_datagrams",
    "encode_pose": "codec.state_datagrams",
    "encode_states": "codec.state_datagrams",
    "PcapWriter": "recording.pcap",
    "RecordedDatagram": "recording.datagrams",
    "RecordingReader": "recording.pcap",
    "UdpSender": "sockets.udp_sender",
    "Window": "sockets.udp_sender",
}

__all__ = [
    "FROM_RFLYSIM3D",
    "TO_RFLYSIM3D",
    "DatagramRun",
    "FeedbackReceiver",
    "FeedbackRecords",
    "Field",
    "ModelOffset",
    "NedStates",
    "Packet",
    "PacketTable",
    "PacketType",
    "PcapWriter",
    "PlacedObject",
    "RecordedDatagram",
    "RecordingReader",
    "RflyCameraPosAng",
    "RflySendUE4CMD",
    "RflySim3D",
    "UE4CtrlAPI",
    "UdpSender",
    "Window",
    "correct_center_height",
    "decode",
    "encode_command",
    "encode_command_lan",
    "encode_fleet",
    "encode_fleet_with_motors",
    "encode_pose",
    "encode_states",
    "load_placements",
    "measure_offset",
    "place",
    "read_vehicle_xml",
    "states_to_ned",
]


_MODULES = {"commands": "codec.commands", "ue4_ctrl_api": "sdk.ue4_ctrl_api"}
"""whole modules under the names that scripts know"""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
