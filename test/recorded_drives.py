# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorded drives of a vehicle on level ground, and an estimator that follows them."""

from __future__ import annotations

import dataclasses

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import (
    EstimatorParameters,
)
from rfly_common.frames import rotation_matrix
from rfly_lab.runs.run import MissionPilot
from rfly_terrain.height_map.height_map import HeightMap

TICK = 4
"""Steps of 1 ms."""
ALIGNED = 1.5
"""Time of standing before anything moves, s."""
SHORT_HOP = """version: 1
vehicle: scale
seed: 3
method: semi_implicit_euler
wind: {mean_mps: [2, 0, 0], gust_sigma_mps: [0.7, 0.7, 0.2]}
mission:
  drive_speed_mps: 3
  fly_speed_mps: 3
  items:
    - {mode: waypoint, position_m: [5, 0]}
    - {mode: takeoff, height_m: 3}
    - {mode: waypoint, position_m: [9, 3]}
    - {mode: land}
end: {when: mission_done, time_s: 40}
"""
FLAT = HeightMap(
    np.zeros((3, 3), np.float32), origin_x=-100.0, origin_y=-100.0, step_x=100.0, step_y=100.0
)


@dataclasses.dataclass
class Drive:
    """A recorded run of a vehicle, which any number of sensor suites may look at."""

    model: AmphibiousModel
    ticks: list
    wind: Wind

    @classmethod
    def of(cls, scenario, terrain=FLAT, solids=None):
        """Carry out the mission with a pilot who sees the truth, after a while of standing."""
        model = AmphibiousModel(scenario.params, terrain, solids=solids)
        pilot = MissionPilot(model, scenario.legs)
        begin = model.standing(*scenario.start, scenario.heading)
        most = round(scenario.end_time / 0.001)
        stepper = Stepper(
            model, begin, most, 0.001, scenario.wind, "semi_implicit_euler", keep_steps=True
        )
        held = Controls(brake_torque=scenario.params.max_brake_torque)
        outputs = model.outputs(begin)
        ticks = []

        while stepper.done < most and not pilot.guide.done:
            before = ModelState(
                stepper.state.x.copy(), stepper.state.memory.copy(), stepper.state.time
            )
            controls = held if before.time < ALIGNED else pilot(stepper.state, outputs)
            stepper.advance(controls, TICK)
            outputs = stepper.outputs
            ticks.append((before, *(array.copy() for array in stepper.step_states), controls))

        return cls(model, ticks, scenario.wind)

    def samples(self, suite):
        """Yield the samples of each tick, and the true state at its end."""
        for before, x, memory, controls in self.ticks:
            yield suite.observe(before, x, memory, controls, self.wind), x[-1]


SENSORS = SensorParameters.load("scale")
PARAMETERS = EstimatorParameters.load("scale")


def new_estimator(drive, terrain=FLAT, sensors=SENSORS, **changes):
    return StateEstimator(
        PARAMETERS.replace(**changes), sensors, drive.model.params, terrain=terrain
    )


def errors(ticks, estimator):
    """Return time and errors of position, velocity and attitude (rotation vector), (ticks, 10)."""
    rows = []
    covariances = []
    for tick, truth in ticks:
        time = float(tick.imu.time[-1])
        estimate = estimator.update(dataclasses.replace(tick, ground_truth=None))
        if estimate is None:
            continue
        difference = rotation_matrix(truth[[7, 8, 9, 6]]) @ rotation_matrix(estimate.orientation).T
        turned = 0.5 * (difference - difference.T)[[2, 0, 1], [1, 2, 0]]
        rows.append(
            [time, *(truth[:3] - estimate.position), *(truth[3:6] - estimate.velocity), *turned]
        )
        covariances.append(estimate.covariance)

    return np.array(rows), np.array(covariances)


SHORT_DRIVE = """version: 1
vehicle: scale
method: semi_implicit_euler
mission:
  drive_speed_mps: 3
  items:
    - {mode: waypoint, position_m: [6, 0]}
    - {mode: waypoint, position_m: [10, 4]}
end: {when: time, time_s: 5}
"""
