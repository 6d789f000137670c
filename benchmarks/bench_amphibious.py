# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The land-air vehicle faster than real time, on a map, with wind and ground effect.

The peer of a row is the simulated time itself, as a machine of this speed should keep it. The
accuracy is reported too.
Other simulators are in `bench_amphibious_peers`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.budgets import SCALED, scaled
from benchmarks.harness import Row, agreement
from rfly_amphibious import (
    AmphibiousModel,
    Controls,
    ModelState,
    VehicleParameters,
    Wind,
)
from rfly_amphibious.vehicle import state_layout as at
from rfly_amphibious.vehicle.state_layout import MEMORY
from rfly_amphibious.warm_up import warm_up
from rfly_common.kernels.parallel import cores
from rfly_common.physics import GRAVITY
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.solids import ObjectBoxes

MAP_SIDE = 1_000
SECONDS = 1.0
VEHICLES = 100
OBJECTS = 1_000
WIND = Wind((3.0, 1.0, 0.0), (1.0, 1.0, 0.5), seed=4)


def hills() -> HeightMap:
    """Return 1,000 x 1,000 samples, a metre apart: waves of 2 m."""
    x = np.linspace(0.0, 60.0, MAP_SIDE)
    heights = 2.0 * np.sin(x / 3.0)[:, None] + 2.0 * np.cos(x / 2.0)[None, :]
    return HeightMap(heights, origin_x=-500.0, origin_y=-500.0, step_x=1.0, step_y=1.0)


def rows() -> Iterator[Row]:
    """Yield the speed of the whole vehicle, then its costs, drifts and energy."""
    warm_up()
    params = VehicleParameters.load("full")
    model = AmphibiousModel(params, hills())
    drive = Controls(steering=0.05, drive_torque=60.0)
    fly = Controls(rotor_speed=params.hover_speed)
    cases = {
        "driving": (model.standing(speed=10.0), drive),
        "flying": (model.flying((0.0, 0.0, 12.0), velocity=(5.0, 0.0, 0.0)), fly),
    }

    # each method and case beside the clock
    steps = round(1000 * SECONDS)
    for method, name, targets, tolerance in (
        ("rk4", "RK4 1 ms", {"driving": 200.0, "flying": 350.0}, 0.01),
        (
            "semi_implicit_euler",
            "semi-implicit Euler 1 ms",
            {"driving": 500.0, "flying": 500.0},
            0.05,
        ),
    ):
        for case, (begin, controls) in cases.items():

            def ours(
                begin: ModelState = begin,
                controls: Controls = controls,
                method: str = method,
            ) -> ModelState:
                return model.step(begin, controls, 0.001, steps=steps, wind=WIND, method=method)  # type: ignore[arg-type]

            exact = model.step(begin, controls, 0.00025, steps=4 * steps, wind=WIND)
            seconds = cpu_seconds(ours)
            yield Row(
                f"land-air vehicle {case}, {name}, one core",
                seconds,
                scaled(SECONDS),
                f"real time, {SCALED}",
                target_ratio=targets[case],
                agree=agreement(ours().position, exact.position, tolerance),
                note=f"{1e6 * seconds / steps:.2f} µs of CPU time a step; "
                "compared with RK4 at 0.25 ms",
            )

    # houses, many vehicles, accuracy
    yield from solid_rows(params, cases)
    yield from batch_rows(model, cases)
    yield from drift_rows(params)
    yield from energy_rows(params)


def solid_rows(
    params: VehicleParameters, cases: dict[str, tuple[ModelState, Controls]]
) -> Iterator[Row]:
    """Yield the cost of 1,000 houses on the map.

    They are spread at random, some of them a few metres from the vehicle's way.
    """
    places = np.random.default_rng(2).uniform(-150.0, 150.0, (OBJECTS, 3)) * (
        1.0,
        1.0,
        0.0,
    )
    places[np.abs(places[:, 1]) < 8.0, 1] = 8.0

    # the same map with and without houses
    bare = AmphibiousModel(params, hills())
    among = AmphibiousModel(
        params,
        hills(),
        solids=ObjectBoxes(places, np.full((OBJECTS, 3), (1.0, 1.0, 6.0))),
    )

    for case, (begin, controls) in cases.items():

        def second(
            model: AmphibiousModel,
            begin: ModelState = begin,
            controls: Controls = controls,
        ) -> ModelState:
            return model.step(begin, controls, 0.001, steps=1000, wind=WIND)

        seconds = cpu_seconds(partial(second, among))
        yield Row(
            f"land-air vehicle {case} among {OBJECTS:,} solid objects, RK4 1 ms",
            seconds,
            cpu_seconds(partial(second, bare)),
            "the same without objects",
            target_ratio=1.0 / 1.3,
            agree=agreement(second(among).position, second(bare).position, 0.0),
            note=f"{1e3 * seconds:.2f} µs of CPU time a step; it touches none of them",
        )


def cpu_seconds(function: Callable[[], object], repeat: int = 60) -> float:
    """Return the least CPU time of one call, all threads, which other load hardly changes."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def batch_rows(
    model: AmphibiousModel, cases: dict[str, tuple[ModelState, Controls]]
) -> Iterator[Row]:
    """Yield rows of 100 vehicles on all cores, half of them driving.

    Each has to run at a multiple of real time.
    """
    # half of them drive, half fly
    driving, flying = (cases[case][0].x for case in ("driving", "flying"))
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            np.repeat(driving[None], VEHICLES // 2, 0),
            np.repeat(flying[None], VEHICLES // 2, 0),
        ]
    )
    x[VEHICLES // 2 :, :2] += rng.uniform(-100.0, 100.0, (VEHICLES // 2, 2))
    begin = ModelState(x, np.zeros((VEHICLES, MEMORY)))

    half = np.arange(VEHICLES) < VEHICLES // 2
    hover = Controls(rotor_speed=model.params.hover_speed)
    controls = Controls(
        rotor_speed=np.where(half, 0.0, model.params.hover_speed)[:, None],
        steering=np.where(half, 0.05, 0.0),
        drive_torque=np.where(half, 60.0, 0.0)[:, None],
    )

    # the same vehicles one by one
    each = [
        (
            ModelState(begin.x[v], begin.memory[v]),
            Controls(steering=0.05, drive_torque=60.0) if half[v] else hover,
        )
        for v in range(VEHICLES)
    ]

    seconds = 0.5
    for method, name, target in (
        ("rk4", "RK4 1 ms", 4.0),
        ("semi_implicit_euler", "semi-implicit Euler 1 ms", 15.0),
    ):

        def ours(method: str = method) -> ModelState:
            return model.step(begin, controls, 0.001, steps=500, wind=WIND, method=method)  # type: ignore[arg-type]

        def one_by_one(method: str = method) -> list[ModelState]:
            return [
                model.step(*vehicle, 0.001, steps=500, wind=WIND, method=method)  # type: ignore[arg-type]
                for vehicle in each
            ]

        alone = one_by_one()[0]
        yield Row(
            f"{VEHICLES} land-air vehicles side by side, {name}, CPU time",
            cpu_seconds(ours, 15),
            cpu_seconds(one_by_one, 5),
            "one after the other",
            target_ratio=3.0,
            agree=agreement(ours().x[0], alone.x, 0.0, "any unit, the first one"),
            note="eight in one vector of the processor's (SIMD); one alone has its wheels in one",
        )
        yield Row(
            f"{VEHICLES} land-air vehicles, half driving, {name}",
            cpu_seconds(ours, 15) / cores(),
            scaled(seconds),
            f"real time, {SCALED}",
            target_ratio=target,
            agree=agreement(ours().x[0], alone.x, 0.0, "any unit, the first one alone"),
            note=f"CPU time, shared by {cores()} cores",
        )


def drift_rows(params: VehicleParameters) -> Iterator[Row]:
    """Yield the step-size convergence in one second of a turn with a light brake.

    It is the error of RK4 at 1 ms over that at 2 ms.
    """
    model = AmphibiousModel(params)
    controls = Controls(steering=0.03, brake_torque=0.1 * params.max_brake_torque)
    begin = model.standing(speed=15.0)
    ends = {
        dt: model.step(begin, controls, dt, steps=round(1.0 / dt)).position
        for dt in (2e-3, 1e-3, 1.25e-4)
    }
    errors = {dt: float(np.linalg.norm(ends[dt] - ends[1.25e-4])) for dt in (2e-3, 1e-3)}

    yield Row(
        "RK4, position error after 1 s of turning and braking",
        errors[1e-3],
        errors[2e-3],
        "the same at 2 ms",
        target_ratio=1.0,
        agree=agreement(ends[1e-3], ends[1.25e-4], 1e-3),
        unit="m",
        note="compared with 0.125 ms",
    )


def energy_rows(params: VehicleParameters) -> Iterator[Row]:
    """Yield the drift of the swinging energy.

    The vehicle bounces, pitches and rolls for ten seconds without a damper.
    """
    undamped = params.replace(
        bump_damping=0.0,
        rebound_damping=0.0,
        tyre_damping=0.0,
        stop_damping=0.0,
        slip_stiffness=1e-9,
        cornering_stiffness_per_rad=1e-9,
        low_speed_damping=0.0,
        rolling_resistance=0.0,
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotational_drag=(0.0,) * 3,
    )

    # a swing about the standing state
    model = AmphibiousModel(undamped)
    begin = model.standing()
    rest = energy(undamped, begin.x[None])[0]
    begin.x[at.STRUT : at.STRUT + 4] = 0.002, 0.001, 0.0, -0.001
    swinging = energy(undamped, begin.x[None])[0] - rest
    exact = model.step(begin, Controls(), 0.00025, steps=40_000)

    for method, name, share in (
        ("rk4", "RK4", 3e-4),
        ("semi_implicit_euler", "semi-implicit Euler", 0.08),
    ):
        run = model.run(begin, Controls(), 10.0, sample_period=0.05, method=method)  # type: ignore[arg-type]
        drift = float(np.abs(energy(undamped, run.x) - rest - swinging).max())
        yield Row(
            f"{name} 1 ms, largest drift of energy in 10 s undamped",
            drift,
            swinging,
            "the energy that swings",
            target_ratio=share,
            agree=agreement(run.final.position, exact.position, 2e-3),
            kind="at most",
            unit="J",
            note="compared with RK4 at 0.25 ms",
        )


def energy(p: VehicleParameters, x: np.ndarray) -> np.ndarray:
    """Return the energy (k,) of states (k, states) on level ground without dampers, J.

    It sums motion, height, springs, roll bars and tyres.
    """
    turn = Rotation.from_quat(np.roll(x[:, at.QUATERNION : at.QUATERNION + 4], -1, axis=1))
    velocity = x[:, at.VELOCITY : at.VELOCITY + 3]
    rates = x[:, at.RATES : at.RATES + 3]
    strut = x[:, at.STRUT : at.STRUT + 4]
    rate = x[:, at.STRUT_RATE : at.STRUT_RATE + 4]

    # motion and height of the body
    total = 0.5 * p.mass_sprung * (velocity**2).sum(axis=1) + p.mass_sprung * GRAVITY * x[:, 2]
    total += 0.5 * np.einsum("ki,ij,kj->k", rates, p.inertia_matrix, rates)
    up = np.array((0.0, 0.0, 1.0))
    springs = (p.front_spring, p.front_spring, p.rear_spring, p.rear_spring)

    # wheels, tyres and springs
    for i, hub in enumerate(p.hub_position):
        lever = hub + strut[:, i : i + 1] * up
        height = x[:, 2] + turn.apply(lever)[:, 2]
        speed = velocity + turn.apply(np.cross(rates, lever) + rate[:, i : i + 1] * up)
        total += 0.5 * p.mass_unsprung * (speed**2).sum(axis=1) + p.mass_unsprung * GRAVITY * height
        total += 0.5 * p.tyre_stiffness * np.maximum(0.0, p.wheel_radius - height) ** 2
        total += p.spring_load[i] * strut[:, i] + 0.5 * springs[i] * strut[:, i] ** 2

    # roll bars
    total += 0.5 * p.front_anti_roll * (strut[:, 0] - strut[:, 1]) ** 2
    return total + 0.5 * p.rear_anti_roll * (strut[:, 2] - strut[:, 3]) ** 2
