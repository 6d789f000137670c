# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writer of MCAP files of ROS 2 messages, with rosbag2's channels (`cdr`) and schemas (`ros2msg`).

Specification: mcap.dev/spec and mcap.dev/spec/registry ("ros2"). They need mcap, the extra `log`.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.untrusted_files.mcap_reader import Topic

_FOR_EVER = {"sec": 9223372036, "nsec": 854775807}
"""RMW_DURATION_INFINITE of rmw."""

# rmw_qos_…_policy_e: rosbag2 reads these numbers in every release, the names from Jazzy up
_KEEP_LAST = 1
_RELIABLE = 1
_BEST_EFFORT = 2
_TRANSIENT_LOCAL = 1
_VOLATILE = 2
_AUTOMATIC = 1


class McapWriter:
    """Writer of a file; after `flush` all messages are readable, even if the process is killed.

    Raise ConfigError for a file that exists (without `overwrite`), OSError for one that cannot be
    written.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        require("mcap", "recording MCAP files")
        from mcap.writer import Writer

        try:
            self._file = path.open("wb" if overwrite else "xb")
        except FileExistsError:
            raise ConfigError(f"{path} exists; choose another name, or overwrite it") from None

        self.path = path
        self.messages = 0
        self._schemas: dict[str, int] = {}
        self._sequence: list[int] = [0]
        self._writer = Writer(self._file)
        self._writer.start(profile="ros2", library="rfly_suite")

    @property
    def size(self) -> int:
        """Bytes in the file, without the last messages since `flush`."""
        return self.path.stat().st_size if self._file.closed else self._file.tell()

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self._sequence) - 1

    def add_topic(self, topic: Topic) -> int:
        """Add a topic, and return the number of its channel, from 1 up."""
        if topic.type not in self._schemas:
            data = topic.definition.encode()
            self._schemas[topic.type] = self._writer.register_schema(topic.type, "ros2msg", data)

        self._sequence.append(0)
        metadata = {"offered_qos_profiles": _qos_text(topic)}
        channel: int = self._writer.register_channel(
            topic.name, "cdr", self._schemas[topic.type], metadata
        )
        return channel

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Write one serialised message. Raise OSError if the disk is full."""
        sequence = self._sequence[channel]
        self._sequence[channel] += 1
        self.messages += 1
        self._writer.add_message(channel, time_ns, data, time_ns, sequence)

    def flush(self) -> None:
        """Pass everything to the system; a chunk ends here, so once a second is enough."""
        self._writer.flush()

    def close(self) -> None:
        """End the file with its index, once.

        Raise OSError if that cannot be written; flushed messages stay readable.
        """
        if not self._file.closed:
            with self._file:
                self._writer.finish()


def _qos_text(topic: Topic) -> str:
    """Return the profiles that `ros2 bag play` publishes with, in YAML."""
    profile = {
        "history": _KEEP_LAST,
        "depth": 10,
        "reliability": _RELIABLE if topic.reliable else _BEST_EFFORT,
        "durability": _TRANSIENT_LOCAL if topic.latched else _VOLATILE,
        "deadline": _FOR_EVER,
        "lifespan": _FOR_EVER,
        "liveliness": _AUTOMATIC,
        "liveliness_lease_duration": _FOR_EVER,
        "avoid_ros_namespace_conventions": False,
    }
    return str(yaml.safe_dump([profile], sort_keys=False))
