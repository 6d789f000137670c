# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of a batch, against the simulation's own sensors, the truth and the formulas of noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from marks import exhaustively

from rfly_amphibious.dynamics.model import Controls, ModelState
from rfly_amphibious.dynamics.wind import Wind, hashed
from rfly_amphibious.sensors.noise import NoiseModel
from rfly_amphibious.sensors.samples import (
    BarometerSamples,
    GpsSamples,
    ImuSamples,
    SensorSamples,
)
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.kernels import parallel
from rfly_lab.learning import sensor_batch_kernels as kernels
from rfly_lab.learning.episodes import episodes_of
from rfly_lab.learning.land_air_batch import LandAirBatch
from rfly_lab.learning.sensor_batch import SampledSensors
from rfly_lab.learning.task_judge import TaskJudge
from rfly_lab.learning.tasks import TASKS
from rfly_lab.learning.views import sensor_names

pytestmark = pytest.mark.exhaustive  # whole flights of many vehicles

SCALE = SensorParameters.load("scale")
PERIOD = 0.02


def quiet(rate: float | None = 1.0 / PERIOD) -> SensorParameters:
    """Return the vehicle's sensors without noise, counts and delay, with this rate or their own."""
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
    batch.episodes.steps[:] += 1
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
    key = int(hashed(hashed(np.array([75], np.uint64)))[0])
    wind = Wind(mean, (0.8, 0.8, 0.4), seed=key)
    state = ModelState(batch.vehicles.x[v].copy(), batch.vehicles.memory[v].copy())
    columns = state_layout.control_columns(6, 4)
    mounting = rotation_matrix(np.asarray(batch._sensed.suite.mounting["imu_quat"][0]))
    counted = []
    rng = np.random.default_rng(6)
    for step in range(1, 101):
        if step % 20 == 1:
            actions = 0.5 + 0.5 * rng.uniform(-1.0, 1.0, (9, 7))
            actions[:, 6] = -1.0  # no brakes
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
        assert value["height_m"] == pytest.approx(max(samples.height.distance[-1], 0.05), rel=1e-5)
        load = samples.wheel_loads.load[-1] / p.static_load
        assert [value[f"measured_wheel_load_{w}_share"] for w in p.wheels] == pytest.approx(
            load, rel=1e-5, abs=1e-5
        )
        joints = samples.joints
        resolution = 2.0 * math.pi / counts / 0.01 if counts else 0.0
        spin = np.array([value[f"encoder_wheel_speed_{w}_mps"] for w in p.wheels])
        spin /= p.rolling_radius
        if not counts:
            assert spin == pytest.approx(joints.wheel_rate[-1], rel=1e-5, abs=1e-4)
        counted.append(spin - joints.wheel_rate[-1])
        assert value["encoder_steering_rad"] == pytest.approx(
            float(batch.vehicles.x[v, 39]), abs=0.002 if counts else 1e-6
        )
        assert value["barometer_age_s"] == pytest.approx(PERIOD * (step % 2), abs=1e-6)
    # counts in the last 10 ms, over which the spin is taken to change evenly
    if counts:
        off = np.abs(counted) / resolution
        assert np.quantile(off, 0.9) < 1.01
        assert off.max() < 5.0
        assert abs(np.mean(counted)) / resolution < 0.1


def test_samples_show_a_vehicle_what_it_sees_in_an_environment() -> None:
    """The batch has the samples of `SensorSuite` on the same way, with delay and turned sensors."""
    sensors = quiet(None)
    gps = replace(sensors.gps, latency=0.04)
    sensors = sensors.replace(gps=gps, imu=replace(sensors.imu, rotation=(0.2, 0.1, -2)))
    batch = begun("hover", 3, seed=7, sensors=sensors)
    p = batch.params
    suite = SensorSuite(batch.vehicles.models[0], sensors, geo_origin=(-30.0, 150.0, 700.0))
    own = SampledSensors(p, sensors, PERIOD)
    own.set_origin((-30.0, 150.0, 700.0))
    assert own.missing(0.0) == ["imu", "gps", "barometer", "height", "encoders", "wheel_loads"]
    state = ModelState(batch.vehicles.x[1].copy(), batch.vehicles.memory[1].copy())
    episode = episodes_of(1, 1)
    episode.targets[0] = batch.episodes.targets[1]
    rotors = state_layout.control_columns(6, 4)["rotor"]
    brakes = np.full(4, p.max_brake_torque)
    rng = np.random.default_rng(2)
    turns = [k for k, name in enumerate(batch.observation_names) if "encoder_wheel" in name]
    for _ in range(60):
        actions = 0.1 * rng.uniform(-1.0, 1.0, (3, 4))
        row = batch.commanded(actions)[1]
        batch.step(actions)
        controls = Controls(rotor_speed=row[rotors], brake_torque=brakes)
        state, samples = suite.advance(state, controls, PERIOD, method="semi_implicit_euler")
        own.sense(samples)
        # a first fix comes at once in an environment, and is measured later outside
        if state.time < 0.2:
            continue
        assert own.missing(state.time) == []
        episode.steps[0] = 1
        seen = own.observe(batch.task, batch._layout, episode, state.time)[0]
        expected = batch.observe()[1]
        # wheels that brakes hold stand
        assert expected[turns] == pytest.approx(np.zeros(4), abs=0.02)
        expected[turns] = 0.0
        assert seen == pytest.approx(expected, rel=1e-4, abs=1e-3)
    names = dict(zip(batch.observation_names, seen.tolist(), strict=True))
    assert names["gps_age_s"] >= 0.04

    # a silence, and a fix without velocity
    fix = GpsSamples(np.array([9.0]), np.zeros((1, 3)), np.full((1, 3), np.nan))
    own.sense(SensorSamples(gps=fix))
    assert own.missing(state.time + 0.275) == ["imu", "height", "encoders", "wheel_loads"]
    assert "gps" in own.missing(9.0)
    # of a smaller set others are neither missing nor seen
    lean = sensors.replace(barometer=None, wheel_loads=None)
    few = SampledSensors(p, lean, PERIOD)
    few.sense(samples)
    assert few.missing(state.time) == ["gps"]
    few.sense(SensorSamples(gps=fix._replace(velocity=np.zeros((1, 3)))))
    assert few.missing(9.0) == ["imu", "height", "encoders"]
    assert few.observe(batch.task, batch._layout, episode, 9.0).shape == (
        1,
        len(sensor_names(p, lean)),
    )


# noise


def test_white_noise_is_that_of_the_sensors_own_rate() -> None:
    batch = begun("path", 400)
    imu = readings(batch, kernels.IMU, 40)
    error = imu - imu.mean(axis=0)  # biases and drifts are slow
    expected = np.repeat((4e-3 * math.sqrt(250.0), 3.4e-4 * math.sqrt(250.0)), 3)
    assert error[..., :6].std(axis=(0, 1)) == pytest.approx(expected, rel=0.05)
    height = readings(batch, kernels.HEIGHT, 40)
    assert (height - height.mean(axis=0)).std() == pytest.approx(0.02, rel=0.05)
    # neighbours in time, channels and vehicles do not know of each other
    force = error[..., 0]
    for one, other in (
        (force[1:], force[:-1]),
        (error[..., 1], error[..., 5]),
        (force[:, 1:], force[:, :-1]),
    ):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 5.0 / math.sqrt(one.size)


def test_a_gps_drifts_as_the_formula_says() -> None:
    """Deviation and autocorrelation of the Gauss–Markov error, Eq. 11.1, over 4000 vehicles."""
    drift = NoiseModel(6, markov_sigma=(1.5, 1.5, 3.0, 0.0, 0.0, 0.0), markov_time=2.0)
    batch = begun("path", 4000, sensors=only(gps=drift))
    true = batch._sensed.memory.readings[:, batch._sensed.suite.first[kernels.GPS] :][:, :6].copy()
    first = batch._sensed.suite.first[kernels.GPS]
    still = begun("path", 4000, sensors=quiet())._sensed.memory.readings[:, first : first + 6]
    error = readings(batch, kernels.GPS, 121) - still
    assert (true - still).std(axis=0)[:3] == pytest.approx((1.5, 1.5, 3.0), rel=0.05)
    assert (error[..., 3:] == 0.0).all()
    # measured at 10 Hz: fixes of 0 s, 1 s and 2 s come 0, 0 and 0 s later
    for steps in (50, 100):
        seconds = steps * PERIOD
        product = (error[0, :, :3] * error[steps, :, :3]).mean(axis=0)
        expected = np.array((1.5, 1.5, 3.0)) ** 2 * math.exp(-seconds / 2.0)
        assert product == pytest.approx(expected, abs=0.07 * 9.0)
        assert error[steps, :, :3].std(axis=0) == pytest.approx((1.5, 1.5, 3.0), rel=0.05)


@pytest.mark.parametrize("walk_time", [math.inf, 0.5])
def test_biases_wander_as_the_formula_says(walk_time: float) -> None:
    """The bias goes on wandering between samples: 250 Hz, of which every fifth is seen."""
    noise = NoiseModel(9, walk_density=0.2, walk_time=walk_time, turn_on_bias=0.0)
    batch = begun("path", 2000, sensors=only(imu=noise))
    imu = readings(batch, kernels.IMU, 51)
    for steps in (10, 50):
        seconds = steps * PERIOD
        grown = (imu[steps] - imu[0])[:, :6].var()
        expected = 0.2**2 * seconds
        if math.isfinite(walk_time):
            expected = 0.2**2 * 0.5 * walk_time * (1.0 - math.exp(-2.0 * seconds / walk_time))
        assert grown == pytest.approx(expected, rel=0.06)


def test_a_bias_at_turn_on_stays_for_the_episode() -> None:
    noise = NoiseModel(9, bias=0.1, turn_on_bias=0.5, scale_error=0.0)
    batch = begun("path", 3000, sensors=only(imu=noise))
    rates = readings(batch, kernels.IMU, 3)[..., 3:6]
    assert (rates[0] == rates[2]).all()
    assert rates[0].std() == pytest.approx(0.5, rel=0.05)
    assert rates[0].mean() == pytest.approx(0.1, abs=0.03)
    batch.begin(np.arange(3000))
    again = readings(batch, kernels.IMU, 1)[0, :, 3:6]
    assert abs(np.corrcoef(again.ravel(), rates[0].ravel())[0, 1]) < 0.06


def test_the_shipped_noise_is_that_of_the_simulation() -> None:
    """Deviations of all readings of standing vehicles, in a batch and by `SensorSuite`."""
    count = 300
    batch = begun("path", count)
    model = batch.vehicles.models[0]
    still = begun("path", count, sensors=quiet())
    own = {name: [] for name in ("imu", "gps", "height", "barometer")}
    for _ in range(60):
        stay(batch)
    suite = batch._sensed.suite
    for name, sensor in zip(
        own, (kernels.IMU, kernels.GPS, kernels.HEIGHT, kernels.BAROMETER), strict=True
    ):
        columns = slice(suite.first[sensor], suite.first[sensor] + suite.channels[sensor])
        error = batch._sensed.memory.readings - still._sensed.memory.readings
        own[name] = error[:, columns].std(axis=0)

    state = ModelState(batch.vehicles.x[0], batch.vehicles.memory[0])
    rows: dict[str, list[np.ndarray]] = {name: [] for name in own}
    x = np.repeat(state.x[None], 1200, 0)
    memory = np.repeat(state.memory[None], 1200, 0)
    for seed in range(count):
        samples = SensorSuite(model, SCALE, seed=seed).observe(state, x, memory, Controls())
        imu = samples.imu
        rows["imu"].append(np.concatenate([imu.specific_force[-1], imu.rates[-1]]))
        rows["gps"].append(samples.gps.velocity[-1])
        rows["height"].append(samples.height.distance[-1:])
        rows["barometer"].append(samples.barometer.pressure[-1:])
    theirs = {name: np.std(values, axis=0) for name, values in rows.items()}
    # χ²: three standard deviations of a ratio of two of 300 each
    near = {"rel": 0.18}
    assert own["imu"][:6] == pytest.approx(theirs["imu"], **near)
    assert own["gps"][3:] == pytest.approx(theirs["gps"], **near)
    assert own["height"] == pytest.approx(theirs["height"], **near)
    assert own["barometer"] == pytest.approx(theirs["barometer"], **near)


# times


def test_slow_sensors_hold_their_readings_and_tell_their_age() -> None:
    batch = begun("path", 2)
    ages = []
    held = []
    for _ in range(31):
        value = seen_by_name(batch)
        ages.append([value[f"{name}_age_s"][0] for name in ("gps", "barometer", "height", "imu")])
        held.append([value["gps_velocity_x_mps"][0], value["barometer_to_target_up_m"][0]])
        stay(batch)
    gps, barometer, height, imu = np.array(ages).T
    # a fix each 0.1 s, that comes 0.1 s late; the first at once
    expected = [0.02 * k for k in range(10)] + [0.1 + 0.02 * (k % 5) for k in range(21)]
    assert gps == pytest.approx(expected, abs=1e-6)
    assert barometer == pytest.approx([0.02 * (k % 2) for k in range(31)], abs=1e-6)
    assert not height.any()
    assert not imu.any()
    # a held reading is turned by a new attitude, but not measured anew
    memory = batch._sensed.memory.readings
    before = memory.copy()
    stay(batch)
    changed = (memory != before).any(axis=0)
    suite = batch._sensed.suite
    assert changed[suite.first[kernels.IMU]]
    assert not changed[suite.first[kernels.GPS]]


def test_measurements_fall_on_the_first_observation_after_their_time() -> None:
    """A barometer of 25 Hz, seen each 0.03 s, measures at 0, 0.06, 0.09, 0.12 and 0.18 s."""
    batch = begun("path", 1, period=0.03)
    ages = []
    for _ in range(9):
        ages.append(float(seen_by_name(batch)["barometer_age_s"][0]))
        stay(batch)
    assert ages == pytest.approx([0, 0.03, 0, 0, 0, 0.03, 0, 0, 0], abs=1e-6)


def test_a_delayed_fix_is_where_the_vehicle_was() -> None:
    sensors = quiet(None)
    sensors = sensors.replace(gps=replace(sensors.gps, latency=0.3))
    batch = begun("hover", 1, sensors=sensors)
    gps = batch._sensed.suite.first[kernels.GPS]
    way = []
    seen = []
    for step in range(60):
        batch.vehicles.x[0, 0] = 0.01 * step
        stay(batch)
        way.append(batch.vehicles.x[0, 0])
        seen.append(batch._sensed.memory.readings[0, gps])
    rotation = rotation_matrix(batch.vehicles.x[0, state_layout.QUATERNION_XYZW])
    antenna = float((rotation @ np.array(SCALE.gps.position))[0])
    for step in range(20, 60):
        # the last multiple of 0.1 s that is 0.3 s old
        measured = (step + 1 - 15) // 5 * 5
        assert seen[step] == pytest.approx(way[measured - 1] + antenna, abs=1e-9)


# repeatability


def run(count: int, seeds: list[int], threads: int, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return what environments with some seeds see in 30 steps of a batch that holds others too."""
    monkeypatch.setattr(parallel, "cores", lambda: threads)
    batch = LandAirBatch(
        count, "goal", observations="sensors", wind=3.0, gusts=0.5, spread=0.1, rotor_failures=0.3
    )
    every = np.arange(count)
    own = np.resize(np.array(seeds, np.uint64), count)
    own[len(seeds) :] = 1000 + every[len(seeds) :].astype(np.uint64)
    batch.seed(every, own)
    batch.begin(every)
    rng = [np.random.default_rng(seed) for seed in own.tolist()]
    seen = [batch.observe()]
    for step in range(30):
        batch.step(np.array([each.uniform(-1.0, 1.0, 7) for each in rng]))
        seen.append(batch.observe())
        if step == 20:
            batch.begin(every[::2])
    return [np.array(seen)[:, i].tobytes() for i in range(min(count, len(seeds)))]


def test_the_same_bits_in_any_batch_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds = [3, 5, 8, 9, 11, 14, 15, 17]
    large = run(37, seeds, 1, monkeypatch)
    assert run(37, seeds, 2, monkeypatch) == large
    assert run(8, seeds, 2, monkeypatch) == large
    assert run(1, seeds[:1], 1, monkeypatch) == large[:1]
    assert len(set(large)) == 8


def test_a_sensor_that_is_left_out_changes_no_reading_of_the_others() -> None:
    whole = begun("hover", 3, seed=4)
    lean = begun("hover", 3, seed=4, sensors=SCALE.replace(barometer=None, encoders=None))
    for _ in range(6):
        of_all = seen_by_name(whole)
        for name, numbers in seen_by_name(lean).items():
            assert (numbers == of_all[name]).all(), name
        for batch in (whole, lean):
            batch.step(np.zeros((3, 4)))


def test_a_vehicle_that_has_failed_keeps_its_last_readings() -> None:
    batch = begun("roof", 3)
    before = batch.observe()
    batch.vehicles.x[1, state_layout.POSITION] = np.nan
    batch.step(np.zeros((3, 4)))
    seen = batch.observe()
    assert np.isfinite(seen).all()
    ages = [name.endswith("_age_s") for name in batch.observation_names]
    assert (seen[1, ~np.array(ages)] == before[1, ~np.array(ages)]).all()
    assert seen[1, ages] == pytest.approx(PERIOD)


@pytest.mark.parametrize("epoch", [0.0, 1_900_000_000.0])
def test_ages_of_samples_are_whole_periods_at_any_time(epoch: float) -> None:
    """Stamps are in ns; a float of today's seconds has 0.24 µs."""
    lean = SCALE.replace(height=None, encoders=None, wheel_loads=None)
    batch = LandAirBatch(1, "hover", observations="sensors", sensors=lean)
    seen = batch.observation_names.index("barometer_age_s")
    sampled = SampledSensors(batch.params, batch.view.sensors, PERIOD)
    judge = TaskJudge(batch.task, PERIOD, batch.params)
    judge.set_targets(np.zeros((1, 3)))
    for start_ns in range(0, 10**9, 37_000_003):
        measured = np.array([epoch + 1e-9 * start_ns])
        one = np.zeros((1, 3))
        level = np.array([[0.0, 0.0, 0.0, 1.0]])
        sampled.sense(
            SensorSamples(
                imu=ImuSamples(measured, one, one, level),
                gps=GpsSamples(measured, one, one),
                barometer=BarometerSamples(measured, np.array([101_325.0])),
            )
        )
        for periods in range(5):
            now = epoch + 1e-9 * (start_ns + periods * 20_000_000)
            row = sampled.observe(batch.task, judge.layout, judge.episode, now)
            assert row[0, seen] == pytest.approx(periods * PERIOD)


# arguments


def test_sensors_that_are_not_there_are_not_seen() -> None:
    whole = begun("hover").observation_names
    lean = SCALE.replace(barometer=None, height=None, encoders=None, wheel_loads=None)
    batch = begun("hover", 2, sensors=lean)
    value = seen_by_name(batch)
    assert set(value) < set(whole)
    assert [name for name in whole if name in value] == batch.observation_names
    assert not any(name.startswith(("barometer", "height", "encoder")) for name in value)
    batch.step(np.zeros((2, 4)))
    assert np.isfinite(batch.observe()).all()


@pytest.mark.parametrize("vehicle", [exhaustively("full"), exhaustively("scale_quad"), "scale_six"])
def test_other_vehicles_see_by_their_own_sensors(vehicle: str) -> None:
    batch = begun("hover", 3, vehicle=vehicle)
    batch.step(np.zeros((3, 4)))
    value = seen_by_name(batch)
    assert batch.view.sensors.name == vehicle
    assert value["imu_force_z_mps2"] == pytest.approx(np.full(3, 9.81), abs=2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"observations": "mind"}, "observations: 'mind', expected one of truth, sensors"),
        ({"observations": "truth", "sensors": "scale"}, "sensors: nothing is observed by them"),
        ({"sensors": "none_such"}, "none_such"),
        ({"sensors": SCALE.replace(gps=None)}, "sensors: 'scale' has no gps, expected one with"),
        ({"sensors": SCALE.replace(imu=None)}, "sensors: 'scale' has no imu, expected one with"),
        (
            {"sensors": SCALE.replace(gps=replace(SCALE.gps, latency=10.0))},
            "gps.latency: 101 fixes on their way, expected at most 64",
        ),
    ],
)
def test_what_cannot_be_used_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        begun("hover", **options)
