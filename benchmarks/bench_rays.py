# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays against a terrain, compared with Embree (triangles) and MuJoCo's height field.

Both are optional: `make bench` installs them where possible. Rows of a missing peer are left out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import DISAGREES, Row, measure
from rfly_common.kernels.parallel import cores
from rfly_terrain import HeightMap
from rfly_terrain.height_map import ray_pyramid
from rfly_terrain.warm_up import warm_up

SIZE = 1_000
EXTENT = 1_000.0
"""Length of each side of the map, m."""
LONG_RAYS = 100_000
FEW = 200
"""Rays for which MuJoCo is timed: each is a call from Python and takes milliseconds."""
MAX_DISAGREEING = 0.001
"""Largest share of rays that hit on one side only."""


@dataclass(frozen=True)
class Rays:
    """Rays of one kind."""

    name: str
    origins: NDArray[np.float32]
    """Origins, (n, 3), m."""
    directions: NDArray[np.float32]
    """Unit vectors of the directions, (n, 3)."""

    def thinned(self, count: int) -> Rays:
        """Return about this number of them, evenly chosen."""
        step = -(-len(self.origins) // count)
        return Rays(
            self.name,
            *(np.ascontiguousarray(part[::step]) for part in (self.origins, self.directions)),
        )


def rows() -> Iterator[Row]:
    """Yield all rows whose peers are installed."""
    warm_up()
    terrain = hills(SIZE)
    kinds = [lidar_sweep(terrain), long_rays(terrain)]
    if importlib.util.find_spec("embreex") is None:
        print("rays: no rows with Embree (pip install embreex)", file=sys.stderr)
    else:
        yield from compared_with_embree(terrain, kinds)
    if importlib.util.find_spec("mujoco") is None:
        print(
            "rays: no rows with MuJoCo's height field (pip install mujoco)",
            file=sys.stderr,
        )
    else:
        yield from compared_with_mujoco(terrain, kinds)


def hills(size: int) -> HeightMap:
    """Return hills of 100 m with some roughness, as in bench_terrain."""
    rng = np.random.default_rng(1)
    along = np.linspace(0, 1, size)
    broad = 100 * np.sin(5 * along)[:, None] * np.cos(7 * along)
    small = 20 * np.sin(31 * along)[:, None] * np.sin(23 * along)
    heights = broad + small
    step = EXTENT / (size - 1)
    heights += rng.normal(0, 0.05, heights.shape)
    return HeightMap(heights, origin_x=-EXTENT / 2, origin_y=-EXTENT / 2, step_x=step, step_y=step)


def lidar_sweep(terrain: HeightMap) -> Rays:
    """Return 32 rings from -25 to 15 degrees, 1,800 rays each, from 2 m above the middle of the
    map.
    """
    elevation = np.radians(np.linspace(-25, 15, 32))[:, None]
    azimuth = np.linspace(0, 2 * np.pi, 1_800, endpoint=False)
    x = np.cos(elevation) * np.cos(azimuth)
    y = np.cos(elevation) * np.sin(azimuth)
    directions = (
        np.stack(np.broadcast_arrays(x, y, np.sin(elevation)), axis=-1)
        .reshape(-1, 3)
        .astype(np.float32)
    )
    origin = (0.3, 0.2, terrain.altitude(0.3, 0.2) + 2)

    return Rays(
        "lidar sweep 32 x 1,800",
        np.tile(np.array(origin, np.float32), (len(directions), 1)),
        directions,
    )


def long_rays(terrain: HeightMap) -> Rays:
    """Return rays from 1 to 100 m above the ground to any side, up to 30 degrees up or down."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-EXTENT / 2, EXTENT / 2, (2, LONG_RAYS))
    z = terrain.altitude(x, y) + rng.uniform(1, 100, LONG_RAYS)
    azimuth = rng.uniform(0, 2 * np.pi, LONG_RAYS)
    sine = rng.uniform(-0.5, 0.5, LONG_RAYS)
    cosine = np.sqrt(1 - sine * sine)
    directions = np.stack([cosine * np.cos(azimuth), cosine * np.sin(azimuth), sine], axis=1)
    return Rays(
        "100,000 long rays",
        np.stack([x, y, z], axis=1).astype(np.float32),
        directions.astype(np.float32),
    )


class Embree:
    """A grid of heights as two triangles per cell."""

    def __init__(self, x: NDArray[Any], y: NDArray[Any], heights: NDArray[Any]) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        vertices = (
            np.stack(np.broadcast_arrays(x[:, None], y, heights), axis=-1)
            .reshape(-1, 3)
            .astype(np.float32)
        )

        # two triangles of each cell
        index = np.arange(x.size * y.size, dtype=np.int32).reshape(x.size, y.size)
        near = index[:-1, :-1]
        right = index[:-1, 1:]
        below = index[1:, :-1]
        far = index[1:, 1:]
        triangles = np.stack([near, below, far, near, far, right], axis=-1).reshape(-1, 3)

        # the first ray commits the scene
        start = time.perf_counter()
        self.scene = EmbreeScene()
        self.mesh = TriangleMesh(self.scene, vertices, triangles)
        up = np.array([[0, 0, 1]], np.float32)
        self.scene.run(1e6 * up, up, query="DISTANCE")
        self.build_s = time.perf_counter() - start

    def cast(self, rays: Rays) -> NDArray[Any]:
        """Return ranges, m; infinite without a hit."""
        ranges: NDArray[Any] = self.scene.run(rays.origins, rays.directions, query="DISTANCE")
        return np.where(ranges < 1e30, ranges, np.inf)


def compared_with_embree(terrain: HeightMap, kinds: list[Rays]) -> Iterator[Row]:
    """Yield building and casting, on one core and on all."""
    x_min, x_max, y_min, y_max = terrain.bounds
    plain = Embree(
        np.linspace(x_min, x_max, terrain.rows),
        np.linspace(y_min, y_max, terrain.columns),
        terrain.heights,
    )
    fine = {rays.name: compared_with_finer(terrain, rays) for rays in kinds}

    # building
    ours, _ = measure(lambda: ray_pyramid.build(terrain.heights), lambda: None, 9)
    note = "building only; Embree's triangles lay ready, timed once"
    agree = fine[kinds[0].name]
    yield Row(
        "what rays need, of 1,000 x 1,000",
        ours,
        plain.build_s,
        "Embree's build",
        20,
        None,
        agree,
        note,
    )

    # casting
    for rays in kinds:

        def cast(rays: Rays = rays) -> NDArray[Any]:
            ranges: NDArray[Any] = terrain.cast(rays.origins, rays.directions)
            return ranges

        def embree(rays: Rays = rays) -> Any:
            return plain.scene.run(rays.origins, rays.directions, query="DISTANCE")

        agree = fine[rays.name]
        with one_core():
            ours, theirs = measure(cast, embree, 9)
        hits = (
            f"hit rate {np.isfinite(cast()).mean():.3f}, "
            f"plain mesh {np.isfinite(plain.cast(rays)).mean():.3f}"
        )
        peer = "Embree, one thread, float32, without building"
        note = (
            f"{speed(rays, ours)}, one thread, float32 rays, float64 ranges, without building; "
            f"{hits}"
        )
        yield Row(f"{rays.name}, one core", ours, theirs, peer, 1, None, agree, note)

        if cores() > 1:
            many, theirs = measure(cast, embree, 9)
            note = (
                f"{speed(rays, many)}, {cores()} threads, float32 rays, float64 ranges, without "
                "building; "
                f"{ours / many:.2f} x one core, the machine {scaling():.2f} x; {hits}"
            )
            yield Row(
                f"{rays.name}, {cores()} threads",
                many,
                theirs,
                peer,
                1.4,
                None,
                agree,
                note,
            )


def compared_with_finer(terrain: HeightMap, rays: Rays) -> str:
    """Return the text for `Row.agree`: hits and ranges against triangles 4 times as fine.

    Such triangles are close to the bilinear surface. For the whole map they would take gigabytes,
    so only the middle 1/4 of each side is used, with rays that start there and end at its edge.
    """
    x_min, x_max, y_min, y_max = terrain.bounds
    x = np.linspace(x_min, x_max, 4 * (terrain.rows - 1) + 1)
    y = np.linspace(y_min, y_max, 4 * (terrain.columns - 1) + 1)
    x, y = (axis[3 * axis.size // 8 : 5 * axis.size // 8] for axis in (x, y))

    # the middle of the map, and the rays that begin there
    low = np.array((x[0], y[0]))
    high = np.array((x[-1], y[-1]))
    inside = np.flatnonzero(
        ((rays.origins[:, :2] > low) & (rays.origins[:, :2] < high)).all(axis=1)
    )

    inside_rays = Rays(rays.name, rays.origins[inside], rays.directions[inside])
    theirs = Embree(x, y, terrain.altitude(x[:, None], y)).cast(inside_rays)

    # ranges to the edge
    with np.errstate(divide="ignore"):
        borders = (
            np.where(inside_rays.directions[:, :2] > 0, high, low) - inside_rays.origins[:, :2]
        ) / inside_rays.directions[:, :2]

    return agreement(
        terrain.cast(inside_rays.origins, inside_rays.directions, np.abs(borders).min(axis=1)),
        theirs,
        "4 x finer mesh",
    )


def agreement(ours: NDArray[Any], theirs: NDArray[Any], peer: str) -> str:
    """Return the text for `Row.agree`: hits on one side only, and differences of ranges."""
    hit = np.isfinite(ours)
    theirs_hit = np.isfinite(theirs)
    differing = float(np.mean(hit != theirs_hit))
    apart = np.abs(ours[hit & theirs_hit] - theirs[hit & theirs_hit])

    text = (
        f"{peer}: {ours.size:,} rays, hit rate {hit.mean():.3f}, of one side only "
        f"{differing:.2%}, largest |Δ range| "
        f"{apart.max():.2g} m, of 99 % {np.quantile(apart, 0.99):.1g} m"
    )
    return text if differing <= MAX_DISAGREEING else f"{DISAGREES}: {text}"


def compared_with_mujoco(terrain: HeightMap, kinds: list[Rays]) -> Iterator[Row]:
    """Yield rows with MuJoCo, which casts one ray a call, or many from one point (mj_multiRay)."""
    import mujoco

    # the map as its height field
    low = terrain.z_min
    high = terrain.z_max
    model = mujoco.MjModel.from_xml_string(
        f'''<mujoco><asset><hfield name="ground" nrow="{terrain.columns}" ncol="{terrain.rows}"
        size="{EXTENT / 2} {EXTENT / 2} {high - low} 1"/></asset>
        <worldbody><geom type="hfield" hfield="ground" pos="0 0 {low}"/></worldbody></mujoco>'''
    )
    model.hfield_data[:] = ((terrain.heights.T - low) / (high - low)).reshape(-1)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geom = np.zeros(1, np.int32)

    for rays in kinds:
        few = rays.thinned(FEW)
        origins = few.origins.astype(float)
        directions = few.directions.astype(float)

        def theirs(origins: Any = origins, directions: Any = directions) -> list[float]:
            return [
                mujoco.mj_ray(model, data, origin, direction, None, 1, -1, geom)
                for origin, direction in zip(origins, directions, strict=True)
            ]

        def ours(rays: Rays = rays) -> NDArray[Any]:
            ranges: NDArray[Any] = terrain.cast(rays.origins, rays.directions)
            return ranges

        # both see the same ranges
        ranges = np.array(theirs())
        agree = agreement(
            terrain.cast(origins, directions),
            np.where(ranges < 0, np.inf, ranges),
            "its triangles",
        )

        with one_core():
            a, b = measure(ours, theirs, 3)
        note = f"one thread each, float64, without building; peer timed for {len(origins):,} rays"
        per_ray = a / len(rays.origins), b / len(origins)
        yield Row(
            f"{rays.name}, one ray of them",
            *per_ray,
            "MuJoCo's mj_ray",
            1_000,
            None,
            agree,
            note,
        )


def speed(rays: Rays, seconds: float) -> str:
    """Return the text of a speed."""
    return f"{len(rays.origins) / seconds / 1e6:.2f} million rays/s"


@contextmanager
def one_core() -> Iterator[None]:
    """Run both sides on one core, including the caller's thread, if the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def scaling() -> float:
    """Return the speed-up of one thread per core over one thread, on this machine now.

    It is measured in hashing, which needs no memory.
    """
    data = bytes(20_000_000)

    def hashed() -> None:
        hashlib.sha256(data)

    def on_all() -> None:
        threads = [threading.Thread(target=hashed) for _ in range(cores())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    one, several = measure(hashed, on_all, 7)
    return one * cores() / several
