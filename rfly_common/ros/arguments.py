# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS's part of a command line, such as `--ros-args -r __ns:=/site`: its errors in one line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import pairwise

import rclpy
import rclpy.logging
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import LoggingSeverity
from rclpy.node import Node

from rfly_common.config.ros_parameters import NodeSection, read_parameter_file
from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import TYPE_NAMES

_RULE = re.compile(
    r"Couldn't parse (?P<what>[\w ]+): '(?P<rule>.*?)'\. Error: (?P<why>.*?), at ", re.DOTALL
)
"""rcl's error for a word of the command line."""
MOST_NAMES = 20
"""Names of parameters or sections that a status carries."""
_EXPECTED = {
    "remap rule": "expected FROM:=TO; names are words of letters, digits and _ that begin with no "
    "digit, joined by single /",
    "parameter override rule": "expected NAME:=VALUE, the value in YAML",
}


def parameter_files(words: Sequence[str]) -> list[str]:
    """Return the parameter files that a command line names."""
    return [path for option, path in pairwise(words) if option == "--params-file"]


class GivenParameters:
    """Parameters that a node was given at its start, and those of them that it does not have."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sections: list[tuple[str, NodeSection]] | None = None
        self._logged: set[str] = set()

    def unknown(self) -> list[Notice]:
        """Return a notice for each parameter that only this node could have; log it once."""
        notices = []
        for name in sorted(self._undeclared() - self._of_all())[:MOST_NAMES]:
            places = (
                f" of {path}:{section.parameters[name].line}"
                for path, section in self._given_sections()
                if name in section.parameters
            )
            close = get_close_matches(name, self._node._parameters, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            text = f"parameter {name}{next(places, '')} is unknown here{hint}"
            notices.append(Notice(text, Reason.UNKNOWN_PARAMETER, name))
            if name not in self._logged:
                self._logged.add(name)
                self._node.get_logger().warning(text)
        return notices

    def values(self) -> dict[str, str]:
        """Return what only a look at all nodes can judge, as values of a status.

        These are parameters of a section for all nodes that this node does not have, and sections
        of its parameter files that name other nodes.
        """
        own_name = self._node.get_fully_qualified_name()
        names = {
            "undeclared_parameters": self._undeclared() & self._of_all(),
            "sections_of_others": {
                section.node
                for _, section in self._given_sections()
                if not section.is_for_all and not section.fits(own_name)
            },
        }
        return {
            key: " ".join(sorted(of_key)[:MOST_NAMES]) for key, of_key in names.items() if of_key
        }

    def _undeclared(self) -> set[str]:
        return self._node._parameter_overrides.keys() - self._node._parameters.keys()

    def _of_all(self) -> set[str]:
        """Return the parameters of sections for all nodes."""
        sections = (section for _, section in self._given_sections() if section.is_for_all)
        return {name for section in sections for name in section.parameters}

    def _given_sections(self) -> list[tuple[str, NodeSection]]:
        """Return the sections of the command line's parameter files, each with its file."""
        if self._sections is None:
            self._sections = []
            for path in parameter_files(sys.argv):
                with suppress(ConfigError):  # rcl has read it: nothing more to say
                    self._sections += [(path, section) for section in read_parameter_file(path)]
        return self._sections


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
