# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets of 1,000 and 10,000 vehicles at one time, against C++, a loop over vehicles and NumPy.

The fleet is mixed: cars, multirotors and aircraft on circles, lines, ellipses, figures of eight,
lawn mowers and splines, with and without acceleration. All sides compute positions, attitudes,
velocities and body rates over a terrain. The loop is the library itself, called for one vehicle
after the other. Processor time counts, since all sides only compute.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from oracles import height_map_kernels as height_map_oracle
from oracles import in_place_of
from oracles import motion_kernels as motion_oracle

from benchmarks.cpp import PEER, cpp_call, cpp_ground, cpp_library
from benchmarks.harness import Row, agreement, measure
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.height_map import altitude_kernels as kernels
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet import Fleet, Kind, Vehicle
from rfly_trajectory.kernels import motion_kernels
from rfly_trajectory.motion.speed_profile import AtEnd, SpeedProfile
from rfly_trajectory.paths.path import Path
from rfly_trajectory.paths.shapes import Circle, Ellipse, FigureEight, LawnMower, Line, Spline
from rfly_trajectory.warm_up import warm_up

TIMES = 123.4, 130.01, 217.0
TIME = TIMES[0]
PATHS = 120
SINGLY = 1_000
"""Number of vehicles that are also sampled one by one."""


def rows() -> Iterator[Row]:
    """Yield fleets of both sizes beside C++, a loop over vehicles, and NumPy."""
    warm_up()
    terrain = HeightMap.load("JacksboroFault")
    library = cpp_library()
    for vehicles in (1_000, 10_000):
        fleet = Fleet(mixed_fleet(vehicles), terrain)
        ours = [as_rows(fleet.sample(t)) for t in TIMES]
        calls = 50_000 // vehicles
        name = f"mixed fleet of {vehicles:,} over the terrain, one instant"

        # C++
        if library is not None:
            cpp = {t: cpp_fleet(library, fleet.vehicles, terrain, t) for t in TIMES}
            seconds = measure(
                lambda fleet=fleet: fleet.sample(TIME),
                cpp[TIME],
                11,
                ours_calls=calls,
                peer_calls=calls,
                clock=process_time,
            )
            agree = agreement(ours, [cpp[t]().copy() for t in TIMES], 2e-6, "m, m/s, rad/s")
            note = f"{1e9 * seconds[0] / vehicles:.0f} ns a vehicle"
            yield Row(
                name, *seconds, PEER, target_ratio=0.9, stretch_ratio=1.2, agree=agree, note=note
            )

        # a loop over vehicles
        if vehicles == SINGLY:
            alone = [Fleet([vehicle], terrain) for vehicle in fleet.vehicles]

            def one_by_one(t: float = TIME, alone: list[Fleet] = alone) -> list[VehicleStates]:
                return [vehicle.sample(t) for vehicle in alone]

            by_one = [np.concatenate([as_rows(states) for states in one_by_one(t)]) for t in TIMES]

            ours_s, ones_s = measure(
                lambda fleet=fleet: fleet.sample(TIME),
                one_by_one,
                7,
                ours_calls=calls,
                clock=process_time,
            )
            yield Row(
                name,
                ours_s,
                ones_s,
                "loop over vehicles, this library",
                target_ratio=200.0,
                agree=agreement(ours, by_one, 1e-9, "m, m/s, rad/s"),
                note=f"a fleet of one takes {1e6 * ones_s / vehicles:.0f} µs",
            )

        # NumPy
        with numpy_alone():
            by_numpy = [as_rows(fleet.sample(t)) for t in TIMES]
        ours_s, numpy_s = measure(
            lambda fleet=fleet: fleet.sample(TIME),
            lambda fleet=fleet: _in_numpy(fleet),
            15,
            ours_calls=calls,
            peer_calls=5,
            clock=process_time,
        )
        yield Row(
            name,
            ours_s,
            numpy_s,
            "the same in NumPy",
            target_ratio=3.0,
            agree=agreement(ours, by_numpy, 1e-9, "m, m/s, rad/s"),
        )


_VEHICLE = np.dtype(
    [
        (name, np.int64)
        for name in ("kind", "absolute", "closed", "first_law", "laws", "first_piece", "pieces")
    ]
    + [
        (name, float)
        for name in ("height", "delay", "shift_x", "shift_y", "loop_start", "loop_period", "length")
    ]
)


def cpp_fleet(
    library: ctypes.CDLL, vehicles: Sequence[Vehicle], terrain: HeightMap, t: float
) -> Callable[[], NDArray[np.float64]]:
    """Return the C++ loop over the same tables.

    Its result, as `as_rows`, is overwritten by the next call.
    """
    records = np.zeros(len(vehicles), _VEHICLE)
    laws: list[NDArray[Any]] = []
    pieces: list[NDArray[Any]] = []

    # a record of each vehicle, and tables of laws and pieces
    for record, vehicle in zip(records, vehicles, strict=True):
        path = vehicle.path
        schedule = vehicle.schedule
        record["kind"] = ("ground", "multirotor", "fixed_wing").index(vehicle.kind)
        record["absolute"] = vehicle.absolute
        record["closed"] = path.closed
        record["height"] = vehicle.height
        record["first_law"] = sum(map(len, laws))
        record["laws"] = len(schedule.pieces)
        record["first_piece"] = sum(map(len, pieces))
        record["pieces"] = len(path.start)
        record["delay"] = vehicle.delay
        (record["shift_x"], record["shift_y"]) = vehicle.shift
        record["loop_start"] = schedule.loop_start
        record["loop_period"] = schedule.loop_period
        record["length"] = path.length
        laws.append(np.asarray([piece[:5] for piece in schedule.pieces], dtype=float))
        pieces.append(np.column_stack([path.start, path.kind, path.values]).astype(float))

    # one call for the whole fleet
    out = np.empty((len(vehicles), 13))
    tables = np.concatenate(laws), np.concatenate(pieces)
    run = cpp_call(library.fleet, cpp_ground(terrain), records, len(vehicles), *tables, t, out)

    def sample() -> NDArray[np.float64]:
        run()
        return out

    return sample


def mixed_fleet(vehicles: int) -> list[Vehicle]:
    """Return vehicles that differ, on PATHS paths over the middle of a map of 6 km."""
    random = np.random.default_rng(11)
    kinds: tuple[Kind, ...] = ("ground", "multirotor", "fixed_wing")
    fleet: list[Vehicle] = []

    for number in range(PATHS):
        path = _some_path(random, number)
        for _ in range(min(-(-vehicles // PATHS), vehicles - len(fleet))):
            kind = kinds[len(fleet) % 3]
            speed = float(random.uniform(2.0, 20.0))
            speed = float(random.uniform(2.0, 20.0))
            if random.random() < 0.5:
                profile = SpeedProfile(speed)
            else:
                profile = SpeedProfile(speed, float(random.uniform(1, 3)))

            at_end: AtEnd = "ping_pong"
            if path.closed:
                at_end = "repeat"
            elif kind == "fixed_wing":
                at_end = "stop"

            fleet.append(
                Vehicle(
                    f"v{len(fleet)}",
                    len(fleet) + 1,
                    3,
                    path,
                    profile,
                    at_end,
                    kind=kind,
                    delay=float(random.uniform(0.0, 130.0)),
                    shift=tuple(random.uniform(-300.0, 300.0, 2).tolist()),
                    height=0.0 if kind == "ground" else float(random.uniform(10.0, 600.0)),
                    absolute=kind == "fixed_wing",
                )
            )

    return fleet


def _some_path(random: np.random.Generator, which: int) -> Path:
    """Return one of six kinds of paths, somewhere on the map."""
    x, y = random.uniform(-1500.0, 1500.0, 2).tolist()
    long = random.uniform(400.0, 800.0)
    wide = random.uniform(150.0, 300.0)
    match which % 6:
        case 0:
            return Circle((x, y), random.uniform(20.0, 400.0)).path()
        case 1:
            return Line((x, y), (x + long, y - wide)).path()
        case 2:
            return Ellipse((x, y), long, wide).path()
        case 3:
            return FigureEight((x, y), long, wide).path()
        case 4:
            return LawnMower((x, y), long, wide, 40.0).path()
        case _:
            points = np.column_stack(
                [np.linspace(-500.0, 500.0, 6), random.uniform(-100.0, 100.0, 6)]
            )
            return Spline((points + np.array([x, y])).tolist()).path()


def as_rows(states: VehicleStates) -> NDArray[np.float64]:
    """Return states as (n, 13), in the loop's order."""
    return np.column_stack(
        [states.position, states.orientation, states.velocity, states.angular_velocity]
    )


def _in_numpy(fleet: Fleet) -> VehicleStates:
    """Return the fleet at TIME by NumPy alone."""
    with numpy_alone():
        return fleet.sample(TIME)


@contextmanager
def numpy_alone() -> Iterator[None]:
    """Put the tests' oracles in the kernels' place."""
    with (
        in_place_of(motion_kernels, motion_oracle),
        in_place_of(kernels, height_map_oracle),
    ):
        yield
