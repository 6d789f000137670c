# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A trained policy as an ONNX file, with the facts that say what it sees and commands.

The network takes observations as the environment gives them, (n, numbers), and returns actions,
(n, numbers): what normalises them is part of it. The facts are a JSON text in the file's metadata.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.vehicle.parameters import VehicleParameters, shipped_parameter_sets
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.config.documents import shipped_names
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath, read_regular
from rfly_lab.learning.actions import ACTIONS, action_names
from rfly_lab.learning.land_air_batch import (
    LONGEST_PERIOD,
    STEP,
    LandAirBatch,
    observation_names,
    real_numbers,
)
from rfly_lab.learning.policy_network import PolicyNetwork
from rfly_lab.learning.tasks import task_of
from rfly_lab.learning.views import TRUTH, View, sensors_of, vehicle_of, view_of

METADATA_KEY = "rfly_suite.policy"
"""Key of the facts in the metadata of a file."""
MAX_POLICY_BYTES = 8 * 1024 * 1024
"""Largest file that is read: two million numbers."""


def shipped_policy(task: str) -> Path:
    """Return the file of the policy that is shipped for a task. Raise ConfigError if none is."""
    check_choice("policy", task, shipped_names("rfly_lab", "policies", ".onnx"))
    return Path(__file__).parents[1] / "data" / "policies" / f"{task}.onnx"


@dataclass(frozen=True)
class PolicyFacts:
    """Purpose that a policy was trained for."""

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
    digests: dict[str, str] = field(default_factory=dict)
    """Digest of the numbers of the vehicle, and of each sensor by which it sees, by name.

    A name that is lacking is not compared, as in files that are older than digests.
    """

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
            _digests(batch.params, batch.view),
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
        names = [each.name for each in fields(cls)]
        needed = {
            each.name
            for each in fields(cls)
            if each.default is MISSING and each.default_factory is MISSING
        }
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
        digests = data.get("digests", {})
        if not isinstance(digests, dict) or not all(isinstance(d, str) for d in digests.values()):
            raise ConfigError(f"metadata digests: {digests!r:.60}, expected texts by name")
        return cls(**data)


class Policy:
    """A policy that is loaded, for one vehicle."""

    def __init__(
        self,
        path: StrPath,
        params: StrPath | VehicleParameters | None = None,
        sensors: StrPath | SensorParameters | None = None,
    ) -> None:
        """Read a file. `params`: of the vehicle, or their name or path.

        None: the shipped set that it was trained for. `sensors`: those by which it sees, or the
        name or path of a set, where it was trained with some; None: the shipped set of its
        training, or the vehicle's own for a file that names none.
        Raise ConfigError for a file that can't be read, is no such policy, or does not fit the
        vehicle; for a shipped set that is another one than that of the training; and where
        onnxruntime is not installed.
        """
        if not isinstance(path, str | os.PathLike):
            raise ConfigError(f"policy: {path!r}, expected the path of a file")
        try:
            content = read_regular(path, MAX_POLICY_BYTES)
        except OSError as error:
            raise ConfigError(
                f"policy {path}: {error.strerror or error}; expected an ONNX file, or a shipped "
                f"one: {', '.join(shipped_names('rfly_lab', 'policies', '.onnx'))}"
            ) from None

        # the network, and what it was trained for
        try:
            self._network = PolicyNetwork(content)
            self.facts = self._facts()
            self.params = (
                _shipped_vehicle(self.facts.vehicle) if params is None else vehicle_of(params)
            )
            self.differs: tuple[str, ...] = ()
            """Names of what has other numbers than in the training: "vehicle" and sensors."""
            self._check(sensors)
            if params is None and "vehicle" in self.differs:
                raise ConfigError(
                    f"vehicle: trained for another {self.params.name!r} than the shipped one: "
                    "expected its parameters"
                )
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
        return self._network.run(real_numbers("observations", seen))

    def _facts(self) -> PolicyFacts:
        """Return the facts in the file. Raise ConfigError where they are none."""
        text = self._network.metadata.get(METADATA_KEY)
        if text is None:
            raise ConfigError(
                f"its metadata lacks {METADATA_KEY}: write it with rfly_lab.write_policy"
            )
        return PolicyFacts.read(text)

    def _check(self, sensors: StrPath | SensorParameters | None) -> None:
        """Raise ConfigError if the policy does not fit the vehicle, or its own facts."""
        facts = self.facts
        params = self.params
        if facts.vehicle != params.name:
            raise ConfigError(f"vehicle: trained for {facts.vehicle!r}, this is {params.name!r}")

        # names in their order, by those of this version
        task = task_of(facts.task)
        check_choice("actions", facts.actions, tuple(ACTIONS))
        _check_names("action_names", facts.action_names, action_names(facts.actions, params))
        by_name = sensors is None
        own = None if by_name else sensors_of(params, sensors)
        if facts.observations == TRUTH and not facts.lidar and not facts.depth:
            own = None
        elif by_name and facts.sensors:
            own = _shipped_sensors(facts.sensors)
        view = view_of(params, facts.observations, own, facts.lidar, facts.depth)
        self.sensors = view.sensors
        """Sensors by which it sees; None: by none."""
        self.check_view(observation_names(task, params, view))

        # numbers
        digests = _digests(params, view)
        trained = facts.digests.items()
        self.differs = tuple(name for name, digest in trained if digests.get(name) != digest)
        others = ", ".join(name for name in self.differs if name != "vehicle")
        if by_name and others:
            raise ConfigError(
                f"sensors: trained with another {facts.sensors!r} than the shipped one ({others}): "
                "expected its set"
            )

        self._network.check_sizes(len(facts.observation_names), len(facts.action_names))


def _digests(params: VehicleParameters, view: View) -> dict[str, str]:
    """Return the digests of a vehicle and of the sensors that are seen, by name."""
    records = {"vehicle": params, **view.seen_sensors()}
    texts = {name: json.dumps(_plain(record), sort_keys=True) for name, record in records.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def _plain(value: Any) -> Any:
    """Return a record as JSON has it: without its name, and without what is as by default.

    So a field that a later version adds changes no digest. An int is the float of its value, and
    numbers that are all the same are one.
    """
    if is_dataclass(value):
        values = {
            each.name: (_plain(getattr(value, each.name)), _plain(each.default))
            for each in fields(value)
            if each.name != "name"
        }
        return {name: own for name, (own, usual) in values.items() if own != usual}
    if isinstance(value, np.ndarray | tuple | list):
        listed = [_plain(each) for each in value]
        return listed[0] if listed and all(each == listed[0] for each in listed) else listed
    if isinstance(value, int | float | np.number):
        return float(value)
    return None if value is MISSING else value


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
