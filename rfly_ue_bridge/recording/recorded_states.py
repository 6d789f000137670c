# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Datagrams for one window from a recording: those that it holds, or of its vehicle states."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rfly_common.errors import CaptureError, VehicleStatesError
from rfly_common.untrusted_files.bag_reader import is_bag
from rfly_common.untrusted_files.message_log import MessageLog, open_log
from rfly_common.vehicle_states import msg_to_states
from rfly_ue_bridge.codec.ned_states import states_to_ned
from rfly_ue_bridge.codec.state_datagrams import datagrams, encode_states, goes_in_fleet
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.recording.pcap import RecordingReader
from rfly_ue_bridge.recording.replay import single_datagrams

_logger = logging.getLogger(__name__)

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


@contextmanager
def open_for_window(path: Path, port: int) -> Iterator[WindowRecording]:
    """Open a pcap file, of which the datagrams to `port` are shown, or a recording of topics.

    Of the latter the messages of type STATES are shown. Raise CaptureError for a recording without
    anything to show, while it is read for one that is damaged.
    """
    if not is_bag(path):
        with RecordingReader(path) as reader:
            yield WindowRecording(None, partial(_recorded, reader, port))
        return

    with open_log(path) as log:
        topics = [topic for topic, kind in log.topics.items() if kind == STATES]
        if not topics:
            raise CaptureError(
                f"{path}: nothing that a window shows; expected messages {STATES}, as "
                "rfly sim run --mcap and rfly record --mcap write them"
            )
        yield WindowRecording(_map_of(log), partial(_encoded, log, topics))


def _recorded(reader: RecordingReader, port: int) -> Iterator[TimedDatagram]:
    for datagram in reader:
        if datagram.destination[1] == port:
            for payload in single_datagrams(datagram.payload, (TO_RFLYSIM3D,)):
                yield TimedDatagram(1e-9 * datagram.time_ns, bytes(payload))


def _map_of(log: MessageLog) -> str | None:
    """Return the map of a scenario, or the name in the recorded terrain_map."""
    scenario = log.metadata("scenario")
    if "map" in scenario:
        return scenario["map"]
    topics = [topic for topic, kind in log.topics.items() if kind == "rfly_suite/TerrainMap"]
    return next((str(logged.message.name) for logged in log.messages(topics[:1])), None)


def _encoded(log: MessageLog, topics: list[str]) -> Iterator[TimedDatagram]:
    """Yield the datagrams that ue_bridge_node would send; states in other frames are left out."""
    for logged in log.messages(topics):
        try:
            states = msg_to_states(logged.message)
        except VehicleStatesError:
            continue
        axes = _AXES.get(states.frame_id)
        if axes is None:
            _warn_of_frame(states.frame_id)
            continue
        ned, _ = states_to_ned(states, axes)
        for payload in datagrams(encode_states(ned, in_fleet=goes_in_fleet(len(ned), "auto"))):
            yield TimedDatagram(logged.time, payload)


@functools.cache
def _warn_of_frame(frame_id: str) -> None:
    """Log a warning, once in a process."""
    _logger.warning(
        "vehicle states in the frame %r are not shown; expected map or map_ned", frame_id
    )
