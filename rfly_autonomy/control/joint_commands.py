# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Joint commands of ros2_control: what a JointState on `joint_commands` orders. No ROS.

ros-controls' JointStateTopicSystem lists all joints in `name`. `position` and `velocity` hold the
joints that have this command interface only, in the order of `name`. A command is NaN until a
controller has claimed its joint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rfly_amphibious.description.urdf import CAMERA_JOINT, steering_joint_limits
from rfly_amphibious.sensors.samples import joint_names
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import CommandError

FASTEST = 60.0
"""Speed on the ground that no wheel is turned for, m/s."""

MOST_NAMED = 3
"""Joints that a refusal names."""

SLACK = 1e-6
"""Rounding error of a position at its limit, rad."""


class JointCommand(NamedTuple):
    """Commands of the joints; NaN: of a joint that no controller has claimed."""

    wheel_rate: Floats
    """Rates of the wheels, (wheels,), rad/s, positive rolls forward."""

    steering: Floats
    """Angles of the steering joints, (wheels,), rad, positive to the left."""

    camera: float = math.nan
    """Pitch of the gimbal, rad, positive looks down."""


class JointCommandReader:
    """Reader of JointState messages for the joints of one vehicle."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._wheels = {f"wheel_{wheel}_joint": i for i, wheel in enumerate(params.wheels)}
        self._steered = {
            f"steer_{wheel}_joint": i
            for i, wheel in enumerate(params.wheels)
            if params.steering_sign[i]
        }
        self._known = {*joint_names(params), CAMERA_JOINT}
        self._limits = {
            "velocity": FASTEST / float(params.rolling_radius.mean()),
            "position": steering_joint_limits(params)[0] + SLACK,
        }

    def __call__(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float] = (),
    ) -> JointCommand:
        """Return the command of a message's fields. Raise CommandError for one that can't be."""
        unknown = sorted(set(names) - self._known)
        if unknown:
            raise CommandError(f"unknown joints {', '.join(map(repr, unknown[:MOST_NAMED]))}")
        if len(set(names)) < len(names):
            raise CommandError("a joint is named twice")
        if len(effort):
            raise CommandError(f"effort: {len(effort)} values, expected none")

        # the joints that each list is for
        turned = [name for name in names if name in self._steered or name == CAMERA_JOINT]
        rolled = [name for name in names if name in self._wheels]
        values = {
            **self._values("position", turned, position),
            **self._values("velocity", rolled, velocity),
        }

        wheels = len(self._params.wheels)
        command = JointCommand(
            np.full(wheels, math.nan), np.full(wheels, math.nan), values.get(CAMERA_JOINT, math.nan)
        )
        for array, indices in (
            (command.wheel_rate, self._wheels),
            (command.steering, self._steered),
        ):
            for name in indices.keys() & values.keys():
                array[indices[name]] = values[name]
        return command

    def _values(
        self, field: str, names: Sequence[str], values: Sequence[float]
    ) -> dict[str, float]:
        """Return the values of a field by joint. Raise CommandError."""
        if len(values) != len(names):
            raise CommandError(
                f"{field}: {len(values)} values, expected one for each of "
                f"{', '.join(names) or 'no joint'}"
            )
        limit = self._limits[field]
        for name, value in zip(names, values, strict=True):
            # the gimbal stops at its own limits
            if math.isinf(value) or (name != CAMERA_JOINT and abs(value) > limit):
                raise CommandError(
                    f"{field} of {name} is {value:g}, expected -{limit:g} to {limit:g}"
                )
        return dict(zip(names, values, strict=True))
