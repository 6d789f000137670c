# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A trained policy as an ONNX file, with the facts that say what it sees and commands.

The network takes observations as the environment gives them, (n, numbers), and returns actions,
(n, numbers): what normalises them is part of it. The facts are a JSON text in the file's metadata.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import VehicleParameters, shipped_parameter_sets
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, read_regular
from rfly_lab.learning.actions import ACTIONS, action_names
from rfly_lab.learning.land_air_batch import (
    LONGEST_PERIOD,
    STEP,
    LandAirBatch,
    observation_names,
)
from rfly_lab.learning.policy_network import PolicyNetwork
from rfly_lab.learning.tasks import task_of
from rfly_lab.learning.views import TRUTH, view_of

METADATA_KEY = "rfly_suite.policy"
"""Key of the facts in the metadata of a file."""
MAX_POLICY_BYTES = 8 * 1024 * 1024
"""Largest file that is read: two million numbers."""


def shipped_policy(task: str) -> Path:
    """Return the file of the policy that is shipped for a task. Raise ConfigError if none is."""
    folder = Path(__file__).parents[1] / "data" / "policies"
    check_choice("task", task, sorted(file.stem for file in folder.glob("*.onnx")))
    return folder / f"{task}.onnx"


@dataclass(frozen=True)
class PolicyFacts:
    """What a policy was trained for."""

    task: str
    """Task of the environment."""
    actions: str
    """Kind of the actions."""
    period: float
    """Time for which an action is held, s."""
    vehicle: str
    """Name of the vehicle's parameters."""
    observation_names: tuple[str, ...]
    """Name of each number of an observation, with its unit."""
    action_names: tuple[str, ...]
    """Name of each number of an action."""
    observations: str = TRUTH
    """Kind of the observations, "truth" or "sensors"."""
    lidar: int = 0
    """Rays of the lidar that is seen."""
    depth: tuple[int, ...] = ()
    """Rows and columns of the depth image that is seen."""
    sensors: str = ""
    """Name of the set of sensors by which it sees, a file's without folders; "": by none."""

    @classmethod
    def of(cls, batch: LandAirBatch) -> PolicyFacts:
        """Return the facts of a policy that is trained in a batch."""
        sensors = batch.view.sensors
        return cls(
            batch.task_name,
            batch.actions,
            batch.period,
            batch.params.name,
            tuple(batch.observation_names),
            tuple(batch.action_names),
            *batch.view[:3],
            "" if sensors is None else Path(sensors.name).name,
        )

    def text(self) -> str:
        """Return the facts as JSON."""
        return json.dumps(asdict(self), ensure_ascii=True)

    @classmethod
    def read(cls, text: str) -> PolicyFacts:
        """Return the facts of a JSON text. Raise ConfigError for anything else."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"metadata {METADATA_KEY}: no JSON: {error}") from None
        names = [field.name for field in fields(cls)]
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        if not isinstance(data, dict) or not needed <= set(data) <= set(names):
            raise ConfigError(f"metadata {METADATA_KEY}: expected {', '.join(names)}")

        for name in ("task", "actions", "vehicle", "observations", "sensors"):
            if not isinstance(data.get(name, ""), str):
                raise ConfigError(f"metadata {name}: {data[name]!r}, expected a text")
        data["period"] = _seconds(data["period"])
        for name in ("observation_names", "action_names"):
            listed = data[name]
            if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
                raise ConfigError(f"metadata {name}: expected a list of names")
            data[name] = tuple(listed)
        if not isinstance(data.get("depth", []), list):
            raise ConfigError(f"metadata depth: {data['depth']!r}, expected a list")
        data["depth"] = tuple(data.get("depth", ()))
        return cls(**data)


class Policy:
    """A policy that is loaded, for one vehicle."""

    def __init__(
        self,
        path: StrPath,
        params: VehicleParameters | None = None,
        sensors: StrPath | SensorParameters | None = None,
    ) -> None:
        """Read a file. `params`: of the vehicle; None: the shipped set that it was trained for.

        `sensors`: those by which it sees, or the name or path of a set, where it was trained with
        some; None: the shipped set of its training, or the vehicle's own for a file that names
        none.
        Raise ConfigError for a file that can't be read, is no such policy, or does not fit the
        vehicle; and where onnxruntime is not installed.
        """
        try:
            content = read_regular(path, MAX_POLICY_BYTES)
        except OSError as error:
            raise ConfigError(f"policy {path}: {error.strerror or error}") from None
        try:
            self._network = PolicyNetwork(content)
            self.facts = self._facts()
            self.params = params or _shipped_vehicle(self.facts.vehicle)
            self._check(self.params, sensors)
        except ConfigError as error:
            raise ConfigError(f"policy {path}: {error}") from None
        self.task = task_of(self.facts.task)
        """Rules of its task."""

    def check_view(self, names: Sequence[str]) -> None:
        """Raise ConfigError unless a vehicle sees what the policy was trained with, by names."""
        _check_names("observation_names", self.facts.observation_names, names)

    @property
    def environment(self) -> dict[str, Any]:
        """Options of an environment in which it sees and acts as in its training, by name."""
        facts = self.facts
        return {
            "task": facts.task,
            "vehicle": self.params,
            "actions": facts.actions,
            "period": facts.period,
            "observations": facts.observations,
            "sensors": self.sensors,
            "lidar": facts.lidar,
            "depth": facts.depth,
        }

    def act(self, seen: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the actions, (n, numbers), for observations, (n, numbers)."""
        return self._network.run(seen)

    def _facts(self) -> PolicyFacts:
        """Return the facts in the file. Raise ConfigError where they are none."""
        text = self._network.metadata.get(METADATA_KEY)
        if text is None:
            raise ConfigError(
                f"its metadata lacks {METADATA_KEY}: write it with rfly_lab.write_policy"
            )
        return PolicyFacts.read(text)

    def _check(self, params: VehicleParameters, sensors: StrPath | SensorParameters | None) -> None:
        """Raise ConfigError if the policy does not fit a vehicle, or its own facts."""
        facts = self.facts
        if facts.vehicle != params.name:
            raise ConfigError(f"vehicle: trained for {facts.vehicle!r}, this is {params.name!r}")

        # names in their order, by those of this version
        task = task_of(facts.task)
        check_choice("actions", facts.actions, tuple(ACTIONS))
        _check_names("action_names", facts.action_names, action_names(facts.actions, params))
        if facts.observations == TRUTH and not facts.lidar and not facts.depth:
            sensors = None
        elif sensors is None and facts.sensors:
            sensors = _shipped_sensors(facts.sensors)
        view = view_of(params, facts.observations, sensors, facts.lidar, facts.depth)
        self.sensors = view.sensors
        """Sensors by which it sees; None: by none."""
        self.check_view(observation_names(task, params, view))

        self._network.check_sizes(len(facts.observation_names), len(facts.action_names))


def _shipped_vehicle(name: str) -> VehicleParameters:
    """Return a shipped set. Raise ConfigError for another name: a policy names no files."""
    check_choice("vehicle", name, shipped_parameter_sets())
    return VehicleParameters.load(name)


def _shipped_sensors(name: str) -> SensorParameters:
    """Return a shipped set. Raise ConfigError for another name: a policy names no files."""
    if name not in shipped_sensor_sets():
        raise ConfigError(f"sensors: trained with {name!r}, which is not shipped: expected its set")
    return SensorParameters.load(name)


def _seconds(period: Any) -> float:
    """Return a period of the environments, s. Raise ConfigError for anything else."""
    if isinstance(period, bool) or not isinstance(period, int | float):
        raise ConfigError(f"metadata period: {period!r}, expected seconds")
    return finite_number("metadata period", period, "s", at_least=STEP, at_most=LONGEST_PERIOD)


def _check_names(what: str, trained: Sequence[str], ours: Sequence[str]) -> None:
    """Raise ConfigError where a policy's names are others than this version's."""
    for number, (theirs, own) in enumerate(zip(trained, ours, strict=False)):
        if theirs != own:
            raise ConfigError(f"{what}: number {number} is {theirs!r}, expected {own!r}")
    if len(trained) != len(ours):
        raise ConfigError(f"{what}: {len(trained)}, expected {len(ours)}")
