# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The machine as ROS nodes find it: UDP ports, destinations, multicast, Fast DDS's shared memory.

Linux only; no ROS.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import shutil
import socket
import struct
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rfly_bringup.doctor.snapshot import Answer, Machine, SharedMemory
from rfly_common.errors import ConfigError
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, WINDOW_PORT
from rfly_ue_bridge.sockets.udp_sender import IP_RECVERR, resolve

SHM = Path("/dev/shm")
PROC = Path("/proc")
_WATCHED_PORTS = (FEEDBACK_PORT, WINDOW_PORT)
"""Ports whose holder is named."""
_RFLYSIM_PORTS = range(20000, 20100)
"""Ports that belong to RflySim rather than to DDS."""

# DDSI-RTPS 2.5, section 9.6.2.3: ports by domain and participant
_FIRST_PORT = 7400
_PORTS_OF_A_DOMAIN = 250
_FIRST_UNICAST = 10
_DOMAINS = range(102)
"""Domains whose ports are below those that the system assigns by itself."""
_DISCOVERY_GROUP = "239.255.0.1"


def look_at_machine(domain_id: int) -> Machine:
    """Examine this machine without asking others.

    Takes half a second if multicast does not work.
    """
    ports = udp_ports()
    return Machine(
        multicast=multicast_works(),
        shared_memory=look_at_shared_memory(domain_id),
        other_domains=tuple(sorted(dds_domains(ports) - {domain_id})),
        port_holders=holders({port: ports[port] for port in _WATCHED_PORTS if port in ports}),
    )


def udp_ports() -> dict[int, set[int]]:
    """Return the inodes of sockets by the UDP port that they are bound to."""
    found = defaultdict(set)
    for table in ("udp", "udp6"):
        path = PROC / "net" / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            words = line.split()
            found[int(words[1].rpartition(":")[2], 16)].add(int(words[9]))
    return dict(found)


def dds_domains(ports: Iterable[int]) -> set[int]:
    """Return the ROS domains of programs of this machine.

    Each program binds two neighbouring ports of its domain.
    """
    bound = set(ports) - set(_RFLYSIM_PORTS)
    found = set()
    for port in bound:
        domain, offset = divmod(port - _FIRST_PORT, _PORTS_OF_A_DOMAIN)
        is_first_of_two = offset >= _FIRST_UNICAST and offset % 2 == 0 and port + 1 in bound
        if domain in _DOMAINS and is_first_of_two:
            found.add(domain)
    return found


def holders(inodes: dict[int, set[int]]) -> dict[int, str]:
    """Return the program that holds each port, if this user may see it."""
    wanted = {f"socket:[{inode}]": port for port, group in inodes.items() for inode in group}
    found = dict.fromkeys(inodes, "another program")

    for process in PROC.glob("[0-9]*") if wanted else ():
        with suppress(OSError):  # another user's, or gone meanwhile
            name = (process / "comm").read_text().strip()
            for link in (process / "fd").iterdir():
                with suppress(OSError):
                    port = wanted.get(os.readlink(link))
                    if port is not None:
                        found[port] = f"{name} (process {process.name})"
    return found


def ask(host: str, port: int, patience_s: float = 3.5) -> Answer:
    """Send an empty datagram to an address, and return what comes back.

    The answer comes at once on this machine, or if another machine reports a closed port. Linux
    looks for an absent machine of this network for three seconds. Most firewalls are silent.
    """
    try:
        address = resolve(host)
    except ConfigError:
        return "unknown"

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # unreachable machines are reported, too
        probe.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        try:
            probe.connect((address, port))
            probe.send(b"")
        except OSError:
            return "unreachable"

        is_local = ipaddress.IPv4Address(address).is_loopback
        deadline = time.monotonic() + (0.2 if is_local else patience_s)
        while time.monotonic() < deadline:
            code = probe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code in (errno.ECONNREFUSED, errno.ECONNRESET):
                return "refused"
            if code:
                return "unreachable"
            time.sleep(0.02)

    return "silent"


def router_to(host: str) -> str:
    """Return the router through which the route to a host leaves this machine's networks.

    The result is "" if the host is in one of them.
    """
    try:
        address = int(ipaddress.IPv4Address(resolve(host)))
    except ConfigError:
        return ""

    table = PROC / "net" / "route"
    best: tuple[int, int] = (-1, 0)
    if ipaddress.IPv4Address(address).is_loopback or not table.exists():
        return ""

    # the route with the longest mask
    for line in table.read_text().splitlines()[1:]:
        words = line.split()
        destination = _address(words[1])
        gateway = _address(words[2])
        mask = _address(words[7])
        if address & mask == destination:
            best = max(best, (mask, gateway))
    return str(ipaddress.IPv4Address(best[1])) if best[1] else ""


def _address(hexadecimal: str) -> int:
    """Return an address of /proc/net/route, which has the processor's order of bytes."""
    return int(struct.unpack(">I", struct.pack("=I", int(hexadecimal, 16)))[0])


def multicast_works() -> bool:
    """Return whether a datagram to DDS's discovery group comes back to this machine."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        try:
            receiver.bind(("", 0))
            group = socket.inet_aton(_DISCOVERY_GROUP) + socket.inet_aton("0.0.0.0")
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            receiver.settimeout(0.5)
            # not beyond this machine
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)
            sender.sendto(b"rfly doctor", (_DISCOVERY_GROUP, receiver.getsockname()[1]))
            return receiver.recv(64) == b"rfly doctor"
        except OSError:  # no interface for it, or nothing came
            return False


def look_at_shared_memory(domain_id: int) -> SharedMemory:
    """Examine Fast DDS's files.

    Each belongs to a process that holds a lock on its companion `_el` while it lives.
    """
    if not SHM.is_dir():
        return SharedMemory()

    locked = _locked_inodes()
    leftovers = 0
    size = 0
    for lock in SHM.glob("fastrtps_*_el"):
        try:
            if lock.stat().st_ino in locked:
                continue
            leftovers += 1
            size += lock.with_name(lock.name.removesuffix("_el")).stat().st_size
        except OSError:  # removed meanwhile
            continue

    # files of this domain's ports
    first = _FIRST_PORT + _PORTS_OF_A_DOMAIN * domain_id
    names = [f"fastrtps_port{port}" for port in range(first, first + _PORTS_OF_A_DOMAIN)]
    semaphores = [path for name in names if (path := SHM / f"sem.{name}_mutex").exists()]
    files = [*semaphores, *(SHM / name for name in names)]
    foreign = tuple(
        path.name for path in files if path.exists() and not os.access(path, os.R_OK | os.W_OK)
    )

    return SharedMemory(
        leftovers=leftovers,
        leftover_mb=size / 1e6,
        stuck_ports=_stuck(semaphores),
        foreign=foreign,
        free_mb=shutil.disk_usage(SHM).free / 1e6,
    )


def _locked_inodes() -> set[int]:
    """Return the inodes of all files that a process holds a lock on by flock(2)."""
    path = PROC / "locks"
    lines = path.read_text().splitlines() if path.exists() else []
    return {int(line.split()[-3].rpartition(":")[2]) for line in lines if "FLOCK" in line}


def _stuck(semaphores: Iterable[Path], patience_s: float = 0.5) -> tuple[str, ...]:
    """Return the names of the ports whose semaphore stays at 0, which means taken.

    A living process takes it for less than a millisecond.
    """

    def taken(path: Path) -> bool:
        try:
            data = path.read_bytes()
        except OSError:
            return False
        # sem_t of glibc begins with the value
        return len(data) >= 4 and struct.unpack_from("=I", data)[0] == 0

    suspects = [path for path in semaphores if taken(path)]
    deadline = time.monotonic() + patience_s
    while suspects and time.monotonic() < deadline:
        time.sleep(0.05)
        suspects = [path for path in suspects if taken(path)]
    return tuple(path.name.removeprefix("sem.").removesuffix("_mutex") for path in suspects)
