# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Loopback windows of RflySim3D, and the bytes of small numbers by hand."""

from __future__ import annotations

import socket

from node_harness import PATIENCE

F = {
    0: "00000000",
    1: "0000803f",
    2: "00000040",
    3: "00004040",
    4: "00008040",
    5: "0000a040",
    6: "0000c040",
    7: "0000e040",
    8: "00000041",
    9: "00001041",
    10: "00002041",
    11: "00003041",
    12: "00004041",
    13: "00005041",
    14: "00006041",
    15: "00007041",
    16: "00008041",
    30: "0000f041",
    1000: "00007a44",
    -1: "000080bf",
    -2: "000000c0",
    0.5: "0000003f",
    0.25: "0000803e",
    -0.125: "000000be",
    2.5: "00002040",
}


def floats(*numbers):
    return "".join(F[number] for number in numbers)


ID_100_TYPE_30 = "640000001e000000"


class Windows:
    """Three UDP sinks at ports 20010, 20011, 20012."""

    def __init__(self, host):
        self.sockets = []
        for k in range(3):
            sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sink.bind((host, 20010 + k))
            sink.settimeout(PATIENCE)
            self.sockets.append(sink)

    def take(self, window=0):
        return self.sockets[window].recv(65536)

    def waiting(self):
        """Return the number of datagrams that wait at each window.

        On loopback they have arrived when `sendto` returns.
        """
        counts = []
        for sink in self.sockets:
            sink.setblocking(False)
            count = 0
            while True:
                try:
                    sink.recv(65536)
                except BlockingIOError:
                    break
                count += 1
            sink.settimeout(PATIENCE)
            counts.append(count)
        return counts

    def close(self):
        for sink in self.sockets:
            sink.close()
