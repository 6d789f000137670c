# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Policies: files that are refused, and the shipped one in the environment and by estimates."""

from __future__ import annotations

import contextlib
import json
import math
import re
import runpy
import sys
from collections import deque
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from marks import exhaustively
from optional_parts import late_module
from PIL import Image
from policy_files import blind

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.samples import (
    BarometerSamples,
    GpsSamples,
    HeightSamples,
    ImuSamples,
    JointSamples,
    SensorSamples,
    WheelLoadSamples,
)
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_autonomy.control.flight_controller import FlightController
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, ned_to_geodetic
from rfly_lab import (
    Ending,
    LandAirBatch,
    Policy,
    PolicyFacts,
    fly_policy,
    shipped_policy,
    try_policy,
)
from rfly_lab.learning.actions import commands_of, wrench_of
from rfly_lab.learning.grounds import hills
from rfly_lab.learning.policy import METADATA_KEY
from rfly_lab.learning.policy_export import forget_sources
from rfly_lab.learning.policy_pilot import PolicyPilot
from rfly_lab.learning.tasks import TASKS
from rfly_lab.learning.views import NAMES
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.exhaustive  # whole flights of many vehicles

needs_runtime = pytest.mark.needs("onnx", "onnxruntime")
onnx = late_module("onnx")
RTK = SensorParameters.load("scale_rtk")
SHIPPED = ("hover", "waypoints", "hop", "hover_by_sensors")
UNSEEN = 1_000_000
"""First seed that no training met."""
FACTS = PolicyFacts("hover", "wrench", 0.02, "scale", ("a_m",), ("thrust",))


# facts


def test_facts_are_read_as_they_are_written() -> None:
    assert PolicyFacts.read(FACTS.text()) == FACTS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"period": 0}, "period: 0 s, expected a finite number of at least 0.001"),
        ({"period": "1"}, "period: '1', expected seconds"),
        ({"period": 1.5}, "period: 1.5 s, .* at most 1"),
        ({"period": float("inf")}, "period: inf"),
        ({"period": 10**400}, "period: inf"),
        ({"period": float("nan")}, "period: nan"),
        ({"period": True}, "period: True"),
        ({"task": 3}, "task: 3, expected a text"),
        ({"action_names": "thrust"}, "action_names: expected a list of names"),
        ({"observation_names": [1]}, "observation_names: expected a list of names"),
        ({"more": 1}, "expected task, actions, period"),
    ],
)
def test_other_facts_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PolicyFacts.read(json.dumps(asdict(FACTS) | change))


@pytest.mark.parametrize("text", ["", "[]", "7", "{", "[" * 100_000])
def test_facts_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match=METADATA_KEY):
        PolicyFacts.read(text)


# files


@needs_runtime
def test_files_that_are_no_policy(tmp_path: Path) -> None:
    file = tmp_path / "policy.onnx"
    with pytest.raises(ConfigError, match=r"policy .*policy\.onnx: No such file"):
        Policy(file)
    with pytest.raises(ConfigError, match="policy"):
        Policy(tmp_path)
    # Stable-Baselines3's own files are pickles in a zip; nothing of them is loaded
    for content in (b"", b"PK\x03\x04" + bytes(100), b"\x80\x04K\x01.", bytes(1000)):
        file.write_bytes(content)
        with pytest.raises(ConfigError, match="no ONNX model that can be run"):
            Policy(file)
    file.write_bytes(shipped_policy("hover").read_bytes()[:-500])
    with pytest.raises(ConfigError, match="policy"):
        Policy(file)
    with file.open("wb") as large:
        large.truncate(17 * 1024 * 1024)
    with pytest.raises(ConfigError, match="larger than"):
        Policy(file)


@needs_runtime
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("hoverr", "policy: 'hoverr', expected .*hover"),
        ("/no/such/policy", "policy /no/such/policy: No such file"),
        ("x" * 5000, "policy: 'xxx.*expected"),
        (Path("hover"), "policy hover: No such file"),
        (5, "policy: 5, expected the path of a file"),
    ],
)
def test_a_pilot_of_no_policy(
    path: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        PolicyPilot.load(path)


@needs_runtime
def test_a_policy_of_another_vehicle() -> None:
    with pytest.raises(ConfigError, match="trained for 'scale', this is 'full'"):
        Policy(shipped_policy("hover"), VehicleParameters.load("full"))


@pytest.mark.needs("onnx")
@pytest.mark.parametrize("name", SHIPPED)
def test_files_name_no_program_of_the_machine_that_wrote_them(name: str) -> None:
    """PyTorch's exporter notes the path and the line of the program at each node."""
    content = shipped_policy(name).read_bytes()
    for word in (b".py", b"stack_trace", b"site-packages"):
        assert word not in content

    model = onnx.load_from_string(content)
    note = model.graph.node[0].metadata_props.add()
    note.key, note.value = "stack_trace", "/home/somebody/program.py"
    model.graph.doc_string = note.value
    forget_sources(model)
    assert b"somebody" not in model.SerializeToString()


@pytest.mark.needs("onnx", "onnxruntime")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "swim"}, "task: .*swim"),
        ({"actions": "swim"}, "actions: 'swim', expected one of wrench"),
        ({"actions": "rotors"}, "action_names: number 0 is 'thrust', expected 'rotor_1'"),
        ({"observation_names": ["to_target_x_m"]}, "observation_names: 1, expected 31"),
        ({"action_names": ["thrust"]}, "action_names: 1, expected 4"),
        ({"task": "path"}, "observation_names: 31, expected 46"),
        ({"vehicle": "full"}, "vehicle: trained for 'full', this is 'scale'"),
        (None, "lacks rfly_suite.policy"),
    ],
)
def test_facts_that_do_not_fit(change: Any, message: str, tmp_path: Path) -> None:
    model = onnx.load(shipped_policy("hover"))
    facts = json.loads(model.metadata_props[0].value)
    del model.metadata_props[:]
    if change is not None:
        onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(facts | change)})
    file = tmp_path / "policy.onnx"
    onnx.save(model, file)
    with pytest.raises(ConfigError, match=message):
        Policy(file, VehicleParameters.load("scale"))


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_policy_of_sensors_sees_by_them_alone(tmp_path: Path) -> None:
    facts = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors"))
    assert facts.observations == "sensors"
    assert PolicyFacts.read(facts.text()) == facts
    policy = Policy(blind(tmp_path, facts))
    assert set(try_policy(policy, [1, 2]).tolist()) <= {Ending.ASTRAY, Ending.OUT_OF_TIME}
    assert facts.sensors == policy.environment["sensors"].name == "scale"
    assert PolicyPilot(policy).missing(1.0) == list(NAMES)

    # of other sensors
    lean = SensorParameters.load("scale").replace(barometer=None)
    own = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", sensors=lean))
    file = blind(tmp_path, own)
    wrong = "number 18 is 'height_m', expected 'barometer_to_target"
    with pytest.raises(ConfigError, match=wrong):
        Policy(file)
    mine = Policy(file, sensors=lean)
    assert len(try_policy(mine, [1])) == 1
    with pytest.raises(ConfigError, match=wrong):
        try_policy(mine, [1], sensors="scale")
    with pytest.raises(ConfigError, match=wrong):
        PolicyPilot(mine, SensorParameters.load("scale"))
    with pytest.raises(ConfigError, match=wrong):
        fly_policy(mine, 1, sensors=SensorParameters.load("scale"))
    # a shipped set by its name, another one as the user gives it, without folders
    rtk = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", sensors="scale_rtk"))
    assert Policy(blind(tmp_path, rtk)).environment["sensors"].name == "scale_rtk"
    named = lean.replace(name="/home/somebody/lean.yaml")
    own = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", sensors=named))
    assert own.sensors == "lean.yaml"
    file = blind(tmp_path, own)
    with pytest.raises(ConfigError, match=r"sensors: trained with 'lean\.yaml', which is not shi"):
        Policy(file)
    assert Policy(file, sensors=lean).sensors is lean
    # with rays
    rays = PolicyFacts.of(LandAirBatch(1, "hover", lidar=6, depth=(2, 3)))
    assert (rays.observations, rays.lidar, rays.depth) == ("truth", 6, (2, 3))
    assert PolicyFacts.read(rays.text()) == rays
    sees = Policy(blind(tmp_path, rays))
    assert len(try_policy(sees, [1])) == 1
    with pytest.raises(ConfigError, match="lidar, depth: trained with rays, expected none"):
        PolicyPilot(sees)
    with pytest.raises(ConfigError, match="observation_names: number 31 is 'lidar_0_m'"):
        Policy(blind(tmp_path, replace(rays, lidar=0)))
    for change in ({"lidar": "x"}, {"lidar": -1}, {"depth": [1, 2, 3]}, {"depth": [0.5, 1]}):
        with pytest.raises(ConfigError, match=next(iter(change))):
            Policy(blind(tmp_path, replace(rays, **change)))
    with pytest.raises(ConfigError, match="metadata depth: 3, expected a list"):
        PolicyFacts.read(json.dumps(asdict(rays) | {"depth": 3}))
    # facts that say something else than the names
    with pytest.raises(ConfigError, match="observation_names: number 0 is 'gps_to_target_x_m'"):
        Policy(blind(tmp_path, replace(facts, observations="truth")))
    with pytest.raises(ConfigError, match="observations: 'mind', expected one of truth, sensors"):
        Policy(blind(tmp_path, replace(facts, observations="mind")))
    with pytest.raises(ConfigError, match="observations: 3, expected a text"):
        PolicyFacts.read(json.dumps(asdict(facts) | {"observations": 3}))
    with pytest.raises(ConfigError, match="sensors: None, expected a text"):
        PolicyFacts.read(json.dumps(asdict(facts) | {"sensors": None}))


@pytest.mark.needs("onnx", "onnxruntime")
def test_another_set_of_a_shipped_name_is_told_apart(tmp_path: Path) -> None:
    """A policy is checked by its observations and its vehicle; an old file does not say them."""

    def trained(sensors: SensorParameters, vehicle: Any = "scale", **options: Any) -> Path:
        options = {"observations": "sensors", **options}
        batch = LandAirBatch(1, "hover", vehicle=vehicle, sensors=sensors, **options)
        return blind(tmp_path, PolicyFacts.of(batch))

    # what is not seen, and a number of another type, make no difference
    shipped = SensorParameters.load("scale")
    imu = replace(shipped.imu, rate=int(shipped.imu.rate))
    assert Policy(trained(shipped.replace(lidar=None, imu=imu))).differs == ()

    noise = replace(shipped.gps.noise, white_sigma=0.02)
    low = replace(shipped.height, max_range=20.0)
    mine = shipped.replace(gps=replace(shipped.gps, noise=noise), height=low)
    file = trained(mine)
    wrong = r"sensors: trained with another 'scale' than the shipped one \(gps, height\): expected"
    with pytest.raises(ConfigError, match=wrong):
        Policy(file)
    assert Policy(file, sensors=mine).differs == ()
    assert Policy(file, sensors="scale").differs == ("gps", "height")
    with pytest.raises(ConfigError, match=wrong):
        PolicyPilot.load(file)
    assert PolicyPilot.load(file, "scale", "scale").policy.differs == ("gps", "height")

    # rays
    lidar = shipped.replace(lidar=replace(shipped.lidar, noise=1.0))
    file = trained(lidar, observations="truth", lidar=3)
    with pytest.raises(ConfigError, match=r"another 'scale' than the shipped one \(lidar\)"):
        Policy(file)

    # the vehicle
    scale = VehicleParameters.load("scale")
    heavy = scale.replace(mass_body=scale.mass_body + 1.0)
    file = trained(shipped, heavy)
    with pytest.raises(ConfigError, match="vehicle: trained for another 'scale' than the shipped"):
        Policy(file)
    assert Policy(file, heavy).differs == ()
    assert Policy(file, "scale").differs == Policy(file, scale).differs == ("vehicle",)

    # of an older version
    facts = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", sensors=mine))
    data = asdict(facts)
    del data["digests"]
    assert Policy(blind(tmp_path, PolicyFacts.read(json.dumps(data)))).differs == ()
    for digests in ([], {"gps": 1}, None):
        with pytest.raises(ConfigError, match=r"metadata digests: .* expected texts by name"):
            PolicyFacts.read(json.dumps(data | {"digests": digests}))


@needs_runtime
@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_policies_fit_the_shipped_sets(name: str) -> None:
    policy = Policy(shipped_policy(name))
    assert "vehicle" in policy.facts.digests
    assert policy.differs == ()
    assert Policy(shipped_policy(name), policy.params.replace(max_tilt=0.1)).differs == ("vehicle",)


@needs_runtime
def test_arguments_of_a_policy_of_other_kinds(tmp_path: Path) -> None:
    file = shipped_policy("hover")
    for path in (5, None, [file], b"hover.onnx"):
        with pytest.raises(ConfigError, match=r"policy: .*, expected the path of a file"):
            Policy(path)  # type: ignore[arg-type]
    assert Policy(file, "scale").params == VehicleParameters.load("scale")

    for vehicle in (5, {}, [], b"scale"):
        with pytest.raises(ConfigError, match=r"vehicle: .*, expected a name, a path or Vehicle"):
            Policy(file, vehicle)  # type: ignore[arg-type]
    for vehicle in ("", "nonsense", tmp_path, tmp_path / "no.yaml"):
        with pytest.raises(ConfigError, match="vehicle"):
            Policy(file, vehicle)
    for sensors in (5, {}, "nonsense"):
        with pytest.raises(ConfigError, match="sensors"):
            Policy(file, sensors=sensors)  # type: ignore[arg-type]
    for rows in ("hover", [b"x"], {}, [[1.0], [1.0, 2.0]]):
        with pytest.raises(CommandError, match=r"observations: .*expected"):
            Policy(file).act(rows)  # type: ignore[arg-type]


@pytest.mark.needs("onnx", "onnxruntime")
def test_a_pilot_needs_the_sensors_that_say_how_its_task_stands(tmp_path: Path) -> None:
    """A hop by sensors without wheel loads would never know that it stands."""
    blunt = SensorParameters.load("scale_rtk").replace(wheel_loads=None)
    for task, needs in (("hop", True), ("hover", False)):
        batch = LandAirBatch(1, task, observations="sensors", sensors=blunt)
        policy = Policy(blind(tmp_path, PolicyFacts.of(batch)), sensors=blunt)
        if needs:
            with pytest.raises(ConfigError, match="'scale_rtk' has no wheel_loads, which 'hop' ne"):
                PolicyPilot(policy)
        else:
            assert "wheel_loads" not in PolicyPilot(policy).missing(1.0)
    without = RTK.replace(encoders=None, height=None, wheel_loads=None)
    with pytest.raises(ConfigError, match="has no encoders, height, wheel_loads, which 'hover' n"):
        PolicyPilot(Policy(shipped_policy("hover")), without)


@pytest.mark.needs("onnx", "onnxruntime", "gymnasium")
def test_a_film_shows_the_episode_of_what_the_policy_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten pictures a second, from the start to the end of the episode."""
    facts = PolicyFacts.of(LandAirBatch(1, "hover", observations="sensors", lidar=3, depth=(1, 2)))
    file = blind(tmp_path, facts)
    [ending] = try_policy(Policy(file), [UNSEEN], **TRAINING_AIR)
    program = Path(__file__).parents[3] / "examples" / "film_policy.py"
    film = tmp_path / "film.webp"
    arguments = [str(program), str(file), "--seed", str(UNSEEN), "--out", str(film)]
    monkeypatch.setattr(sys, "argv", arguments)
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out.endswith(f", {Ending(ending).name}\n")
    with Image.open(film) as pictures:
        assert 10 < pictures.n_frames <= 101


def test_numbers_of_other_types_become_floats() -> None:
    options = {"wind": "1", "gusts": "0.5", "spread": "0.1", "rotor_failures": np.float32(0.5)}
    batch = LandAirBatch(1, "hover", period=np.float32(0.5), **options)
    assert json.loads(PolicyFacts.of(batch).text())["period"] == 0.5
    density = np.array(5.0)
    assert LandAirBatch(1, "hover", world="random", density=density).world.objects


# commands


def test_a_wrench_is_what_the_environment_mixes() -> None:
    """Squares of the environment's rotor speeds, put together by the rotors' matrix."""
    batch = LandAirBatch(6, "hover")
    batch.seed(np.arange(6), np.arange(6, dtype=np.uint64))
    batch.begin(np.arange(6))
    actions = np.random.default_rng(4).uniform(-0.2, 0.2, (6, 4))
    commands = commands_of("wrench", batch.params)
    rows = batch.commanded(actions)
    squares = rows[:, commands.rotor_columns] ** 2
    expected = squares @ rotor_matrix(batch.params).T
    got = np.array([wrench_of(commands, action) for action in actions])
    assert got == pytest.approx(expected, rel=1e-9, abs=1e-9)
    # weight, and the limits
    weight = batch.params.mass * 9.80665
    assert wrench_of(commands, np.array((7.0, 0.0, 0.0, 0.0)))[0] == pytest.approx(2.0 * weight)


# the shipped policy


TRAINING_AIR = {"wind": 1.0, "gusts": 0.3, "spread": 0.05}


@needs_runtime
@pytest.mark.parametrize(
    "name", ["hop", "hover_by_sensors", *map(exhaustively, ("hover", "waypoints"))]
)
def test_it_solves_a_few_seeds_that_it_was_not_trained_on(name: str) -> None:
    endings = try_policy(Policy(shipped_policy(name)), UNSEEN + np.arange(20), **TRAINING_AIR)
    assert np.sum(endings == Ending.SUCCESS) >= 19


@needs_runtime
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("options", [{}, TRAINING_AIR])
def test_it_solves_seeds_that_it_was_not_trained_on(name: str, options: dict[str, float]) -> None:
    endings = try_policy(Policy(shipped_policy(name)), UNSEEN + np.arange(100), **options)
    assert np.sum(endings == Ending.SUCCESS) >= 95


def known(batch: LandAirBatch, i: int, params: VehicleParameters) -> tuple[SensorSamples, Estimate]:
    """The estimate that perfect sensors and a perfect estimator give of a vehicle of a batch."""
    x = batch.vehicles.x[i]
    outputs = batch.vehicles.outputs[i]
    layout = batch._layout
    now = np.array([1.0])
    wheels = len(params.wheels)
    none = np.zeros((1, wheels))
    columns = state_layout.state_columns(params.rotors, wheels)
    quat = x[[7, 8, 9, 6]]
    strut = x[13 : 13 + wheels][None]
    joints = JointSamples(
        now,
        none,
        x[columns["wheel_speed"]][None] - x[11],  # encoders turn with the body
        none,
        strut,
        none,
        np.zeros((1, params.rotors)),
        x[33 : 33 + params.rotors][None] * np.array((1.0, -1.0, 1.0, -1.0, 1.0, -1.0)),
    )
    # the sensor looks down from its place by so much more than the lowest wheel
    rotation = rotation_matrix(quat)
    sensor = SensorParameters.for_vehicle("scale").height
    assert sensor is not None
    hubs = params.hub_position + np.array((0.0, 0.0, 1.0)) * strut.T
    lowest = (hubs @ rotation[2]).min() - params.wheel_radius
    above = outputs[34] - lowest + rotation[2] @ np.array(sensor.position)
    samples = SensorSamples(
        joints=joints,
        height=HeightSamples(now, np.array([above])),
        wheel_loads=WheelLoadSamples(now, outputs[layout.wheel_load_columns][None]),
    )
    return samples, Estimate(1.0, x[0:3].copy(), quat, x[3:6].copy(), x[10:13].copy())


@needs_runtime
@pytest.mark.parametrize("task", ["hover", "waypoints", "hop"])
def test_with_perfect_estimates_it_acts_as_in_the_environment(task: str) -> None:
    policy = Policy(shipped_policy(task))
    batch = LandAirBatch(8, task)
    every = np.arange(8)
    batch.seed(every, every.astype(np.uint64))
    batch.begin(every)
    for _ in range(20):
        batch.step(policy.act(batch.observe()))

    actions = policy.act(batch.observe())
    commands = commands_of("wrench", policy.params)
    for i in range(8):
        pilot = PolicyPilot(policy)
        samples, estimate = known(batch, i, policy.params)
        pilot.sense(samples)
        pilot.set_targets(batch.episodes.targets[i])
        wrench = pilot.step(estimate)
        expected = wrench_of(commands, actions[i])
        assert wrench == pytest.approx(expected, rel=1e-3, abs=1e-3)

        # in training brakes hold the wheels; those of a flight roll free, and may be steered
        joints = samples.joints
        assert joints is not None
        turning = joints._replace(
            wheel_rate=joints.wheel_rate + 30.0, steering=joints.steering + 0.3
        )
        pilot = PolicyPilot(policy)
        pilot.sense(replace(samples, joints=turning))
        pilot.set_targets(batch.episodes.targets[i])
        assert pilot.step(estimate) == pytest.approx(wrench, rel=1e-3, abs=1e-3)


class HopByHand:
    """A law by hand in the place of a policy: up to 2 m, along, down, and the rotors off."""

    task_name = "hop"

    def __init__(self) -> None:
        batch = LandAirBatch(1, self.task_name)
        self.facts = PolicyFacts.of(batch)
        self.params = batch.params
        self.task = batch.task
        self.sensors = None

    def act(self, seen: np.ndarray) -> np.ndarray:
        to_target, velocity, up, rates = (seen[:, k : k + 3] for k in (0, 6, 9, 12))
        away = np.linalg.norm(to_target, axis=1)
        clearance = seen[:, 15]
        down = (away < 0.7) | ((away < 1.6) & (clearance < 0.6))
        climb = np.where(down, -0.5, 2.0 - clearance)
        wish = 1.2 * (to_target + climb[:, None] * up) - 1.8 * velocity
        wish *= np.minimum(1.0, 3.0 / np.linalg.norm(wish, axis=1))[:, None]
        wish += 9.80665 * up
        lean = wish / np.linalg.norm(wish, axis=1)[:, None]
        roll = (-25.0 * lean[:, 1] - 7.0 * rates[:, 0]) / 8.0
        pitch = (25.0 * lean[:, 0] - 7.0 * rates[:, 1]) / 8.0
        action = np.column_stack([wish[:, 2] / 9.80665 - 1.0, roll, pitch, -2.0 * rates[:, 2]])
        action[down & (clearance < 0.05)] = (-1.0, 0.0, 0.0, 0.0)
        return action


@pytest.mark.slow
def test_a_hop_begins_and_ends_on_the_ground_by_noisy_estimates() -> None:
    """It takes off itself, and once it stands the rotors stop and it stays."""
    flight = fly_policy(HopByHand(), 2_000_001, wind=1.0, gusts=0.3)  # type: ignore[arg-type]
    assert (flight.ending, flight.true_ending) == (Ending.SUCCESS, Ending.SUCCESS)
    assert flight.mode is Mode.DRIVE
    terrain = hills()
    ground = np.asarray(terrain.altitude(flight.position[:, 0], flight.position[:, 1]))
    height = flight.position[:, 2] - ground
    assert 0.15 < height[0] < 0.3
    assert height.max() > 1.5
    way = np.linalg.norm((flight.position[-1] - flight.position[0])[:2])
    assert 7.0 < way < 21.0
    # for two seconds after the rotors stand it does not move
    assert np.ptp(flight.position[-100:], axis=0) == pytest.approx(np.zeros(3), abs=0.01)
    assert np.linalg.norm((flight.estimated[-1] - flight.targets[0])[:2]) < 2.0


class RoofByHand(HopByHand):
    """A law by hand in the place of a policy: over the roof, then down onto it."""

    task_name = "roof"

    def act(self, seen: np.ndarray) -> np.ndarray:
        error, velocity, up, rates = (seen[:, k : k + 3].astype(float) for k in (0, 6, 9, 12))
        above = -(error * up).sum(axis=1)
        aside = np.linalg.norm(error + above[:, None] * up, axis=1)
        error += np.where(aside < 0.5, -0.6, np.minimum(above, 2.0))[:, None] * up
        wish = 1.2 * error - 1.8 * velocity
        wish *= np.minimum(1.0, 3.0 / np.linalg.norm(wish, axis=1))[:, None]
        wish += 9.80665 * up
        lean = wish / np.linalg.norm(wish, axis=1)[:, None]
        roll = (-25.0 * lean[:, 1] - 7.0 * rates[:, 0]) / 8.0
        pitch = (25.0 * lean[:, 0] - 7.0 * rates[:, 1]) / 8.0
        return np.column_stack([wish[:, 2] / 9.80665 - 1.0, roll, pitch, -2.0 * rates[:, 2]])


@pytest.mark.exhaustive
def test_a_flight_to_a_roof_ends_standing_on_it() -> None:
    flight = fly_policy(RoofByHand(), 5, sensors=RTK)  # type: ignore[arg-type]
    assert (flight.ending, flight.true_ending) == (Ending.SUCCESS, Ending.SUCCESS)
    assert flight.mode is Mode.DRIVE
    assert flight.position[0, 2] > flight.targets[0, 2] + 2.0
    assert np.linalg.norm(flight.position[-1] - flight.targets[0]) < 1.0
    assert flight.position[-1, 2] == pytest.approx(flight.targets[0, 2], abs=0.15)
    # houses are 3 m and more above the ground
    ground = float(hills().altitude(*flight.position[-1, :2]))
    assert flight.position[-1, 2] - ground > 3.0


@needs_runtime
def test_a_pilot_commands_nothing_that_it_has_no_ground_for() -> None:
    policy = Policy(shipped_policy("hover"))
    batch = LandAirBatch(1, "hover")
    batch.seed(np.zeros(1, int), np.zeros(1, np.uint64))
    batch.begin(np.zeros(1, int))
    batch.step(np.zeros((1, 4)))
    samples, estimate = known(batch, 0, policy.params)
    target = batch.episodes.targets[0]

    pilot = PolicyPilot(policy)
    pilot.set_targets(target)
    assert pilot.missing(1.0) == ["joints", "wheel loads", "height"]
    assert pilot.step(estimate) is None
    pilot.sense(samples)
    assert pilot.missing(1.0) == []
    assert pilot.step(estimate) is not None
    # readings grow old
    assert pilot.step(estimate._replace(time=1.5)) is None
    assert pilot.missing(1.5) == ["joints", "wheel loads", "height"]

    # no target, or one that is out of reach
    pilot.reset()
    pilot.sense(samples)
    assert pilot.step(estimate) is None
    pilot.set_targets(np.add(target, (30.0, 0.0, 0.0)))
    assert pilot.step(estimate) is None
    assert pilot.ending is Ending.ASTRAY
    pilot.set_targets(target)
    assert pilot.step(estimate) is not None
    for wrong in (np.full((1, 3), np.nan), np.zeros((1001, 3))):
        with pytest.raises(CommandError, match="targets"):
            pilot.set_targets(wrong)


@needs_runtime
def test_a_pilot_of_samples_commands_nothing_where_the_gps_contradicts_the_estimate() -> None:
    """The ground is that of another world's origin, which no target shows."""
    policy = Policy(shipped_policy("hover_by_sensors"))
    batch = LandAirBatch(1, **policy.environment)
    batch.seed(np.zeros(1, int), np.zeros(1, np.uint64))
    batch.begin(np.zeros(1, int))
    samples, estimate = known(batch, 0, policy.params)
    now = np.array([1.0])
    upright = np.array([[0.0, 0.0, 0.0, 1.0]])
    pilot = PolicyPilot(policy)
    pilot.set_targets(estimate.position[None])
    place = np.zeros((1, 3))
    for apart, commands in ((0.0, True), (20.0, True), (40.0, False), (1e5, False)):
        north_east_down = (
            estimate.position[1] + apart,
            estimate.position[0],
            -estimate.position[2],
        )
        place[0] = ned_to_geodetic(north_east_down, DEFAULT_GEO_ORIGIN)
        whole = replace(
            samples,
            imu=ImuSamples(now, np.array([[0.0, 0.0, 9.8]]), np.zeros((1, 3)), upright),
            gps=GpsSamples(now, place.copy(), np.zeros((1, 3))),
            barometer=BarometerSamples(now, np.array([95_000.0])),
        )
        pilot.sense(whole)
        assert (pilot.step(estimate) is not None) == commands
        assert bool(pilot.missing(1.0)) != commands

    assert pilot.missing(1.0) == ["gps (100000 m from the estimate)"]


@needs_runtime
@pytest.mark.slow
@pytest.mark.parametrize("name", ["hover", exhaustively("hover_by_sensors")])
def test_answers_that_all_come_late_leave_the_vehicle_to_its_controller(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers come 0.15 s late, as on a busy machine: flown blindly, it turned over."""
    take = FlightController.set_wrench
    on_their_way: deque[tuple[float, Any]] = deque()

    def send(flight: FlightController, wrench: Any, time: float) -> None:
        on_their_way.append((flight.time + 0.15, (wrench, time)))
        while on_their_way[0][0] <= flight.time:
            with contextlib.suppress(CommandError):
                take(flight, *on_their_way.popleft()[1])

    monkeypatch.setattr(FlightController, "set_wrench", send)
    flight = fly_policy(Policy(shipped_policy(name)), 5, sensors=RTK)
    assert flight.true_ending is not Ending.CRASHED
    assert flight.mode in (Mode.FLIGHT, Mode.LAND)
    assert np.ptp(flight.position[:, :2], axis=0).max() < 1.0


@needs_runtime
@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [2_000_000, 2_000_003])
@pytest.mark.parametrize("name", ["hover", "hover_by_sensors"])
def test_it_hovers_by_noisy_estimates(name: str, seed: int) -> None:
    """Sensors with noise, estimator and flight controller, from standing on the ground."""
    policy = Policy(shipped_policy(name))
    flight = fly_policy(policy, seed, sensors=RTK, wind=1.0, gusts=0.3)
    assert flight.ending is Ending.SUCCESS
    assert flight.true_ending is Ending.SUCCESS
    assert flight.mode is Mode.FLIGHT
    assert len(flight.time) == 500
    assert np.linalg.norm(flight.position[-1] - flight.targets[0]) < 0.3


@needs_runtime
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [2_000_001, 2_000_009])
def test_it_hops_by_noisy_estimates(seed: int) -> None:
    """The flight with the vehicle's own sensors ends on its wheels; the rotors stop at the end.

    Of make test are the hop with a better GPS, and one by hand that stands for 2 s after it.
    """
    flight = fly_policy(Policy(shipped_policy("hop")), seed, wind=1.0, gusts=0.3)
    assert flight.ending is Ending.SUCCESS
    assert flight.mode is Mode.DRIVE
    assert np.ptp(flight.position[-100:], axis=0) == pytest.approx(np.zeros(3), abs=0.02)


@needs_runtime
@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        3_000_000,
        *(exhaustively(seed) for seed in (3_000_001, 3_000_007)),
    ],
)
def test_with_a_gps_of_2_cm_it_hops_to_its_place_by_the_truth_too(seed: int) -> None:
    flight = fly_policy(Policy(shipped_policy("hop")), seed, sensors=RTK, wind=1.0, gusts=0.3)
    assert (flight.ending, flight.true_ending) == (Ending.SUCCESS, Ending.SUCCESS)
    assert flight.mode is Mode.DRIVE
    assert np.linalg.norm((flight.position[-1] - flight.targets[0])[:2]) < 2.0


def test_the_goal_of_the_page_is_within_reach_of_the_scenario_that_it_starts() -> None:
    """`rfly up amphibious` without more is the valley; it hovers 3 m above its start."""
    root = Path(__file__).parents[3]
    text = (root / "docs" / "howto" / "train-a-policy.md").read_text(encoding="utf-8")
    goal = re.search(r"goal_pose .*position: \{x: (.*), y: (.*), z: (.*)\}\}\}", text)
    assert goal is not None
    x, y = Scenario.load("valley").start
    above = float(HeightMap.load("JacksboroFault").altitude(x, y)) + 3.0
    away = math.dist([float(number) for number in goal.groups()], (x, y, above))
    assert 0.3 < away < TASKS["hover"].astray


@needs_runtime
def test_trials_of_arguments_that_cannot_be_used() -> None:
    policy = Policy(shipped_policy("hover"))
    for seeds in ([-1], [1.5], 5, [[1, 2]], [[1], [1, 2]], ["a"], [True]):
        with pytest.raises(ConfigError, match="seeds: expected a row of whole numbers"):
            try_policy(policy, seeds)
    for seed in (-1, 1.5, True, "a", None):
        with pytest.raises(ConfigError, match=f"seed: {seed!r}, expected a whole number"):
            fly_policy(policy, seed)  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match="sensors: 5, expected a name, a path or SensorParameters"
    ):
        fly_policy(policy, 1, sensors=5)  # type: ignore[arg-type]

    for options in ({"wind": -1.0}, {"wind": float("nan")}, {"wind": 1e9}, {"gusts": 21.0}):
        with pytest.raises(ConfigError, match=f"{next(iter(options))}: .* m/s, expected a finite"):
            fly_policy(policy, 1, **options)
    for changed in ({"vehicle": "full"}, {"period": 0.05}, {"task": "hop"}, {"actions": "rotors"}):
        name = next(iter(changed))
        with pytest.raises(ConfigError, match=f"{name}: .*, expected none: the policy has its own"):
            try_policy(policy, [1], **changed)
    rows = np.random.default_rng(1).normal(size=(3, 31))
    assert policy.act(rows).tolist() == policy.act(rows.astype(np.float32)).tolist()


@needs_runtime
def test_a_start_on_a_slope_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rfly_lab.learning.policy_flight.LONGEST_BEGIN", 3.0)
    with pytest.raises(ConfigError, match=r"the slope is 1\d\.\d°, expected below 10°"):
        fly_policy(Policy(shipped_policy("hover")), 2**70, wind="0")  # type: ignore[arg-type]


@needs_runtime
def test_a_flight_of_another_task_is_refused(tmp_path: Path) -> None:
    policy = Policy(shipped_policy("hover"))
    policy.task = TASKS["goal"]
    with pytest.raises(ConfigError, match="expected hover, waypoints, hop or roof"):
        fly_policy(policy, 1)
