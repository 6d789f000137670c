# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names and types in a ROS parameter file, compared with what the nodes declare. No ROS."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from rfly_bringup.nodes.entry_points import MODULES
from rfly_bringup.nodes.node_set import NodeDescription, StartedNode, node_parameters
from rfly_common.config.checks import finite_number
from rfly_common.config.ros_parameters import NodeSection, read_parameter_file
from rfly_common.errors import ConfigError
from rfly_common.ros.node_parameters import TYPE_NAMES, Parameter, parameters_of

_ALIKE = 0.8
"""Least likeness of a name to the one that is probably meant, 0 to 1."""
_OF_VEHICLE = "NAME."
_OF_EVERY_NODE = {"use_sim_time": bool, "start_type_description_service": bool}


@functools.cache
def declared_types(executable: str) -> dict[str, Any]:
    """Return the types of a node's parameters by name, those of its vehicles as `NAME.…`."""
    return _OF_EVERY_NODE | {name: each.type for name, each in _declared(executable).items()}


@functools.cache
def _declared(executable: str) -> dict[str, Parameter]:
    """Return a node's parameters by name, those of its vehicles as `NAME.…`."""
    module = importlib.import_module(MODULES[executable].rpartition(".")[0] + ".node_parameters")
    return {
        re.sub(r".+\.", _OF_VEHICLE, getattr(group, "PREFIX", "")) + each.name: each
        for group in module.NODES[executable]
        for each in parameters_of(group)
    }


def declared_type(executable: str, name: str) -> Any:
    """Return the type of a node's parameter, None if it has none of this name."""
    types = declared_types(executable)
    return types.get(name) or types.get(_OF_VEHICLE + name.partition(".")[2])


def check_numbers(nodes: Iterable[NodeDescription], arguments: Mapping[str, str]) -> None:
    """Raise ConfigError for the number of an argument that one of these nodes would refuse."""
    for node in nodes:
        values = node_parameters(node, arguments)
        ours = {p: v for p, v in values.items() if type(v) in (int, float)}
        for parameter, value in ours.items():
            declared = _declared(node.executable)[parameter]
            finite_number(
                node.parameters[parameter],
                value,
                declared.unit,
                at_least=declared.low,
                at_most=declared.high,
            )


def is_known(name: str) -> bool:
    """Return whether some node of the suite has a parameter of this name."""
    return any(declared_type(executable, name) for executable in MODULES)


def similar_parameter(name: str, executables: Iterable[str]) -> str:
    """Return the parameter of these nodes that is probably meant, "" if none is alike."""
    known = {known for executable in executables for known in declared_types(executable)}
    return next(iter(get_close_matches(name, known, 1, _ALIKE)), "")


def similar_node(section: str, running: Iterable[str]) -> str:
    """Return the node that a section probably means which fits none of these, "" if none is alike.

    `running` are full names. A node of the suite that does not run here is meant as it is.
    """
    by_word = {name.rpartition("/")[2]: name for name in running}
    word = section.rpartition("/")[2]
    if word in by_word:
        return by_word[word]
    if word in MODULES or word.startswith("*"):
        return ""

    names = {*by_word, *MODULES}
    full = f"{word}_node"
    close = full if full in names else next(iter(get_close_matches(word, names, 1, _ALIKE)), "")
    return by_word.get(close, close)


def check_parameter_file(path: str, nodes: Sequence[StartedNode] = ()) -> list[str]:
    """Return a sentence for each name in a parameter file that none of these nodes has.

    A file without any ros__parameters is one sentence, too.

    Raise ConfigError with file and line for a file that no node could read, or a value of a wrong
    type.
    """
    sections = read_parameter_file(path)
    if not sections:
        return [f"{path}: holds no parameters, expected NODE: {{ros__parameters: {{…}}}}"]
    by_name = {f"/{node.label}": node.executable for node in nodes if node.package == "rfly_suite"}
    warnings = []
    for section in sections:
        takers = {by_name[name] for name in by_name if section.fits(name)}
        meant = "" if takers else similar_node(section.node, by_name)
        if meant:
            warnings.append(
                f"{path}:{section.line}: {section.node} fits no node that starts; "
                f"did you mean {meant}?"
            )
        warnings += _check_section(path, section, takers)
    return warnings


def _check_section(path: str, section: NodeSection, takers: set[str]) -> list[str]:
    """Return a sentence for each parameter that no taker of a section has."""
    warnings = []
    for name, value in section.parameters.items():
        types = {executable: declared_type(executable, name) for executable in takers}
        for executable, kind in types.items():
            if kind is not None and not _takes(kind, value.type):
                given = TYPE_NAMES.get(value.type, "list")
                raise ConfigError(
                    f"{path}:{value.line}: {name} of {executable}: {given}, "
                    f"expected {TYPE_NAMES[kind]}"
                )

        is_elsewhere = name.startswith("qos_overrides.") or (section.is_for_all and is_known(name))
        if takers and not any(types.values()) and not is_elsewhere:
            close = similar_parameter(name, takers)
            hint = f"; did you mean {close}?" if close else ""
            warnings.append(f"{path}:{value.line}: no parameter {name} in {_names(takers)}{hint}")
    return warnings


def _takes(declared: Any, given: Any) -> bool:
    """Return whether a parameter takes a value's type; a whole number is a number too."""
    pairs = {(float, int), (list[float], list[int])}
    is_list = declared not in (bool, int, float, str)
    return declared == given or (declared, given) in pairs or (is_list and given is list)


def _names(executables: set[str]) -> str:
    shown = sorted(executables)
    return shown[0] if len(shown) == 1 else f"{shown[0]} and {len(shown) - 1} more"
