# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled ray casting, its Python source and the oracle: the same results for the same rays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels_as_python import as_python
from oracles import height_map_rays as oracle

from rfly_terrain import HeightMap
from rfly_terrain.height_map import bilinear, ray_cast, ray_kernels
from rfly_terrain.height_map.ray_kernels import Rays
from rfly_terrain.height_map.ray_pyramid import pyramid_of


def example(seed: int, rows: int, columns: int, count: int) -> tuple[HeightMap, Any, Any, Any]:
    """A rough map and rays on it, along its lines, from its nodes, from outside, up and down."""
    rng = np.random.default_rng(seed)
    step_x, step_y = rng.choice([-1, 1], 2) * 10 ** rng.uniform(-2, 2, 2)
    terrain = HeightMap(
        rng.normal(0, 10 ** rng.uniform(-2, 2), (rows, columns)),
        origin_x=rng.normal(0, 100),
        origin_y=rng.normal(0, 100),
        step_x=step_x,
        step_y=step_y,
    )
    u = rng.uniform(-1, rows, count)
    v = rng.uniform(-1, columns, count)
    u[::3] = np.round(u[::3])
    v[::4] = np.round(v[::4])
    z = rng.uniform(terrain.z_min - 1, 2 * terrain.z_max + 1, count)
    origins = np.stack([terrain.origin_x + u * step_x, terrain.origin_y + v * step_y, z], axis=1)
    directions = rng.normal(0, 1, (count, 3))
    directions[rng.random((count, 3)) < 0.25] = 0

    return (
        terrain,
        origins,
        directions,
        np.where(rng.random(count) < 0.5, np.inf, rng.exponential(100, count)),
    )


def run(
    function: Any, terrain: HeightMap, rays: Any, level: int = ray_cast.START_LEVEL
) -> tuple[bool, Any, Any]:
    count = len(rays[0])
    ranges = np.full(count, 77.0)
    normals = np.full((count, 3), 77.0)
    pyramid = pyramid_of(terrain)
    surface = (terrain.ground, terrain.z_max)
    good = function(*surface, pyramid, level, Rays(*rays), ranges, normals)
    return bool(good), ranges, normals


def assert_same(one: Any, other: Any) -> None:
    assert one[0] == other[0]
    np.testing.assert_allclose(
        one[1],
        other[1],
        rtol=1e-12,
        atol=1e-12 * np.abs(one[1]).max(where=one[1] < np.inf, initial=0.0),
    )
    np.testing.assert_allclose(one[2], other[2], rtol=1e-12, atol=1e-12)


@pytest.mark.exhaustive
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 70),
    columns=st.integers(2, 70),
)
def test_the_oracle_gives_the_same(seed, rows, columns):
    terrain, *rays = example(seed, rows, columns, 400)
    ours = run(ray_kernels.cast, terrain, rays)
    assert_same(ours, run(oracle.cast, terrain, rays))
    assert ours[0] == rays[1].any(axis=1).all()


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 9), (9, 2), (21, 34)])
def test_the_python_source_gives_the_same(rows, columns):
    """The Python source gives the same as the compiled kernel.

    In Python an index beyond an array is an error: compiled code would read on in silence.
    """
    terrain, *rays = example(rows * 10 + columns, rows, columns, 500)
    with np.errstate(all="ignore"):
        assert_same(
            run(ray_kernels.cast, terrain, rays),
            run(
                as_python(ray_kernels.cast, bilinear, sys.modules[ray_kernels.__name__]),
                terrain,
                rays,
            ),
        )


def test_a_ray_that_leaves_the_map_where_it_begins_looks_at_nothing_beyond():
    """The edge, at row 8, is in the middle of a block of 16 cells, of which it has one half."""
    flat = HeightMap(np.zeros((9, 14)), origin_x=0.0, origin_y=0.0, step_x=1.0, step_y=1.0)
    origins = np.array([[8.0, 5.5, 0.0], [3.5, 8.0, 0.0], [8.0, 8.0, 0.0]])
    directions = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    cast = as_python(ray_kernels.cast, bilinear, sys.modules[ray_kernels.__name__])
    for level in range(3):
        with np.errstate(all="ignore"):
            run(cast, flat, (origins, directions, np.full(3, np.inf)), level)


@pytest.mark.parametrize("level", [0, 1, 2, 9])
def test_it_does_not_matter_where_in_the_pyramid_a_ray_begins(level):
    for seed in range(20):
        terrain, *rays = example(seed, 70, 50, 400)
        assert_same(
            run(ray_kernels.cast, terrain, rays),
            run(ray_kernels.cast, terrain, rays, level),
        )
