# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Terrain in tiles against the same ground in memory, and how it grows from 1 km to 100 km.

The 100 km have the same file a hundred times, so that they are made at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Row, agreement, measure, same
from rfly_terrain import HeightMap, TiledHeightMap
from rfly_terrain.files.raster_file import rasterio_module
from rfly_terrain.tiles.tile_files import MANIFEST, TileGrid, manifest_text, tile_data, tile_name
from rfly_terrain.warm_up import warm_up

STEP = 5.0
"""Distance of samples, m."""
SIDE = 2048
"""Samples a side of a file, which is 10 km."""
SMALL_SIDE = 256
FILES = 10
"""Files a side of the largest terrain: 102 km."""
POINTS = 1_000_000
RAYS = 100_000
RAY_M = 1_000.0
TOLERANCE = 1e-6
MEMORY_MB = 64.0
PICTURE = Path(__file__).parents[1] / "build" / "tiles.png"


def rows() -> Iterator[Row]:
    """Yield all rows; tiles are written to a temporary folder."""
    warm_up()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        heights = hills(SIDE)
        whole = HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP)
        sizes = {
            "1.3 km": write_tiles(folder / "1", heights[:SMALL_SIDE, :SMALL_SIDE], 1),
            "10 km": write_tiles(folder / "10", heights, 1),
            "102 km": write_tiles(folder / "100", heights, FILES),
        }
        yield from queries(TiledHeightMap.open(sizes["10 km"]), whole)
        yield from growth(sizes)
        yield from use(sizes)


def queries(tiled: TiledHeightMap, whole: HeightMap) -> Iterator[Row]:
    """Yield altitudes and rays over tiles that are loaded."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(0.0, STEP * (SIDE - 1), (2, POINTS))
    agree = agreement(tiled.altitude(x, y), whole.altitude(x, y), TOLERANCE)
    a, b = measure(lambda: tiled.altitude(x, y), lambda: whole.altitude(x, y), 25)
    peer = "the same map in memory"
    yield Row("altitude, 1,000,000 points in tiles", a, b, peer, 0.5, None, agree)

    # rays from above the ground, most of which meet it
    origins = np.stack([x[:RAYS], y[:RAYS], whole.altitude(x[:RAYS], y[:RAYS]) + 30.0], axis=1)
    directions = rng.normal(size=(RAYS, 3)) * (1.0, 1.0, 0.1)
    directions[:, 2] -= 0.1
    ours = tiled.cast(origins, directions, RAY_M)
    theirs = whole.cast(origins, directions, RAY_M)
    hit = np.isfinite(theirs)
    agree = agreement(ours[hit], theirs[hit], TOLERANCE)
    a, b = measure(
        lambda: tiled.cast(origins, directions, RAY_M),
        lambda: whole.cast(origins, directions, RAY_M),
        15,
    )
    note = f"{hit.mean():.0%} of the rays meet the ground within {RAY_M:g} m"
    yield Row("100,000 rays over tiles", a, b, peer, 0.7, None, agree, note)


def growth(sizes: dict[str, Path]) -> Iterator[Row]:
    """Yield the time to open a terrain and to have a first altitude, by its size."""

    def first(path: Path) -> float:
        return TiledHeightMap.open(path).altitude(600.0, 600.0)

    for size, base in (("10 km", "1.3 km"), ("102 km", "10 km")):
        agree = same(first(sizes[size]) == first(sizes[base]), "altitudes")
        a, b = measure(partial(first, sizes[size]), partial(first, sizes[base]), 15)
        name = f"open {size} in tiles, first altitude"
        yield Row(name, a, b, f"{base} in tiles", 2.0, None, agree, kind="at most")


USED = """
import json
import sys
import time
from pathlib import Path
import numpy as np
from rfly_terrain import TiledHeightMap
from rfly_terrain.warm_up import warm_up

def status():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0])

warm_up()
TiledHeightMap.open(sys.argv[1]).altitude(600.0, 600.0)  # libraries
start = time.process_time()
terrain = TiledHeightMap.open(sys.argv[1], memory_mb=float(sys.argv[2]))
terrain.altitude(600.0, 600.0)
load_s = time.process_time() - start

rng = np.random.default_rng(1)
about = rng.uniform(200.0, 1200.0, (2, 100_000))
terrain.altitude(*about)
start = time.process_time()
for _ in range(10):
    terrain.altitude(*about)
query_s = (time.process_time() - start) / 10

before = status()
for _ in range(1000):
    x, y = rng.uniform(0.0, terrain.bounds[1], 2).tolist()
    altitude = terrain.altitude(x, y)
print(json.dumps([load_s, query_s, status() - before, x, y, altitude]))
"""


class Use(NamedTuple):
    """What a fresh process uses of a terrain."""

    load_s: float
    """Processor time until the first altitude."""
    query_s: float
    """Processor time of 100,000 points about one place."""
    grown: float
    """Memory that 1,000 random places take, B."""
    x: float
    y: float
    altitude: float
    """Last place and its altitude, m."""


def use_of(path: Path) -> Use:
    """Return what a fresh process uses of a terrain."""
    command = [sys.executable, "-c", USED, str(path), str(MEMORY_MB)]
    root = Path(__file__).parent.parent
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    return Use(*json.loads(run.stdout))


def use(sizes: dict[str, Path]) -> Iterator[Row]:
    """Yield memory and time of queries by the terrain's size, and draw them with the load time."""
    uses = {size: use_of(path) for size, path in sizes.items()}
    draw(uses, PICTURE)
    large = uses["102 km"]
    expected = TiledHeightMap.open(sizes["102 km"]).altitude(large.x, large.y)
    agree = agreement(large.altitude, expected, 0.0)
    yield Row(
        "memory for 1,000 places of 102 km",
        large.grown,
        MEMORY_MB * 1e6,
        "the limit of memory",
        1.5,
        None,
        agree,
        kind="at most",
        unit="B",
    )
    yield Row(
        "100,000 points about a place of 102 km",
        large.query_s,
        uses["1.3 km"].query_s,
        "1.3 km in tiles",
        1.5,
        None,
        agree,
        f"growth from 1 to 100 km: {PICTURE.relative_to(PICTURE.parents[1])}",
        kind="at most",
    )


def draw(uses: dict[str, Use], path: Path) -> None:
    """Draw load time, time of queries and memory by the side of the terrain."""
    from matplotlib.figure import Figure

    sides = [float(size.removesuffix(" km")) for size in uses]
    figure = Figure(figsize=(9.0, 3.2), layout="constrained")
    for axes, title, values in zip(
        figure.subplots(1, 3),
        ("open and first altitude, ms", "100,000 points, ms", "memory of 1,000 places, MB"),
        (
            [1e3 * use.load_s for use in uses.values()],
            [1e3 * use.query_s for use in uses.values()],
            [1e-6 * use.grown for use in uses.values()],
        ),
        strict=True,
    ):
        axes.semilogx(sides, values, "o-")
        axes.set_xticks(sides, [f"{side:g}" for side in sides])
        axes.minorticks_off()
        axes.set_ylim(0.0)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("side of the terrain, km")
        axes.grid(alpha=0.3)
    axes.axhline(MEMORY_MB, linestyle="--", label="limit")
    axes.legend()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100)


def hills(side: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return heights of hills with some roughness, (side, side), m."""
    rng = np.random.default_rng(1)
    along = np.linspace(0.0, 40.0, side)
    heights = 200.0 + 80.0 * np.sin(along)[:, None] * np.cos(1.3 * along)
    return (heights + rng.normal(0.0, 0.2, heights.shape)).astype(np.float32)


def write_tiles(
    folder: Path, heights: np.ndarray[tuple[int, ...], np.dtype[np.float32]], files: int
) -> Path:
    """Write a folder of tiles that has the same file `files` times a side."""
    side = len(heights)
    grid = TileGrid(
        rows=files * side,
        columns=files * side,
        origin_x=0.0,
        origin_y=0.0,
        step_x=STEP,
        step_y=STEP,
        geo_origin=None,
        z_min=float(heights.min()),
        z_max=float(heights.max()),
        side=side,
    )
    (folder / "tiles").mkdir(parents=True)
    first = folder / tile_name(0, 0)
    corner = rasterio_module().transform.from_origin(500_000.0, 5_000_000.0, STEP, STEP)
    first.write_bytes(tile_data(heights.T[::-1], "EPSG:32632", corner, {}))
    for i in range(files):
        for j in range(files):
            if (i, j) != (0, 0):
                os.link(first, folder / tile_name(i, j))
    (folder / MANIFEST).write_text(manifest_text(grid))
    return folder
