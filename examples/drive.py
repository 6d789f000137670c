# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Shared by experiments 5 to 8: show a scene in RflySim3D, and a fleet on it in real time.

The vehicles are glued to the ground of the terrain that has the scene's name.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress

from rfly_terrain import HeightMap
from rfly_trajectory import Fleet
from rfly_ue_bridge import RflySim3D, commands, encode_states, states_to_ned


def drive(fleet: Fleet, scene: str, description: str | None) -> None:
    """Send the scene, and then the fleet, as the command line's options say."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="machine that runs RflySim3D")
    parser.add_argument("--port", type=int, default=20010, help="UDP port of its first window")
    parser.add_argument("--windows", type=int, default=1, help="windows, on consecutive ports")
    parser.add_argument("--map", default=scene, help="map of RflySim3D, and of the ground")
    parser.add_argument("--duration", type=float, default=60.0, help="seconds")
    parser.add_argument("--rate", type=float, default=50.0, help="poses of each vehicle a second")
    parser.add_argument(
        "--time-scale", type=float, default=1.0, help="the fleet's seconds in one of ours"
    )
    options = parser.parse_args()

    # the fleet on the ground
    on_ground = fleet.on_terrain(HeightMap.load(options.map))
    with (
        suppress(KeyboardInterrupt),  # Ctrl-C ends it
        RflySim3D(options.host, options.port, options.windows) as window,
    ):
        window.command(commands.change_map_by_name(options.map), wait=True)
        start = time.monotonic()
        for tick in range(round(options.duration * options.rate)):
            due = tick / options.rate
            time.sleep(max(0.0, start + due - time.monotonic()))
            ned, _ = states_to_ned(on_ground.sample(due * options.time_scale), "enu")
            window.datagrams(encode_states(ned, in_fleet=False))
        print(f"{len(fleet)} vehicles, {options.duration:g} s")
