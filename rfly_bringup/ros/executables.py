# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Executables of the nodes: one node, or with `rfly_nodes NODE … --ros-args …` several of them."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from functools import partial

from rclpy.node import Node

from rfly_bringup.nodes.entry_points import GIVEN, MODULES, MOTION_CONTROLLER, SEVERAL, WAKE_OFTEN
from rfly_common.errors import ConfigError
from rfly_common.ros.run_loop import run, run_all
from rfly_common.startup import loaded


def main(executable: str) -> None:
    """Run a node, or those that are named on the command line of `rfly_nodes`."""
    if executable != SEVERAL:
        run(node_maker(executable), often=executable in WAKE_OFTEN)
        return

    names = list(itertools.takewhile(lambda word: word != "--ros-args", sys.argv[1:]))
    try:
        makers = [node_maker(name) for name in names]
        if not makers:
            raise ConfigError(f"no node is named; there are {', '.join(MODULES)}")
    except ConfigError as error:
        print(f"rfly_nodes: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    run_all(makers, often=set(names) <= set(MOTION_CONTROLLER))


def node_maker(name: str) -> Callable[[], Node]:
    """Return the node class of a `*_node` module, with what it is given. Raise ConfigError."""
    if name not in MODULES:
        raise ConfigError(f"{name!r} is no node of rfly_suite; there are {', '.join(MODULES)}")
    module = importlib.import_module(MODULES[name])
    found: type[Node] = next(
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Node)
        and value.__module__ == module.__name__
    )
    return partial(found, **loaded(GIVEN.get(name, {})))
