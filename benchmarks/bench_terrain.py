# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Height queries, clouds and loading, against the SDK's formula, SciPy, OpenCV and a plain copy."""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates

from benchmarks.harness import Row, agreement, measure
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.warm_up import warm_up

SIZE = 1_000
POINTS = 1_000_000
FEW = 2_000
LOOPED = 20_000
"""Number of points of a Python loop whose time is scaled to all points."""
MEMORY_SIZE = 3_000
TOLERANCE = 1e-3


class SdkFormula:
    """`getTerrainAltData` as the SDK's documentation gives it.

    It scales, clamps, floors, reads four heights and interpolates.
    """

    def __init__(
        self, binmap: NDArray[np.float32], offset_cm: float, scale_x_cm: float, scale_y_cm: float
    ) -> None:
        self.binmap = binmap
        self.rows, self.columns = binmap.shape
        self.offset_cm = offset_cm
        self.scale_x_cm = scale_x_cm
        self.scale_y_cm = scale_y_cm

    def altitude(self, xin: float, yin: float) -> float:
        """Return z (m, down) at x north, y east."""
        # cells, within the map
        u = (xin * 100 - self.offset_cm) / self.scale_x_cm
        v = (yin * 100 - self.offset_cm) / self.scale_y_cm
        if u < 0:
            u = 0.0
        elif u > self.columns - 1:
            u = float(self.columns - 1)

        if v < 0:
            v = 0.0
        elif v > self.rows - 1:
            v = float(self.rows - 1)

        # four heights around
        j = math.floor(u)
        i = math.floor(v)
        a = u - j
        b = v - i
        j1 = min(j + 1, self.columns - 1)
        i1 = min(i + 1, self.rows - 1)
        z = self.binmap

        return (
            z[i, j] * (1 - b) * (1 - a)
            + z[i1, j] * b * (1 - a)
            + z[i, j1] * (1 - b) * a
            + z[i1, j1] * b * a
        )


def rows() -> Iterator[Row]:
    """Yield all rows; maps are written to a temporary folder."""
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        path = write_map(Path(folder) / "bench", SIZE)
        terrain = HeightMap.load(path)
        scale_cm = 100_000 / (SIZE - 1)
        formula = SdkFormula(-terrain.heights, -50_000, scale_cm, scale_cm)
        rng = np.random.default_rng(2)
        north, east = rng.uniform(-500, 500, (2, POINTS))
        yield from one_point(terrain, formula, north, east)
        yield from many_points(terrain, formula, north, east)
        yield from clouds(terrain, formula)
        yield from loading(path)
        yield memory_of_load(write_map(Path(folder) / "large", MEMORY_SIZE))


def one_point(
    terrain: HeightMap, formula: SdkFormula, north: NDArray[Any], east: NDArray[Any]
) -> Iterator[Row]:
    """Yield one point a call, FEW points in turn, the loop's own cost on both sides."""
    points = list(zip(east[:FEW].tolist(), north[:FEW].tolist(), strict=True))
    truth = [formula.altitude(n, e) for e, n in points]

    def ours() -> list[float]:
        return [-terrain.altitude(e, n) for e, n in points]

    def ours_ned() -> list[float]:
        return [terrain.altitude_ned(n, e) for e, n in points]

    def documented() -> list[float]:
        return [formula.altitude(n, e) for e, n in points]

    rows_cm = formula.scale_y_cm
    columns_cm = formula.scale_x_cm
    heights = terrain.heights

    def scipy_one() -> list[float]:
        return [
            -map_coordinates(
                heights,
                [[(e * 100 + 50_000) / rows_cm], [(n * 100 + 50_000) / columns_cm]],
                order=1,
                mode="nearest",
            )[0]
            for e, n in points[:200]
        ]

    def remap_one() -> list[float]:
        return [
            -cv2.remap(
                heights,
                np.array([[(n * 100 + 50_000) / columns_cm]], np.float32),
                np.array([[(e * 100 + 50_000) / rows_cm]], np.float32),
                cv2.INTER_LINEAR,
                borderMode=cv2.BORDER_REPLICATE,
            )[0, 0]
            for e, n in points[:200]
        ]

    # in Python
    agree = agreement(ours(), truth, 1e-4)
    a, b = measure(ours, documented, 15)
    yield Row("altitude, one point", a / FEW, b / FEW, "SDK's formula in Python", 3, 5, agree)
    agree = agreement(ours_ned(), truth, 1e-4)
    a, b = measure(ours_ned, documented, 15)
    yield Row("altitude_ned, one point", a / FEW, b / FEW, "SDK's formula in Python", 3, 5, agree)

    # libraries, made for many points
    agree = agreement(scipy_one(), truth[:200], TOLERANCE)
    a, b = measure(ours, scipy_one, 7)
    yield Row("altitude, one point", a / FEW, b / 200, "scipy map_coordinates", 1, None, agree)
    agree, note = remap_agreement(remap_one(), truth[:200], heights)
    a, b = measure(ours, remap_one, 7)
    yield Row("altitude, one point", a / FEW, b / 200, "cv2.remap", 1, None, agree, note)


def many_points(
    terrain: HeightMap, formula: SdkFormula, north: NDArray[Any], east: NDArray[Any]
) -> Iterator[Row]:
    """Yield POINTS random points in one call; the peers' conversion of metres to indices is
    counted.
    """
    heights = terrain.heights
    rows_cm = formula.scale_y_cm
    columns_cm = formula.scale_x_cm

    def ours() -> NDArray[Any]:
        return terrain.altitude(east, north)

    def loop() -> list[float]:
        return [
            -formula.altitude(n, e)
            for n, e in zip(north[:LOOPED].tolist(), east[:LOOPED].tolist(), strict=True)
        ]

    # the peers' indices go into arrays that stay, by one product and one sum
    per_metre = 100 / rows_cm, 100 / columns_cm
    middle = 50_000 / rows_cm, 50_000 / columns_cm
    indices = np.empty((2, POINTS))
    shape = (POINTS // SIZE, SIZE)  # remap's pictures have sides below 32,768
    pictures = np.empty((2, *shape), np.float32)

    def fill(target: NDArray[Any]) -> None:
        for axis, place in enumerate((east, north)):
            flat = target[axis].reshape(-1)
            np.multiply(place, per_metre[axis], out=flat, casting="same_kind")
            flat += middle[axis]

    def scipy_all() -> NDArray[Any]:
        fill(indices)
        return map_coordinates(
            heights, indices, np.float64, order=1, mode="nearest", prefilter=False
        )

    def remap_all() -> NDArray[Any]:
        fill(pictures)
        rows, columns = pictures
        return cv2.remap(
            heights, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ).reshape(-1)

    # a loop
    mine = ours()
    agree = agreement(mine[:LOOPED], loop(), TOLERANCE)
    a, b = measure(ours, loop, 5)
    note = f"peer timed for {LOOPED:,} points"
    yield Row(
        "altitude, 1,000,000 random points",
        a,
        b * POINTS / LOOPED,
        "SDK's formula in a loop",
        1,
        None,
        agree,
        note,
    )

    # libraries
    agree = agreement(mine, scipy_all(), TOLERANCE)
    a, b = measure(ours, scipy_all, 9)
    note = "float64 indices and results, float32 map, no prefilter"
    yield Row(
        "altitude, 1,000,000 random points", a, b, "scipy map_coordinates", 10, None, agree, note
    )

    agree, note = remap_agreement(remap_all(), mine, heights)
    a, b = measure(ours, remap_all, 25)
    threads = f"cv2 with {cv2.getNumThreads()} threads"
    yield Row(
        "altitude, 1,000,000 random points", a, b, "cv2.remap", 1.2, 2, agree, f"{threads}; {note}"
    )


def remap_agreement(theirs: Any, truth: Any, heights: NDArray[np.float32]) -> tuple[str, str]:
    """Compare with cv2.remap, which rounds positions to 1/32 cell up to version 4.

    The comparison allows for that, and its error is reported.
    """
    steepest = max(float(np.abs(np.diff(heights, axis=axis)).max()) for axis in (0, 1))
    error = float(np.max(np.abs(np.asarray(theirs, dtype=float) - truth)))
    return agreement(theirs, truth, max(TOLERANCE, steepest / 32)), f"cv2's own error {error:.1e} m"


def clouds(terrain: HeightMap, formula: SdkFormula) -> Iterator[Row]:
    """Yield the whole map as points."""
    per_row = SIZE
    some = LOOPED // per_row
    scale_cm = formula.scale_x_cm

    def ours() -> NDArray[np.float32]:
        return terrain.point_cloud_ned()

    def loop() -> list[tuple[float, float, float]]:
        points = []
        for i in range(some):
            y = (-50_000 + i * scale_cm) / 100
            for j in range(per_row):
                x = (-50_000 + j * scale_cm) / 100
                points.append((x, y, formula.altitude(x, y)))
        return points

    # a loop
    cloud = ours()
    agree = agreement(cloud[:some].reshape(-1, 3), loop(), TOLERANCE)
    a, b = measure(ours, loop, 5)
    note = f"peer timed for {some * per_row:,} points"
    yield Row(
        "cloud of 1,000 x 1,000",
        a,
        b * SIZE / some,
        "the formula in a loop",
        500,
        None,
        agree,
        note,
    )

    # a copy of memory
    agree = agreement(cloud, cloud.copy(), 0.0)
    a, b = measure(ours, cloud.copy, 25)
    yield Row(
        "cloud of 1,000 x 1,000", a, b, "memory copy of its bytes", 2, None, agree, kind="at most"
    )


def loading(path: Path) -> Iterator[Row]:
    """Yield a map from its files, alone and with its cloud."""
    png = str(path.with_suffix(".png"))
    pixels = np.asarray(cv2.imread(png, cv2.IMREAD_UNCHANGED))
    points = np.zeros((SIZE, SIZE, 3), np.float32)

    def ours() -> HeightMap:
        return HeightMap.load(path)

    def ours_with_cloud() -> NDArray[np.float32]:
        return HeightMap.load(path).point_cloud()

    def imread() -> Any:
        return cv2.imread(png, cv2.IMREAD_UNCHANGED)

    def imread_and_copy() -> Any:
        return cv2.imread(png, cv2.IMREAD_UNCHANGED), points.copy()

    # the heights are a linear function of the counts, whose first one is at z2 = 0: 0.005 m a
    # count, see write_map
    first = int(pixels[0, 0])
    agree = agreement(ours().heights, (pixels.astype(float) - first) * 0.005, TOLERANCE)

    a, b = measure(ours, imread, 25)
    yield Row("load a map of 1,000 x 1,000", a, b, "cv2.imread", 1.2, None, agree, kind="at most")

    # with its cloud
    a, b = measure(ours_with_cloud, imread_and_copy, 25)
    peer = "cv2.imread + copy of the cloud's bytes"
    yield Row("load and cloud of 1,000 x 1,000", a, b, peer, 1.5, None, agree, kind="at most")


PEAK_OF_LOAD = """
import sys
from pathlib import Path
from rfly_terrain.height_map.height_map import HeightMap

def status(key):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split(key + ":")[1].split()[0])

small, large = sys.argv[1:]
HeightMap.load(small)
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
before = status("VmRSS")
terrain = HeightMap.load(large)
print(status("VmHWM") - before, terrain.heights.nbytes, float(terrain.heights[0, -1]))
"""


def memory_of_load(large: Path) -> Row:
    """Return the peak growth of a process while it loads a map, by the kernel's count."""
    command = [sys.executable, "-c", PEAK_OF_LOAD, str(large.parent / "bench"), str(large)]
    root = Path(__file__).parent.parent
    peak, size, corner = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=root
    ).stdout.split()

    agree = agreement(float(corner), HeightMap.load(large).heights[0, -1], 0.0)
    name = f"peak memory of loading {MEMORY_SIZE:,} x {MEMORY_SIZE:,}"
    return Row(
        name, float(peak), float(size), "the float32 map", 3, None, agree, kind="at most", unit="B"
    )


def write_map(path: Path, size: int) -> Path:
    """Write hills with some roughness as NAME.png and NAME.txt, 0.005 m a count, z2 = 0."""
    rng = np.random.default_rng(1)
    along = np.linspace(0, 1, size)
    broad = 100 * np.sin(5 * along)[:, None] * np.cos(7 * along)
    small = 20 * np.sin(31 * along)[:, None] * np.sin(23 * along)
    noise = rng.normal(0, 0.05, (size, size))
    counts = np.round((broad + small + noise) / 0.005).astype(np.int64)
    pixels = (counts + 32_768).astype(np.uint16)

    # half a cell beyond a pixel is the same pixel for RflySim's Python tool, whatever the rounding
    i, j = (int(index) for index in np.unravel_index(int(np.argmax(counts)), counts.shape))
    x3, y3 = (-50_000 + (index + 0.5) * 100_000 / (size - 1) for index in (j, i))
    z1, z3 = (float(count - counts[0, 0]) * 0.5 for count in (counts[-1, -1], counts[i, j]))

    text = f"50000,50000,{z1},-50000,-50000,0,{x3},{y3},{z3}"
    path.with_suffix(".txt").write_text(text, encoding="ascii")
    if not cv2.imwrite(str(path.with_suffix(".png")), pixels):
        raise OSError(f"{path.with_suffix('.png')} could not be written")
    return path
