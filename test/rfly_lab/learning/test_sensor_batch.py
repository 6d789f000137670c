# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of a batch, against the simulation's own sensors, the truth and the formulas of noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import Controls, ModelState
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.noise import NoiseModel
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.kernels import parallel
from rfly_lab.learning import sensor_batch_kernels as kernels
from rfly_lab.learning.land_air_batch import LandAirBatch, observation_names
from rfly_lab.learning.tasks import TASKS

SCALE = SensorParameters.load("scale")
PERIOD = 0.02


def quiet(rate: float | None = 1.0 / PERIOD) -> SensorParameters:
    """The vehicle's sensors without noise, counts and delay, all with this rate; None: their own."""
    silent = {
        name: replace(sensor, noise=sensor.noise.silent())
        for name, sensor in SCALE.sensors().items()
        if hasattr(sensor, "noise")
    }
    silent["gps"] = replace(silent["gps"], latency=0.0)
    silent["encoders"] = replace(SCALE.encoders, wheel_counts=0, steering_counts=0)
    silent["wheel_loads"] = SCALE.wheel_loads
    if rate is not None:
        silent = {name: replace(sensor, rate=rate) for name, sensor in silent.items()}
    return SCALE.replace(**silent)


def only(**noises: NoiseModel) -> SensorParameters:
    """Quiet sensors at their own rates, of which some have a noise."""
    base = quiet(None)
    noisy = {name: replace(getattr(base, name), noise=noise) for name, noise in noises.items()}
    return base.replace(**noisy)


def begun(task: str, count: int = 1, seed: int = 0, **options) -> LandAirBatch:
    batch = LandAirBatch(count, task, **{"observations": "sensors", **options})
    which = np.arange(count)
    batch.seed(which, np.arange(seed, seed + count, dtype=np.uint64))
    batch.begin(which)
    return batch


def seen_by_name(batch: LandAirBatch) -> dict[str, np.ndarray]:
    seen = batch.observe()
    assert seen.shape[1] == len(batch.observation_names) == len(set(batch.observation_names))
    return {name: seen[:, k].astype(float) for k, name in enumerate(batch.observation_names)}


def stay(batch: LandAirBatch) -> None:
    """Let a period go by in which vehicles do not move at all, and measure."""
    batch.episodes.steps += 1
    columns = state_layout.controls_size(batch.params.rotors, len(batch.params.wheels))
    rows = np.zeros((len(batch.rewards), columns))
    batch._sensed.measure(np.arange(len(rows)), batch.episodes, rows)


def readings(batch: LandAirBatch, sensor: int, steps: int) -> np.ndarray:
    """Readings of a sensor of vehicles that stay where they are, (steps, n, channels)."""
    suite = batch._sensed.suite
    first = suite.first[sensor]
    columns = slice(first, first + suite.channels[sensor])
    rows = []
    for _ in range(steps):
        rows.append(batch._sensed.memory.readings[:, columns].copy())
        stay(batch)
    return np.array(rows)


# the truth


@pytest.mark.parametrize("task", TASKS)
def test_without_noise_and_delay_sensors_see_the_truth(task: str) -> None:
    batch = begun(task, 5, seed=9, sensors=quiet(), wind=2.0, gusts=0.5, spread=0.1)
    true = begun(task, 5, seed=9, observations="truth", wind=2.0, gusts=0.5, spread=0.1)
    rng = np.random.default_rng(3)
    for _ in range(12):
        actions = 0.3 * rng.uniform(-1.0, 1.0, (5, len(batch.action_names)))
        batch.step(actions)
        true.step(actions)
        assert batch.rewards.tobytes() == true.rewards.tobytes()
    assert batch.vehicles.x.tobytes() == true.vehicles.x.tobytes()

    value = seen_by_name(batch)
    truth = seen_by_name(true)
    wheels = batch.params.wheels
    pairs = {
        **{f"gps_to_target_{axis}_m": f"to_target_{axis}_m" for axis in "xyz"},
        **{f"gps_to_target_after_{axis}_m": f"to_target_after_{axis}_m" for axis in "xyz"},
        **{f"gps_velocity_{axis}_mps": f"velocity_{axis}_mps" for axis in "xyz"},
        **{f"imu_up_{axis}": f"up_{axis}" for axis in "xyz"},
        **{f"imu_rate_{axis}_radps": f"rate_{axis}_radps" for axis in "xyz"},
        "encoder_steering_rad": "steering_rad",
        **{f"encoder_rotor_{j}_share": f"rotor_{j}_share" for j in range(1, 7)},
    }
    for sensed, own in pairs.items():
        assert value[sensed] == pytest.approx(truth[own], rel=1e-5, abs=2e-5), sensed
    for name in value:
        if name.endswith("_age_s"):
            assert (value[name] == 0.0).all()

    # heights, by hand; loads, by the model of each
    x = batch.vehicles.x
    rotation = rotation_matrix(x[:, state_layout.QUATERNION_XYZW])
    target = batch.episodes.targets[np.arange(5), batch.episodes.target]
    up = target[:, 2] - x[:, 2]
    assert value["barometer_to_target_up_m"] == pytest.approx(up, abs=1e-4)
    place = x[:, :3] + rotation @ np.array(SCALE.height.position)
    ground = np.array([batch.terrain.altitude(*point[:2]) for point in place])
    if task != "roof":
        height = np.clip(place[:, 2] - ground, 0.05, 100.0)
        assert value["height_m"] == pytest.approx(height, abs=1e-4)
    p = batch.params
    for v in range(5):
        state = ModelState(x[v], batch.vehicles.memory[v])
        outputs = batch.vehicles.models[batch.vehicles.kind[v]].outputs(state)
        load = outputs.wheel_load / p.static_load
        for i, wheel in enumerate(wheels):
            assert value[f"measured_wheel_load_{wheel}_share"][v] == pytest.approx(
                load[i], rel=1e-5, abs=1e-6
            )


def test_over_a_house_the_height_is_that_above_its_roof() -> None:
    batch = begun("roof", 8, sensors=quiet())
    batch.vehicles.x[:, :2] = batch.episodes.targets[:, 0, :2]
    batch.vehicles.x[:, 6:10] = (1.0, 0.0, 0.0, 0.0)
    batch.vehicles.x[:, 2] = batch.episodes.targets[:, 0, 2] + 2.0
    stay(batch)
    # the target is the place of a vehicle that stands on the roof
    height = 2.0 + batch.params.origin_height + SCALE.height.position[2]
    assert seen_by_name(batch)["height_m"] == pytest.approx(np.full(8, height), abs=1e-5)


@pytest.mark.parametrize("counts", [0, 2048])
def test_readings_are_those_of_the_simulations_sensors(counts: int) -> None:
    """One vehicle of a batch, in gusts, against `SensorSuite` on the same way, for 2 s."""
    sensors = quiet(None)
    encoders = replace(SCALE.encoders, wheel_counts=counts, steering_counts=counts)
    sensors = sensors.replace(encoders=encoders, imu=replace(sensors.imu, rotation=(0.2, 0.1, -2)))
    batch = begun("goal", 9, seed=70, sensors=sensors, wind=4.0, gusts=0.8)
    v = 5
    p = batch.params
    suite = SensorSuite(batch.vehicles.models[0], sensors)
    mean = tuple(batch.vehicles.mean_wind[v])
    # the batch's keys are those of a Wind with the seed of which the key is the hash
    from rfly_amphibious.dynamics.wind import hashed

    key = int(hashed(hashed(np.array([75], np.uint64)))[0])
    wind = Wind(mean, (0.8, 0.8, 0.4), seed=key)
    state = ModelState(batch.vehicles.x[v].copy(), batch.vehicles.memory[v].copy())
    columns = state_layout.control_columns(6, 4)
    mounting = rotation_matrix(np.asarray(batch._sensed.suite.mounting["imu_quat"][0]))
    counted = []
    rng = np.random.default_rng(6)
    for step in range(1, 101):
        actions = 0.5 + 0.5 * rng.uniform(-1.0, 1.0, (9, 7))
        row = batch.commanded(actions)[v]
        batch.step(actions)
        controls = Controls(
            rotor_speed=row[columns["rotor"]],
            steering=float(row[0]),
            drive_torque=row[columns["drive_torque"]],
            brake_torque=row[columns["brake_torque"]],
        )
        state, samples = suite.advance(
            state, controls, PERIOD, wind=wind, method="semi_implicit_euler"
        )
        assert state.x.tobytes() == batch.vehicles.x[v].tobytes()

        value = {name: numbers[v] for name, numbers in seen_by_name(batch).items()}
        imu = samples.imu
        assert [value[f"imu_force_{axis}_mps2"] for axis in "xyz"] == pytest.approx(
            mounting @ imu.specific_force[-1], rel=1e-5, abs=1e-4
        )
        assert [value[f"imu_rate_{axis}_radps"] for axis in "xyz"] == pytest.approx(
            mounting @ imu.rates[-1], rel=1e-5, abs=1e-5
        )
        assert value["height_m"] == pytest.approx(max(samples.height.range[-1], 0.05), rel=1e-5)
        load = samples.wheel_loads.load[-1] / p.static_load
        assert [value[f"measured_wheel_load_{w}_share"] for w in p.wheels] == pytest.approx(
            load, rel=1e-5, abs=1e-5
        )
        joints = samples.joints
        resolution = 2.0 * math.pi / counts / 0.01 if counts else 0.0
        spin = np.array([value[f"encoder_wheel_speed_{w}_mps"] for w in p.wheels])
        spin /= p.rolling_radius
        # angles between counts are those of other sums: one count more or less
        assert spin == pytest.approx(joints.wheel_rate[-1], rel=1e-5, abs=1.01 * resolution + 1e-4)
        counted.append(spin - joints.wheel_rate[-1])
        steering = math.atan(math.tan(value["encoder_steering_rad"]))
        assert steering == pytest.approx(
            float(batch.vehicles.x[v, 39]), abs=0.002 if counts else 1e-6
        )
        assert value["barometer_age_s"] == pytest.approx(PERIOD * (step % 2), abs=1e-6)
    assert np.abs(np.mean(counted)) < 0.05 * (2.0 * math.pi / 2048 / 0.01) + 1e-4
