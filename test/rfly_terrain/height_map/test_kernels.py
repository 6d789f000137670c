# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels, their Python source and the oracle: the same results for the same points."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_as_python import as_python
from oracles import height_map_kernels as oracle

import rfly_terrain
from rfly_terrain import HeightMap
from rfly_terrain.height_map import altitude_kernels as kernels
from rfly_terrain.height_map import bilinear

POINT_KERNELS = {
    "altitudes": ((), [()]),
    "insides": ((), [()]),
    "gradients": ((True, False), [(2,)]),
    "queries": ((True, False), [(), (3,), ()]),
}


def example(
    seed: int, rows: int, columns: int, count: int
) -> tuple[HeightMap, np.ndarray, np.ndarray]:
    """Return a rough map and points on it, on its nodes and edges, and off it."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1, 1], 2)
    step_x, step_y = signs * 10 ** rng.uniform(-2, 2, 2)
    roughness = 10 ** rng.uniform(-2, 4)
    heights = rng.normal(0, roughness, (rows, columns))
    terrain = HeightMap(
        heights,
        origin_x=rng.normal(0, 100),
        origin_y=rng.normal(0, 100),
        step_x=step_x,
        step_y=step_y,
    )
    u = rng.uniform(-1, rows, count)
    v = rng.uniform(-1, columns, count)
    u[::3] = np.round(u[::3])
    v[::4] = np.round(v[::4])

    x = terrain.origin_x + u * step_x
    y = terrain.origin_y + v * step_y
    return terrain, x, y


def outputs(shapes: list[tuple[int, ...]], count: int) -> list[np.ndarray]:
    return [np.full((count, *shape), 77.0) for shape in shapes]


def assert_close(ours: np.ndarray, theirs: np.ndarray):
    """Assert the promise of `rfly_common.kernels.jit`."""
    if ours.dtype == bool:
        assert np.array_equal(ours, theirs)
    else:
        largest = np.abs(theirs).max(initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * largest)


def assert_same(
    implementations: list[Any],
    terrain: HeightMap,
    inputs: list[Any],
    options: tuple[Any, ...],
    shapes: Any,
):
    results = []
    for implementation in implementations:
        result = outputs(shapes, inputs[0].size)
        assert implementation(terrain.ground, *inputs, *options, *result)
        results.append(result)
    for result in results[1:]:
        for ours, theirs in zip(result, results[0], strict=True):
            assert_close(ours, theirs)


@pytest.mark.exhaustive
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(2, 9), columns=st.integers(2, 9))
def test_the_oracle_gives_the_same(seed, rows, columns):
    terrain, x, y = example(seed, rows, columns, 300)
    for name, (options, shapes) in POINT_KERNELS.items():
        for option in options or (None,):
            chosen = () if option is None else (option,)
            assert_same(
                [getattr(kernels, name), getattr(oracle, name)],
                terrain,
                [x, y],
                chosen,
                shapes,
            )

    velocity = list(np.random.default_rng(seed).normal(0, 10, (2, x.size)))
    both = [kernels.gradient_rates, oracle.gradient_rates]
    assert_same(both, terrain, [x, y, *velocity], (), [(2,)])
    assert_surfaces_are_those_one_by_one(
        [kernels.surfaces, oracle.surfaces], terrain, x, y, *velocity
    )


def assert_surfaces_are_those_one_by_one(
    implementations: list[Any], terrain: HeightMap, *inputs: np.ndarray
):
    expected = np.empty((7, inputs[0].size))
    ground = terrain.ground
    x, y, vx, vy = inputs
    oracle.altitudes(ground, x, y, expected[0])
    oracle.gradients(ground, x, y, False, expected[1:3].T)
    oracle.gradients(ground, x, y, True, expected[3:5].T)
    oracle.gradient_rates(ground, x, y, vx, vy, expected[5:].T)
    for implementation in implementations:
        out = np.full_like(expected, 77.0)
        assert implementation(ground, *inputs, out)
        assert_close(out, expected)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 7), (7, 2), (5, 6)])
def test_the_python_source_gives_the_same(rows, columns):
    terrain, x, y = example(rows * 10 + columns, rows, columns, 300)
    for name, (options, shapes) in POINT_KERNELS.items():
        kernel = getattr(kernels, name)
        for option in options or (None,):
            chosen = () if option is None else (option,)
            assert_same([kernel, as_python(kernel, bilinear)], terrain, [x, y], chosen, shapes)

    velocity = list(np.random.default_rng(1).normal(0, 10, (2, x.size)))
    rates = kernels.gradient_rates
    assert_same([rates, as_python(rates, bilinear)], terrain, [x, y, *velocity], (), [(2,)])
    assert_surfaces_are_those_one_by_one(
        [as_python(kernels.surfaces, bilinear, kernels)], terrain, x, y, *velocity
    )


NOT_FINITE = [(math.nan, 0.0), (0.0, math.nan), (math.inf, 0.0), (0.0, -math.inf)]


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(2, 9), columns=st.integers(2, 9))
def test_one_point_gives_the_same_as_an_array(seed, rows, columns):
    """One point and an array give the same."""
    terrain, x, y = example(seed, rows, columns, 12)
    (expected,) = outputs([()], x.size)
    oracle.altitudes(terrain.ground, x, y, expected)
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    assert_close(np.array([terrain.altitude(*point) for point in points]), expected)
    for point in NOT_FINITE:
        with pytest.raises(ValueError, match=r"is (nan|-?inf)"):
            terrain.altitude(*point)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 255, 256, 257, 1000])
def test_blocks_of_every_length(count):
    """The blocks of the kernels, 256 and 64 points, begin and end where they should."""
    terrain, x, y = example(3, 6, 5, count)
    vx = np.cos(x)
    vy = np.sin(y)
    assert_same([oracle.altitudes, kernels.altitudes], terrain, [x, y], (), [()])
    assert_surfaces_are_those_one_by_one([kernels.surfaces], terrain, x, y, vx, vy)


@pytest.mark.parametrize("module", [kernels, oracle], ids=["compiled", "oracle"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 255, 256, 299])
def test_not_finite_is_reported_from_any_place(module, bad, place):
    terrain, x, y = example(1, 4, 4, 300)
    for coordinate in (0, 1):
        inputs = [x.copy(), y.copy()]
        inputs[coordinate][place] = bad
        for name, (options, shapes) in POINT_KERNELS.items():
            chosen = options[:1]
            assert not getattr(module, name)(
                terrain.ground, *inputs, *chosen, *outputs(shapes, 300)
            )

        (rates,) = outputs([(2,)], 300)
        assert not module.gradient_rates(terrain.ground, *inputs, x, y, rates)
        assert not module.gradient_rates(terrain.ground, x, y, *inputs, rates)

        out = np.empty((7, 300))
        assert not module.surfaces(terrain.ground, *inputs, x, y, out)
        assert not module.surfaces(terrain.ground, x, y, *inputs, out)


@pytest.mark.parametrize("ned", [False, True])
def test_clouds_are_the_same(ned):
    terrain, _, _ = example(2, 9, 7, 1)
    x = np.arange(4, dtype=np.float32)
    y = np.arange(10, 13, dtype=np.float32)
    clouds = []

    for fill in (kernels.cloud, kernels.cloud.py_func, oracle.cloud):
        points = np.zeros((4, 3, 3), np.float32)
        fill(terrain.heights, x, y, 1, 2, 2, ned, points)
        clouds.append(points)

    compiled, python, expected = clouds
    assert np.array_equal(compiled, python)
    assert np.array_equal(compiled, expected)

    z = terrain.heights[7, 6]
    last = [12, 3, -z] if ned else [3, 12, z]
    assert compiled[3, 2].tolist() == last


CLOUDS = """
import hashlib, sys
import numpy as np
from rfly_terrain import HeightMap
heights = np.random.default_rng(1).normal(0.0, 9.0, (300, 200)).astype(np.float32)
heights[::7] = 0.0
terrain = HeightMap(heights, origin_x=-3.1, origin_y=7.7, step_x=0.3, step_y=-0.7)

def clouds():
    for stride, region in ((1, None), (3, None), (2, (10.0, 70.0, -90.0, 5.0))):
        for cloud in (terrain.point_cloud, terrain.point_cloud_ned):
            points = cloud(stride, region)
            yield points.shape, hashlib.sha256(points).hexdigest()

plain = list(clouds())
assert "numba" not in sys.modules
terrain.altitude(np.zeros(3), np.zeros(3))
assert "numba" in sys.modules
print(plain == list(clouds()), plain[0][0])
"""


def test_a_cloud_loads_no_kernels_and_is_the_same_bit_by_bit_once_they_are_loaded():
    command = [sys.executable, "-c", CLOUDS]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout == "True (300, 200, 3)\n", ended.stderr


QUERY = """
import numpy as np
from rfly_terrain import HeightMap
terrain = HeightMap([[0, 1], [2, 3]], origin_x=0, origin_y=0, step_x=1, step_y=1)
x = np.linspace(0, 1, 200_001)
print(terrain.altitude(x, x)[100_000])
"""


def query_elsewhere(packages: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", QUERY],
        cwd=packages,
        env={**os.environ, "PYTHONPATH": str(packages), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def copy_packages(folder: Path) -> Path:
    root = Path(rfly_terrain.__file__).parent.parent
    for package in ("rfly_common", "rfly_terrain"):
        shutil.copytree(
            root / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "maps")
        )
    return folder


def test_where_no_cache_can_be_written(tmp_path):
    """A read-only install of a user without a home compiles kernels in the process."""
    packages = copy_packages(tmp_path / "install")
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    nowhere = str(not_a_folder / "below")
    answer = query_elsewhere(
        packages, HOME=nowhere, XDG_CACHE_HOME=nowhere, LOCALAPPDATA=nowhere, NUMBA_CACHE_DIR=""
    )
    assert answer == "1.5"


def test_warm_up_leaves_nothing_to_compile():
    """No query compiles another signature once warm_up() has run, for any kind of array."""
    from rfly_terrain.warm_up import warm_up

    warm_up()
    names = (*POINT_KERNELS, "gradient_rates", "cloud")

    def signatures() -> dict[str, int]:
        return {name: len(getattr(kernels, name).signatures) for name in names}

    compiled = signatures()
    terrain, x, y = example(0, 5, 5, 50)
    frozen = x.copy()
    frozen.flags.writeable = False
    for first in (x, frozen, x[::-1], x.astype(np.float32), np.arange(50)):
        for second in (y, y.astype(np.float32)):
            terrain.altitude(first, second)
            terrain.inside(first, second)
            for smooth in (False, True):
                terrain.query(first, second, smooth=smooth)
                terrain.gradient(first, second, smooth)
            terrain.gradient_rate(first, second, 1, x)

    terrain.altitude(1.0, 2.0)
    terrain.altitude(1, np.float32(2))
    terrain.point_cloud()
    terrain.point_cloud_ned(2, terrain.bounds)
    assert signatures() == compiled
