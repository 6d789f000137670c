# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages of ROS 2 in recordings of unknown origin, decoded without ROS, and their numbers.

They need mcap and mcap-ros2-support, the extra `log`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import CaptureError
from rfly_common.imports import require
from rfly_common.transform_buffer import Transform
from rfly_common.untrusted_files.bag_reader import Bag, open_bag
from rfly_common.untrusted_files.mcap_reader import Topic
from rfly_common.untrusted_files.reader_errors import LeftOut, reader_errors

LARGEST = 1e9
"""Bound of numbers in SI units that no vehicle reaches."""
LONGEST = 7200.0
"""Longest log, s. With a stamp that is far off, a log would need all of the memory."""
WENT_BACK_S = 0.05
"""Step back of stamps beyond which a log is no log of one run, s."""

Columns = Callable[[Any], "list[float] | str"]
"""Function from a message to its numbers, or to the reason why it is left out."""
Links = dict[str, tuple[str, Transform]]
"""Parent, and transform into it, by child frame."""


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


class Table(NamedTuple):
    """Messages of a topic, in the order in which they were logged."""

    time: Floats
    """Times of the stamps, s, (k,); NaN for messages without a header."""
    arrival: Floats
    """Times at which they were logged, s, (k,)."""
    value: Floats
    """Numbers, (k, n)."""
    frame: str
    """Frame of the first message."""


class LoggedTables(NamedTuple):
    """Numbers of a log's messages."""

    tables: dict[str, Table]
    """By the part that the topic plays; topics without messages are left out."""
    links: Links
    """Links of the static transforms."""
    first: dict[str, Any]
    """First message of the parts that have no columns."""
    left_out: LeftOut
    """Messages that are not used, by topic."""


def header_frame(_part: str, message: Any) -> str:
    """Return the frame in a message's header, "" without one."""
    return str(message.header.frame_id) if hasattr(message, "header") else ""


def read_tables(
    name: str,
    log: MessageLog,
    topics: Mapping[str, str],
    columns: Mapping[str, Columns],
    statics: Iterable[str],
    frame_of: Callable[[str, Any], str] = header_frame,
) -> LoggedTables:
    """Read the topics of all parts, and the links of the topics `statics`.

    `topics`: topic of each part; `frame_of`: function of part and message. Raise CaptureError for
    lists of different lengths.
    """
    parts = {topic: part for part, topic in topics.items()}
    statics = frozenset(statics)
    rows: dict[str, list[tuple[float, float, list[float]]]] = {}
    frames: dict[str, str] = {}
    links: Links = {}
    first: dict[str, Any] = {}
    left_out = LeftOut()
    for topic, arrival, message in log.messages([*parts, *statics]):
        if topic in statics:
            links.update(_links(message))
            continue

        part = parts[topic]
        if part not in columns:
            first.setdefault(part, message)
            continue
        values = columns[part](message)
        if isinstance(values, str):
            left_out.add(topic, values)
            continue
        rows.setdefault(part, []).append((stamp_of(message), arrival, values))
        frames.setdefault(part, frame_of(part, message))

    tables = {
        part: table_of(f"{name}: {topics[part]}", found, frames[part])
        for part, found in rows.items()
    }
    return LoggedTables(tables, links, first, left_out)


def table_of(where: str, rows: list[tuple[float, float, list[float]]], frame: str) -> Table:
    """Return the table of rows of stamp, arrival and numbers. Raise CaptureError."""
    if len({len(values) for _, _, values in rows}) > 1:
        raise CaptureError(f"{where}: messages of different lengths; expected one length")
    time, arrival = np.array([row[:2] for row in rows]).T
    return Table(time, arrival, np.array([row[2] for row in rows], float), frame)


def _links(message: Any) -> Links:
    """Return the links of a TFMessage."""
    links = {}
    for link in message.transforms:
        t = link.transform.translation
        q = link.transform.rotation
        transform = Transform(np.array((t.x, t.y, t.z)), np.array((q.x, q.y, q.z, q.w)))
        links[link.child_frame_id] = link.header.frame_id, transform
    return links


def xyz_of(vector: Any) -> list[float]:
    """Return the numbers of a vector or a point."""
    return [vector.x, vector.y, vector.z]


def check_forward(where: str, time: Floats) -> None:
    """Raise CaptureError for times that go back."""
    steps = np.diff(time)
    if steps.size and steps.min() < -WENT_BACK_S:
        worst = int(np.argmin(steps))
        raise CaptureError(
            f"{where}: its time goes back by {-steps[worst]:.3f} s after {time[worst]:.3f} s; "
            "expected the log of one run"
        )
