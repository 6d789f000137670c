# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of ROS 2 in recordings of unknown origin, decoded without ROS.

They need mcap and mcap-ros2-support, the extra `log`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rfly_common.errors import CaptureError
from rfly_common.imports import require
from rfly_common.untrusted_files.bag_reader import Bag, open_bag
from rfly_common.untrusted_files.mcap_reader import Topic
from rfly_common.untrusted_files.reader_errors import reader_errors


class LoggedMessage(NamedTuple):
    """Message of a log."""

    topic: str
    time: float
    """Time at which it was logged, s."""
    message: Any
    """Object with the fields of the message."""


class MessageLog:
    """Open recording with messages of ROS 2."""

    def __init__(self, bag: Bag) -> None:
        self._bag = bag
        self.topics: dict[str, str] = {
            topic.name: topic.type.replace("/msg/", "/")
            for topic in bag.topics.values()
            if topic.definition
        }
        """Type of each topic's messages, such as `sensor_msgs/Imu`."""
        self.left_out = bag.left_out | {
            topic.name: f"{topic.type} was recorded without its definition"
            for topic in bag.topics.values()
            if not topic.definition
        }
        """Reasons by topic, of messages that cannot be decoded."""

    def messages(self, topics: Iterable[str]) -> Iterator[LoggedMessage]:
        """Yield the messages of some topics in the order in which they were logged."""
        wanted = set(topics)
        decoders = {
            number: (topic.name, _decoder(number, topic))
            for number, topic in self._bag.topics.items()
            if topic.name in wanted and topic.definition
        }
        for each in self._bag.messages(decoders):
            name, decode = decoders[each.channel]
            yield LoggedMessage(name, 1e-9 * each.time_ns, decode(each.data))

    def metadata(self, name: str) -> dict[str, str]:
        """Return the entries of the metadata of a name; none if there are none."""
        return self._bag.metadata(name)


def _decoder(number: int, topic: Topic) -> Callable[[bytes], Any]:
    """Return the function from a topic's bytes to a message."""
    from mcap.records import Schema
    from mcap_ros2.decoder import DecoderFactory

    schema = Schema(number + 1, topic.definition.encode(), "ros2msg", topic.type)
    decode: Callable[[bytes], Any] | None = DecoderFactory().decoder_for("cdr", schema)
    assert decode is not None
    return decode


def stamp_of(message: Any) -> float:
    """Return the time of a message's stamp, s; NaN for a message without a header."""
    header = getattr(message, "header", None)
    return float("nan") if header is None else header.stamp.sec + 1e-9 * header.stamp.nanosec


@contextmanager
def open_log(path: Path) -> Iterator[MessageLog]:
    """Open a recording; raise CaptureError for whatever a damaged file makes its readers raise.

    A file whose writer was killed is refused, too. Raise ConfigError without mcap-ros2-support.
    """
    require("mcap_ros2", "reading logs")

    def refuse(reason: str) -> CaptureError:
        return CaptureError(f"{path}: {reason}; expected a recording of messages of ROS 2")

    with reader_errors(refuse), open_bag(path) as bag:
        log = MessageLog(bag)
        if not log.topics:
            reasons = "; ".join(f"{topic}: {why}" for topic, why in list(log.left_out.items())[:3])
            raise refuse(f"no messages of ROS 2{f' ({reasons})' if reasons else ''}")
        yield log
