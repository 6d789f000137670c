# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pilot that flies by a policy, from estimates and samples of sensors instead of the truth. No ROS.

What is known of the vehicle becomes a row of states and outputs, as the simulation has them, except
that its wheels are straight and stand: the brakes of a policy that commands rotors alone held them
in its training, and while a vehicle flies they roll free. The kernels of the environment make the
observation from it, go on to the next target, and say when the task is solved. A policy that was
trained by sensors sees their samples alone; estimates only say when its task is solved.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.estimation.clearance import Clearance
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.wheel_contact import SENSOR_TIMEOUT
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_common.frames import rotation_matrix
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, GeoPoint
from rfly_lab.learning import episode_kernels
from rfly_lab.learning.actions import commands_of, wrench_of
from rfly_lab.learning.grounds import hills
from rfly_lab.learning.policy import Policy, shipped_policy
from rfly_lab.learning.sensor_batch import SampledSensors
from rfly_lab.learning.task_judge import TaskJudge
from rfly_lab.learning.tasks import ON_GROUND, Ending
from rfly_lab.learning.views import SENSORS, sensor_names, sensors_of

MOST_APART = 30.0
"""Distance of a GPS fix from the estimate beyond which one of them is wrong, m."""
TOLERANCE = 1e-6
"""Time by which an estimate may come before its turn, s."""


class PolicyPilot:
    """Pilot of a vehicle in flight, and from the ground and back to it where its task is such.

    `sense` takes samples, `judge` has the places to fly to; `step` returns the wrench that answers
    an estimate. There is none before there are targets and all inputs (`missing`), and after the
    end of the task, until there are new targets. A task that goes on ends with no success.
    """

    def __init__(self, policy: Policy, sensors: SensorParameters | None = None) -> None:
        """Raise ConfigError for a policy that can't be flown so, and for sensors that it lacks.

        It flies by wrenches, and sees neither rays nor the ground. None: the sensors by which it
        sees, or the vehicle's.
        """
        facts = policy.facts
        if facts.actions != "wrench":
            raise ConfigError(f"actions: trained with {facts.actions!r}, expected 'wrench'")
        if facts.lidar or facts.depth:
            raise ConfigError(
                "lidar, depth: trained with rays, expected none: no node has them for it"
            )
        if policy.task.sees_ground:
            raise ConfigError(f"task: {facts.task!r} sees the ground around, which no sensor shows")
        params = policy.params
        sensors = sensors or sensors_of(params, policy.sensors)

        self.policy = policy
        self.sees_samples = facts.observations == SENSORS
        """True if the policy sees by sensors, not by estimates."""
        if self.sees_samples:
            policy.check_view(sensor_names(params, sensors))
        needed = () if self.sees_samples else ("encoders", "height")
        if policy.task.on_wheels or not self.sees_samples:
            needed = (*needed, "wheel_loads")
        lacking = [name for name in needed if getattr(sensors, name) is None]
        if lacking:
            raise ConfigError(
                f"sensors: {sensors.name!r} has no {', '.join(lacking)}, which {facts.task!r} needs"
            )
        self._origin = DEFAULT_GEO_ORIGIN
        self.params = params
        self.sensors = sensors
        """Sensors of the vehicle."""
        self._commands = commands_of(facts.actions, params)
        self._task = policy.task
        self._flies = (Ending.RUNNING, Ending.SUCCESS)[: 1 + policy.task.goes_on]
        """Endings with which it flies on."""
        self.takes_off = policy.task.course in ON_GROUND
        """True if its task begins on the ground."""
        self.modes = (Mode.TAKEOFF, Mode.FLIGHT) if self.takes_off else (Mode.FLIGHT,)
        """Modes of the flight controller in which its wrenches are flown."""
        self.reset()

    @classmethod
    def load(cls, path: StrPath, vehicle: StrPath = "", sensors: StrPath = "") -> PolicyPilot:
        """Return the pilot of a file, for a vehicle and sensors by their names or paths.

        "": those of the training. A name without folder and suffix may be the task of a shipped
        policy. Raise ConfigError as `Policy`, `PolicyPilot` and `shipped_policy` do.
        """
        is_name = isinstance(path, str) and path == Path(path).stem
        if is_name and not os.path.isfile(path):
            path = shipped_policy(str(path))
        policy = Policy(path, vehicle or None, sensors or None)
        own = sensors_of(policy.params, sensors) if sensors else None
        try:
            return cls(policy, own)
        except ConfigError as error:
            raise ConfigError(f"policy {path}: {error}") from None

    def reset(self) -> None:
        """Forget all, as the time went back."""
        self._clearance = Clearance(self.params, self.sensors.height)
        self._joints_time = -math.inf
        self._wheel_rates = np.zeros((1, len(self.params.wheels)))
        """What a policy without wheels has learned with: straight wheels that its brakes hold."""
        self._loads_time = -math.inf

        # its last estimate and action
        self._estimate: Estimate | None = None
        self._acted = -math.inf
        self._wrench: Floats | None = None

        # what is known by estimates
        self._x = np.zeros((1, self.params.state_size))
        """What is known, as a state of the simulation, (1, states)."""
        self._outputs = np.zeros((1, state_layout.reported(len(self.params.wheels))))
        """What is known of the outputs, (1, outputs)."""
        self.judge = TaskJudge(self._task, self.policy.facts.period, self.params)
        """Judge of its targets."""

        # what is known by samples
        self._sampled: SampledSensors | None = None
        if self.sees_samples:
            period = self.policy.facts.period
            self._sampled = SampledSensors(self.params, self.sensors, period)
            self._sampled.set_origin(self._origin)

    def set_origin(self, origin: GeoPoint) -> None:
        """Take the GPS to be in a world whose origin is at this latitude, longitude, altitude."""
        self._origin = origin
        if self._sampled is not None:
            self._sampled.set_origin(origin)

    def set_targets(self, places: ArrayLike) -> None:
        """Fly to places (n, 3), m, world, one after the other; see `TaskJudge.set_targets`."""
        self.judge.set_targets(places)
        self._acted = -math.inf

    @property
    def ending(self) -> Ending:
        """State of the task, by estimates."""
        return self.judge.ending

    @property
    def has_ended(self) -> bool:
        """True once its task is solved and over: one that goes on never is."""
        return self.ending is Ending.SUCCESS and not self._task.goes_on

    @property
    def has_landed(self) -> bool:
        """True once its task has ended on the wheels: the rotors are no longer needed."""
        return self._task.on_wheels and self.ending is Ending.SUCCESS

    # samples and commands

    def missing(self, time: float) -> list[str]:
        """Return the names of the inputs that are lacking or too old at a time, s.

        A GPS far from the estimate counts, too: its world has another origin, or it lies.
        """
        if self._sampled is not None:
            return self._sampled.missing(time) or self._contradicted()
        heard = {
            "joints": self._joints_time,
            "wheel loads": self._loads_time,
        }
        names = [name for name, last in heard.items() if not time - last <= SENSOR_TIMEOUT]
        if not (self._clearance.measured(time) and math.isfinite(self._clearance.height)):
            names.append("height")
        return names

    def _contradicted(self) -> list[str]:
        """Return the GPS, with the distance, where its fix is far from the estimate."""
        if self._sampled is None or self._estimate is None:
            return []
        apart = float(np.linalg.norm(self._sampled.fix - self._estimate.position))
        return [] if apart <= MOST_APART else [f"gps ({apart:.0f} m from the estimate)"]

    def sense(self, samples: SensorSamples) -> None:
        """Take the samples since the last step."""
        if self._sampled is not None:
            self._sampled.sense(samples)
        p = self.params
        x = self._x[0]
        joints = samples.joints
        if samples.height is not None or joints is not None:
            self._clearance.sense(samples.height, joints)
        if joints is not None:
            self._joints_time = float(joints.time[-1])
            first = state_layout.ROTOR_SPEED
            x[first : first + p.rotors] = np.abs(joints.rotor_rate[-1])
        if samples.wheel_loads is not None:
            self._loads_time = float(samples.wheel_loads.time[-1])
            self._outputs[0, self.judge.layout.wheel_load_columns] = samples.wheel_loads.load[-1]

    def step(self, now: Estimate) -> Floats | None:
        """Return thrust, N, and moments, N m, body axes, (4,), that answer an estimate.

        They are held for the policy's period. None: there is nothing to do, or to know by.
        """
        before = self._estimate
        self._estimate = now
        self._take(now, 0.0 if before is None else max(now.time - before.time, 0.0))
        if not self.judge.has_targets or self.ending not in self._flies or self.missing(now.time):
            self._acted = -math.inf
            return None

        if now.time - self._acted >= self.policy.facts.period - TOLERANCE:
            self._acted = now.time
            ending = self.judge.update(self._x[0], self._outputs[0])
            self._wrench = self._act(now.time) if ending in self._flies else None
        return self._wrench

    def _take(self, now: Estimate, dt: float) -> None:
        """Write an estimate, dt seconds after the last one, into the row of the state."""
        x = self._x[0]
        rotation = rotation_matrix(now.orientation)
        velocity = np.asarray(now.velocity)
        self._clearance.go_on(float(velocity[2]), math.hypot(velocity[0], velocity[1]), dt)
        x[state_layout.POSITION : state_layout.POSITION + 3] = now.position
        x[state_layout.VELOCITY : state_layout.VELOCITY + 3] = velocity
        x[state_layout.QUATERNION_XYZW] = now.orientation
        x[state_layout.RATES : state_layout.RATES + 3] = now.rates
        self._outputs[0, state_layout.CLEARANCE] = self._clearance.lowest_wheel(rotation)

    def _act(self, time: float) -> Floats | None:
        """Return the wrench of the policy; None if its numbers are not finite."""
        action = self.policy.act(self._see(time))[0]
        if not np.isfinite(action).all():
            self.judge.ending = Ending.FAILED
            return None
        return wrench_of(self._commands, action)

    def _see(self, time: float) -> NDArray[np.float32]:
        """Return what the policy sees, (1, numbers)."""
        judge = self.judge

        # by samples
        if self._sampled is not None:
            return self._sampled.observe(self._task, judge.layout, judge.episode, time)

        # by estimates
        seen = np.empty((1, len(self.policy.facts.observation_names)), np.float32)
        episode_kernels.observe(
            self._task,
            self._x,
            self._outputs,
            self._wheel_rates,
            judge.layout,
            hills().ground,
            judge.episode,
            seen,
        )
        return seen
