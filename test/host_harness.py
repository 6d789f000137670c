# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hosts on one machine, for nodes that talk over a network.

They are network namespaces with a line to the viewer's where that is permitted, else ROS domains.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from node_harness import PATIENCE

_CLONE_NEWNET = 0x40000000
_OWN_WORLD = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo ready && exec cat"


class Host:
    """Host of one graph's nodes: `NodeProcess(name, host.domain_id, ..., prefix=host.prefix)`."""

    def __init__(
        self,
        domain_id: int,
        viewer: str,
        address: str,
        prefix: Sequence[str] = (),
        viewer_prefix: Sequence[str] = (),
    ) -> None:
        self.domain_id = domain_id
        self.prefix = tuple(prefix)
        self.viewer_prefix = tuple(viewer_prefix)
        self.viewer = viewer
        """Address of the viewer, seen from here."""
        self.address = address
        """Address of this host, seen from the viewer."""


class _Namespace:
    """A process that keeps a network and a mount namespace alive until its input ends."""

    def __init__(self) -> None:
        command = ["unshare", "--net", "--mount", "sh", "-c", _OWN_WORLD]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

        assert self.process.stdout is not None

        if self.process.stdout.readline() != b"ready\n":
            self.close()
            raise PermissionError("no namespace")

        folder = f"/proc/{self.process.pid}/ns"
        self.prefix = ("nsenter", f"--net={folder}/net", f"--mount={folder}/mnt")

    def run(self, *command: str) -> None:
        subprocess.run([*self.prefix, *command], check=True, timeout=PATIENCE)

    def udp_socket(self) -> socket.socket:
        """A socket inside, made by a thread that goes there and ends."""
        made: list[socket.socket] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self.process.pid}/ns/net", "rb") as namespace:
                if libc.setns(namespace.fileno(), _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate(timeout=PATIENCE)


@contextlib.contextmanager
def two_hosts(
    domain_ids: Sequence[int],
) -> Iterator[tuple[socket.socket, list[Host], str]]:
    """Yield the viewer's unbound socket, two hosts, and how they are kept apart.

    The last is a word: namespaces or domains.
    """
    with ExitStack() as stack:
        try:
            if os.environ.get("RFLY_TEST_HOSTS") == "domains" or not all(
                map(shutil.which, ("unshare", "nsenter", "ip"))
            ):
                raise PermissionError("not asked for, or not installed")
            viewer, *others = (_open(stack) for _ in range(3))
        except PermissionError:
            opened = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            yield (
                opened,
                [Host(domain_id, "127.0.0.1", "127.0.0.1") for domain_id in domain_ids[:2]],
                "domains",
            )
            return

        hosts = []
        for i, namespace in enumerate(others):
            here = f"10.77.{i}.1"
            there = f"10.77.{i}.2"
            viewer.run(
                "ip",
                "link",
                "add",
                f"to{i}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                str(namespace.process.pid),
            )
            for end, device, address in (
                (viewer, f"to{i}", here),
                (namespace, "eth0", there),
            ):
                end.run("ip", "addr", "add", f"{address}/24", "dev", device)
                end.run("ip", "link", "set", device, "up")
            namespace.run("ip", "route", "add", "default", "via", here)
            hosts.append(Host(domain_ids[0], here, there, namespace.prefix, viewer.prefix))

        viewer.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")  # from host to host
        yield stack.enter_context(viewer.udp_socket()), hosts, "namespaces"


def _open(stack: ExitStack) -> _Namespace:
    namespace = _Namespace()
    stack.callback(namespace.close)
    return namespace
