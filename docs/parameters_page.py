# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page docs/reference/parameters.md: tables of all nodes' parameters.

They come from the dataclasses that declare the parameters. `python docs/reference_pages.py` writes
the page. No ROS.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from rfly_bringup.nodes.entry_points import MODULES
from rfly_common.ros.node_parameters import TYPE_NAMES, Parameter, parameters_of

_INTRODUCTION = """# Parameters of the nodes

All are given at the start (`--ros-args -p NAME:=VALUE`, or a YAML file). Those marked
*changeable* also take `ros2 param set` while the node runs. `NAME.` stands for the name of each
vehicle that the parameter `vehicles` lists. Every node also has `use_sim_time`, and
takes `qos_overrides.…` for the QoS of its topics, for example
`qos_overrides./outTerrainPoint.publisher.reliability`; see
[other ROS tools](../howto/other-ros-tools.md).
Written by `python docs/reference_pages.py` from the dataclasses in `*/ros/node_parameters.py`.
"""


def parameters_page() -> str:
    """Return the page in Markdown."""
    sections = [_INTRODUCTION]
    for node, module in MODULES.items():
        groups = importlib.import_module(module.rpartition(".")[0] + ".node_parameters").NODES[node]
        sections.append(f"## {node}\n\n" + "\n".join(_table(groups)) + "\n")
    return "\n".join(sections)


def _table(groups: tuple[type, ...]) -> Iterator[str]:
    yield "| parameter | type | default | allowed | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for group in groups:
        for each in parameters_of(group):
            name = getattr(group, "PREFIX", "") + each.name
            meaning = each.description + (" (*changeable*)" if each.changeable else "")
            cells = (
                f"`{name}`",
                TYPE_NAMES[each.type],
                _default(each),
                _allowed(each),
                meaning,
            )
            escaped = (cell.replace("|", "&#124;").replace("<", "&lt;") for cell in cells)
            yield f"| {' | '.join(escaped)} |"


def _default(each: Parameter) -> str:
    if each.shown:
        return each.shown
    if each.type is float:
        return f"{each.default:g}" if abs(each.default) >= 1e6 else str(each.default)
    if each.type is bool:
        return str(each.default).lower()
    if isinstance(each.default, list):
        return f"[{', '.join(map(str, each.default))}]"
    return str(each.default) or '""'


def _allowed(each: Parameter) -> str:
    if each.choices:
        return ", ".join(each.choices)
    if each.low is None and each.high is None:
        return ""
    if each.high is None:
        return f"≥ {each.low:g}"
    if each.low is None:
        return f"≤ {each.high:g}"
    return f"{_number(each.low)} … {_number(each.high)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    print(parameters_page(), end="")
