# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflyScanTerrainH: export of the shown terrain as RflySim's png and txt."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rfly_common.errors import CommandError
from rfly_terrain.files.writer import write_map
from rfly_terrain.height_map.terrain import Terrain
from rfly_viewer.scene.scene_commands import ScanTerrain

MAX_CELLS = 16_000_000
"""Most samples of a scan, 4000 x 4000: a datagram can make this process compute them."""
MAX_COORDINATE = 1e7
"""Largest coordinate, m."""


def scan_terrain(command: ScanTerrain, terrain: Terrain, name: str, folder: Path | None) -> Path:
    """Write NAME.png and NAME.txt, and return the path without its ending.

    An older scan is replaced. CommandError where no folder was given, the area is too large for its
    interval, or there are less than 2 x 2 samples.
    """
    if folder is None:
        raise CommandError(
            "RflyScanTerrainH: nothing is written, as `rfly view` was started without --scan-folder"
        )
    (x_0, y_0), (x_1, y_1) = command.low, command.high
    extents = (x_1 - x_0, y_1 - y_0)
    steps = [extent / command.interval + 1e-9 for extent in extents]  # may be infinite
    counts = [int(min(step, MAX_CELLS)) + 1 for step in steps]
    if min(counts) < 2 or counts[0] * counts[1] > MAX_CELLS:
        raise CommandError(
            f"RflyScanTerrainH: {steps[0] + 1:.6g} x {steps[1] + 1:.6g} samples, "
            f"expected 2 x 2 to {MAX_CELLS:,} in all"
        )
    if max(abs(x_0), abs(x_1), abs(y_0), abs(y_1)) > MAX_COORDINATE:
        raise CommandError(
            f"RflyScanTerrainH: a corner beyond {MAX_COORDINATE:g} m, "
            "where samples have no distance"
        )

    north = x_0 + command.interval * np.arange(counts[0])
    east = y_0 + command.interval * np.arange(counts[1])
    heights = terrain.altitude(east[:, None], north[None, :])

    stem = folder / (re.sub(r"[^A-Za-z0-9_.-]", "_", Path(name).name).strip(".") or "scan")
    files = write_map(
        heights,
        stem,
        origin_x=float(east[0]),
        origin_y=float(north[0]),
        step_x=command.interval,
        step_y=command.interval,
        overwrite=True,
    )
    return files.png.with_suffix("")
