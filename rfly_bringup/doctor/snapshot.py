# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The state of a running ROS graph and of this machine at one time. Plain data, no ROS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rfly_common.diagnostic_reasons import Reason, reasons_in

# levels of diagnostic_msgs/DiagnosticStatus
OK = 0
WARN = 1
ERROR = 2
STALE = 3


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscription of a node."""

    topic: str
    type: str
    node: str
    publishes: bool


@dataclass(frozen=True)
class Mismatch:
    """A publisher and a subscription of one topic that do not match, and why."""

    topic: str
    publisher: str
    subscription: str
    why: str
    """Sentence for people."""
    types_differ: bool = False
    """True if the types differ, false if QoS does."""


@dataclass(frozen=True)
class DiagnosticReport:
    """The newest diagnostics of one task of a node."""

    node: str
    task: str
    level: int
    message: str
    hardware_id: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    age: float = 0.0
    """Time since it arrived, s."""
    datagram_rate: float | None = None
    """Datagrams per second between the last two reports of a bridge."""

    @property
    def reasons(self) -> list[tuple[Reason, str]]:
        """Reasons that the node states, each with its subject."""
        return reasons_in(self.values)


@dataclass(frozen=True)
class Source:
    """A publisher of vehicles on a topic.

    It is the `source` of a VehicleStateArray, or a robot with a topic of its own.
    """

    topic: str
    name: str
    ids: frozenset[int]
    rate: float
    """Messages per second."""
    age: float
    """Time since the last message, s."""
    frame_id: str = ""
    not_finite: frozenset[int] = frozenset()
    """Ids whose position or orientation is NaN or infinite."""


@dataclass(frozen=True)
class Robot:
    """A robot that a bridge shows by its parameters."""

    bridge: str
    name: str
    id: int
    topic: str
    type: str
    """Type of the messages that the bridge accepts."""


Answer = Literal["silent", "refused", "unreachable", "unknown"]
"""Result of an empty datagram.

silent: no error came back; refused: the port is closed; unreachable: no machine or no route;
unknown: no such name.
"""


@dataclass(frozen=True)
class Destination:
    """An address that a bridge sends to, and the result of an empty datagram to it."""

    bridge: str
    host: str
    port: int
    address: str = ""
    """IPv4 address of the host; empty if it has none."""
    answer: Answer = "silent"
    router: str = ""
    """Router through which the route leaves this machine's networks."""
    heard: bool = False
    """True if RflySim3D has sent something to the bridge."""


@dataclass(frozen=True)
class SharedMemory:
    """State of Fast DDS's files in /dev/shm."""

    leftovers: int = 0
    """Files whose process has ended without removing them."""
    leftover_mb: float = 0.0
    """Size of these files, MB."""
    stuck_ports: tuple[str, ...] = ()
    """Ports of this domain locked by a process that has ended: a new node waits for them."""
    foreign: tuple[str, ...] = ()
    """Files of this domain that belong to another user: this user's nodes cannot open them."""
    free_mb: float = 1e6
    """Free space, MB."""


@dataclass(frozen=True)
class Machine:
    """State of this machine."""

    multicast: bool = True
    """True if a multicast datagram comes back to this machine."""
    shared_memory: SharedMemory = field(default_factory=SharedMemory)
    other_domains: tuple[int, ...] = ()
    """ROS domains of other programs of this machine, by their UDP ports."""
    port_holders: Mapping[int, str] = field(default_factory=dict)
    """Programs by the UDP port of RflySim that they hold."""


@dataclass(frozen=True)
class Snapshot:
    """State of graph and machine."""

    domain_id: int = 0
    discovery_range: str = "SUBNET"
    nodes: tuple[str, ...] = ()
    """Full names; a name of two nodes is there twice. Nodes of this command are left out."""
    endpoints: tuple[Endpoint, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    statuses: tuple[DiagnosticReport, ...] = ()
    sources: tuple[Source, ...] = ()
    robots: tuple[Robot, ...] = ()
    lost_frames: Mapping[str, str] = field(default_factory=dict)
    """Reason why no transforms lead from a frame to the map, by the topic that uses the frame."""
    frame_conflicts: Mapping[str, str] = field(default_factory=dict)
    """Two parents or publishers of a frame, in words, by the frame."""
    bad_transforms: tuple[str, ...] = ()
    """Why transforms on /tf are ignored, for each child frame."""
    destinations: tuple[Destination, ...] = ()
    machine: Machine = field(default_factory=Machine)

    def publishers(self, topic: str) -> list[str]:
        """Return the names of the nodes that publish a topic."""
        return [end.node for end in self.endpoints if end.publishes and end.topic == topic]
