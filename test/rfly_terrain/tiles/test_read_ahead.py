# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A fleet over borders of tiles, whose tiles come from a slow server. No clock, no thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rfly_common.errors import TerrainFormatError
from rfly_terrain import HeightMap, TiledHeightMap
from rfly_terrain.tiles.read_ahead import ReadAhead
from rfly_terrain.tiles.tile_files import TileGrid

TILE = 32
STEP = 5.0
SAMPLES = 12 * TILE
RATE = 50
"""Queries a second."""
SLOW_TICKS = 2 * RATE
"""Queries until the server has answered: 2 s."""
SPEED = 40.0
DAMAGED = (7, 5)


class Server:
    """Source of the tiles of a map in memory, one of which is damaged."""

    def __init__(self, whole):
        self.whole = whole
        self.path = Path("server")
        self.damaged_reads = 0
        self.grid = TileGrid(
            rows=SAMPLES,
            columns=SAMPLES,
            origin_x=whole.origin_x,
            origin_y=whole.origin_y,
            step_x=STEP,
            step_y=STEP,
            geo_origin=None,
            z_min=whole.z_min,
            z_max=whole.z_max,
            side=TILE,
        )

    def read(self, rows, columns):
        if (rows.start // TILE, columns.start // TILE) == DAMAGED:
            self.damaged_reads += 1
            raise TerrainFormatError("the damaged tile")
        return self.whole.heights[rows.start : rows.stop, columns.start : columns.stop]


@pytest.fixture
def server():
    heights = np.random.default_rng(1).uniform(0.0, 9.0, (SAMPLES, SAMPLES))
    return Server(HeightMap(heights, origin_x=0.0, origin_y=0.0, step_x=STEP, step_y=STEP))


class Drive:
    """A thousand vehicles that drive north-east; work of threads is done two seconds later."""

    def __init__(self, terrain, reads_ahead):
        rng = np.random.default_rng(2)
        self.terrain = terrain
        self.points = rng.uniform(200.0, 700.0, (2, 1000))
        self.tick = 0
        self.waits = 0
        self.running = []
        self.ahead = ReadAhead(self.start, lambda: self.tick / RATE) if reads_ahead else None

    def start(self, work):
        assert not self.running, "one reader at a time"
        self.running.append((self.tick + SLOW_TICKS, work))

    def step(self, whole):
        """Query the ground under all vehicles; one that waits has it two seconds later."""
        x, y = self.points
        if self.ahead is not None:
            self.ahead.take(self.terrain, x, y)
        if not self.terrain.is_loaded(x, y):
            self.waits += 1
        np.testing.assert_allclose(self.terrain.altitude(x, y), whole.altitude(x, y), atol=1e-9)

        self.tick += 1
        self.points = self.points + SPEED / RATE * np.array([[0.8], [0.6]])
        if self.running and self.running[0][0] <= self.tick:
            _, work = self.running.pop()
            work()


@pytest.mark.parametrize(("reads_ahead", "waits"), [(False, range(2, 100)), (True, range(1, 2))])
def test_no_query_of_a_fleet_waits_at_a_border(server, monkeypatch, reads_ahead, waits):
    """Only the first query waits, though the fleet enters two rows and a column of tiles."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    drive = Drive(TiledHeightMap(server), reads_ahead)
    for _ in range(12 * RATE):
        drive.step(server.whole)
    assert drive.waits in waits


def test_a_damaged_tile_ahead_holds_nothing_up(server, monkeypatch):
    """The other tiles are read, and the damaged one is not asked for at each query."""
    monkeypatch.setattr("rfly_terrain.tiles.tiled_height_map.TILE", TILE)
    terrain = TiledHeightMap(server)
    drive = Drive(terrain, reads_ahead=True)
    x_min, y_min = (index * TILE * STEP for index in DAMAGED)
    drive.points = np.array(
        [np.full(200, x_min - 150.0), np.linspace(y_min - 400.0, y_min - 200.0, 200)]
    )
    drive.points[:, 0] = (x_min - 120.0, y_min + 10.0)
    for _ in range(3 * RATE):
        drive.step(server.whole)
        for _, work in drive.running:
            work()
        drive.running.clear()

    assert drive.waits == 1
    assert server.damaged_reads <= 3


def test_other_points_are_not_followed(server):
    """Points that jump, other numbers of points and points that are nowhere read nothing."""
    terrain = TiledHeightMap(server)
    times = iter([0.0, 1.0, 1.0, 2.0, 3.0, 4.0])
    ahead = ReadAhead(lambda work: pytest.fail("nothing to read"), lambda: next(times))
    for points in ([5.0], [900.0], [900.0], [100.0, 200.0], [np.nan, 5.0], [7.0, 5.0]):
        ahead.take(terrain, np.array(points), np.array(points))
