# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Does `rfly sim fit` find hidden parameters? A minute of the excitation with noisy sensors, each
seed another vehicle.

    python -m benchmarks.identification --seeds 20

Hidden are masses, rotor constants, inertia, lags, struts and tyres, each 15 % about those of the
shipped set, which the fit is given. The reference of position and velocity (RTK-GNSS or motion
capture on a real vehicle) has the noise below.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from rfly_amphibious import Scenario, VehicleParameters
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
from rfly_lab.identification.excitation import excitation
from rfly_lab.identification.tyre_fit import axle_stiffness
from rfly_lab.identification.vehicle_fit import fit_vehicle, tyre_curve
from rfly_lab.identification.vehicle_log import VehicleLog, read_log
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.mcap_log import write_mcap

SPREAD = 0.15
REFERENCE_NOISE = {
    "position": 0.01,
    "orientation": 0.001,
    "velocity": 0.02,
    "rates": 0.002,
}
"""Standard deviation of each sample, m, rad, m/s, rad/s, at 50 Hz."""
LIMITS = {
    "mass": 1.0,
    "c_T": 1.0,
    "c_M": 3.0,
    "I_xx": 3.0,
    "I_yy": 3.0,
    "I_zz": 3.0,
    "C_f": 5.0,
    "C_r": 5.0,
    "tyre x": 1.0,
    "tyre y": 1.0,
    "spring": 5.0,
    "lag": 1.0,
}
"""%, at most"""
HIDDEN = (
    "mass_body",
    "thrust_coefficient",
    "figure_of_merit",
    "rotor_inertia",
    "rotor_lag",
    "front_spring",
    "rear_spring",
    "bump_damping",
    "rebound_damping",
    "cornering_stiffness_per_rad",
    "friction_x",
    "friction_y",
    "slip_stiffness",
    "relaxation_x",
    "relaxation_y",
)


class Result(NamedTuple):
    """Errors of one seed in %: of tyre curves root mean squares, of the largest force."""

    seed: int
    errors: dict[str, float]
    within: float
    """Share of the true values that lie within the 95 % intervals."""


def hidden(known: VehicleParameters, seed: int) -> VehicleParameters:
    """Return a vehicle similar to the known one."""
    rng = np.random.default_rng(seed)
    values = {
        name: getattr(known, name) * rng.uniform(1.0 - SPREAD, 1.0 + SPREAD) for name in HIDDEN
    }

    # inertia of a body that can exist
    inertia = np.array(known.inertia) * rng.uniform(1.0 - SPREAD, 1.0 + SPREAD, 6)
    inertia[2] = min(inertia[2], 0.98 * (inertia[0] + inertia[1]))

    # tyre curves
    shapes = {"shape_x": rng.uniform(1.5, 1.8), "shape_y": rng.uniform(1.25, 1.5)}
    shapes |= {
        "curvature_x": rng.uniform(-0.5, 0.1),
        "curvature_y": rng.uniform(-0.9, -0.2),
    }
    return known.replace(**values, **shapes, inertia=tuple(inertia))


def with_reference_noise(log: VehicleLog, seed: int) -> VehicleLog:
    """Return its ground truth as a reference system measures it."""
    rng = np.random.default_rng((seed, 1))
    truth = log.series["ground_truth/odom"]
    sigma = np.repeat([*REFERENCE_NOISE.values()], (3, 4, 3, 3)) * np.repeat(
        (1.0, 0.5, 1.0, 1.0), (3, 4, 3, 3)
    )
    noisy = truth._replace(value=truth.value + sigma * rng.standard_normal(truth.value.shape))
    return replace(log, series=log.series | {"ground_truth/odom": noisy})


def fit(job: tuple[str, int]) -> Result:
    """Run one seed and fit its log."""
    name, seed = job
    known = VehicleParameters.load(name)
    truth = hidden(known, seed)
    scenario = Scenario.parse(excitation(known, name).encode(), "excite.yaml", "excite").with_seed(
        seed
    )

    # the run of the hidden vehicle, and its log
    parts = SensorParameters.load(name), EstimatorParameters.load(name)
    closed = run_closed_loop(replace(scenario, params=truth), *parts, keep_ticks=True)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.mcap"
        write_mcap(closed, path)
        log = with_reference_noise(read_log(path, known), seed)

    # the fit, parameter by parameter
    fitted = fit_vehicle(log, known)
    by_name = {e.name.split(",")[0]: e for e in fitted.estimated}
    true = {
        "mass": truth.mass,
        "c_T": truth.thrust_coefficient,
        "c_M": truth.torque_coefficient,
        "I_xx": truth.inertia[0],
        "I_yy": truth.inertia[1],
        "I_zz": truth.inertia[2],
        "C_f": axle_stiffness(truth, "front"),
        "C_r": axle_stiffness(truth, "rear"),
        "k_f": truth.front_spring,
        "k_r": truth.rear_spring,
        "τ_m": truth.rotor_lag,
    }

    errors = {key: 100.0 * abs(by_name[key].value / value - 1.0) for key, value in true.items()}
    errors["lag"], errors["spring"] = (
        errors.pop("τ_m"),
        max(errors.pop("k_f"), errors.pop("k_r")),
    )
    assert fitted.tyres is not None

    # tyre curves
    for axis in "xy":
        true_curve = tyre_curve(truth, axis)
        error = tyre_curve(fitted.tyres.params, axis) - true_curve
        errors[f"tyre {axis}"] = 100.0 * float(
            np.sqrt((error**2).mean()) / np.abs(true_curve).max()
        )

    # the intervals
    within = [
        abs(by_name[key].value - value) <= 1.96 * by_name[key].sigma for key, value in true.items()
    ]
    return Result(seed, {key: errors[key] for key in LIMITS}, float(np.mean(within)))


def main() -> int:
    """Run all seeds and print the errors of each parameter."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.identification", description=__doc__
    )
    parser.add_argument("--vehicle", default="scale")
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, starting from 1")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    jobs = [(options.vehicle, seed) for seed in range(1, options.seeds + 1)]
    begin = time.perf_counter()
    results = []

    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for result in pool.imap_unordered(fit, jobs):
            results.append(result)
            print(
                result.seed,
                {key: round(error, 2) for key, error in result.errors.items()},
                file=sys.stderr,
            )

    # the table of errors
    table = Table("parameter", "limit %", "mean %", "largest %", "seeds within the limit")
    good = True

    for key, limit in LIMITS.items():
        errors = np.array([result.errors[key] for result in results])
        good &= bool((errors <= limit).all())
        count = f"{(errors <= limit).sum()} of {len(results)}"
        table.add_row(key, f"{limit:g}", f"{errors.mean():.2f}", f"{errors.max():.2f}", count)

    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table)
    within = np.mean([result.within for result in results])
    console.print(
        f"{100.0 * within:.0f} % within their 95 % intervals; {time.perf_counter() - begin:.0f} s"
    )

    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
