# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of ROS 2 in MCAP files of unknown origin, read without ROS.

It needs mcap and mcap-ros2-support, the extra `log`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rfly_common.errors import CaptureError
from rfly_common.files import open_regular
from rfly_common.imports import require
from rfly_common.untrusted_files.mcap_chunks import check_chunks
from rfly_common.untrusted_files.reader_errors import reader_errors


class LoggedMessage(NamedTuple):
    """Message of a log."""

    topic: str
    time: float
    """Time at which it was logged, s."""
    message: Any
    """Object with the fields of the message."""


class McapLog:
    """Open MCAP file with messages of ROS 2."""

    def __init__(self, reader: Any, summary: Any) -> None:
        self._reader = reader
        schemas = summary.schemas
        self.topics: dict[str, str] = {
            channel.topic: schemas[channel.schema_id].name.replace("/msg/", "/")
            for channel in summary.channels.values()
            if channel.schema_id in schemas
        }
        """Type of each topic's messages, such as `sensor_msgs/Imu`."""

    def messages(self, topics: Iterable[str]) -> Iterator[LoggedMessage]:
        """Yield the messages of some topics in the order in which they were logged."""
        wanted = list(topics)
        if not wanted:
            return
        for _, channel, record, message in self._reader.iter_decoded_messages(topics=wanted):
            yield LoggedMessage(channel.topic, 1e-9 * record.log_time, message)

    def metadata(self, name: str) -> dict[str, str]:
        """Return the entries of the metadata of a name; none if there are none."""
        for record in self._reader.iter_metadata():
            if record.name == name:
                return dict(record.metadata)
        return {}


def stamp_of(message: Any) -> float:
    """Return the time of a message's stamp, s; NaN for a message without a header."""
    header = getattr(message, "header", None)
    return float("nan") if header is None else header.stamp.sec + 1e-9 * header.stamp.nanosec


@contextmanager
def open_mcap(path: Path) -> Iterator[McapLog]:
    """Open a log, and raise CaptureError for whatever a damaged file makes its readers raise.

    Raise ConfigError without mcap-ros2-support.
    """
    require("mcap_ros2", "reading MCAP files")
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    def refuse(reason: str) -> CaptureError:
        return CaptureError(f"{path}: {reason}; expected a whole MCAP file with messages of ROS 2")

    with open_regular(path) as file, reader_errors(refuse):
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        if summary is None:
            raise CaptureError(
                f"{path}: it has no end, as if its writer was killed; expected a whole MCAP file"
            )
        check_chunks(path, summary)
        yield McapLog(reader, summary)
