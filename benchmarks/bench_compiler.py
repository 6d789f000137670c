# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Hot kernels against C++ (`plain_good.cpp`, -O3 -march=native): the same work, written plainly.

They are left out if there is no g++. Processor time of one thread; the C++ side is called through
ctypes on the same arrays.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.bench_amphibious import hills as waves
from benchmarks.bench_collision import DENSE, SPARSE, Boxes
from benchmarks.bench_collision import SIZE as BOX
from benchmarks.bench_planning import RADIUS, rough_ground, walls
from benchmarks.bench_rays import Rays, hills, lidar_sweep, long_rays, one_core
from benchmarks.cpp import PEER, compiled, cpp_call, cpp_ground, cpp_library, cpp_struct
from benchmarks.harness import DISAGREES, Row, agreement, measure, same
from rfly_amphibious import AmphibiousModel, Controls, ModelState, VehicleParameters, Wind
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.vehicle_record import kernel_records, vehicle_record
from rfly_amphibious.warm_up import warm_up as warm_up_dynamics
from rfly_collision import Bodies, Box
from rfly_collision.shapes.shape import table_of
from rfly_collision.world.scene import motion_of, pairs_of, place
from rfly_collision.world.scene import warm_up as warm_up_collision
from rfly_common.arrays import Floats
from rfly_terrain import HeightMap
from rfly_terrain.height_map import altitude_kernels as terrain_kernels
from rfly_terrain.planning import cost_kernels as plan_kernels
from rfly_terrain.planning import search_kernels
from rfly_terrain.planning.drive import MOST_NODES, weights
from rfly_terrain.planning.planner import warm_up as warm_up_planning
from rfly_terrain.warm_up import warm_up
from rfly_ue_bridge.codec.ned_states import NedStates
from rfly_ue_bridge.codec.state_datagrams import encode_states

TARGET = 0.9
"""Target, as a share of C++'s speed."""
POINTS = 1_000_000
VEHICLES = 10_000


def rows() -> Iterator[Row]:
    """Yield all rows; none without a compiler."""
    library = cpp_library()
    if library is None:
        return

    for warm in (warm_up, warm_up_planning, warm_up_collision):
        warm()
    with one_core():
        terrain = hills(1_000)
        yield from ground(library, terrain)
        for rays in (lidar_sweep(terrain), long_rays(terrain)):
            yield ray_casting(library, terrain, rays)
        yield broad_phase(library, "sparse", SPARSE)
        yield broad_phase(library, "dense", DENSE)
        yield cost_to_go(library)
        yield packets(library)
        yield from land_air_steps()
        yield from hybrid_astar()


def _row(
    name: str, ours: Callable[[], Any], cpp: Callable[[], Any], agree: str, note: str = ""
) -> Row:
    """Return a row with the processor times of both sides."""
    seconds = measure(ours, cpp, 9, clock=time.process_time)
    return Row(name, *seconds, PEER, TARGET, agree=agree, note=note)


def ground(library: ctypes.CDLL, terrain: HeightMap) -> Iterator[Row]:
    """Yield heights at random points, and the cloud of a whole map."""
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-510.0, 510.0, (2, POINTS))
    ours = np.empty(POINTS)
    theirs = np.empty(POINTS)
    c_ground = cpp_ground(terrain)
    cpp = cpp_call(library.altitudes, c_ground, x, y, POINTS, theirs)

    def altitudes() -> None:
        terrain_kernels.altitudes(terrain.ground, x, y, ours)

    altitudes()
    cpp()
    yield _row(
        "C++: altitude, 1,000,000 random points", altitudes, cpp, agreement(ours, theirs, 1e-9)
    )

    def cloud() -> Any:
        points = np.empty((terrain.rows, terrain.columns, 3), np.float32)
        cpp_call(library.cloud, c_ground, points)()
        return points

    agree = agreement(terrain.point_cloud(), cloud(), 1e-4)
    yield _row(
        "C++: cloud of 1,000 x 1,000", terrain.point_cloud, cloud, agree, "each into a new array"
    )


def ray_casting(library: ctypes.CDLL, terrain: HeightMap, rays: Rays) -> Row:
    """Compare rays on a height map."""
    ranges = np.empty(len(rays.origins))
    cpp = cpp_call(
        library.cast, cpp_ground(terrain), rays.origins, rays.directions, len(ranges), ranges
    )
    cpp()

    # both hit the same rays, at the same ranges
    ours = terrain.cast(rays.origins, rays.directions)
    both = np.isfinite(ours) & np.isfinite(ranges)
    one_sided = int(np.sum(np.isfinite(ours) != np.isfinite(ranges)))
    agree = agreement(ours[both], ranges[both], 1e-3)
    if one_sided > len(ranges) * 1e-4:
        agree = f"{DISAGREES}: {one_sided} rays hit on one side only"

    return _row(
        f"C++: {rays.name}",
        lambda: terrain.cast(rays.origins, rays.directions),
        cpp,
        agree,
        "C++: cell by cell",
    )


def broad_phase(library: ctypes.CDLL, name: str, room: tuple[float, float, float]) -> Row:
    """Compare the pairs of overlapping boxes."""
    boxes = Boxes(VEHICLES, room)
    bodies = Bodies(
        (Box(BOX),), np.zeros(VEHICLES, np.int64), *boxes.next(), boxes.velocity, boxes.spin
    )
    placed = place(table_of(bodies.shapes), motion_of(bodies), 0.0)
    most = 20 * VEHICLES
    ours = pairs_of(bodies, placed, most)
    pairs = np.empty((most, 2), np.int64)
    cpp = cpp_call(library.overlaps, placed.low, placed.high, VEHICLES, pairs, most)
    agree = same(
        cpp() == len(ours) and np.array_equal(pairs[: len(ours)], ours), f"{len(ours):,} pairs"
    )

    return _row(
        f"C++: overlapping boxes, 10,000 {name}", lambda: pairs_of(bodies, placed, most), cpp, agree
    )


def cost_to_go(library: ctypes.CDLL) -> Row:
    """Compare the field of costs to a goal."""
    weight = weights(rough_ground())
    goal = (weight.shape[0] - 10, weight.shape[1] - 10)
    start = (9, 9)

    def ours() -> Any:
        return plan_kernels.cost_to_go(weight, goal, start, np.inf)

    theirs = np.empty(weight.shape, np.float32)
    cpp = cpp_call(
        library.cost_to_go, weight, *weight.shape, goal[0] * weight.shape[1] + goal[1], theirs
    )

    # both reach the same cells
    cpp()
    field = ours()
    known = np.isfinite(theirs)
    same_cells = np.array_equal(known, np.isfinite(field))
    agree = (
        agreement(field[known], theirs[known], 0.05, "cells")
        if same_cells
        else f"{DISAGREES}: other cells reached"
    )
    return _row("C++: cost to go on 1,000 x 1,000", ours, cpp, agree, "C++: binary heap")


def packets(library: ctypes.CDLL) -> Row:
    """Compare the conversion of vehicles to packets."""
    rng = np.random.default_rng(9)
    ids = np.arange(1, VEHICLES + 1)
    types = np.full(VEHICLES, 3)
    position = rng.normal(0.0, 100.0, (VEHICLES, 3))
    euler = rng.normal(0.0, 0.3, (VEHICLES, 3))
    states = NedStates(
        id=ids.astype(np.int32),
        vehicle_type=types.astype(np.int32),
        position_ned=position,
        euler=euler,
        velocity_ned=np.zeros((VEHICLES, 3), np.float32),
        motor_speed_rpm=np.zeros((VEHICLES, 8), np.float32),
        motor_speed_mean_rpm=np.zeros(VEHICLES, np.float32),
        scale=np.ones((VEHICLES, 3), np.float32),
        fit_ground=np.zeros(VEHICLES, np.bool_),
    )

    def cpp() -> Any:
        out = np.empty(-(-VEHICLES // 100) * 3804, np.uint8)
        cpp_call(library.packets, ids, types, position, euler, VEHICLES, out)()
        return out

    def ours() -> Any:
        return encode_states(states, in_fleet=True)

    agree = same(
        b"".join(bytes(run.buffer) for run in ours()) == cpp().tobytes(), "packets, byte by byte"
    )
    note = "each into a new buffer; ours also checks what the packet holds"
    return _row("C++: 10,000 vehicles to packets", ours, cpp, agree, note)


def land_air_library(parameters: np.dtype[Any]) -> ctypes.CDLL:
    """Build `land_air.cpp` with the layout of our parameters and states."""
    constants = {
        name: value
        for name, value in vars(state_layout).items()
        if name.isupper() and isinstance(value, int)
    }
    constants["FIXED_STATES"] = state_layout.state_size(0, state_layout.OUTER_WHEELS)
    header = "".join(f"constexpr int {name} = {value};\n" for name, value in constants.items())

    library = compiled("land_air", header + cpp_struct("Parameters", parameters))
    library.land_air_steps.restype = ctypes.c_int64
    return library


def land_air_steps() -> Iterator[Row]:
    """Yield one second of the vehicle on a map, by RK4 at 1 ms, in a steady wind."""
    warm_up_dynamics()
    params = VehicleParameters.load("full")
    model = AmphibiousModel(params, waves())

    parameters = kernel_records(vehicle_record(params, True, False, 0.0))
    library = land_air_library(parameters.dtype)

    steps = 1000
    wind = np.array((3.0, 1.0, 0.0))
    for case, begin, controls in (
        ("driving", model.standing(speed=10.0), Controls(steering=0.05, drive_torque=60.0)),
        (
            "flying",
            model.flying((0.0, 0.0, 12.0), velocity=(5.0, 0.0, 0.0)),
            Controls(rotor_speed=params.hover_speed),
        ),
    ):
        x = np.empty_like(begin.x)
        command = controls.rows(params, 1)[0]
        call = cpp_call(
            library.land_air_steps,
            x,
            command,
            wind,
            parameters,
            cpp_ground(model.terrain),
            0.001,
            steps,
        )

        def theirs(x: Floats = x, begin: ModelState = begin, call: Callable[[], Any] = call) -> Any:
            x[:] = begin.x
            return call()

        def ours(begin: ModelState = begin, controls: Controls = controls) -> ModelState:
            return model.step(begin, controls, 0.001, steps=steps, wind=Wind((3.0, 1.0, 0.0)))

        done = theirs()
        agree = (
            agreement(ours().x, x, 1e-6, "any unit")
            if done == steps
            else f"{DISAGREES}: it crashed in C++"
        )
        yield _row(f"C++: land-air vehicle {case}, RK4 1 ms", ours, theirs, agree, "1,000 steps")


class CppGrid(ctypes.Structure):
    """Costs as `hybrid_astar.cpp` takes them."""

    _fields_ = (
        ("weight", ctypes.c_void_p),
        ("to_go", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        *((name, ctypes.c_double) for name in ("x", "y", "cell")),
    )


def hybrid_astar() -> Iterator[Row]:
    """Yield the search alone from corner to corner, over the same cost to go."""
    library = compiled("hybrid_astar")
    library.hybrid_astar.restype = ctypes.c_double
    for name, grid in (("rough ground", rough_ground()), ("walls", walls())):
        weight = weights(grid)
        size = len(weight)
        to_go = plan_kernels.cost_to_go(weight, (size - 10, size - 10), (9, 9), np.inf)
        costs = search_kernels.Costs(weight, (0.0, 0.0, 1.0), to_go)

        # the same search in C++
        start = np.array([9.5, 9.5, 0.0])
        goal = np.array([size - 9.5, size - 9.5, 0.0])
        lattice = search_kernels.lattice_of(costs, plan_kernels.Steering(RADIUS))
        turns = lattice.words[:, 0] * lattice.words[:, 5] / RADIUS
        cpp = cpp_call(
            library.hybrid_astar,
            CppGrid(weight.ctypes.data, to_go.ctypes.data, size, size, 0.0, 0.0, 1.0),
            *(start, goal, RADIUS, lattice.length, lattice.cell, lattice.across, turns, turns.size),
        )

        def ours(
            costs: search_kernels.Costs = costs, start: Floats = start, goal: Floats = goal
        ) -> Any:
            end = search_kernels.Goal(goal, False)
            return search_kernels.search(
                costs, start[None], end, plan_kernels.Steering(RADIUS), MOST_NODES
            )

        # the paths cost the same
        path = ours()
        cost = sum(
            plan_kernels.piece_cost(weight, costs.grid, *pose, *piece, np.inf)
            for pose, piece in zip(path.poses, path.pieces, strict=False)
        )
        agree = agreement(cost, cpp(), 0.01 * cost, "of cost")
        yield _row(
            f"C++: hybrid A* on 1,000 x 1,000, {name}",
            ours,
            cpp,
            agree,
            f"a path of cost {cost:,.0f}",
        )
