# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Claims to resources that a machine has only once.

A bound port holds between processes and users, and ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RFLYSIM_PORTS = 11099
"""Port that claims RflySim's ports 20006, 20009, 20010 …"""
KERNELS = 11097
"""Port that claims the compilation of missing kernels."""
_DOMAINS = range(1, 102)
_DOMAIN_CLAIMS = 11100
"""First port of the claims to ROS domains: the claim is this plus the domain's number."""
_SHARED_MEMORY = Path("/dev/shm")
_PATIENCE = 1800.0
"""Longest wait for a claim, s: longer than all tests together that need the same one."""

_next_domain = _DOMAINS[os.getpid() % len(_DOMAINS)]


@contextmanager
def turn(claim: int) -> Iterator[None]:
    """Waits until no other process holds the claim, and holds it meanwhile."""
    deadline = time.monotonic() + _PATIENCE
    while (held := _bound(claim)) is None:
        assert time.monotonic() < deadline, (
            f"another process has held the claim {claim} for {_PATIENCE:g} s"
        )
        time.sleep(0.05)
    with held:
        yield


@contextmanager
def domain() -> Iterator[int]:
    """A free ROS domain: no other test holds it and no process is in it.

    Nodes of a run that was killed may be left in a domain. Each process therefore begins elsewhere
    and goes on from claim to claim, so that a killed node's remains are not met soon.
    """
    global _next_domain  # noqa: PLW0603
    for _ in _DOMAINS:
        found = _next_domain
        _next_domain = _DOMAINS[found % len(_DOMAINS)]
        held = None if _inhabited(found) else _bound(_DOMAIN_CLAIMS + found)
        if held is not None:
            with held:
                _remove_remains(found)
                yield found
            return

    raise RuntimeError(
        f"all ROS domains from {_DOMAINS[0]} to {_DOMAINS[-1]} are in use: by other tests, or nodes"
    )


def _inhabited(domain: int) -> bool:
    """Return whether a process on this machine has been started with this ROS_DOMAIN_ID."""
    wanted = f"ROS_DOMAIN_ID={domain}".encode()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if wanted in environment.read_bytes().split(b"\0"):
                return True
    return False


def _remove_remains(domain: int) -> None:
    """Remove the shared memory that killed nodes left on the domain's ports.

    A lock in it that its holder took along stops every later node of the domain for ever
    (rmw_fastrtps issues 695 and 908). Ports in use are left alone.
    """
    first = 7400 + 250 * domain
    for port in range(first, first + 250):
        segment = _SHARED_MEMORY / f"fastrtps_port{port}"
        if not segment.exists():
            continue
        in_use = Path(f"{segment}_el")  # a listener on the port locks this file

        if in_use.exists():
            with in_use.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue

        for name in (segment.name, f"{segment.name}_el", f"sem.{segment.name}_mutex"):
            (_SHARED_MEMORY / name).unlink(missing_ok=True)


def _bound(port: int) -> socket.socket | None:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.bind(("127.0.0.1", port))
    except OSError:
        made.close()
        return None
    return made
