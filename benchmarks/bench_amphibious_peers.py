# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The land-air vehicle against other simulators: MuJoCo, RotorPy, CommonRoad's multi-body car.

They are the extra `peers` (pip install ".[peers]"); a row whose peer is missing is left out with a
message. Both sides start from the same state with the same parameters, and their final states are
compared. The least processor time of alternating calls counts, which other load hardly changes.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from time import process_time

import numpy as np

from benchmarks.bench_amphibious import hills
from benchmarks.harness import Row, agreement
from rfly_amphibious import AmphibiousModel, Controls, ModelState, VehicleParameters
from rfly_amphibious.warm_up import warm_up

PEERS = {
    "mujoco": ("MuJoCo", "mujoco"),
    "rotorpy": ("RotorPy", "rotorpy"),
    "vehiclemodels": ("CommonRoad's multi-body car", "commonroad-vehicle-models"),
}


def rows() -> Iterator[Row]:
    """Yield the rows of every peer that is installed."""
    warm_up()
    makers = {
        "mujoco": mujoco_rows,
        "rotorpy": rotorpy_rows,
        "vehiclemodels": commonroad_rows,
    }
    for module, (peer, package) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            print(
                f"amphibious_peers: no rows with {peer} (pip install {package})",
                file=sys.stderr,
            )
        else:
            yield from makers[module]()


def least_times(
    ours: Callable[[], object], theirs: Callable[[], object], turns: int
) -> tuple[float, float]:
    """Return the least processor time of either side, s."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for side, function in zip(times, (ours, theirs), strict=True):
            start = process_time()
            function()
            side.append(process_time() - start)
    return min(times[0]), min(times[1])


def mujoco_rows() -> Iterator[Row]:
    """Yield half a second of rolling over hills, and of flying, at 5 m/s; RK4 of 1 ms on both
    sides.
    """
    from benchmarks.mujoco_vehicle import (
        MujocoVehicle,
        without_air_or_rolling_resistance,
    )

    params = without_air_or_rolling_resistance(VehicleParameters.load("full"))
    terrain = hills()
    model = AmphibiousModel(params, terrain, ground_effect=False)
    peer = MujocoVehicle(params, terrain)
    steps = 500
    cases = (
        ("driving", model.standing(speed=5.0), Controls(), 0.03),
        (
            "flying",
            model.flying((0.0, 0.0, 12.0), velocity=(5.0, 0.0, 0.0)),
            hover(params),
            0.001,
        ),
    )

    for case, begin, controls, tolerance in cases:

        def ours(begin: ModelState = begin, controls: Controls = controls) -> ModelState:
            return model.step(begin, controls, steps=steps)

        def theirs(begin: ModelState = begin) -> np.ndarray:
            peer.start(begin)
            return peer.run(steps)

        ours_s, theirs_s = least_times(ours, theirs, 25)
        yield Row(
            f"land-air vehicle {case}, a step of RK4",
            ours_s / steps,
            theirs_s / steps,
            "MuJoCo, RK4",
            target_ratio=30.0,
            agree=agreement(ours().position, theirs(), tolerance),
            note=f"{peer.bodies} bodies; place after {params_text(begin)}; tyres are its contacts "
            "of cylinders",
        )


def hover(params: VehicleParameters) -> Controls:
    """Return the controls of a vehicle that hovers."""
    return Controls(rotor_speed=params.hover_speed)


def params_text(begin: ModelState) -> str:
    """Return the text of where a run begins."""
    return f"0.5 s from {np.linalg.norm(begin.velocity):.1f} m/s"


def commonroad_rows() -> Iterator[Row]:
    """Yield 1.5 s into a bend at 15 m/s, with the parameters of that car on both sides."""
    from benchmarks.commonroad_car import CommonRoadCar, our_car, our_motion

    model = AmphibiousModel(our_car())
    peer = CommonRoadCar()
    speed = 15.0
    steering = 0.03
    steps = 1_500
    begin = model.standing(speed=speed)
    controls = Controls(steering=steering)

    def theirs() -> list[float]:
        return peer.run(peer.start(speed), steering, 0.001, steps)

    for method, name in (
        ("rk4", "RK4"),
        ("semi_implicit_euler", "semi-implicit Euler"),
    ):

        def ours(method: str = method) -> ModelState:
            return model.step(begin, controls, 0.001, steps=steps, method=method)  # type: ignore[arg-type]

        ours_s, theirs_s = least_times(ours, theirs, 6)
        yield Row(
            f"a car in a bend, a step of {name}",
            ours_s / steps,
            theirs_s / steps,
            "CommonRoad's multi-body model, RK4",
            target_ratio=100.0,
            agree=agreement(our_motion(ours()), peer.motion(theirs()), 0.12, "m, rad, m/s, rad/s"),
            note="plain Python there; 22 m of way, places within 0.1 m, yaw rates within 2 %",
        )


def rotorpy_rows() -> Iterator[Row]:
    """Compare RotorPy's multirotor with four rotors and our whole vehicle in flight."""
    from rotorpy.vehicles.multirotor import Multirotor

    params = VehicleParameters.load("scale_quad")
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
            "rotor_pos": {
                f"r{j + 1}": place - (params.center_x, 0.0, 0.0) for j, place in enumerate(places)
            },
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

    # both in the same state, with the same rotor speeds
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

    # ours without air resistance
    airless = params.replace(
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotor_drag_coefficient=0.0,
        zero_thrust_advance_ratio=1e9,
    )
    model = AmphibiousModel(airless, ground_effect=False)
    begin = model.flying((0.0, 0.0, 20.0))
    controls = Controls(rotor_speed=speeds)

    def theirs() -> dict[str, np.ndarray]:
        state = start
        for _ in range(100):
            state = peer.step(state, command, 0.001)
        return state

    ours_s, theirs_s = least_times(lambda: model.step(begin, controls, steps=1000), theirs, 8)
    yield Row(
        "scale_quad in flight, a step of all 42 states",
        ours_s / 1000,
        theirs_s / 100,
        "RotorPy, Multirotor",
        target_ratio=500.0,
        agree=agreement(
            model.step(begin, controls, steps=100).velocity, theirs()["v"], 1e-3, "m/s"
        ),
        note="rigid body and rotors only on their side",
    )
