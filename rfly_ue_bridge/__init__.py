"""RflySim3D packets, sockets and the bridge node.

Everything but `ue_bridge_node` works without ROS; the names below are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Field": "packets",
    "Packet": "packets",
    "PacketTable": "packets",
    "PacketType": "packets",
    "TO_RFLYSIM3D": "to_rflysim3d",
    "decode": "to_rflysim3d",
    "FROM_RFLYSIM3D": "from_rflysim3d",
    "FeedbackReceiver": "feedback_receiver",
    "FeedbackRecords": "feedback_records",
    "encode_command": "commands",
    "encode_command_lan": "commands",
    "encode_fleet": "fleet_datagrams",
    "encode_fleet_with_motors": "fleet_datagrams",
    "RflySim3D": "rflysim3d",
    "UE4CtrlAPI": "ue4_ctrl_api",
    "RflyCameraPosAng": "matlab_calls",
    "RflySendUE4CMD": "matlab_calls",
    "PlacedObject": "placement",
    "place": "placement",
    "load_placements": "placement_file",
    "ModelOffset": "model_offset",
    "measure_offset": "model_offset",
    "correct_center_height": "vehicle_xml",
    "read_vehicle_xml": "vehicle_xml",
    "NedStates": "ned_states",
    "states_to_ned": "ned_states",
    "DatagramRun": "state_datagrams",
    "encode_pose": "state_datagrams",
    "encode_states": "state_datagrams",
    "PcapWriter": "pcap_files",
    "RecordedDatagram": "captured_packets",
    "RecordingReader": "pcap_files",
    "UdpSender": "udp_sender",
    "Window": "udp_sender",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
