# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Flight paths of least altitude within a climb limit, straight over or around high ground.

The lowest profile along a path follows from the required heights: seen backwards it falls no faster
than the vehicle climbs, seen forwards no faster than it sinks. Two paths compete by energy: the
straight one, and the cheapest one over a coarse grid of blocks without its needless corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats
from rfly_common.errors import PlanError
from rfly_common.kernels.dubins import shortest_dubins
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.height_map.lattice import SIXTEEN, Edges, cheapest_path, neighbours
from rfly_terrain.planning.plan import FLY, Plan, off_the_map, parts_of
from rfly_terrain.planning.vehicle_classes import VehicleClass
from rfly_terrain.world.solids import Solids

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.planning.plan import PlanPose

MOST_SAMPLES = 200_000
"""Points of a path, at most."""
SAMPLES_PER_CELL = 10
"""Points of a path for each cell of the map."""
SPACING_NEAR_OBJECTS = 0.5
"""Distance between points of a path where there are objects, m."""
RIM = 32
"""Points of a disc's rim at which the ground is sampled."""
_FEW_CELLS = 3
"""Reach of a disc, in cells, up to which all its samples are compared one by one."""
BLOCKS = 128
"""Blocks on a side of the coarse grid."""


@dataclass(frozen=True, eq=False)
class FlyObstacles:
    """Objects on the ground, and the distance that a plan keeps from them."""

    solids: Solids
    margin: float
    """Distance beyond the vehicle's radius, m."""


def plan_fly(
    terrain: HeightMap,
    vehicle: VehicleClass,
    start: PlanPose,
    goal: PlanPose,
    *,
    hold_altitude: bool = False,
    obstacles: FlyObstacles | None = None,
) -> Plan:
    """Return a flight from start to goal, high enough above ground and objects.

    It is at least `min_height` above all ground within the vehicle's radius. It passes at least as
    high above each object within that radius and the margin, or around it; never below one.

    Between start and goal altitude changes only within the limits of climb and descent. From a
    start below the lowest altitude the vehicle rises straight up if it can hover, else in whole
    turns. A goal's z below the lowest altitude there means that altitude. With `hold_altitude` the
    flight does not sink into valleys from which it has to climb again, which takes less energy.

    Raises PlanError: outside, same_place, cannot_fly, start_blocked (an object is above the start
    or too near) or too_low (it begins too low to clear the ground, with no room to climb in turns).
    """
    fly = vehicle.fly
    if fly is None:
        raise PlanError("cannot_fly", vehicle.cannot("fly", "multirotor, fixed_wing or land_air"))
    for name, pose in (("start", start), ("goal", goal)):
        if not terrain.inside(pose.x, pose.y):
            raise off_the_map(name, pose.x, pose.y, terrain.bounds)
    if math.hypot(goal.x - start.x, goal.y - start.y) < 1e-6:
        raise PlanError("same_place", f"the goal ({goal.x:g}, {goal.y:g}) is where the start is")

    # straight, or around high ground
    search = _FlySearch(terrain, vehicle, start, goal, hold_altitude, obstacles)
    search.check_start()
    corners = np.array([[start.x, start.y], [goal.x, goal.y]])
    best = search.along(corners)
    around = _cheapest_blocks(terrain, vehicle, start, goal, obstacles)
    if len(around) > 2:
        detour = search.along(_without_needless(search, around))
        if best is None or (detour is not None and detour.energy < best.energy):
            best = detour
    if best is None:
        raise PlanError("too_low", search.failure)
    return best


def upright_flight(
    vehicle: VehicleClass, position: Floats, altitude: float, heading: float
) -> Plan:
    """Return a flight straight up or down from a place (3,) to an altitude, m."""
    fly = vehicle.fly
    assert fly is not None
    position = np.array([position, [*position[:2], altitude]])
    climb = float(position[1, 2] - position[0, 2])
    return Plan(
        position,
        np.full(2, heading),
        np.array([FLY], np.uint8),
        float(fly.energy(vehicle.mass, 0.0, climb)),
        float(fly.duration(0.0, climb)),
    )


class _FlySearch:
    """Search for flights of one vehicle from a start to a goal, along any corners between them."""

    def __init__(
        self,
        terrain: HeightMap,
        vehicle: VehicleClass,
        start: PlanPose,
        goal: PlanPose,
        hold_altitude: bool,
        obstacles: FlyObstacles | None,
    ) -> None:
        assert vehicle.fly is not None
        self._hold = hold_altitude
        self._terrain = terrain
        self._vehicle = vehicle
        self._fly = vehicle.fly
        self._start = start
        self._goal = goal
        self._ground = HighestGround(terrain, vehicle.radius)
        self._obstacles = obstacles if obstacles is not None and len(obstacles.solids) else None

        self.failure = ""
        """Message of the last flight that is not possible."""

    def check_start(self) -> None:
        """Raise PlanError where an object keeps the vehicle from rising from its start."""
        start = self._start
        if self._obstacles is None or start.z is None:
            return
        outlines = self._obstacles.solids.outlines
        _, near = outlines.near(np.array([[start.x, start.y]]), self._vehicle.radius)
        top = float(outlines.top[near].max(initial=-math.inf))
        if top > start.z:
            raise PlanError(
                "start_blocked",
                f"the start ({start.x:g}, {start.y:g}, {start.z:g}) lies within "
                f"{self._vehicle.radius:g} m of an object that reaches up to {top:.1f} m, "
                "or below it",
            )

    def _required(self, xy: Floats, longest_step: float) -> Floats:
        """Return the lowest altitudes, (n,), at points (n, 2) of a path.

        The path's steps have at most the length `longest_step`.
        """
        highest = self._ground.highest(xy)
        if self._obstacles is not None:
            outlines = self._obstacles.solids.outlines
            reach = self._vehicle.radius + self._obstacles.margin + longest_step
            point, which = outlines.near(xy, reach)
            np.maximum.at(highest, point, outlines.top[which])
        return highest + self._fly.min_height

    @property
    def samples_to_compare(self) -> int:
        """Samples in each cell that suffice to compare flights."""
        if self._obstacles is None:
            return 1
        cell = min(abs(self._terrain.step_x), abs(self._terrain.step_y))
        return min(SAMPLES_PER_CELL, math.ceil(cell / SPACING_NEAR_OBJECTS))

    def along(self, corners: Floats, samples_per_cell: int = SAMPLES_PER_CELL) -> Plan | None:
        """Return the lowest flight over the corners (k, 2); None, with `failure`, without one."""
        xy, heading = self._track(corners, samples_per_cell)
        steps = np.hypot(*np.diff(xy, axis=0).T)
        s = np.concatenate([[0.0], np.cumsum(steps)])

        # the lowest profile
        up, down = self._fly.steepest
        required = self._required(xy, float(steps.max()))
        if self._goal.z is not None:
            required[-1] = max(required[-1], self._goal.z)
        z = lowest_profile(s, required, up, down)

        # from the start's own altitude
        begin = self._start.z
        if begin is not None:
            begin = max(begin, float(self._terrain.altitude(float(xy[0, 0]), float(xy[0, 1]))))
        rise = np.empty((0, 4))
        if begin is not None and begin > z[0]:
            required[0] = begin
            z = lowest_profile(s, required, up, down)
        elif begin is not None and begin < z[0] - 1e-9:
            rise = self._risen((*xy[0].tolist(), float(heading[0])), begin, float(z[0]))
            if not len(rise):
                self.failure = (
                    f"the start lies {z[0] - begin:.1f} m below the altitude {z[0]:.1f} m from "
                    f"which vehicle class {self._vehicle.name!r} can clear the ground ahead with "
                    "its rate of climb, and there is no room to climb in turns"
                )
                return None

        if self._hold:
            z = np.minimum(np.maximum.accumulate(z), np.maximum.accumulate(z[::-1])[::-1])

        position = np.column_stack([xy, z])
        keep = _bends(s, xy, z)
        position = np.concatenate([rise[:, :3], position[keep]])
        heading = np.concatenate([rise[:, 3], heading[keep]])

        energy, duration = self._fly.path(self._vehicle.mass, position)
        mode = np.full(len(position) - 1, FLY, np.uint8)
        return Plan(position, heading, mode, energy, duration)

    def _risen(self, pose: tuple[float, float, float], low: float, high: float) -> Floats:
        """Return x, y, z, heading, (n, 4), from altitude `low` up to `high` (m) at a pose.

        The climb leads straight up, or in whole turns to a side with room for them; empty if there
        is none. The height above what is below is nowhere less than at the start, or than
        `min_height`.
        """
        from rfly_terrain.planning.drive import DrivePath

        if self._fly.hover_power is not None:
            return np.array([[*pose[:2], low, pose[2]]])
        circle = 2.0 * math.pi * self._fly.turning_radius
        chord_climb = 0.999 * circle * self._fly.steepest[0]  # chords are shorter than the arc
        turns = math.ceil((high - low) / chord_climb)
        spacing = min(SPACING_NEAR_OBJECTS, abs(self._terrain.step_x), abs(self._terrain.step_y))
        for side in (1.0, -1.0):
            pieces = np.array([[turns * circle, side / self._fly.turning_radius]])
            poses = DrivePath(np.array([pose, pose]), pieces, 0.0).poses(spacing)[:-1]
            z = low + (high - low) * np.arange(len(poses)) / len(poses)
            if not self._terrain.inside(poses[:, 0], poses[:, 1]).all():
                continue
            above = z - self._required(poses[:, :2], spacing)
            if (above >= min(above[0], 0.0) - 1e-6).all():
                step = max(1, len(poses) // (72 * turns))
                return np.column_stack([poses[:, :2], z, poses[:, 2]])[::step]
        return np.empty((0, 4))

    def _track(self, corners: Floats, samples_per_cell: int) -> tuple[Floats, Floats]:
        """Return points (m, 2) and headings along the corners.

        There are `samples_per_cell` for each cell of the map. The corners are rounded by Dubins
        paths if the vehicle cannot turn on the spot.
        """
        cell = min(abs(self._terrain.step_x), abs(self._terrain.step_y))
        legs = np.diff(corners, axis=0)
        spacing = cell / samples_per_cell
        if self._obstacles is not None:
            spacing = min(spacing, SPACING_NEAR_OBJECTS * SAMPLES_PER_CELL / samples_per_cell)

        spacing = max(spacing, 2.0 * float(np.hypot(*legs.T).sum()) / MOST_SAMPLES)
        towards = np.arctan2(legs[:, 1], legs[:, 0])
        if self._fly.turning_radius == 0.0:
            counts = np.maximum(1, np.ceil(np.hypot(*legs.T) / spacing)).astype(int)
            leg, share = parts_of(counts)
            xy = np.concatenate([corners[leg] + share[:, None] * legs[leg], corners[-1:]])
            return xy, np.concatenate([towards[leg], towards[-1:]])

        # headings at the corners: halfway between those of the legs
        between = np.exp(1j * towards)
        headings = np.concatenate([towards[:1], np.angle(between[:-1] + between[1:]), towards[-1:]])
        if self._start.heading is not None:
            headings[0] = self._start.heading
        if self._goal.heading is not None:
            headings[-1] = self._goal.heading

        return self._arcs(corners, headings, spacing)

    def _arcs(self, corners: Floats, headings: Floats, spacing: float) -> tuple[Floats, Floats]:
        """Return points (m, 2) and headings of the Dubins paths between poses.

        The points are `spacing` (m) apart.
        """
        from rfly_terrain.planning.cost_kernels import piece_end
        from rfly_terrain.planning.drive import DrivePath

        radius = self._fly.turning_radius
        joints = []
        pieces = []
        for (x, y), heading, (to_x, to_y), to_heading in zip(
            corners[:-1].tolist(),
            headings[:-1].tolist(),
            corners[1:].tolist(),
            headings[1:].tolist(),
            strict=True,
        ):
            word = shortest_dubins(x, y, heading, to_x, to_y, to_heading, radius)
            pose = (x, y, heading)
            for length, turn in zip(word[:3], word[3:], strict=True):
                if length > 0.0:
                    joints.append(pose)
                    pieces.append((length, turn / radius))
                    pose = piece_end(*pose, length, turn / radius)
        joints.append((*corners[-1].tolist(), float(headings[-1])))

        poses = DrivePath(np.array(joints), np.array(pieces), 0.0).poses(spacing)
        return poses[:, :2], poses[:, 2]


def lowest_profile(s: Floats, required: Floats, up: float, down: float) -> Floats:
    """Return the lowest altitudes, (n,), at distances s that are at least `required`.

    s increases. The altitudes rise by at most `up` and fall by at most `down` metres a metre.
    """
    climbing = np.maximum.accumulate((required - up * s)[::-1])[::-1] + up * s
    return np.maximum.accumulate(climbing + down * s) - down * s


def _bends(s: Floats, xy: Floats, z: Floats) -> Bools:
    """Return a mask of the samples that do not lie on a straight line between their neighbours."""
    keep = np.ones(len(s), bool)
    if len(s) > 2:
        line = np.column_stack([xy, z])
        ds = np.diff(s)
        ds[ds == 0] = 1.0
        slope = np.diff(line, axis=0) / ds[:, None]
        keep[1:-1] = np.abs(np.diff(slope, axis=0)).max(axis=1) > 1e-7
    return keep


def _cheapest_blocks(
    terrain: HeightMap,
    vehicle: VehicleClass,
    start: PlanPose,
    goal: PlanPose,
    obstacles: FlyObstacles | None,
) -> Floats:
    """Return corners (k, 2) from start to goal, which are centres of blocks.

    A flight over these blocks, as low as possible, takes the least energy.
    """
    fly = vehicle.fly
    assert fly is not None
    high, x, y = _block_heights(terrain, vehicle.radius)
    nx, ny = high.shape
    if min(nx, ny) < 2:
        return np.array([(start.x, start.y), (goal.x, goal.y)])
    if obstacles is not None:
        wide = float(x[1] - x[0])
        long = float(y[1] - y[0])
        blocks = Grid(ny, nx, wide, long, float(x[0]) - wide / 2, float(y[0]) - long / 2)
        np.maximum(high, highest_objects(obstacles, vehicle.radius, blocks).T, out=high)

    # edges, and the energy along them
    altitude = high.ravel()
    edges: list[Edges] = []
    for (dx, dy), a, b in neighbours(high.shape, SIXTEEN):
        distance = math.hypot(dx * (x[1] - x[0]), dy * (y[1] - y[0]))
        for from_, to in ((a, b), (b, a)):
            rise = altitude[to] - altitude[from_]
            edges.append((from_, to, fly.energy_between(vehicle.mass, distance, rise)))

    # the cheapest path from the start's block to the goal's
    first, last = (
        int(np.abs(x - pose.x).argmin() * ny + np.abs(y - pose.y).argmin())
        for pose in (start, goal)
    )
    path = cheapest_path(edges, high.size, first, [last])

    inner = [(x[cell // ny], y[cell % ny]) for cell in path[1:-1]]
    return np.array([(start.x, start.y), *inner, (goal.x, goal.y)])


def highest_objects(obstacles: FlyObstacles, radius: float, cells: Grid) -> Floats:
    """Return the top of the highest object near each cell, (rows, columns).

    These are objects too near to a vehicle of that radius (m) in the cell. Cells without one have
    -inf.
    """
    outlines = obstacles.solids.outlines
    row, column, which = outlines.grown(radius + obstacles.margin).cells_under(cells)
    highest = np.full((cells.rows, cells.columns), -np.inf)
    np.maximum.at(highest, (row, column), outlines.top[which])
    return highest


def _block_heights(terrain: HeightMap, radius: float) -> tuple[Floats, Floats, Floats]:
    """Return heights and centres of the blocks.

    They are the highest sample of each block and within the radius around it, (nx, ny), and the
    centres of the blocks along x and along y, rising, m.
    """
    from scipy.ndimage import maximum_filter

    wide = [2 * math.ceil(radius / abs(step)) + 1 for step in (terrain.step_x, terrain.step_y)]
    z = maximum_filter(terrain.heights, wide, mode="nearest")
    z = z[:: 1 if terrain.step_x > 0 else -1, :: 1 if terrain.step_y > 0 else -1]
    x_min, _, y_min, _ = terrain.bounds

    # blocks of that many samples
    size = [math.ceil(n / BLOCKS) for n in z.shape]
    starts = [np.arange(0, n, k) for n, k in zip(z.shape, size, strict=True)]
    high = np.maximum.reduceat(np.maximum.reduceat(z, starts[0], axis=0), starts[1], axis=1)

    x = x_min + abs(terrain.step_x) * (starts[0] + (size[0] - 1) / 2)
    y = y_min + abs(terrain.step_y) * (starts[1] + (size[1] - 1) / 2)
    return high.astype(np.float64), x, y


def _without_needless(search: _FlySearch, corners: Floats) -> Floats:
    """Return the corners that are worth a detour.

    Runs of corners, ever shorter ones, are left out if that does not take more energy. One sample a
    cell suffices for the comparison. Near objects a longer step would close gaps that the vehicle
    fits through.
    """
    samples = search.samples_to_compare
    best = search.along(corners, samples)

    # runs of all corners, then of half as many, down to single ones
    size = len(corners) - 2
    while size >= 1:
        first = 1
        while first < len(corners) - 1:
            fewer = np.delete(corners, slice(first, min(first + size, len(corners) - 1)), axis=0)
            flight = search.along(fewer, samples)
            if flight is not None and (best is None or flight.energy <= best.energy):
                best = flight
                corners = fewer
            else:
                first += size
        size = size // 2

    return corners


class HighestGround:
    """Highest ground within `radius` (m) of points of one terrain."""

    def __init__(self, terrain: HeightMap, radius: float) -> None:
        self._terrain = terrain
        self._radius = float(radius)
        z = terrain.heights
        self._steps = np.array([terrain.step_x, terrain.step_y])

        # between two points a tenth of a cell apart the ground rises above the chord by at most
        # (1/10)² / 8 of the distance of a cell's corners from a plane
        twist = float(np.abs(z[1:, 1:] - z[:-1, 1:] - z[1:, :-1] + z[:-1, :-1]).max())
        self._spare = twist / 8 / SAMPLES_PER_CELL**2
        self._reach = np.ceil(self._radius / np.abs(self._steps) + 0.5).astype(int)
        if self._radius > 0:
            self._steepest = self._steepest_near(z)
            few = self._reach.max() <= _FEW_CELLS
            self._grown = None if few else self._highest_near(z)

    def highest(self, xy: Floats) -> Floats:
        """Return the height of the highest ground, (n,) m, z up, at points (n, 2), or little more.

        Bilinear ground is highest in a disc at a sample of the map within it, or on its rim. The
        rim is sampled at RIM points. The steepest slope bounds the rise between them.
        """
        if self._radius == 0.0:
            return np.asarray(self._terrain.altitude(xy[:, 0], xy[:, 1]), float) + self._spare

        # on the rim
        angle = np.arange(RIM) * (2.0 * math.pi / RIM)
        rim = xy[:, None, :] + self._radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        highest = np.asarray(self._terrain.altitude(rim[..., 0], rim[..., 1])).max(axis=1)

        # at the samples within
        cell = (xy - (self._terrain.origin_x, self._terrain.origin_y)) / self._steps
        row, column = (
            np.clip(np.floor(cell[:, k]).astype(int), 0, self._steepest.shape[k] - 1)
            for k in (0, 1)
        )
        highest += self._steepest[row, column] * (self._radius * math.pi / RIM)
        return np.maximum(highest, self._highest_sample(cell)) + self._spare

    def _steepest_near(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the slope (m/m) that no cell within reach of a cell exceeds.

        The shape is (rows - 1, columns - 1).
        """
        along_x = np.abs(np.diff(z, axis=0))
        along_y = np.abs(np.diff(z, axis=1))
        x = np.maximum(along_x[:, 1:], along_x[:, :-1]) / abs(self._terrain.step_x)
        y = np.maximum(along_y[1:], along_y[:-1]) / abs(self._terrain.step_y)
        size = (2 * (self._reach + 1) + 1).tolist()
        slope = np.hypot(x, y).astype(np.float32)
        return np.asarray(cv2.dilate(slope, np.ones(size, np.uint8)))

    def _highest_near(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the highest sample near each sample, (rows, columns).

        Near means within the radius and half a cell's diagonal.
        """
        x, y = (
            np.arange(-n, n + 1) * step
            for n, step in zip(self._reach.tolist(), self._steps.tolist(), strict=True)
        )
        disc = np.hypot(x[:, None], y) <= self._radius + 0.5 * math.hypot(*self._steps.tolist())
        return np.asarray(cv2.dilate(z, disc.astype(np.uint8)))

    def _highest_sample(self, points: Floats) -> Floats:
        """Return the highest sample of the map within the radius of each point, (n,).

        `points`, (n, 2), are rows and columns. A point without a sample has -inf. A disc of many
        cells is replaced by a larger one about the nearest sample.
        """
        z = self._terrain.heights
        nearest = np.rint(points).astype(int)
        if self._grown is not None:
            row, column = (np.clip(nearest[:, k], 0, z.shape[k] - 1) for k in (0, 1))
            return self._grown[row, column].astype(float)

        highest = np.full(len(points), -np.inf)
        for d_row in range(-self._reach[0], self._reach[0] + 1):
            for d_column in range(-self._reach[1], self._reach[1] + 1):
                cell = nearest + np.array([d_row, d_column])
                within = np.hypot(*((cell - points) * self._steps).T) <= self._radius
                within &= (cell >= 0).all(axis=1) & (cell < z.shape).all(axis=1)
                row, column = cell[within].T
                highest[within] = np.maximum(highest[within], z[row, column])

        return highest
