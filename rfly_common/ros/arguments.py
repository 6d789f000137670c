# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS's part of a command line, such as `--ros-args -r __ns:=/site`: its errors in one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise

import rclpy
import rclpy.logging
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import LoggingSeverity

from rfly_common.config.ros_parameters import Section, read_parameter_file
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import TYPE_NAMES

_RULE = re.compile(
    r"Couldn't parse (?P<what>[\w ]+): '(?P<rule>.*?)'\. Error: (?P<why>.*?), at ", re.DOTALL
)
"""rcl's error for a word of the command line."""
_EXPECTED = {
    "remap rule": "expected FROM:=TO; names are words of letters, digits and _ that begin with no "
    "digit, joined by single /",
    "parameter override rule": "expected NAME:=VALUE, the value in YAML",
}


def parameter_files(words: Sequence[str]) -> list[str]:
    """Return the parameter files that a command line names."""
    return [path for option, path in pairwise(words) if option == "--params-file"]


def sections_of(words: Sequence[str]) -> list[tuple[str, Section]]:
    """Return the sections of a command line's parameter files, each with its file."""
    found = []
    for path in parameter_files(words):
        with suppress(ConfigError):  # a node whose rcl has read it: nothing more to say
            found += [(path, section) for section in read_parameter_file(path)]
    return found


@contextmanager
def refusals_in_one_line() -> Iterator[None]:
    """Raise ConfigError for what ROS refuses of the command line when a node is made.

    rcl logs such an error itself, in two lines more, which are left out.
    """
    level = rclpy.logging.get_logger_level("rcl")
    rclpy.logging.set_logger_level("rcl", LoggingSeverity.FATAL)
    try:
        yield
    except (
        rclpy_implementation.RCLError,
        rclpy_implementation.UnknownROSArgsError,
        NameValidationException,
        ParameterException,
    ) as error:
        _check_parameter_files(sys.argv)
        raise ConfigError(_in_one_line(error)) from None
    finally:
        rclpy.logging.set_logger_level("rcl", level)


def _check_parameter_files(words: Sequence[str]) -> None:
    """Raise ConfigError, with file and line, for what ROS refuses of a file."""
    for path in parameter_files(words):
        for section in read_parameter_file(path):
            value = section.parameters.get("use_sim_time")
            if value is not None and value.type is not bool:
                given = TYPE_NAMES.get(value.type, "list")
                raise ConfigError(
                    f"{path}:{value.line}: use_sim_time: {given}, expected true or false"
                )


def _in_one_line(error: Exception) -> str:
    rule = _RULE.search(str(error))
    if rule is not None:
        why = _EXPECTED.get(rule["what"], " ".join(rule["why"].split()))
        return f"{rule['rule']}: {why}"

    unknown = isinstance(error, rclpy_implementation.UnknownROSArgsError)
    return ("unknown words after --ros-args: " if unknown else "") + " ".join(str(error).split())
