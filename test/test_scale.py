# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A thousand vehicles at 50 Hz through the real nodes.

Every published state arrives, at the place that a formula gives.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
SECONDS = 5.0


@pytest.fixture
def ring_fleet():
    from benchmarks import ring_fleet

    return ring_fleet


@pytest.fixture
def receiver(ring_fleet):
    from benchmarks import fleet_receiver

    return fleet_receiver


def recorded(receiver, fleet, terrain, times):
    """Return what the receiver should have at these times, sampled and packed by the library."""
    from rfly_trajectory.fleet.fleet_file import parse_fleet
    from rfly_ue_bridge.codec.ned_states import states_to_ned
    from rfly_ue_bridge.codec.state_datagrams import datagrams, encode_states

    moving = parse_fleet(fleet.yaml().encode(), "rings.yaml").on_terrain(terrain)
    received = receiver.Received(len(times) * fleet.packets)
    for t in times:
        for datagram in datagrams(
            encode_states(states_to_ned(moving.sample(t), "enu")[0], in_fleet=True)
        ):
            received.kept[received.count] = np.frombuffer(datagram, np.uint8)[: receiver.KEPT_BYTES]
            received.size[received.count] = len(datagram)
            received.arrival[received.count] = t + 1e-3
            received.count += 1
    return received


def test_the_receiver_tells_a_misplaced_vehicle_a_lost_packet_and_a_late_state(
    receiver, ring_fleet, hilly_map
):
    fleet = ring_fleet.RingFleet(200)
    terrain = hilly_map
    times = [2.5 + 0.02 * number for number in range(10)]

    def found(spoil=lambda received: None):
        received = recorded(receiver, fleet, terrain, times)
        spoil(received)
        return receiver.examine(received, fleet, terrain, 2.5, 2.69)

    good = found()
    assert good["worst_m"] < 5e-4
    assert (good["series"], good["states"], good["compared"]) == (10, 2000, 1980)
    assert good["wrong_packets"] == good["incomplete_series"] == 0
    assert good["interval_p99"] == pytest.approx(0.02)

    def place(received, packet, slot):
        return received.kept[packet, 404 + 12 * slot : 416 + 12 * slot].view("<f4")

    def misplaced(received):
        place(received, 7, 31)[0] += 0.002

    def late(
        received,
    ):  # the third series' second packet shows its vehicles 1 ms later than its clock says
        place(received, 5, 0)[1] -= 1e-3

    def lost(received):
        received.kept[4:19] = received.kept[5:20].copy()
        received.count -= 1

    assert found(misplaced)["worst_m"] == pytest.approx(0.002, abs=5e-4)
    assert found(late)["worst_m"] > 1e-3
    assert found(late)["incomplete_series"] == 2
    assert found(lost)["incomplete_series"] == 1

    def other_vehicle(received):
        received.kept[3, 4 + 2 * 50] ^= 1

    assert found(other_vehicle)["wrong_packets"] == 1


@pytest.fixture
def hilly_map():
    from rfly_terrain.height_map.height_map import HeightMap

    heights = np.random.default_rng(3).uniform(0.0, 50.0, (121, 121))
    return HeightMap(heights, origin_x=-3000.0, origin_y=-3000.0, step_x=50.0, step_y=50.0)


@pytest.mark.exhaustive
@pytest.mark.ros
@pytest.mark.slow
def test_a_thousand_vehicles_at_50_hz_arrive_without_loss_and_to_the_millimetre(
    domain_id, ring_fleet, tmp_path
):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, Peer, diagnostic

    (tmp_path / "rings.yaml").write_text(ring_fleet.RingFleet(1000).yaml(), encoding="utf-8")
    command = [sys.executable, str(ROOT / "benchmarks" / "fleet_receiver.py"), "1000", str(SECONDS)]
    peer = Peer(domain_id)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as receiving:
        try:
            said = []
            reading = threading.Thread(
                target=lambda: said.extend(map(json.loads, receiving.stdout)), daemon=True
            )
            reading.start()
            peer.spin_until(lambda: said)
            bridge = {"port": str(said[0]["port"]), "feedback_port": "0"}
            with (
                NodeProcess("terrain_node", domain_id, {"map": "JacksboroFault"}) as terrain,
                NodeProcess("ue_bridge_node", domain_id, bridge) as shown,
                NodeProcess(
                    "trajectory_node", domain_id, {"fleet": str(tmp_path / "rings.yaml")}
                ) as moving,
            ):
                nodes = terrain, shown, moving
                statuses = peer.receive(DiagnosticArray, "/diagnostics", 10)
                peer.spin_until(
                    lambda: len(said) == 4 or any(node.process.poll() is not None for node in nodes)
                )
                assert len(said) == 4, "".join(node.output for node in nodes)
        finally:
            receiving.kill()
            peer.close()
    found = said[3]
    assert found["worst_m"] < 1e-3
    assert found["compared"] == 990 * found["series"] > 0
    assert found["wrong_packets"] == 0
    # a receiver that gets no processor loses datagrams in its own socket
    assert found["incomplete_series"] <= found["dropped_by_system"]

    # the node says how many series it has published until when: exactly as many have arrived,
    # but for those of the standing fleet before the bridge was discovered
    assert found["times"] == sorted(found["times"])
    assert found["times"][0] == 0.0
    counted = 0
    early = range(50)
    for status in statuses:
        fleet = diagnostic([status], "fleet")
        if fleet is None or not fleet[2].get("fleet_time_s"):
            continue
        until = float(fleet[2]["fleet_time_s"])
        published = int(fleet[2].get("published_states", 0))
        if SECONDS > until > 1.0:
            least, most = (bisect_right(found["times"], until + slack) for slack in (-0.006, 0.006))
            early = [missed for missed in early if least <= published - missed <= most]
            assert early, (least, published, most)
            counted += 1
    assert counted >= 2
    counters = diagnostic(statuses, "bridge")[2]
    assert {
        counters[reason] for reason in ("stale", "inconsistent", "not_finite", "other_source")
    } == {"0"}
