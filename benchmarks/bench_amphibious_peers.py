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
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench_amphibious import hills
from benchmarks.harness import Row, agreement
from rfly_amphibious import AmphibiousModel, Controls, ModelState, VehicleParameters
from rfly_amphibious.warm_up import warm_up
from rfly_common.kernels.parallel import cores

if TYPE_CHECKING:
    from benchmarks.mujoco_vehicle import MujocoVehicle

VEHICLES = 100
"""Vehicles side by side in the rows with `mujoco.rollout`."""
DRONES = 1_000
"""Drones side by side in the row with RotorPy's batch."""

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
        yield rolled_out(case, model, MujocoVehicle(params, terrain), controls, tolerance)


def rolled_out(
    case: str,
    model: AmphibiousModel,
    peer: MujocoVehicle,
    controls: Controls,
    tolerance: float,
) -> Row:
    """Compare many vehicles on all cores with `mujoco.rollout`: speeds of 4 to 6 m/s, RK4 1 ms."""
    steps = 200
    speeds = np.linspace(4.0, 6.0, VEHICLES)
    if case == "driving":
        begins = [model.standing(speed=speed) for speed in speeds]
    else:
        begins = [model.flying((0.0, 0.0, 12.0), velocity=(v, 0.0, 0.0)) for v in speeds]
    together = ModelState(
        np.array([begin.x for begin in begins]), np.array([begin.memory for begin in begins])
    )
    states = peer.states(begins)

    def ours() -> ModelState:
        return model.step(together, controls, steps=steps)

    def theirs() -> np.ndarray:
        return peer.roll_out(states, steps, cores())

    ours_s, theirs_s = least_times(ours, theirs, 8)
    each = steps * VEHICLES
    return Row(
        f"{VEHICLES} land-air vehicles {case}, a step of one by RK4",
        ours_s / each,
        theirs_s / each,
        "mujoco.rollout, RK4",
        target_ratio=30.0,
        agree=agreement(ours().position, theirs(), tolerance),
        note=f"processor time, {cores()} threads each; places after 0.2 s",
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
    """Compare RotorPy's multirotor with four rotors and our whole vehicle in flight.

    Its batch of many drones needs PyTorch (`pip install "rotorpy[batched]"`), 0.8 GB and more,
    which `make bench` does not install.
    """
    params = VehicleParameters.load("scale_quad")
    speeds = np.full(params.rotors, 1.02 * params.hover_speed)

    # ours without air resistance
    airless = params.replace(
        linear_drag=(0.0,) * 3,
        drag_area=(0.0,) * 3,
        rotor_drag_coefficient=0.0,
        zero_thrust_advance_ratio=1e9,
    )
    model = AmphibiousModel(airless, ground_effect=False)
    yield alone(params, model, speeds)
    if importlib.util.find_spec("torchdiffeq") is None:
        print(
            'amphibious_peers: no row with RotorPy\'s batch (pip install "rotorpy[batched]")',
            file=sys.stderr,
        )
    else:
        yield batched(params, model, speeds)


def rotorpy_parameters(params: VehicleParameters) -> dict[str, Any]:
    """Return the parameters of the same multirotor, without air resistance, for RotorPy."""
    inertia = params.total_inertia
    centre = (params.center_x, 0.0, 0.0)
    return {
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
        "rotor_pos": {f"r{j + 1}": place - centre for j, place in enumerate(params.rotor_position)},
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
    }


def rotorpy_start(params: VehicleParameters) -> dict[str, np.ndarray]:
    """Return a state of rest at 20 m for RotorPy, with the rotors at the speed of hovering."""
    return {
        "x": np.array((0.0, 0.0, 20.0)),
        "v": np.zeros(3),
        "q": np.array((0.0, 0.0, 0.0, 1.0)),
        "w": np.zeros(3),
        "wind": np.zeros(3),
        "rotor_speeds": np.full(params.rotors, params.hover_speed),
    }


def alone(params: VehicleParameters, model: AmphibiousModel, speeds: np.ndarray) -> Row:
    """Compare one drone with RotorPy's Multirotor."""
    from rotorpy.vehicles.multirotor import Multirotor

    peer = Multirotor(rotorpy_parameters(params), control_abstraction="cmd_motor_speeds")
    command = {"cmd_motor_speeds": speeds}
    begin = model.flying((0.0, 0.0, 20.0))
    controls = Controls(rotor_speed=speeds)

    def theirs() -> dict[str, np.ndarray]:
        state = rotorpy_start(params)
        for _ in range(100):
            state = peer.step(state, command, 0.001)
        return state

    ours_s, theirs_s = least_times(lambda: model.step(begin, controls, steps=1000), theirs, 8)
    return Row(
        "scale_quad in flight, a step of all 42 states",
        ours_s / 1000,
        theirs_s / 100,
        "RotorPy, Multirotor, one at a time",
        target_ratio=500.0,
        agree=agreement(
            model.step(begin, controls, steps=100).velocity, theirs()["v"], 1e-3, "m/s"
        ),
        note="rigid body and rotors only on their side",
    )


def batched(params: VehicleParameters, model: AmphibiousModel, speeds: np.ndarray) -> Row:
    """Compare many drones with RotorPy's BatchedMultirotor, in PyTorch on the processor."""
    import torch
    from rotorpy.vehicles.multirotor import BatchedMultirotor, BatchedMultirotorParams

    torch.set_num_threads(1)  # more only wait for each other
    steps = 20
    device = torch.device("cpu")
    start = {
        name: torch.from_numpy(np.tile(value, (DRONES, 1)))
        for name, value in rotorpy_start(params).items()
    }
    peer = BatchedMultirotor(
        BatchedMultirotorParams([rotorpy_parameters(params)] * DRONES, DRONES, device),
        DRONES,
        start,
        device,
        control_abstraction="cmd_motor_speeds",
        integrator="rk4",
    )
    command = {"cmd_motor_speeds": torch.from_numpy(np.tile(speeds, (DRONES, 1)))}
    one = model.flying((0.0, 0.0, 20.0))
    begin = ModelState(np.tile(one.x, (DRONES, 1)), np.tile(one.memory, (DRONES, 1)))
    controls = Controls(rotor_speed=np.tile(speeds, (DRONES, 1)))

    def ours() -> ModelState:
        return model.step(begin, controls, steps=steps)

    def theirs() -> dict[str, Any]:
        state = {name: value.clone() for name, value in start.items()}
        for _ in range(steps):
            state = peer.step(state, command, 0.001)
        return state

    ours_s, theirs_s = least_times(ours, theirs, 8)
    each = steps * DRONES
    return Row(
        f"{DRONES:,} scale_quads in flight, a step of one",
        ours_s / each,
        theirs_s / each,
        "RotorPy, BatchedMultirotor, RK4",
        target_ratio=10.0,
        agree=agreement(ours().velocity, theirs()["v"].numpy(), 1e-3, "m/s"),
        note="processor time of all threads; rigid body and rotors only on their side",
    )
