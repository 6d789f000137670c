"""Declaration of node parameters: typed by their defaults, with description, range and choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rclpy
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node

from rfly_common.errors import ConfigError


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    read_only: bool = True,
) -> Any:
    """Declare a parameter typed by its default and return its value.

    A float parameter takes an integer too (`-p rate:=50`). An empty list as default declares string[]
    (`declare_floats` is for optional numbers). Raises ConfigError that names the parameter and what it takes.
    """
    descriptor = ParameterDescriptor(description=description, read_only=read_only)
    if choices is not None:
        descriptor.additional_constraints = "one of: " + ", ".join(choices)
    floating = isinstance(default, float)
    if floating and (low is not None or high is not None):
        descriptor.floating_point_range = [
            FloatingPointRange(
                from_value=-math.inf if low is None else float(low), to_value=math.inf if high is None else float(high)
            )
        ]
    if isinstance(default, int) and not isinstance(default, bool) and (low is not None or high is not None):
        descriptor.integer_range = [
            IntegerRange(
                from_value=-(2**63) if low is None else int(low),
                to_value=2**63 - 1 if high is None else int(high),
                step=1,
            )
        ]
    if floating:
        _integer_override_to_float(node, name)
    kind = rclpy.Parameter.Type.STRING_ARRAY if default == [] else rclpy.Parameter.Type.from_parameter_value(default)
    try:
        value = node.declare_parameter(name, default if default != [] else kind, descriptor).value
    except InvalidParameterTypeException as error:
        raise ConfigError(f"parameter {name}: expected {kind.name.lower()}, {error}") from error
    except InvalidParameterValueException as error:
        limits = f"{'-inf' if low is None else low} … {'inf' if high is None else high}"
        raise ConfigError(f"parameter {name}: {error}; allowed: {limits}") from error
    if value is None:
        value = default
    if floating and not math.isfinite(value):
        raise ConfigError(f"parameter {name}: {value} is not a finite number")
    if choices is not None and value not in choices:
        raise ConfigError(f"parameter {name}: {value!r}, expected one of {', '.join(choices)}")
    return value


def declare_floats(node: Node, name: str, description: str) -> list[float]:
    """Declare an optional float array, empty where nobody sets it."""
    descriptor = ParameterDescriptor(description=description, read_only=True)
    try:
        value = node.declare_parameter(name, rclpy.Parameter.Type.DOUBLE_ARRAY, descriptor).value
    except InvalidParameterTypeException as error:
        raise ConfigError(
            f"parameter {name}: expected a list of numbers such as [47.4, 8.5, 488.0], {error}"
        ) from error
    return [] if value is None else list(value)


def _integer_override_to_float(node: Node, name: str) -> None:
    """rclpy refuses `50` for a double parameter, which every user types at some time: read it as 50.0."""
    given = node._parameter_overrides.get(name)  # no public way before the declaration
    if given is not None and given.type_ == rclpy.Parameter.Type.INTEGER:
        node._parameter_overrides[name] = rclpy.Parameter(name, rclpy.Parameter.Type.DOUBLE, float(given.value))
