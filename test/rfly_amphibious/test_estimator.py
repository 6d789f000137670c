"""The state estimator on the readings of the real sensors, against the simulation's truth."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from rfly_amphibious import estimator_kernels as at
from rfly_amphibious.estimator import StateEstimator
from rfly_amphibious.estimator_parameters import EstimatorParameters
from rfly_amphibious.flight_control import rotation_matrix
from rfly_amphibious.mission_pilot import MissionPilot
from rfly_amphibious.model import AmphibiousModel, Controls, ModelState
from rfly_amphibious.scenario import Scenario
from rfly_amphibious.sensor_parameters import SensorParameters
from rfly_amphibious.sensors import SensorSuite
from rfly_amphibious.stepper import Stepper
from rfly_amphibious.wind import Wind
from rfly_terrain.height_map import HeightMap

TICK = 4
"""steps of 1 ms"""
ALIGNED = 1.5
"""s of standing before anything moves"""
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
FLAT = HeightMap(np.zeros((3, 3), np.float32), origin_x=-100.0, origin_y=-100.0, step_x=100.0, step_y=100.0)


@dataclasses.dataclass
class Drive:
    """What a vehicle has done, so that any number of sensor suites may look at it."""

    model: AmphibiousModel
    ticks: list
    wind: Wind

    @classmethod
    def of(cls, scenario, terrain=FLAT):
        """The pilot who sees the truth carries out the mission after having stood for a while."""
        model = AmphibiousModel(scenario.params, terrain)
        pilot = MissionPilot(model, scenario.legs)
        begin = model.standing(*scenario.start, scenario.heading)
        most = round(scenario.end_time / 0.001)
        stepper = Stepper(model, begin, most, 0.001, scenario.wind, "semi_implicit_euler", keep_steps=True)
        held, outputs, ticks = Controls(brake_torque=scenario.params.max_brake_torque), model.outputs(begin), []
        while stepper.done < most and not pilot.done:
            before = ModelState(stepper.state.x.copy(), stepper.state.memory.copy(), stepper.state.time)
            controls = held if before.time < ALIGNED else pilot(stepper.state, outputs)
            stepper.advance(controls, TICK)
            outputs = stepper.outputs
            ticks.append((before, *(array.copy() for array in stepper.way), controls))
        return cls(model, ticks, scenario.wind)

    def samples(self, suite):
        """Of each tick, and the true state at its end."""
        for before, x, memory, controls in self.ticks:
            yield suite.observe(before, x, memory, controls, self.wind), x[-1]


SENSORS = SensorParameters.load("scale")
PARAMETERS = EstimatorParameters.load("scale")


def estimator(drive, terrain=FLAT, sensors=SENSORS, **changes):
    return StateEstimator(PARAMETERS.replace(**changes), sensors, drive.model.params, terrain=terrain)


def errors(drive, made, suite, off=()):
    """(ticks, 10): time, and true less estimated position, velocity, attitude (rotation vector, world axes)."""
    rows, covariances = [], []
    for tick, truth in drive.samples(suite):
        time = float(tick.imu.time[-1])
        silent = {name for name, begin, end in off if begin <= time < end}
        estimate = made.update(dataclasses.replace(tick, ground_truth=None, **dict.fromkeys(silent)))
        if estimate is None:
            continue
        difference = rotation_matrix(truth[6:10]) @ rotation_matrix(estimate.quaternion).T
        turned = 0.5 * (difference - difference.T)[[2, 0, 1], [1, 2, 0]]
        rows.append([time, *(truth[:3] - estimate.position), *(truth[3:6] - estimate.velocity), *turned])
        covariances.append(estimate.covariance)
    return np.array(rows), np.array(covariances)


@pytest.fixture(scope="module")
def hop():
    return Drive.of(Scenario.parse(SHORT_HOP.encode(), "s.yaml"))


def test_a_landing_is_known_well_enough_to_be_gentle(hop):
    """All of a drive, a flight in wind and a landing with the noise of the shipped set."""
    found, _ = errors(hop, estimator(hop), SensorSuite(hop.model, SENSORS, seed=1))
    assert len(found) > 3000
    assert np.abs(found[:, 3]).max() < 0.1  # level ground, which is known: this is height above ground
    assert np.abs(found[:, 6]).max() < 0.1
    assert np.abs(found[:, 4:6]).max() < 0.2
    assert np.degrees(np.abs(found[:, 7:9]).max()) < 0.5
    assert np.degrees(np.abs(found[:, 9]).max()) < 2.0
    assert np.linalg.norm(found[:, 1:3], axis=1).max() < 3.0 * 1.5 * np.sqrt(2.0)


def test_saved_it_goes_on_bit_by_bit(hop):
    suite = SensorSuite(hop.model, SENSORS, seed=4)
    first, second = estimator(hop), estimator(hop)
    aligning = estimator(hop)
    for k, (tick, _) in enumerate(hop.samples(suite)):
        first.update(tick)
        if k == 120:
            aligning.restore(json.loads(json.dumps(first.save())))
        elif k > 120:
            aligning.update(tick)
        if k == 600:
            second.restore(json.loads(json.dumps(first.save(), allow_nan=False)))
        elif k > 600:
            second.update(tick)
        if k == 900:
            break
    for other in (second, aligning):
        assert np.array_equal(first.covariance, other.covariance)
        assert all(np.array_equal(a, b) for a, b in zip(first.estimate, other.estimate, strict=True))


def test_jacobians_are_the_derivatives(hop):
    """Central differences of each expected reading over each of the 27 errors."""
    made = estimator(hop)
    c, ground = made._constants, made._ground._replace(heights=np.arange(9, dtype=np.float32) ** 1.5)
    generator = np.random.default_rng(5)
    x = np.zeros(at.SIZE)
    x[: at.SLIP + 1] = generator.normal(0.0, 0.3, at.SLIP + 1)
    x[at.POSITION : at.POSITION + 3] = 20.0, -30.0, 40.0
    x[at.VELOCITY : at.VELOCITY + 3] = 3.0, -2.0, 0.7
    x[at.QUATERNION : at.QUATERNION + 4] /= np.linalg.norm(x[at.QUATERNION : at.QUATERNION + 4])
    x[at.RATES : at.RATES + 3], x[at.FORCE : at.FORCE + 3] = (0.4, -0.3, 0.8), (1.0, 2.0, 9.0)
    lever, steering, rolls = np.array((0.4, -0.2, 0.6)), np.array((0.3, 0.25, 0.0, 0.0)), np.array((1.0, 0.0, 1.0, 1.0))
    still = c._replace(
        wheel_delay=0.0, slip_gain=0.0, side_gain=0.0
    )  # with them the force is used, whose errors are left out
    cases = {
        "gps_position": (3, lambda x, h, out: at.expect_gps_position(x, lever, h, out)),
        "velocity": (3, lambda x, h, out: at.expect_velocity(x, lever, h, out)),
        "field": (3, lambda x, h, out: at.expect_field(x, c.field * 1e6, h, out)),
        "pressure": (1, lambda x, h, out: at.expect_pressure(x, lever, 400.0, h, out)),
        "height": (1, lambda x, h, out: at.expect_height(x, ground, lever, 1e-3, 1e-3, h, out)),
        "wheels": (2, lambda x, h, out: at.expect_wheels(x, steering, rolls, still, h, out)),
    }
    for name, (m, expect) in cases.items():
        h, out = np.zeros((m, at.ERRORS)), np.empty(m)
        expect(x, h, out)
        for n in range(at.ERRORS):
            sides = []
            for step in (1e-4, -1e-4):
                error = np.zeros(at.ERRORS)
                error[n] = step
                moved, there = x.copy(), np.empty(m)
                at.add_error(moved, error)
                expect(moved, np.zeros((m, at.ERRORS)), there)
                sides.append(there)
            slope = (sides[0] - sides[1]) / 2e-4
            assert np.allclose(h[:, n], slope, rtol=1e-5, atol=1e-5), (name, n)
