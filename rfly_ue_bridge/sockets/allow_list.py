# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Senders whose datagrams are read."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

from rfly_common.errors import ConfigError


class AllowList:
    """IPv4 addresses and networks, such as 192.168.1.0/24; an empty list allows every sender.

    False if it is empty. Raises ConfigError for a text that is neither address nor network.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._networks = [_network(text) for text in entries]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def allows(self, sender: str) -> bool:
        """Return whether datagrams from an IPv4 address are read."""
        if not self._networks:
            return True
        number = int.from_bytes(socket.inet_aton(sender), "big")
        return any(number & mask == network for network, mask in self._networks)


def _network(text: str) -> tuple[int, int]:
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError as error:
        raise ConfigError(
            f"allow: {text!r} is neither an IPv4 address nor a network "
            f"such as 192.168.1.0/24 ({error})"
        ) from error
    return int(network.network_address), int(network.netmask)
