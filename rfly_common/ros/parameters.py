# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Declaration of node parameters from the dataclasses that describe them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import rclpy
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node

from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import Parameter, parameters_of

Parameters = TypeVar("Parameters")
_Type = rclpy.Parameter.Type
_EMPTY_LISTS = {
    list[str]: _Type.STRING_ARRAY,
    list[float]: _Type.DOUBLE_ARRAY,
    list[int]: _Type.INTEGER_ARRAY,
}
_EXPECTED_VALUES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list[str]: "a list of strings",
    list[float]: "a list of numbers such as [47.4, 8.5, 488.0]",
    list[int]: "a list of integers",
}


def declare_parameters(
    node: Node,
    cls: type[Parameters],
    *,
    prefix: str = "",
    defaults: Mapping[str, Any] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> Parameters:
    """Declare a dataclass of parameters, and return it with their values.

    `prefix` goes before each name ("<name>." for parameters of one vehicle of several). `defaults`
    and `choices`, by field, replace those of the dataclass; a default may be a function of the
    values declared before it. A float parameter accepts an integer too (`-p rate:=50`). Raises
    ConfigError that names the parameter and what it accepts.
    """
    values: dict[str, Any] = {}
    for field in parameters_of(cls):
        default = (defaults or {}).get(field.name, field.default)
        field_choices = tuple((choices or {}).get(field.name, field.choices))

        chosen = replace(
            field, default=default(values) if callable(default) else default, choices=field_choices
        )
        values[field.name] = _declare(node, prefix + field.name, chosen)
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(f"parameter {prefix}{error}") from None


def _declare(node: Node, name: str, field: Parameter) -> Any:
    if field.type in (float, list[float]):
        _integers_to_floats(node, name)
    default = float(field.default) if field.type is float else field.default
    kind = _EMPTY_LISTS[field.type] if default == [] else _Type.from_parameter_value(default)

    try:
        if default == []:
            value = _declare_empty_list(node, name, kind, _descriptor(field))
        else:
            value = node.declare_parameter(name, default, _descriptor(field)).value
    except InvalidParameterTypeException as error:
        given = node._parameter_overrides[name].value
        shown = given if isinstance(given, (bool, int, float, str)) else list(given)
        raise ConfigError(
            f"parameter {name}: {shown!r}, expected {_EXPECTED_VALUES[field.type]}"
        ) from error
    except InvalidParameterValueException as error:
        low = "-inf" if field.low is None else field.low
        high = "inf" if field.high is None else field.high
        raise ConfigError(f"parameter {name}: {error}; allowed: {low} … {high}") from error

    if value is None:  # an empty list has no type
        raise ConfigError(f"parameter {name}: [], expected {_EXPECTED_VALUES[field.type]}")
    if field.type is float and not math.isfinite(value):
        raise ConfigError(f"parameter {name}: {value} is not a finite number")
    if field.choices and value not in field.choices:
        raise ConfigError(
            f"parameter {name}: {value!r}, expected one of {', '.join(field.choices)}"
        )

    return value if isinstance(value, (bool, int, float, str)) else list(value)


def _declare_empty_list(node: Node, name: str, kind: _Type, descriptor: ParameterDescriptor) -> Any:
    """Declare a list that is empty by default, and return its value.

    rclpy takes [] for a list of bytes, so the type is declared first, without a value. A parameter
    that stays without one would deprive every client that asks for all values of all answers.
    """
    descriptor.type = kind.value
    node.declare_parameter(name, kind, ParameterDescriptor())
    if node.get_parameter_or(name).type_ == _Type.NOT_SET:
        node.set_parameters([rclpy.Parameter(name, kind, [])])
    node.set_descriptor(name, descriptor)
    return node.get_parameter(name).value


def _descriptor(field: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(description=field.description, read_only=not field.changeable)
    if field.choices:
        descriptor.additional_constraints = "one of: " + ", ".join(field.choices)

    if field.low is None and field.high is None:
        return descriptor
    if field.type is float:
        low = -math.inf if field.low is None else float(field.low)
        high = math.inf if field.high is None else float(field.high)
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    else:
        first = -(2**63) if field.low is None else int(field.low)
        last = 2**63 - 1 if field.high is None else int(field.high)
        descriptor.integer_range = [IntegerRange(from_value=first, to_value=last, step=1)]
    return descriptor


def _integers_to_floats(node: Node, name: str) -> None:
    """Read an override of integers as one of floats.

    rclpy refuses `50` for a parameter that is a double, and [47, 8] for a list of them, which are
    easily typed.
    """
    override = node._parameter_overrides.get(name)  # no public way before the declaration
    if override is not None and override.type_ == _Type.INTEGER:
        node._parameter_overrides[name] = rclpy.Parameter(name, _Type.DOUBLE, float(override.value))
    elif override is not None and override.type_ == _Type.INTEGER_ARRAY:
        numbers = [float(number) for number in override.value]
        node._parameter_overrides[name] = rclpy.Parameter(name, _Type.DOUBLE_ARRAY, numbers)
