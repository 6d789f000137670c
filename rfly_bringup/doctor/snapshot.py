"""What is seen of a running ROS graph and of this machine at one time. Plain data, no ROS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rfly_common.diagnostic_reasons import Reason, reasons_in

OK, WARN, ERROR, STALE = range(4)
"""levels of diagnostic_msgs/DiagnosticStatus"""


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscription of a node."""

    topic: str
    type: str
    node: str
    publishes: bool


@dataclass(frozen=True)
class Mismatch:
    """A publisher and a subscription of one topic between which nothing flows, and why."""

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
    """s since it came"""
    datagram_rate: float | None = None
    """datagrams a second between the last two, of a bridge"""

    @property
    def reasons(self) -> list[tuple[Reason, str]]:
        """Reasons that the node states, each with its subject."""
        return reasons_in(self.values)


@dataclass(frozen=True)
class Source:
    """Who publishes vehicles on a topic: the `source` of a VehicleStateArray, or a robot's own
    topic.
    """

    topic: str
    name: str
    ids: frozenset[int]
    rate: float
    """messages a second"""
    age: float
    """s since the last one"""
    frame_id: str = ""
    not_finite: frozenset[int] = frozenset()
    """ids whose position or orientation is NaN or infinite"""


@dataclass(frozen=True)
class Robot:
    """A foreign robot that a bridge shows, by its parameters."""

    bridge: str
    name: str
    id: int
    topic: str
    type: str
    """of the messages that are taken"""


Answer = Literal["silent", "refused", "unreachable", "unknown"]
"""silent: no complaint; refused: that port is closed; unreachable: no machine or no way; unknown:
no such name
"""


@dataclass(frozen=True)
class Destination:
    """Where a bridge sends, and what an empty datagram to it has shown."""

    bridge: str
    host: str
    port: int
    address: str = ""
    """IPv4 address of the host; empty where there is none"""
    answer: Answer = "silent"
    router: str = ""
    """by which the way leads out of this machine's networks"""
    heard: bool = False
    """RflySim3D has sent something to the bridge"""


@dataclass(frozen=True)
class SharedMemory:
    """Fast DDS's files in /dev/shm."""

    leftovers: int = 0
    """files whose process has gone without removing them"""
    leftover_mb: float = 0.0
    stuck_ports: tuple[str, ...] = ()
    """of this domain, locked by a process that has gone: a new node waits for them"""
    foreign: tuple[str, ...] = ()
    """of this domain, of another user: this one's nodes cannot open them"""
    free_mb: float = 1e6


@dataclass(frozen=True)
class Machine:
    """What this machine says."""

    multicast: bool = True
    """a multicast datagram comes back to this machine"""
    shared_memory: SharedMemory = field(default_factory=SharedMemory)
    other_domains: tuple[int, ...] = ()
    """ROS domains that other programs of this machine take part in, told by their UDP ports"""
    port_holders: Mapping[int, str] = field(default_factory=dict)
    """programs by the UDP port of RflySim that they hold"""


@dataclass(frozen=True)
class Snapshot:
    """All of it."""

    domain_id: int = 0
    discovery_range: str = "SUBNET"
    nodes: tuple[str, ...] = ()
    """full names, one that is there twice twice; not those of this command"""
    endpoints: tuple[Endpoint, ...] = ()
    mismatches: tuple[Mismatch, ...] = ()
    statuses: tuple[DiagnosticReport, ...] = ()
    sources: tuple[Source, ...] = ()
    robots: tuple[Robot, ...] = ()
    lost_frames: Mapping[str, str] = field(default_factory=dict)
    """why nothing leads from a frame to the map, by `topic` that names it"""
    destinations: tuple[Destination, ...] = ()
    machine: Machine = field(default_factory=Machine)

    def publishers(self, topic: str) -> list[str]:
        """Names of the nodes that publish a topic."""
        return [end.node for end in self.endpoints if end.publishes and end.topic == topic]
