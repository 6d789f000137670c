"""The land-air vehicle faster than real time, on a map under all wheels, with wind and ground effect.

The peer of a row is the clock: how long the simulated time itself takes. RotorPy's multirotor is timed beside it where
it is installed (pip install rotorpy).
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness import Row, agreement, measure
from rfly_amphibious import AmphibiousModel, Controls, ModelState, VehicleParameters, Wind
from rfly_amphibious.state_layout import MEMORY
from rfly_amphibious.warm_up import warm_up
from rfly_common.parallel import cores
from rfly_terrain.height_map import HeightMap

MAP_SIDE = 1_000
SECONDS = 1.0
VEHICLES = 100
WIND = Wind((3.0, 1.0, 0.0), (1.0, 1.0, 0.5), seed=4)


def hills() -> HeightMap:
    """1,000 x 1,000 samples, a metre apart: waves of 2 m."""
    x = np.linspace(0.0, 60.0, MAP_SIDE)
    heights = 2.0 * np.sin(x / 3.0)[:, None] + 2.0 * np.cos(x / 2.0)[None, :]
    return HeightMap(heights, origin_x=-500.0, origin_y=-500.0, step_x=1.0, step_y=1.0)


def rows() -> Iterator[Row]:
    warm_up()
    params = VehicleParameters.load("full")
    model = AmphibiousModel(params, hills())
    drive = Controls(steering=0.05, drive_torque=60.0)
    fly = Controls(rotor_speed=params.hover_speed)
    cases = {
        "driving": (model.standing(speed=10.0), drive),
        "flying": (model.flying((0.0, 0.0, 12.0), velocity=(5.0, 0.0, 0.0)), fly),
    }
    steps = round(1000 * SECONDS)
    for method, name, targets, tolerance in (
        ("rk4", "RK4 1 ms", {"driving": 200.0, "flying": 350.0}, 0.01),
        ("semi_implicit_euler", "semi-implicit Euler 1 ms", {"driving": 500.0, "flying": 500.0}, 0.05),
    ):
        for case, (begin, controls) in cases.items():

            def ours(begin: ModelState = begin, controls: Controls = controls, method: str = method) -> ModelState:
                return model.step(begin, controls, 0.001, steps=steps, wind=WIND, method=method)  # type: ignore[arg-type]

            exact = model.step(begin, controls, 0.00025, steps=4 * steps, wind=WIND)
            taken = cpu_seconds(ours)
            yield Row(
                f"land-air vehicle {case}, {name}, one core",
                taken,
                SECONDS,
                "the clock",
                target_ratio=targets[case],
                agree=agreement(ours().position, exact.position, tolerance),
                note=f"{1e6 * taken / steps:.2f} µs of CPU time a step; compared with RK4 at 0.25 ms",
            )
    yield from batch_rows(model, cases)
    yield from drift_rows(params)
    yield from rotorpy_rows(VehicleParameters.load("scale_quad"))


def cpu_seconds(function: Callable[[], object], repeat: int = 60) -> float:
    """The least CPU time of one call, of all threads: what else runs on the machine hardly counts."""
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return min(taken)


def batch_rows(model: AmphibiousModel, cases: dict[str, tuple[ModelState, Controls]]) -> Iterator[Row]:
    """100 vehicles on all cores, half of them driving; each has to keep up with a multiple of real time."""
    driving, flying = (cases[case][0].x for case in ("driving", "flying"))
    rng = np.random.default_rng(1)
    x = np.concatenate([np.repeat(driving[None], VEHICLES // 2, 0), np.repeat(flying[None], VEHICLES // 2, 0)])
    x[VEHICLES // 2 :, :2] += rng.uniform(-100.0, 100.0, (VEHICLES // 2, 2))
    begin = ModelState(x, np.zeros((VEHICLES, MEMORY)))
    half = np.arange(VEHICLES) < VEHICLES // 2
    controls = Controls(
        rotor_speed=np.where(half, 0.0, model.params.hover_speed)[:, None],
        steering=np.where(half, 0.05, 0.0),
        drive_torque=np.where(half, 60.0, 0.0)[:, None],
    )
    seconds = 0.5
    for method, name, target in (("rk4", "RK4 1 ms", 4.0), ("semi_implicit_euler", "semi-implicit Euler 1 ms", 15.0)):

        def ours(method: str = method) -> ModelState:
            return model.step(begin, controls, 0.001, steps=500, wind=WIND, method=method)  # type: ignore[arg-type]

        alone = model.step(
            ModelState(x[0], np.zeros(MEMORY)),
            Controls(steering=0.05, drive_torque=60.0),
            0.001,
            steps=500,
            wind=WIND,
            method=method,  # type: ignore[arg-type]
        )
        yield Row(
            f"{VEHICLES} land-air vehicles, half driving, {name}",
            cpu_seconds(ours, 15) / cores(),
            seconds,
            "the clock",
            target_ratio=target,
            agree=agreement(ours().x[0], alone.x, 0.0, "any unit, the first one alone"),
            note=f"CPU time, shared by {cores()} cores",
        )


def drift_rows(params: VehicleParameters) -> Iterator[Row]:
    """Step-size convergence in one second of a turn with a light brake: error of RK4 at 1 ms over that at 2 ms."""
    model = AmphibiousModel(params)
    controls = Controls(steering=0.03, brake_torque=0.1 * params.max_brake_torque)
    begin = model.standing(speed=15.0)
    ends = {dt: model.step(begin, controls, dt, steps=round(1.0 / dt)).position for dt in (2e-3, 1e-3, 1.25e-4)}
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


def rotorpy_rows(params: VehicleParameters) -> Iterator[Row]:
    """A step of RotorPy's multirotor, which takes four rotors, beside our whole vehicle in flight."""
    if importlib.util.find_spec("rotorpy") is None:
        return
    from rotorpy.vehicles.multirotor import Multirotor

    places = params.rotor_position
    inertia = params.total_inertia
    peer = Multirotor(
        {
            "mass": params.mass,
            "Ixx": inertia[0, 0],
            "Iyy": inertia[1, 1],
            "Izz": inertia[2, 2],
            "Ixy": 0.0,
            "Iyz": 0.0,
            "Ixz": inertia[0, 2],
            "c_Dx": 0.0,
            "c_Dy": 0.0,
            "c_Dz": 0.0,
            "num_rotors": params.rotors,
            "rotor_pos": {f"r{j + 1}": place - (params.center_x, 0.0, 0.0) for j, place in enumerate(places)},
            "rotor_directions": -np.array(params.rotor_spin),
            "rI": np.zeros(3),
            "k_eta": params.thrust_coefficient,
            "k_m": params.torque_coefficient,
            "k_d": 0.0,
            "k_z": 0.0,
            "k_h": 0.0,
            "k_flap": 0.0,
            "tau_m": params.rotor_lag,
            "rotor_speed_min": 0.0,
            "rotor_speed_max": params.max_rotor_speed,
            "motor_noise_std": 0.0,
        },
        control_abstraction="cmd_motor_speeds",
    )
    speeds = np.full(params.rotors, 1.02 * params.hover_speed)
    start = {
        "x": np.array((0.0, 0.0, 20.0)),
        "v": np.zeros(3),
        "q": np.array((0.0, 0.0, 0.0, 1.0)),
        "w": np.zeros(3),
        "wind": np.zeros(3),
        "rotor_speeds": np.full(params.rotors, params.hover_speed),
    }
    command = {"cmd_motor_speeds": speeds}
    airless = params.replace(
        linear_drag=(0.0,) * 3, drag_area=(0.0,) * 3, rotor_drag_coefficient=0.0, zero_thrust_advance_ratio=1e9
    )
    model = AmphibiousModel(airless, ground_effect=False)
    begin = model.flying((0.0, 0.0, 20.0))
    controls = Controls(rotor_speed=speeds)

    def theirs() -> dict[str, np.ndarray]:
        state = start
        for _ in range(100):
            state = peer.step(state, command, 0.001)
        return state

    ours_s, theirs_s = measure(lambda: model.step(begin, controls, steps=1000), theirs, 5)
    yield Row(
        "scale_quad in flight, a step of all 42 states",
        ours_s / 1000,
        theirs_s / 100,
        "RotorPy, Multirotor",
        target_ratio=500.0,
        agree=agreement(model.step(begin, controls, steps=100).velocity, theirs()["v"], 1e-3, "m/s"),
        note="rigid body and rotors only on their side",
    )
