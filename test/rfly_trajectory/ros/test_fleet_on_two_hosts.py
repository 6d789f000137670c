# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A ring of vehicles from two hosts with separate ROS graphs, seen by one viewer."""

from __future__ import annotations

import math
import socket
import struct
import time
from contextlib import ExitStack

import numpy as np
import pytest
from host_harness import two_hosts
from node_harness import PATIENCE, NodeProcess

pytestmark = [pytest.mark.ros, pytest.mark.slow]

RADIUS = 60.0
SPEED = 8.0
COUNT = 48
CLOCK_SPEED = 5.0
FLEET = f"""
version: 1
defaults: {{type: 3, speed: {CLOCK_SPEED}, shape: {{type: line, from: [0, 100], to: [2000, 100]}}}}
vehicles:
  - {{name: first_clock, id: 100}}
  - {{name: ring, id: 1, count: {COUNT}, spacing: even, speed: {SPEED},
     shape: {{type: circle, center: [0, 0], radius: {RADIUS}}}}}
  - {{name: second_clock, id: 101}}
"""
"""Each half of its vehicles has a clock: one that drives east from x = 0 and tells the fleet time
of its datagram.
"""
CLOCKS = (100, 101)
SO_TIMESTAMPNS = 35
MULTI_3D_DATA_100_NEW = 3804


class Viewer:
    """Receiver of datagrams of up to 100 vehicles.

    It keeps the sender's address and the system's arrival time.
    """

    def __init__(self, opened):
        self.socket = opened
        opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        opened.bind(("0.0.0.0", 0))
        opened.settimeout(0.2)
        self.port = opened.getsockname()[1]
        self.shown = []
        """(host's address and port, arrival [s], fleet time [s], ids (n,), positions (n, 3) ENU) of
        each datagram
        """

    def take(self):
        try:
            data, ancillary, _, sender = self.socket.recvmsg(65536, 128)
        except TimeoutError:
            return

        assert len(data) == MULTI_3D_DATA_100_NEW
        arrival = next(
            struct.unpack("=qq", d) for _, kind, d in ancillary if kind == SO_TIMESTAMPNS
        )

        ids = np.frombuffer(data, "<u2", 100, 4)
        north_east_down = (
            np.frombuffer(data, "<f4", 300, 404).reshape(100, 3)[ids > 0].astype(float)
        )
        positions = north_east_down[:, [1, 0, 2]] * (1.0, 1.0, -1.0)
        ids = ids[ids > 0].astype(int)

        clock = positions[np.isin(ids, CLOCKS), 0]
        assert len(clock) == 1

        self.shown.append(
            (sender, arrival[0] + 1e-9 * arrival[1], float(clock[0]) / CLOCK_SPEED, ids, positions)
        )


def angles(ids, positions):
    """Return the angles of the ring's vehicles without their even spacing.

    Vehicles are numbered from 0; on a ring all angles are the same.
    """
    ring = ids < 100
    angle = np.arctan2(positions[ring, 1], positions[ring, 0])
    return angle + 2.0 * math.pi / COUNT * (ids[ring] - 1)


def turn(difference):
    """Return angles in -π … π."""
    return np.mod(np.asarray(difference) + math.pi, 2.0 * math.pi) - math.pi


@pytest.mark.exhaustive
def test_two_shards_on_two_hosts_are_one_ring(
    domain_id, shared_domain_id, tmp_path, record_property
):
    """Terrain, trajectory and bridge on each of two hosts share only the start_time.

    No vehicle comes twice or is missing. By the arrival of the datagrams each half keeps to the
    clock, and at equal time the 48 vehicles of the two are evenly spaced.
    """
    file = tmp_path / "ring.yaml"
    file.write_text(FLEET, encoding="utf-8")
    start = math.floor(time.time()) + 2.0
    with ExitStack() as stack:
        opened, hosts, kept_apart = stack.enter_context(two_hosts([domain_id, shared_domain_id]))
        record_property("hosts", kept_apart)
        viewer = Viewer(opened)
        nodes = []
        for i, host in enumerate(hosts):
            shard = {"fleet": f"'{file}'", "shard": f"'{i}/2'", "start_time": f"{start:.1f}"}
            bridge = {"host": host.viewer, "port": str(viewer.port), "feedback_port": "0"}
            for name, parameters in (
                ("terrain_node", {}),
                ("ue_bridge_node", bridge),
                ("trajectory_node", shard),
            ):
                node = NodeProcess(name, host.domain_id, parameters, prefix=host.prefix)
                nodes.append(stack.enter_context(node))
        deadline = time.monotonic() + PATIENCE
        shards = []
        while len(shards) < 2 or min(map(len, shards)) < 150:
            assert time.monotonic() < deadline, "\n".join(node.output for node in nodes)
            viewer.take()
            moving = [one for one in viewer.shown if one[2] > 0.0]
            senders = sorted({one[0] for one in moving})
            shards = [[one for one in moving if one[0] == sender] for sender in senders]
        both = max(shard[0][1] for shard in shards)

    assert len(shards) == 2
    if kept_apart == "namespaces":
        assert [sender[0] for sender in senders] == [host.address for host in hosts]
    shards.sort(key=lambda shard: shard[0][3][0] != CLOCKS[0])
    halves = [[100, *range(1, 25)], [*range(25, 49), 101]]
    for shard, half in zip(shards, halves, strict=True):
        # each vehicle once in each datagram of its host, no other
        assert all(one[3].tolist() == half for one in shard)
        times = np.array([one[2] for one in shard])
        assert np.all(np.diff(times) > 0.0)
        late = np.array([one[1] - one[2] for one in shard]) - start
        assert late.min() > -1e-3  # a datagram shows no time that is still to come
        assert np.median(late) < 0.1
        for _, _, t, ids, positions in shard:
            np.testing.assert_allclose(
                turn(angles(ids, positions) - SPEED / RADIUS * t), 0.0, atol=1e-5
            )

    # Of either host the datagram that shows the same time, or a hundredth later: what is left is
    # driven at ring speed.
    first, second = ([one for one in shard if one[1] > both] for shard in shards)
    later = np.array([one[2] for one in second])
    compared = 0
    for _, _, t, ids, positions in first:
        other = second[int(np.argmin(np.abs(later - t)))]
        gap = other[2] - t
        if abs(gap) > 0.05:
            continue
        ring = np.concatenate([angles(ids, positions), angles(*other[3:]) - SPEED / RADIUS * gap])
        assert len(ring) == COUNT
        assert np.ptp(turn(ring - ring[0])) * RADIUS < 0.001
        compared += 1
    assert compared > 50
