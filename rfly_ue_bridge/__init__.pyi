# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

from rfly_collision.shapes.vehicle_xml import correct_center_height as correct_center_height
from rfly_collision.shapes.vehicle_xml import read_vehicle_xml as read_vehicle_xml
from rfly_ue_bridge.codec import commands as commands
from rfly_ue_bridge.codec import unreal_commands as unreal_commands
from rfly_ue_bridge.codec.commands import encode_command as encode_command
from rfly_ue_bridge.codec.commands import encode_command_lan as encode_command_lan
from rfly_ue_bridge.codec.fleet_datagrams import encode_fleet as encode_fleet
from rfly_ue_bridge.codec.fleet_datagrams import (
    encode_fleet_with_motors as encode_fleet_with_motors,
)
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D as FROM_RFLYSIM3D
from rfly_ue_bridge.codec.ned_states import NedStates as NedStates
from rfly_ue_bridge.codec.ned_states import states_to_ned as states_to_ned
from rfly_ue_bridge.codec.packets import Field as Field
from rfly_ue_bridge.codec.packets import Packet as Packet
from rfly_ue_bridge.codec.packets import PacketTable as PacketTable
from rfly_ue_bridge.codec.packets import PacketType as PacketType
from rfly_ue_bridge.codec.sensor_fragments import encode_fragments as encode_fragments
from rfly_ue_bridge.codec.sensor_payloads import BOXES as BOXES
from rfly_ue_bridge.codec.sensor_payloads import RANGE as RANGE
from rfly_ue_bridge.codec.sensor_payloads import SENSOR_TYPES as SENSOR_TYPES
from rfly_ue_bridge.codec.sensor_payloads import TARGETS as TARGETS
from rfly_ue_bridge.codec.sensor_payloads import decode_payload as decode_payload
from rfly_ue_bridge.codec.sensor_payloads import depth_to_metres as depth_to_metres
from rfly_ue_bridge.codec.sensor_payloads import encode_cloud as encode_cloud
from rfly_ue_bridge.codec.sensor_payloads import encode_image as encode_image
from rfly_ue_bridge.codec.sensor_payloads import encode_records as encode_records
from rfly_ue_bridge.codec.sensor_requests import RequestLayout as RequestLayout
from rfly_ue_bridge.codec.sensor_requests import VisionSensor as VisionSensor
from rfly_ue_bridge.codec.sensor_requests import encode_request as encode_request
from rfly_ue_bridge.codec.sensor_requests import read_request as read_request
from rfly_ue_bridge.codec.state_datagrams import DatagramRun as DatagramRun
from rfly_ue_bridge.codec.state_datagrams import encode_pose as encode_pose
from rfly_ue_bridge.codec.state_datagrams import encode_states as encode_states
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D as TO_RFLYSIM3D
from rfly_ue_bridge.codec.to_rflysim3d import decode as decode
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram as RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter as PcapWriter
from rfly_ue_bridge.datagram_recording.pcap import RecordingReader as RecordingReader
from rfly_ue_bridge.datagram_recording.recorder import Recorder as Recorder
from rfly_ue_bridge.datagram_recording.replay import replay as replay
from rfly_ue_bridge.objects.placement import ModelOffset as ModelOffset
from rfly_ue_bridge.objects.placement import PlacedObject as PlacedObject
from rfly_ue_bridge.objects.placement import measure_offset as measure_offset
from rfly_ue_bridge.objects.placement import place as place
from rfly_ue_bridge.objects.placement_file import load_placements as load_placements
from rfly_ue_bridge.objects.placement_file import shipped_placements as shipped_placements
from rfly_ue_bridge.rflysim3d import RflySim3D as RflySim3D
from rfly_ue_bridge.sdk import ue4_ctrl_api as ue4_ctrl_api
from rfly_ue_bridge.sdk.listener import FeedbackRecords as FeedbackRecords
from rfly_ue_bridge.sdk.matlab_calls import RflyCameraPosAng as RflyCameraPosAng
from rfly_ue_bridge.sdk.matlab_calls import RflySendUE4CMD as RflySendUE4CMD
from rfly_ue_bridge.sdk.matlab_calls import RflySendUECMD as RflySendUECMD
from rfly_ue_bridge.sdk.ue4_ctrl_api import UE4CtrlAPI as UE4CtrlAPI
from rfly_ue_bridge.sensors.frame_assembler import FrameAssembler as FrameAssembler
from rfly_ue_bridge.sensors.frame_assembler import SensorFrame as SensorFrame
from rfly_ue_bridge.sensors.vision_config import VisionConfig as VisionConfig
from rfly_ue_bridge.sockets.feedback_receiver import FeedbackReceiver as FeedbackReceiver
from rfly_ue_bridge.sockets.udp_sender import UdpSender as UdpSender
from rfly_ue_bridge.sockets.udp_sender import Window as Window
