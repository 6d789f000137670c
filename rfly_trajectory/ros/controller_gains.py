"""The gains of a vehicle's controller, through the parameter services of its node."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.node import Node

from rfly_trajectory.mavlink.parameter_protocol import GAIN_NAMES, ControllerGains

PERIOD_S, PATIENCE_S = 1.0, 5.0
"""between two looks at the values; after which an answer is not waited for any more"""


class ControllerGainsClient:
    """Keeps a `ControllerGains` as the node `controller` has them: whoever changes one, `update` finds it."""

    def __init__(self, node: Node, controller: str, gains: ControllerGains) -> None:
        self._gains, gains.ask = gains, self._ask
        self._describe = node.create_client(DescribeParameters, f"{controller}/describe_parameters")
        self._get = node.create_client(GetParameters, f"{controller}/get_parameters")
        self._set = node.create_client(SetParameters, f"{controller}/set_parameters")
        self._names = list(GAIN_NAMES.values())
        self._asked_at = -math.inf
        self._waits = False

    def update(self, wall: float) -> None:
        """Look at them again where that is due; steady wall time."""
        if wall - self._asked_at < (PATIENCE_S if self._waits else PERIOD_S):
            return
        self._asked_at = wall
        if not all(client.service_is_ready() for client in (self._describe, self._get, self._set)):
            self._gains.forget()
            return
        self._waits = True
        if not self._gains.ranges:
            asked: Any = self._describe.call_async(DescribeParameters.Request(names=self._names))
            asked.add_done_callback(self._on_described)
        else:
            asked = self._get.call_async(GetParameters.Request(names=self._names))
            asked.add_done_callback(self._on_values)

    def _on_described(self, future: Any) -> None:
        self._waits, self._asked_at = False, -math.inf  # the values follow at once
        for name, about in zip(GAIN_NAMES, future.result().descriptors, strict=False):
            for span in about.floating_point_range:
                self._gains.ranges[name] = span.from_value, span.to_value

    def _on_values(self, future: Any) -> None:
        self._waits = False
        for name, value in zip(GAIN_NAMES, future.result().values, strict=False):
            if value.type == ParameterType.PARAMETER_DOUBLE and name in self._gains.ranges:
                self._gains.values[name] = value.double_value

    def _ask(self, name: str, value: float, done: Callable[[str], None]) -> None:
        """Have one set; `done` is told why it was refused, or ""."""
        wanted = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request = SetParameters.Request(parameters=[Parameter(name=GAIN_NAMES[name], value=wanted)])

        def on_set(future: Any) -> None:
            (result,) = future.result().results
            if result.successful:
                self._gains.values[name] = value
            done("" if result.successful else result.reason)

        self._set.call_async(request).add_done_callback(on_set)
