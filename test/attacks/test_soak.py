# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The soak: what it compares is right, and a few seconds of it run."""

from __future__ import annotations

import io
import struct

import pytest
from rich.console import Console

from attacks import soak as soak_module
from attacks.series_receiver import SeriesReceiver
from attacks.soak import Soak, ends, found, loop_scenario, misses


def test_ends_are_the_medians_of_the_first_and_the_last_tenth_after_the_warm_up():
    at = [float(second) for second in range(101)]
    memory = (
        [900.0] * 40
        + [100.0] * 7
        + [500.0] * 47
        + [101.0, 102.0, 103.0, 104.0, 900.0, 104.0, 104.0]
    )
    assert ends(at, memory, 40.0) == (100.0, 104.0)


def test_the_mission_is_longer_than_the_soak():
    """A cycle takes the vehicle 195 s."""
    for seconds in (1.0, 1000.0, 3600.0):
        items = loop_scenario(seconds)["mission"]["items"]
        assert sum(item["mode"] == "land" for item in items) / 2 * 195.0 > seconds


def test_missed_goals_are_named():
    process = {
        "before_mb": 80.0,
        "growth_mb": 0.4,
        "threads": (7.0, 7.0),
        "descriptors": (9.0, 9.0),
    }
    result = {
        "processes": {
            "view": process,
            "map": {**process, "growth_mb": 5.1},
            "up": {**process, "threads": (7.0, 8.0)},
        },
        "lost_series": 2,
        "wrong_datagrams": 0,
        "drift_s": -0.002,
        "simulation_drift_s": 0.039,
        "deaths": ["fleet: exit code 1"],
    }

    assert list(misses(result)) == [
        "map has grown by 5.1 MB",
        "up: threads went from 7 to 8",
        "lost series: 2",
        "the fleet's clock drifted by -2.00 ms",
        "fleet: exit code 1",
    ]


def test_the_receiver_reads_the_clock_and_refuses_the_rest():
    """Fleet time is the first vehicle's way east, at 1 m/s; 16 s are the float32 of 0x41800000."""

    def packet(spelled_east: str, checksum: int = 1234567890) -> bytes:
        return (struct.pack("<i", checksum) + bytes(404) + bytes.fromhex(spelled_east)).ljust(
            3804, b"\0"
        )

    with SeriesReceiver() as receiver:
        for arrival, spelled in (
            (116.25, "00008041"),
            (116.52, "00008241"),
            (117.125, "00008841"),
        ):  # 16, 16.25, 17
            receiver._take(packet(spelled), arrival)
        for wrong in (packet("00009041", checksum=7), packet("00009041")[:-1]):
            receiver._take(wrong, 118.0)
        assert (receiver.count, receiver.wrong) == (3, 2)
        assert receiver.arrived_until(16.25) == 2
        assert receiver.least_offsets(0.0) == ([17.0], [100.125])


@pytest.mark.ros
@pytest.mark.exhaustive
def test_a_short_soak_watches_all_processes_and_counts_all_series(tmp_path, monkeypatch):
    monkeypatch.setattr(soak_module, "WARM_UP", (0.3, 2.0))
    soak = Soak(5.0, tmp_path)
    soak.run()
    result = found(soak)
    fleet = ["rfly up", "terrain_node", "ue_bridge_node", "trajectory_node", "collision_node"]
    vehicle = [
        "rfly up",
        "terrain_node",
        "ue_bridge_node",
        "amphibious_sim_node",
        "rfly_nodes",  # estimator, guidance and both controllers
        "mapping_node",
    ]
    expected = {
        "view: rfly view",
        *(f"fleet: {name}" for name in fleet),
        *(f"vehicle: {name}" for name in vehicle),
    }

    assert set(result["processes"]) == expected
    assert all(process["before_mb"] > 20.0 for process in result["processes"].values())
    assert result["series"] > 50
    assert (result["lost_series"], result["wrong_datagrams"], result["deaths"]) == (0, 0, [])
    assert result["browser_mb"] > 0.0

    soak_module.report(result, Console(file=io.StringIO()))
    soak_module.draw(soak, tmp_path / "soak.png")
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")
