"""This machine as ROS nodes find it: UDP ports, destinations, multicast, Fast DDS's shared memory.
Linux; no ROS.
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
_RFLYSIM_PORTS = range(20000, 20100)

# DDSI-RTPS 2.5, section 9.6.2.3: ports by domain and participant
_FIRST_PORT = 7400
_PORTS_OF_A_DOMAIN = 250
_FIRST_UNICAST = 10
_DOMAINS = range(102)
"""beyond them the ports of domains are those that the system gives away"""
_DISCOVERY_GROUP = "239.255.0.1"


def look_at_machine(domain_id: int) -> Machine:
    """What there is to see without asking anybody; takes half a second where multicast does not
    work.
    """
    ports = udp_ports()
    return Machine(
        multicast=multicast_works(),
        shared_memory=look_at_shared_memory(domain_id),
        other_domains=tuple(sorted(dds_domains(ports) - {domain_id})),
        port_holders=holders({port: ports[port] for port in _WATCHED_PORTS if port in ports}),
    )


def udp_ports() -> dict[int, set[int]]:
    """Inodes of the sockets by the UDP port that they are bound to."""
    found = defaultdict(set)
    for table in ("udp", "udp6"):
        path = PROC / "net" / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            words = line.split()
            found[int(words[1].rpartition(":")[2], 16)].add(int(words[9]))
    return dict(found)


def dds_domains(ports: Iterable[int]) -> set[int]:
    """ROS domains that programs of this machine take part in: each binds two neighbouring ports of
    its domain.
    """
    bound = set(ports) - set(_RFLYSIM_PORTS)
    found = set()
    for port in bound:
        domain, offset = divmod(port - _FIRST_PORT, _PORTS_OF_A_DOMAIN)
        if (
            domain in _DOMAINS
            and offset >= _FIRST_UNICAST
            and offset % 2 == 0
            and port + 1 in bound
        ):
            found.add(domain)
    return found


def holders(inodes: dict[int, set[int]]) -> dict[int, str]:
    """The program that holds each port, as far as this user may see it."""
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
    """What an empty datagram meets there.

    On this machine, and where a machine says that a port is closed, the answer comes at once; that
    no machine has an address of this network is known after the three seconds that Linux looks for
    it. Most firewalls say nothing.
    """
    try:
        address = resolve(host)
    except ConfigError:
        return "unknown"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)  # tells of unreachable machines too
        try:
            probe.connect((address, port))
            probe.send(b"")
        except OSError:
            return "unreachable"
        own = ipaddress.IPv4Address(address).is_loopback
        deadline = time.monotonic() + (0.2 if own else patience_s)
        while time.monotonic() < deadline:
            code = probe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                return (
                    "refused" if code in (errno.ECONNREFUSED, errno.ECONNRESET) else "unreachable"
                )
            time.sleep(0.02)
    return "silent"


def router_to(host: str) -> str:
    """The router by which the way to a host leaves this machine's networks; "" where it is in one
    of them.
    """
    try:
        address = int(ipaddress.IPv4Address(resolve(host)))
    except ConfigError:
        return ""
    table = PROC / "net" / "route"
    best: tuple[int, int] = (-1, 0)
    if ipaddress.IPv4Address(address).is_loopback or not table.exists():
        return ""
    for line in table.read_text().splitlines()[1:]:
        destination, gateway, mask = (
            _address(word) for word in [*line.split()[1:3], line.split()[7]]
        )
        if address & mask == destination:
            best = max(best, (mask, gateway))
    return str(ipaddress.IPv4Address(best[1])) if best[1] else ""


def _address(hexadecimal: str) -> int:
    """/proc/net/route has addresses in the processor's order of bytes."""
    return int(struct.unpack(">I", struct.pack("=I", int(hexadecimal, 16)))[0])


def multicast_works(patience_s: float = 0.5) -> bool:
    """Whether a datagram to DDS's discovery group comes back to this machine."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        try:
            receiver.bind(("", 0))
            group = socket.inet_aton(_DISCOVERY_GROUP) + socket.inet_aton("0.0.0.0")
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            receiver.settimeout(patience_s)
            sender.setsockopt(
                socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0
            )  # not beyond this machine
            sender.sendto(b"rfly doctor", (_DISCOVERY_GROUP, receiver.getsockname()[1]))
            return receiver.recv(64) == b"rfly doctor"
        except OSError:  # no interface for it, or nothing came
            return False


def look_at_shared_memory(domain_id: int) -> SharedMemory:
    """Fast DDS's files: each belongs to a process that holds a lock on its companion `_el`, as long
    as it lives.
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
    first = _FIRST_PORT + _PORTS_OF_A_DOMAIN * domain_id
    own_ports = [f"fastrtps_port{port}" for port in range(first, first + _PORTS_OF_A_DOMAIN)]
    semaphores = [path for name in own_ports if (path := SHM / f"sem.{name}_mutex").exists()]
    return SharedMemory(
        leftovers=leftovers,
        leftover_mb=size / 1e6,
        stuck_ports=_stuck(semaphores),
        foreign=tuple(
            path.name
            for path in [*semaphores, *(SHM / name for name in own_ports)]
            if path.exists() and not os.access(path, os.R_OK | os.W_OK)
        ),
        free_mb=shutil.disk_usage(SHM).free / 1e6,
    )


def _locked_inodes() -> set[int]:
    """Of all files that a process holds a lock on by flock(2)."""
    path = PROC / "locks"
    lines = path.read_text().splitlines() if path.exists() else []
    return {int(line.split()[-3].rpartition(":")[2]) for line in lines if "FLOCK" in line}


def _stuck(semaphores: Iterable[Path], patience_s: float = 0.5) -> tuple[str, ...]:
    """Names of the ports whose semaphore stays at 0, taken: a living process takes it for less than
    a millisecond.
    """

    def taken(path: Path) -> bool:
        try:
            data = path.read_bytes()
        except OSError:
            return False
        return (
            len(data) >= 4 and struct.unpack_from("=I", data)[0] == 0
        )  # sem_t of glibc: the value comes first

    suspects = [path for path in semaphores if taken(path)]
    deadline = time.monotonic() + patience_s
    while suspects and time.monotonic() < deadline:
        time.sleep(0.05)
        suspects = [path for path in suspects if taken(path)]
    return tuple(path.name.removeprefix("sem.").removesuffix("_mutex") for path in suspects)
