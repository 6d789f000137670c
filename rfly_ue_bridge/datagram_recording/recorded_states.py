# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams for one window from a recording: those that it holds, or of its vehicle states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rfly_common.errors import CaptureError, PacketError, VehicleStatesError
from rfly_common.untrusted_files.bag_reader import is_bag
from rfly_common.untrusted_files.message_log import MessageLog, open_log
from rfly_common.untrusted_files.reader_errors import LeftOut
from rfly_common.vehicle_states import msg_to_states
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.codec.state_datagrams import datagrams, encode_states, goes_in_fleet
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.datagram_recording.pcap import RecordingReader
from rfly_ue_bridge.datagram_recording.replay import single_datagrams

STATES = "rfly_suite/VehicleStateArray"
"""Type of the messages that are shown of a recording of topics."""
_AXES = {"": "enu", "map": "enu", "map_ned": "ned"}
"""Axes of the frames whose states are shown."""


class TimedDatagram(NamedTuple):
    """Datagram at a time of the recording."""

    time: float
    """Time, s."""
    payload: bytes


class WindowRecording(NamedTuple):
    """What a window can show of a recording."""

    map: str | None
    """Name of the map, "" for level ground; None if the recording does not tell it."""
    datagrams: Callable[[], Iterator[TimedDatagram]]
    """Datagrams from the beginning, each time."""
    left_out: LeftOut
    """Messages, vehicles, packets and frames of the datagrams so far that a window cannot show."""


@contextmanager
def open_for_window(path: Path, port: int) -> Iterator[WindowRecording]:
    """Open a pcap file, to show its datagrams to `port`, or a recording of topics.

    The latter's messages of type STATES are shown. Raise CaptureError for a recording without
    anything to show, while it is read for one that is damaged.
    """
    if not is_bag(path):
        with RecordingReader(path) as reader:
            yield WindowRecording(None, partial(_recorded, reader, port), reader.skipped)
        return

    with open_log(path) as log:
        topics = [topic for topic, kind in log.topics.items() if kind == STATES]
        if not topics:
            reasons = "; ".join(f"{topic}: {why}" for topic, why in list(log.left_out.items())[:3])
            raise CaptureError(
                f"{path}: nothing that a window shows{f' ({reasons})' if reasons else ''}; "
                f"expected messages {STATES}, as rfly sim run --mcap and rfly record --mcap "
                "write them"
            )
        left_out = LeftOut()
        yield WindowRecording(_map_of(log), partial(_encoded, log, topics, left_out), left_out)


def _recorded(reader: RecordingReader, port: int) -> Iterator[TimedDatagram]:
    """Yield the datagrams to a port; a window drops those that are counted here as not readable."""
    for datagram in reader:
        if datagram.destination[1] != port:
            reader.skipped.add("datagrams to other ports", f"to {datagram.destination[1]}")
            continue
        for payload in single_datagrams(datagram.payload, (TO_RFLYSIM3D,)):
            try:
                TO_RFLYSIM3D.find(payload)
            except PacketError as error:
                reader.skipped.add("packets that are not readable", str(error))
            yield TimedDatagram(1e-9 * datagram.time_ns, bytes(payload))


def _map_of(log: MessageLog) -> str | None:
    """Return the map of a scenario, or the name in the recorded terrain_map."""
    scenario = log.metadata("scenario")
    if "map" in scenario:
        return scenario["map"]
    topics = [topic for topic, kind in log.topics.items() if kind == "rfly_suite/TerrainMap"]
    return next((str(logged.message.name) for logged in log.messages(topics[:1])), None)


def _encoded(log: MessageLog, topics: list[str], left_out: LeftOut) -> Iterator[TimedDatagram]:
    """Yield the datagrams that ue_bridge_node would send; states in other frames are left out."""
    left_out.clear()
    for logged in log.messages(topics):
        try:
            states = msg_to_states(logged.message)
        except VehicleStatesError as error:
            left_out.add(f"messages on {logged.topic}", str(error))
            continue
        axes = _AXES.get(states.frame_id)
        if axes is None:
            left_out.add(
                f"messages on {logged.topic}",
                f"in the frame {states.frame_id!r}, expected map or map_ned",
            )
            continue

        ned, dropped = states_to_ned(states, axes)
        for reason, count in dropped.items():
            left_out.add(f"vehicles on {logged.topic}", reason.replace("_", " "), count)
        for payload in datagrams(encode_states(ned, in_fleet=goes_in_fleet(len(ned), "auto"))):
            yield TimedDatagram(logged.time, payload)
